"""Settings: what a file says is what comes out, and what is wrong in it is listed with its line."""

import re
from datetime import UTC, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from armful import policies
from armful.campaigns.settings import (
    BudgetSettings,
    ChooseSettings,
    ColumnSettings,
    FeatureSettings,
    HoldoutSettings,
    LearningSettings,
    OutcomeSettings,
    PolicySettings,
    QuotaSettings,
    Settings,
    parse_settings,
    read_settings,
)
from armful.errors import SettingsError

FULL = """\
name = "autumn"
store = "postgresql://me@host/campaigns"
source = "../customers.csv"
id = "customer_id"
seed = 3
delimiter = ";"
[choose]
k = 500
rest = 3
exclude = ["opted-out.csv"]
require = [
  "vip.csv",
]
[[choose.quotas]]
column = "region"
at_least = 0.1
at_most = { north = 100, south = 0.4 }
[[choose.quotas]]
column = "city"
at_most = 50
nested = true
[choose.budget]
column = "cost"
limit = 10000
[policy]
kind = "C2UCB"
ridge = 2.0
[features]
intercept = false
interactions = [["job", "age"]]
leave_out = ["duration", "cost", "city", "old_score", ""]
[features.columns]
age = { kind = "number", spline = 4 }
balance = { kind = "number", log = true }
job = { kind = "category", at_most = 12 }
region = { kind = "category" }
education = { kind = "ordered", order = ["basic", "university", 3] }
signup = { kind = "date" }
notes = { kind = "text", buckets = 8 }
[outcomes]
reward = "bought"
id = "client"
round = "week"
time = "date"
timezone = "Europe/Lisbon"
window = "36 hours"
missing = "unknown"
learn = "at once"
repeats = "sum"
[holdout]
share = 0.1
rule = "score"
score = "old_score"
no_contact = 0.02
[learning]
discount = 0.9
shock = 0.5
"""

SMALL = """\
name = "autumn"
id = "customer_id"
[choose]
k = 10
[policy]
cap = 1.0
[features.columns]
age = { kind = "number" }
region = { kind = "category" }
[outcomes]
reward = "bought"
"""


AGE, REWARD = 'age = { kind = "number" }', 'reward = "bought"'


@pytest.fixture
def folder(tmp_path):
    for name in ("opted-out.csv", "vip.csv"):
        (tmp_path / name).write_text("customer_id\n7\n")
    return tmp_path


def problems(text, folder="."):
    with pytest.raises(SettingsError) as caught:
        parse_settings(text, folder)
    return caught.value.problems


def changed(old, new, text=SMALL):
    """Return the text with one line replaced, and its number."""
    assert text.count(old) == 1
    return text.replace(old, new), text[: text.index(old)].count("\n") + 1


def test_every_key_of_the_file_arrives(folder):
    assert parse_settings(FULL, folder) == Settings(
        name="autumn",
        store="postgresql://me@host/campaigns",
        source="../customers.csv",
        id="customer_id",
        seed=3,
        delimiter=";",
        folder=folder,
        text=FULL,
        choose=ChooseSettings(
            k=500,
            rest=3,
            exclude=("opted-out.csv",),
            require=("vip.csv",),
            quotas=(
                QuotaSettings(column="region", at_least=0.1, at_most={"north": 100, "south": 0.4}),
                QuotaSettings(column="city", at_most=50, nested=True),
            ),
            budget=BudgetSettings(column="cost", limit=10000.0),
        ),
        policy=PolicySettings(kind="C2UCB", options={"ridge": 2.0}),
        features=FeatureSettings(
            intercept=False,
            interactions=(("job", "age"),),
            leave_out=("duration", "cost", "city", "old_score", ""),
            columns=(
                ColumnSettings(name="age", kind="number", spline=4),
                ColumnSettings(name="balance", kind="number", log=True),
                ColumnSettings(name="job", kind="category", at_most=12),
                ColumnSettings(name="region", kind="category"),
                ColumnSettings(name="education", kind="ordered", order=("basic", "university", "3")),
                ColumnSettings(name="signup", kind="date"),
                ColumnSettings(name="notes", kind="text", buckets=8),
            ),
        ),
        outcomes=OutcomeSettings(
            reward="bought",
            id="client",
            round="week",
            time="date",
            timezone="Europe/Lisbon",
            window=timedelta(hours=36),
            missing=None,
            learn_at_once=True,
            repeats="sum",
        ),
        holdout=HoldoutSettings(share=0.1, rule="score", score="old_score", no_contact=0.02),
        learning=LearningSettings(discount=0.9, shock=0.5),
    )


