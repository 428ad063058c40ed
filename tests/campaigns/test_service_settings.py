"""The table `[service]` and ready features: what a file says is what comes out, and mistakes are listed."""

from datetime import timedelta

import pytest

from armful.campaigns.settings import ServiceSettings, duration, parse_settings, unservable
from armful.errors import SettingsError

TOP = """\
name = "shop"
id = "item"
[choose]
k = 2
[policy]
cap = 1.0
[outcomes]
reward = "click"
window = "45 seconds"
"""
COLUMNS = """\
[features]
leave_out = ["note"]
[features.columns]
price = { kind = "number" }
brand = { kind = "category" }
country = { kind = "category" }
"""
SERVICE = """\
[service]
update_every = "5 seconds"
explore = 0.05
draws = 30
context = ["country"]
positions = [1, 0.5, 0.25]
largest_body = "512 KiB"
most_arms = 500
rate = 20
timeout = "2.5 seconds"
"""


def parsed(*parts):
    return parse_settings("\n".join(parts), None)


def problems(*parts):
    with pytest.raises(SettingsError) as caught:
        parsed(*parts)
    return caught.value.problems


def test_every_key_of_the_table_arrives():
    settings = parsed(TOP, COLUMNS, SERVICE)
    assert settings.service == ServiceSettings(
        update_every=timedelta(seconds=5),
        explore=0.05,
        draws=30,
        context=("country",),
        positions=(1.0, 0.5, 0.25),
        largest_body=512 * 1024,
        most_arms=500,
        rate=20.0,
        timeout=timedelta(seconds=2.5),
    )
    assert settings.outcomes.window == timedelta(seconds=45)


def test_the_table_may_be_empty_or_left_out():
    assert parsed(TOP, COLUMNS).service is None
    assert parsed(TOP, COLUMNS, "[service]").service == ServiceSettings()
    assert parsed(TOP, COLUMNS, "[service]\npositions = 'estimate'\nexplore = 0.1").service.positions == "estimate"


def test_the_context_is_crossed_with_every_other_column():
    both = SERVICE.replace('["country"]', '["country", "brand"]')
    assert parsed(TOP, COLUMNS, SERVICE).features.interactions == (("price", "country"), ("brand", "country"))
    assert parsed(TOP, COLUMNS, both).features.interactions == (("price", "country"), ("price", "brand"))
    assert parsed(TOP, COLUMNS).features.interactions == ()


@pytest.mark.parametrize("pairs", ['[["price", "brand"]]', "[]"])
def test_pairs_in_the_file_replace_those_of_the_context(pairs):
    columns = COLUMNS.replace("[features]\n", f"[features]\ninteractions = {pairs}\n")
    expected = parsed(TOP, columns).features.interactions
    assert parsed(TOP, columns, SERVICE).features.interactions == expected


def test_ready_features_are_numbered_or_named():
    assert parsed(TOP, "[features]\nready = 3").features.ready == ("x1", "x2", "x3")
    features = parsed(TOP, '[features]\nready = ["price", "e.mail"]\nleave_out = ["region"]').features
    assert features.ready == ("price", "e.mail")
    assert features.leave_out == ("region",)
    assert features.columns == features.interactions == ()
    assert not features.intercept


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("update_every = 30", 'service.update_every must be a duration like "14 days", "2 weeks", "36 hours", '),
        ('update_every = "0 s"', "it must be longer than 0 and at most ten years"),
        ("explore = 1.0", "service.explore must be a share of at least 0 and below 1, got 1.0"),
        ("draws = 0", "service.draws must be a whole number of at least 1, got 0"),
        ('context = "country"', 'service.context must be a list like ["country"], got "country"'),
        ('context = ["contry"]', 'has "contry", which features.columns does not; did you mean "country"?'),
        ('context = ["weather"]', 'has "weather", which features.columns does not; add weather = { kind = ... } there'),
        ('context = ["brand", "brand"]', 'service.context has "brand" twice'),
        ("positions = [1.0]", "service.positions must have a weight for each of the k = 2 places, got 1"),
        ("positions = [1.0, 0.0]", "service.positions must be a list of weights above 0 and up to 1, like [1.0, "),
        ("positions = [1.0, 2.0]", 'or "estimate", got a list'),
        ('positions = "guess"', 'or "estimate", got "guess"'),
        ("positions = []", 'or "estimate", got a list'),
        ('positions = "estimate"', "which needs arms at random places: set explore, like 0.02"),
        ('largest_body = "8 mib"', 'service.largest_body must be a size like "8 MiB" or "500 kB", got "8 mib"'),
        ("largest_body = 0", "it must be at least 1 byte and at most 2,147,483,647"),
        ("largest_body = 1.5", "must be a size like"),
        ("most_arms = 0", "service.most_arms must be a whole number of at least 1, got 0"),
        ("rate = -1", "service.rate must be a number of requests per second, or 0 for no limit, got -1"),
        ('timeout = "2 hours"', "service.timeout must be at most an hour: it is how long a request may take to arrive"),
        ("explor = 0.1", "service.explor is not known; did you mean explore?"),
        ("k = 3", "service.k is not known; it belongs under [choose]"),
    ],
)
def test_a_mistake_is_named_with_its_line(line, sentence):
    (found,) = problems(TOP, COLUMNS, "[service]", line)
    assert found.startswith(f"line {(TOP + COLUMNS).count(chr(10)) + 4}: ")
    assert sentence in found