def test_what_is_left_out_has_its_default():
    found = parse_settings(SMALL, ".")
    assert found.store == "sqlite:///ledger.sqlite"
    assert (found.source, found.seed, found.delimiter) == (None, 0, ",")
    assert found.choose == ChooseSettings(k=10)
    assert found.outcomes == OutcomeSettings(reward="bought", id="customer_id")
    assert found.holdout == HoldoutSettings()
    assert found.learning == LearningSettings()
    assert found.features.intercept
    assert found.policy == PolicySettings(kind="CappedC2UCB", options={"cap": 1.0})


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('name = "autumn"', "name = 5", "name must be a name in quotes, of at most 200 characters on one line, got 5"),
        ('name = "autumn"', "", "name is missing: it must be a name in quotes, of at most 200 characters on one line"),
        ('id = "customer_id"', "id = ''", 'id must be the name of a column, in quotes, got ""'),
        ("k = 10", "k = 0", "choose.k must be a whole number of at least 1, got 0"),
        ("k = 10", "k = 10.0", "choose.k must be a whole number of at least 1, got 10.0"),
        ("k = 10", "k = true", "choose.k must be a whole number of at least 1, got true"),
        ("k = 10", "k = 9999999999", "it must not exceed 2,147,483,647"),
        ("k = 10", "k = [10]", "choose.k must be a whole number of at least 1, got a list"),
        ("k = 10", "k = 10\nrest = -1", "choose.rest must be a whole number of at least 0, got -1"),
        ("k = 10", 'k = 10\nexclude = "a.csv"', 'choose.exclude must be a list like ["ids.csv"], got "a.csv"'),
        ("k = 10", 'k = 10\nexclude = ["no.csv"]', 'choose.exclude must be a file that exists, relative to ., got "no'),
        ("k = 10", "k = 10\nrequire = [\n3]", "choose.require must be a file that exists, relative to ., got 3"),
        ("k = 10", "k = 10\nreest = 1", "choose.reest is not known; did you mean rest?"),
        ("k = 10", "k = 10\nwindow = '1 day'", "choose.window is not known; it belongs under [outcomes]"),
        ("k = 10", "k = 10\nseed = 1", "choose.seed is not known; it belongs above the first [table]"),
        ("k = 10", "k = 10\nzzz = 1", "choose.zzz is not known; known here: k, rest, exclude, require, quotas, budget"),
        (REWARD, 'reward = "customer_id"', 'outcomes.reward must be another column than id, got "cus'),
        (REWARD, REWARD + '\nround = "bought"', 'outcomes.round must be another column than reward, got "b'),
        (REWARD, 'reward = "age"', "features.columns.age must not be a feature, since it is the reward"),
        (REWARD, REWARD + '\nwindow = "14"', 'outcomes.window must be a duration like "14 days", "2 '),
        (REWARD, REWARD + "\nwindow = 14", "or " + '"30 seconds", got 14'),
        (REWARD, REWARD + '\nwindow = "0 days"', "it must be longer than 0 and at most ten years"),
        (REWARD, REWARD + '\nwindow = "999999999 weeks"', "longer than 0 and at most ten years"),
        (REWARD, REWARD + '\nwindow = "3 moons"', 'or "30 seconds", got "3 moons"'),
        (REWARD, REWARD + '\nmissing = "?"', 'outcomes.missing must be a number or "unknown", got "?"'),
        (REWARD, REWARD + "\nmissing = nan", 'outcomes.missing must be a number or "unknown", got nan'),
        (REWARD, REWARD + '\nlearn = "at onse"', 'got "at onse"; did you mean "at once"?'),
        (REWARD, REWARD + '\nrepeats = "mean"', 'one of "refuse", "last", "sum", "max", got "mean"'),
        (REWARD, REWARD + '\ntimezone = "Europe/Lisbn"', 'did you mean "Europe/Lisbon"?'),
        (REWARD, REWARD + '\ntimezone = "../x"', 'outcomes.timezone must be a time zone like "UTC"'),
        (REWARD, REWARD + "\ntimezone = 2", 'outcomes.timezone must be a time zone like "UTC" or "'),
        (AGE, "age = { }", "features.columns.age.kind is missing: it must be one of " + '"num'),
        (AGE, 'age = "number"', "features.columns.age must be a table like { kind = "),
        (AGE, 'age = { kind = "numbr" }', 'got "numbr"; did you mean "number"?'),
        (
            'age = { kind = "number" }',
            'age = { kind = "number", spline = 1 }',
            "spline must be a whole number of at le",
        ),
        (
            'age = { kind = "number" }',
            'age = { kind = "number", spline = 4, log = true }',
            "and log exclude each other",
        ),
        (
            'age = { kind = "number" }',
            'age = { kind = "date", log = true }',
            'log is an option of kind "number", and t',
        ),
        (
            'age = { kind = "number" }',
            'age = { kind = "ordered" }',
            "features.columns.age.order is missing: it must be",
        ),
        (AGE, 'age = { kind = "ordered", order = [1] }', "must have two values or more"),
        (AGE, 'age = { kind = "ordered", order = ["1", 1] }', "must not have a value twice"),
        (AGE, 'age = { kind = "ordered", order = [1, 0.5] }', "a whole number, got 0.5"),
        (AGE, 'age = { kind = "text", buckets = 0 }', "a whole number of at least 1, got 0"),
        (
            'age = { kind = "number" }',
            'age = { kind = "category", at_most = 0 }',
            "a whole number of at least 1, got 0",
        ),
        (AGE, 'age = { kind = "number", lg = true }', "age.lg is not known; did you mean log?"),
        (AGE, 'customer_id = { kind = "text" }', "must not be a feature, since it is the id"),
        (AGE, 'leave_out = ["x"]', "leave_out belongs under [features], above [features.colu"),
        (
            "cap = 1.0",
            "",
            "policy.cap is missing: CappedC2UCB needs a number that no mean reward exceeds, like cap = 1.0",
        ),
        ("cap = 1.0", "cap = -1.0", "policy.cap must not be negative, got -1.0"),
        ("cap = 1.0", 'cap = "1"', "policy.cap must be a finite number, got '1'"),
        ("cap = 1.0", "cap = 1.0\nrdge = 1", "policy.rdge is not an option of CappedC2UCB; did you mean ridge?"),
        ("cap = 1.0", "cap = 1.0\nseed = 1", "policy.seed must not be set here: it stands at the top of the file"),
        ("cap = 1.0", "cap = 1.0\nn_features = 1", "policy.n_features must not be set here: the features decide"),
        ("cap = 1.0", 'kind = "CapedC2UCB"', 'got "CapedC2UCB"; did you mean "CappedC2UCB"?'),
        ("cap = 1.0", 'kind = "Policy"', 'policy.kind must be one of "C2UCB", "ArmwiseThompson", "CappedC2UCB", '),
        ("cap = 1.0", 'kind = "EpsilonGreedy"\nepsilon = 2', "policy.epsilon must be from 0 to 1, got 2"),
        (
            "cap = 1.0",
            'kind = "EpsilonGreedy"\ncap = 2',
            "policy.cap is not an option of EpsilonGreedy; its options are",
        ),
        ("cap = 1.0", "cap = 1.0\nradius = []", "policy.radius must be a number"),
    ],
)
def test_a_mistake_is_named_with_its_line(old, new, sentence):
    text, line = changed(old, new)
    found = problems(text)
    assert len(found) == 1, found
    assert sentence in found[0]
    # A wrong value is on one of the new lines; what is missing is noted at the header of its table, or on line 1.
    elsewhere = {"name is missing": 1, "policy.cap is missing": 5, "since it is the reward": 8}
    at = next((number for words, number in elsewhere.items() if words in found[0]), None)
    lines = range(line, line + new.count("\n") + 1) if at is None else [at]
    assert int(re.match(r"line (\d+): ", found[0])[1]) in lines


def test_settings_from_a_store_do_not_need_their_files(folder):
    assert parse_settings(FULL, None).choose == parse_settings(FULL, folder).choose
    assert problems(SMALL.replace("k = 10", "k = 10\nexclude = [3]"), None) == [
        "line 5: choose.exclude must be a file, in quotes, got 3"
    ]


@pytest.mark.parametrize(
    ("quotas", "sentence"),
    [
        ("column = 'region'", "choose.quotas needs at_least or at_most"),
        ("at_most = 3", "choose.quotas.column is missing: it must be the name of a column, in quotes"),
        ("column = 'region'\nat_least = 1.5", "counts are whole numbers, without a decimal point"),
        ("column = 'region'\nat_least = -1", "a whole number, or a share of k from 0.0 to 1.0, got -1"),
        ("column = 'region'\nat_most = { a = 'x' }", "choose.quotas.at_most.a must be a whole number, or"),
        ("column = 'region'\nat_most = true", "a share of k from 0.0 to 1.0, got true"),
        ("column = 'region'\nat_least = 5\nat_most = 4", "must not exceed at_most, got 5 and 4"),
        ("column = 'region'\nat_least = 11", "is for every group, and must not exceed k = 10, got 11"),
        ("column = 'region'\nat_least = 0.5\nat_most = 4", "must not exceed at_most, got 5 and 4"),
        ("column = 'region'\nat_least = { a = 5 }\nat_most = 4", "must not exceed at_most of " + '"a", got 5 and 4'),
        ("column = 'region'\nat_least = 5\nat_most = { a = 4 }", "must not exceed at_most of " + '"a", got 5 and 4'),
        ("column = 'region'\nat_least = { a = 0.7, b = 0.4 }", "shares that must not add up to more than 1, got 1.1"),
        ("column = 'region'\nat_least = { a = 7, b = 0.4 }", "must not add up to more than k = 10, got 11"),
        (
            "column = 'regoin'\nat_least = 1",
            'must be a column that features lists, got "regoin"; did you mean "region"?',
        ),
        ("column = 'xyz'\nat_least = 1", "if it is no feature, put it into features.leave_out"),
        ("column = 'region'\nat_least = 1\nnested = true", "choose.quotas.nested is for the second quota and later"),
        ("column = 'region'\nat_least = 1\nnested = 1", "choose.quotas.nested must be true or false, got 1"),
        ("column = 'region'\nat_lest = 1\nat_most = 2", "choose.quotas.at_lest is not known; did you mean at_least?"),
        ("column = 'region'\nat_most = 2\n[[choose.quotas]]\ncolumn = 'region'\nat_least = 1", "a second time"),
        (
            "column = 'region'\nat_most = 2\n[[choose.quotas]]\ncolumn = 'age'\nat_least = 1\n"
            "[[choose.quotas]]\ncolumn = 'city'\nat_least = 1\nnested = true",
            "choose.quotas.nested must be the same in all quotas after the first",
        ),
    ],
)
def test_a_quota_that_cannot_be_met_or_read_is_named(quotas, sentence):
    text = "features.leave_out = ['city']\n" + SMALL + f"[[choose.quotas]]\n{quotas}\n"
    found = problems(text)
    assert len(found) == 1, found
    assert sentence in found[0]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ("[choose.quotas]\ncolumn = 'region'", "must be tables with two brackets, [[choose.quotas]], got a table"),
        ("[choose.budget]\ncolumn = 'region'", "choose.budget.limit is missing: it must be a number above 0"),
        ("[choose.budget]\ncolumn = 'region'\nlimit = 0", "choose.budget.limit must be a number above 0, got 0"),
        ("[choose.budget]\ncolumn = 'cost'\nlimit = 1", "choose.budget.column must be a column that features lists"),
        ("[choose.budget]\ncolumn = 'age'\nlimit = inf", "choose.budget.limit must be a number above 0, got inf"),
        ("[holdout]\nshare = 1", "holdout.share must be a share of at least 0 and below 1, got 1"),
        (
            "[holdout]\nshare = 0.5\nno_contact = 0.5",
            "no_contact and share must add up to less than 1, got 0.5 and 0.5",
        ),
        ("[holdout]\nrule = 'score'", 'holdout.rule is "score", which needs the column: score = "..."'),
        (
            "[holdout]\nscore = 'age'",
            'holdout.score is only used with rule = "score"; set the rule, or leave the score',
        ),
        ("[holdout]\nrule = 'score'\nscore = 'agee'", 'holdout.score must be a column that features lists, got "agee"'),
        ("[learning]\ndiscount = 0", "learning.discount must be a number above 0 and up to 1, got 0"),
        ("[learning]\ndiscount = 1.1", "learning.discount must be a number above 0 and up to 1, got 1.1"),
        ("[learning]\nshock = -0.1", "learning.shock must be a number that is 0 or larger, got -0.1"),
        ("[lerning]\nshock = 1", "lerning is not known; did you mean learning?"),
        ("[features]\nintercept = 1", "features.intercept must be true or false, got 1"),
        (
            "[features]\nleave_out = ['age']",
            'features.leave_out has "age", which is in features.columns too; take one out',
        ),
        ("[features]\nleave_out = ['x', 'x']", 'features.leave_out has "x" twice'),
        ("[features]\nleave_out = [1]", "features.leave_out must be the name of a column, in quotes, got 1"),
        ("[features]\ninteractions = [['age', 'age']]", 'must be of two different columns, got "age" twice'),
        ("[features]\ninteractions = [['age', 'regio']]", 'which features.columns does not; did you mean "region"?'),
        ("[features]\ninteractions = [['age', 'zz']]", "add zz = { kind = ... }, or take the pair out"),
        (
            "[features]\ninteractions = ['age', 'region']",
            'features.interactions must be a pair of columns, like ["job", ',
        ),
        ("[features]\ninteractions = [['age', 'region'], ['region', 'age']]", 'has the pair "region", "age" twice'),
    ],
)
def test_a_mistake_in_another_table_is_named(more, sentence):
    found = problems(SMALL + more)
    assert sentence in found[0]
    assert len({problem.partition(":")[0] for problem in found}) == 1  # one line
    assert int(found[0].split()[1].rstrip(":")) > SMALL.count("\n")