def test_a_wrong_share_of_exploration_does_not_make_a_second_mistake():
    assert len(problems(TOP, COLUMNS, "[service]\npositions = 'estimate'\nexplore = 'much'")) == 1


@pytest.mark.parametrize(
    ("features", "sentence"),
    [
        (
            "ready = 0",
            'features.ready must be a number of features, or a list of their names like ["price", "age"], got 0',
        ),
        ("ready = []", "features.ready must be a number of features"),
        ("ready = ['a', 'a']", "it has a name twice"),
        ("ready = ['a', 3]", "features.ready must be a number of features"),
        ("ready = 10_001", "at most 10,000 features can be used"),
        ("ready = ['a', 'item']", 'features.ready must not have "item", since it is the id; take it out'),
        ("ready = ['click']", 'features.ready must not have "click", since it is the reward; take it out'),
        ("ready = ['a']\nleave_out = ['a']", 'has "a", which is in features.ready too; take one out'),
        ("ready = 2\nintercept = true", "features.intercept is not used with features.ready"),
        ("ready = 2\ninteractions = []", "features.interactions is not used with features.ready"),
        ("ready = 2\ncolumns.a.kind = 'number'", "features.columns is not used with features.ready"),
        ("ready = 2\n[service]\ncontext = ['a']", "service.context needs features.columns: ready features are not"),
    ],
)
def test_a_mistake_in_ready_features_is_named(features, sentence):
    (found,) = problems(TOP, "[features]", features)
    assert sentence in found


def test_quotas_of_ready_features_are_on_columns_that_are_listed():
    quota = '[[choose.quotas]]\ncolumn = "region"\nat_most = 1'
    (found,) = problems(TOP, "[features]\nready = 2", quota)
    assert 'must be a column that features lists, got "region"' in found
    assert parsed(TOP, "[features]\nready = 2\nleave_out = ['region']", quota).choose.quotas


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "k = 2",
            "k = 2\nrest = 1",
            "choose.rest must be 0 for a service: arms are shown again and again; take it out",
        ),
        ("[policy]", "[holdout]\nno_contact = 0.1\n[policy]", "holdout.no_contact must be 0 for a service"),
        (
            "[policy]",
            '[holdout]\nrule = "score"\nscore = "note"\n[policy]',
            'holdout.rule must be "random" for a service',
        ),
    ],
)
def test_what_makes_no_sense_for_single_decisions_is_refused(old, new, sentence):
    changed = TOP.replace(old, new)
    (found,) = problems(changed, COLUMNS, "[service]")
    assert sentence in found
    settings = parsed(changed, COLUMNS)
    ((_, said),) = unservable(settings)
    assert said in found
    assert unservable(parsed(TOP, COLUMNS)) == []


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("30s", 30), ("1 second", 1), ("0.5 seconds", 0.5), ("5m", 300), ("5 min", 300), ("2h", 7200), ("90d", 7776000)],
)
def test_durations_may_be_written_shortly(written, seconds):
    assert duration(written) == timedelta(seconds=seconds)


@pytest.mark.parametrize("written", ["", "s", "-3 s", "3", "3 x", "1e3 s", "3 S", "٣ s", None, 3])
def test_what_is_no_duration_is_refused(written):
    with pytest.raises(ValueError):
        duration(written)