@pytest.mark.parametrize(
    "store", ["mysql://host/x", "sqlite://", "sqlite:///", "postgres://host/x", "postgresql:host", "ledger.sqlite", "5"]
)
def test_a_store_of_another_kind_is_refused(store):
    (problem,) = problems(f'store = "{store}"\n' + SMALL)
    assert problem.startswith('line 1: store must be a URL like "sqlite:///ledger.sqlite" or "postgresql://user@host/')


@pytest.mark.parametrize("store", ["sqlite:////tmp/x.sqlite", "postgresql+psycopg://h/x", "sqlite:///C:/x.sqlite"])
def test_a_store_that_is_known_is_taken(store):
    assert parse_settings(f'store = "{store}"\n' + SMALL, ".").store == store


def test_no_password_is_printed():
    (problem,) = problems('store = "mysql://me:secret@host/x"\n' + SMALL)
    assert "secret" not in problem
    assert "me:***@host" in problem


@pytest.mark.parametrize("delimiter", ["", ";;", "é", '\\"', "\\n"])
def test_a_delimiter_is_one_character(delimiter):
    (problem,) = problems(f'delimiter = "{delimiter}"\n' + SMALL)
    assert 'delimiter must be one character, like "," or ";", got ' in problem


def test_all_mistakes_are_listed_at_once_in_the_order_of_the_lines(folder):
    text = FULL
    for old, new in [
        ("k = 500", "k = 0"),
        ('"vip.csv"', '"nobody.csv"'),
        ("ridge = 2.0", "ridge = -2.0\nnorm = -1.0\nrigde = 1"),
        ('kind = "date"', 'kind = "day"'),
        ('window = "36 hours"', 'window = "36"'),
        ("share = 0.1", "share = 2"),
    ]:
        text, _ = changed(old, new, text)
    found = problems(text, folder)
    marks = ("k = 0", "nobody", "ridge = -2", "norm = -1", "rigde", '"day"', '"36"', "share = 2")
    lines = text.splitlines()
    assert [int(problem.split()[1].rstrip(":")) for problem in found] == [
        next(number for number, line in enumerate(lines, 1) if mark in line) for mark in marks
    ]
    assert [problem.split()[2] for problem in found] == [
        "choose.k",
        "choose.require",
        "policy.ridge",
        "policy.norm",
        "policy.rigde",
        "features.columns.signup.kind",
        "outcomes.window",
        "holdout.share",
    ]


def test_an_empty_file_says_what_is_needed():
    assert [problem.split()[2] for problem in problems("")] == [
        "id",
        "outcomes.reward",
        "name",
        "choose.k",
        "features.columns",
        "policy.cap",
    ]


def test_the_message_counts_the_mistakes(tmp_path):
    path = tmp_path / "campaign.toml"
    path.write_text(SMALL.replace("k = 10", "k = 0"))
    with pytest.raises(SettingsError) as caught:
        read_settings(path)
    assert str(caught.value).splitlines() == [f"{path} has 1 mistake:", "  " + caught.value.problems[0]]
    path.write_text(SMALL.replace("k = 10", "k = 0").replace("cap = 1.0", "cap = -1"))
    with pytest.raises(SettingsError, match=r"campaign.toml has 2 mistakes:\n  line 4: .*\n  line 6: "):
        read_settings(tmp_path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a = 1\nb =", "line 2: this is not TOML: invalid value; texts need quotes"),
        ("cap = 1,5", "; write decimals with a point"),
        ("at_least = 20%", "; write 20 % as 0.2"),
        ("kind = number", "line 1: this is not TOML: invalid value; texts need quotes"),
        ("a = 1\n\na = 2", "line 3: this is not TOML: cannot overwrite a value; it is already there in a line above"),
        ("[a]\n[a]", "line 2: this is not TOML: cannot declare ('a',) twice; it is already there in a line above"),
        ('x = 1\nsource = "C:\\data\\x.csv"', "line 2: this is not TOML: "),
        ('source = "C:\\data"', "write / instead of \\, or put the text in single quotes"),
        ("a = [1,\n2", "line 2: this is not TOML: "),
        ("x = " + "9" * 5000, "line 1: this is not TOML: "),
        ("x = " + "[" * 5000, "line 1: "),
    ],
)
def test_text_that_is_not_toml_is_one_mistake_with_its_line(text, sentence):
    (problem,) = problems(text)
    assert sentence in problem
    assert problem.startswith("line ")


def test_marks_of_windows_editors_are_ignored(tmp_path):
    expected = parse_settings(SMALL, tmp_path)
    path = tmp_path / "campaign.toml"
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        path.write_bytes(SMALL.encode(encoding))
        assert read_settings(path) == expected
    path.write_bytes(SMALL.replace("\n", "\r\n").encode())
    assert read_settings(tmp_path).choose == expected.choose


def test_a_file_in_another_encoding_is_named_with_the_line(tmp_path):
    path = tmp_path / "campaign.toml"
    path.write_bytes("name = 'a'\nid = 'Straße'\n".encode("latin-1"))
    with pytest.raises(SettingsError, match="line 2: this is not UTF-8; save the file as UTF-8"):
        read_settings(path)


def test_a_folder_without_settings_says_how_to_begin(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"campaign.toml does not exist; .*`armful init .* writes one"):
        read_settings(tmp_path)


def test_times_without_a_zone_are_read_in_the_zone_of_the_settings():
    assert parse_settings(SMALL, ".").outcomes.zone is UTC
    assert parse_settings(SMALL + "timezone = 'Asia/Tokyo'", ".").outcomes.zone == ZoneInfo("Asia/Tokyo")


@pytest.mark.parametrize(
    ("written", "window"),
    [
        ("14 days", timedelta(days=14)),
        ("1 day", timedelta(days=1)),
        ("1.5 weeks", timedelta(days=10.5)),
        (" 90minutes ", timedelta(minutes=90)),
        ("2 hours", timedelta(hours=2)),
    ],
)
def test_windows_are_durations(written, window):
    assert parse_settings(SMALL + f"window = '{written}'", ".").outcomes.window == window


KINDS = sorted(
    name for name in policies.__all__ if isinstance(kind := getattr(policies, name), type) and "learn" in dir(kind)
)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "Policy"])
def test_every_policy_can_be_made(kind):
    text = SMALL.replace("cap = 1.0", f'kind = "{kind}"\nridge = 2.5' + "\ncap = 3" * (kind == "CappedC2UCB"))
    policy = parse_settings(text, ".").policy.make(4, seed=7)
    assert type(policy) is getattr(policies, kind)
    assert (policy.n_features, policy.ridge) == (4, 2.5)


def test_a_combination_that_the_policy_refuses_is_noted():
    (problem,) = problems(SMALL.replace("cap = 1.0", 'norm = 1.0\nrule = "paper"'))
    assert problem == "line 7: policy: rule='paper' needs cap, the largest mean reward B"


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.dates(),
    st.just([]),
    st.just([1, "a"]),
    st.just({}),
    st.just({"a": 1}),
)


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_value_under_any_key_is_taken_or_noted_and_never_raises_anything_else(data):
    lines = FULL.replace('"opted-out.csv"', "").replace('  "vip.csv",\n', "").splitlines()
    keys = [i for i, line in enumerate(lines) if re.match(r"\w+ = [^\[]", line)]
    i = data.draw(st.sampled_from(keys))
    value = data.draw(VALUES)
    text = {True: "true", False: "false", None: "''"}.get(value) if isinstance(value, bool | None) else None
    if isinstance(value, str):
        text = "'" + re.sub(r"[^ -&(-~]", "", value) + "'"
    elif isinstance(value, dict):
        text = "{ a = 1 }" if value else "{}"
    lines[i] = f"{lines[i].split()[0]} = {text or value}"
    found: list[str] = []
    try:
        parse_settings("\n".join(lines), ".")
    except SettingsError as error:
        found = error.problems
    assert all(re.match(r"line \d+: \S", problem) for problem in found)
