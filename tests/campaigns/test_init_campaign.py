"""`init_campaign`: whatever the file, the settings that are written are valid; nothing is overwritten or half done."""

import errno
import os
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from armful.campaigns import init as _init_campaign
from armful.campaigns.features import FeatureRecipe
from armful.campaigns.init import _writing, init_campaign
from armful.campaigns.settings import parse_settings, read_settings
from armful.errors import FileFormatError

N = 300


def customers(**more):
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "customer_id": [f"C{i}" for i in range(N)],
            "age": rng.integers(18, 90, N),
            "region": rng.choice(["north", "south", "west"], N),
            "balance": np.exp(rng.normal(5, 2, N)).round(2),
            "signup": np.datetime64("2025-01-01") + rng.integers(0, 300, N),
            "duration": rng.integers(0, 900, N),
            **more,
        }
    )


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "customers.csv"
    pa.csv.write_csv(customers(), path)
    return path


def test_a_file_of_customers_becomes_settings_that_say_what_was_guessed(tmp_path, source):
    result = init_campaign(tmp_path / "autumn", source)
    assert result.path == tmp_path / "autumn" / "campaign.toml"
    found = read_settings(result.path)
    assert (found.name, found.id, found.choose.k, found.delimiter) == ("autumn", "customer_id", 30, ",")
    assert {column.name: column.kind for column in found.features.columns} == {
        "age": "number",
        "region": "category",
        "balance": "number",
        "signup": "date",
    }
    assert [column.name for column in found.features.columns if column.log] == ["balance"]
    assert found.features.leave_out == ("duration",)
    assert (found.outcomes.reward, found.outcomes.id, found.outcomes.window.days) == ("reward", "customer_id", 14)
    assert (found.holdout.share, found.policy.options) == (0.05, {"cap": 1.0})
    assert "300 rows with 6 columns" in result.explanations
    assert "numbers by their logarithm, since they are very skewed: balance" in result.explanations
    assert any("duration" in question for question in result.questions)
    assert any("outcomes.reward" in question for question in result.questions)
    assert result.to_dict() == {
        "path": str(result.path),
        "explanations": result.explanations,
        "questions": result.questions,
    }


def test_the_recipe_can_be_fitted_to_the_settings_as_they_are(tmp_path):
    path = tmp_path / "customers.parquet"
    table = customers()
    pa.parquet.write_table(table, path)
    found = read_settings(init_campaign(tmp_path / "autumn", path).path)
    recipe = FeatureRecipe.fit(found.features, table.to_batches())
    features = recipe.transform(table.to_batches()[0])
    assert features.shape == (N, recipe.n_features)
    assert np.isfinite(features).all()


def uncommented(text):
    """Return the settings with every option that is in a comment, which ends where a sentence begins."""
    lines = []
    for line in text.splitlines():
        option = re.fullmatch(r"# (\[\[?[\w.]+\]\]?|\w+ = .*)", line)
        lines.append(line if option is None else option[1])
    return "\n".join(lines)


def test_every_option_is_shown_and_those_in_comments_are_valid_too(tmp_path, source):
    text = init_campaign(tmp_path / "autumn", source).path.read_text()
    for name in ("opted-out.csv", "vip.csv"):
        (tmp_path / name).touch()
    full = uncommented(text).replace('rule = "random"', 'rule = "score"').replace('score = "..."', 'score = "duration"')
    full = full.replace('"duration", ', '"duration", "cost",')
    found = parse_settings(full.replace('column = "cost"', 'column = "duration"'), tmp_path)
    assert found.choose.exclude == ("opted-out.csv",)
    assert found.choose.quotas[0].column == "region"
    assert set(found.choose.quotas[0].at_most) < {"north", "south", "west"}
    assert found.choose.budget.limit == 10_000
    assert found.outcomes.time == "date"
    assert len(found.features.interactions) == 1
    for key in ("spline", "at_most", "order", "buckets", "seed", "nested", "timezone", "discount", "shock"):
        assert re.search(rf"\b{key} = ", text), key


def test_a_reward_in_the_file_decides_the_cap_and_is_no_feature(tmp_path):
    rng = np.random.default_rng(0)
    amounts = np.where(rng.random(N) < 0.3, rng.uniform(1, 130, N), 0.0)
    for columns, reward, cap in [
        ({"bought": rng.integers(0, 2, N)}, "bought", 1.0),
        ({"response": rng.choice(["yes", "no"], N)}, "response", 1.0),
        ({"revenue": amounts}, "revenue", 200.0),
        ({"profit": -amounts}, "profit", 0.0),
    ]:
        path, folder = tmp_path / f"{reward}.parquet", tmp_path / reward
        pa.parquet.write_table(customers(**columns), path)
        found = read_settings(init_campaign(folder, path).path)
        assert found.outcomes.reward == reward
        assert found.policy.options["cap"] == cap
        assert reward in found.features.leave_out


def test_a_column_that_tells_the_reward_is_left_out_and_asked_about(tmp_path):
    bought = np.random.default_rng(0).integers(0, 2, N)
    path = tmp_path / "customers.parquet"
    pa.parquet.write_table(customers(bought=bought, invoice=np.where(bought, "sent", "none")), path)
    result = init_campaign(tmp_path / "autumn", path)
    assert {"invoice", "bought"} <= set(read_settings(result.path).features.leave_out)
    assert any("It nearly tells bought" in question for question in result.questions)


def test_what_the_user_names_is_used(tmp_path, source):
    text = source.read_text().replace(",", ";")
    source.write_text(text)
    result = init_campaign(tmp_path / "a", source, reward="visits", k=7, delimiter=";", name="Herbst", id="customer_id")
    found = read_settings(result.path)
    assert (found.outcomes.reward, found.choose.k, found.delimiter, found.name) == ("visits", 7, ";", "Herbst")
    assert read_settings(init_campaign(tmp_path / "b", source, reward="age").path).features.leave_out == (
        "age",
        "duration",
    )


def test_the_source_is_seen_from_the_folder(tmp_path, source, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert read_settings(init_campaign("autumn", "customers.csv").path).source == "../customers.csv"
    assert read_settings(init_campaign("winter", source).path).source == str(source)


@pytest.mark.parametrize(
    ("change", "options", "sentence"),
    [
        (lambda t: t.drop_columns("customer_id"), {}, "has no column that is evidently the id of a customer, and a ca"),
        (lambda t: pa.concat_tables([t, t]), {}, r"\('customer_id' is not it: some of its values are missing or repea"),
        (lambda t: t, {"id": "customerid"}, "has no column 'customerid'; did you mean 'customer_id'?"),
        (lambda t: t, {"id": "region"}, "column 'region' of .* cannot be the id: it has '.*' in several rows, and"),
        (lambda t: t, {"reward": "customer_id"}, "the reward must be another column than the id, got 'customer_id' fo"),
        (lambda t: t, {"k": 0}, "k must be a whole number of at least 1, got 0"),
        (lambda t: t.select(["customer_id", "duration"]), {}, "has no column that can be a feature: duration"),
        (lambda t: t.select(["customer_id"]), {}, "has no column that can be a feature: it has the ids alone"),
    ],
)
def test_a_file_that_is_not_enough_is_refused_in_a_sentence_and_nothing_is_left(tmp_path, change, options, sentence):
    path = tmp_path / "customers.parquet"
    pa.parquet.write_table(change(customers()), path)
    with pytest.raises(ValueError, match=sentence.replace("?", r"\?")):
        init_campaign(tmp_path / "autumn", path, **options)
    assert os.listdir(tmp_path) == ["customers.parquet"]


@pytest.mark.slow
def test_an_id_that_repeats_once_beyond_the_sample_is_found(tmp_path):
    ids = [f"C{i}" for i in range(30_000)]
    ids[29_000] = "C5"
    path = tmp_path / "customers.csv"
    pa.csv.write_csv(pa.table({"customer_id": ids, "age": np.arange(30_000) % 60}), path)
    with pytest.raises(ValueError, match="cannot be the id: it has 'C5' in several rows"):
        init_campaign(tmp_path / "autumn", path, id="customer_id")
    with pytest.raises(ValueError, match="'customer_id' is not it"):
        init_campaign(tmp_path / "autumn", path)


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("empty.csv", b"", ValueError),
        ("header.csv", b"customer_id,age\n", ValueError),
        ("latin.csv", "customer_id,city\n1,Köln\n2,Ulm\n".encode("latin-1"), FileFormatError),
        ("cut.parquet", b"PAR1 and no more", FileFormatError),
        ("ragged.csv", b"customer_id,age\n1,2\n3,4,5\n", FileFormatError),
    ],
)
def test_a_bad_file_leaves_nothing(tmp_path, name, content, error):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(error):
        init_campaign(tmp_path / "autumn", tmp_path / name)
    assert os.listdir(tmp_path) == [name]


def test_settings_that_are_there_are_not_overwritten(tmp_path, source):
    path = init_campaign(tmp_path / "autumn", source).path
    path.write_text("mine")
    with pytest.raises(
        FileExistsError, match="is there already, and it is not overwritten: edit it, or give another fol"
    ):
        init_campaign(tmp_path / "autumn", source)
    assert path.read_text() == "mine"


def test_a_folder_with_other_files_is_used(tmp_path, source):
    (tmp_path / "autumn").mkdir()
    (tmp_path / "autumn" / "notes.txt").write_text("kept")
    init_campaign(tmp_path / "autumn", source)
    assert sorted(os.listdir(tmp_path / "autumn")) == ["campaign.toml", "notes.txt"]


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path, source):
    (tmp_path / "autumn").write_text("a file")
    with pytest.raises(FileExistsError, match="is a file, and a campaign needs a folder"):
        init_campaign(tmp_path / "autumn", source)
    with pytest.raises(FileNotFoundError, match=r"there is no folder .* to make autumn in"):
        init_campaign(tmp_path / "none" / "autumn", source)


@pytest.mark.parametrize("there", [True, False])
def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path, source, monkeypatch, there):
    def full(path, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    if there:
        (tmp_path / "autumn").mkdir()
    monkeypatch.setattr(_writing, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        init_campaign(tmp_path / "autumn", source)
    assert sorted(os.listdir(tmp_path)) == ["autumn"] * there + ["customers.csv"]
    assert not there or not os.listdir(tmp_path / "autumn")


def test_of_two_at_once_one_writes_and_the_other_says_so(tmp_path, source, monkeypatch):
    def write(folder, path, text, original=_writing.write_settings):
        folder.mkdir()
        path.write_text("of the other")
        original(folder, path, text)

    monkeypatch.setattr(_init_campaign, "write_settings", write)
    with pytest.raises(FileExistsError, match="is there already, and it is not overwritten"):
        init_campaign(tmp_path / "autumn", source)
    assert (tmp_path / "autumn" / "campaign.toml").read_text() == "of the other"


def test_a_folder_that_may_not_be_made_is_named(tmp_path, source, monkeypatch):
    def refuse(path, **options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(PermissionError, match=r"no permission to make .*autumn: give another folder"):
        init_campaign(tmp_path / "autumn", source)


HOSTILE = [
    'say "hi"',
    "a.b",
    "two\nlines",
    "]",
    "[x]",
    "=",
    "#",
    "'",
    "\\",
    "é ü",
    "日本",
    " ",
    "\t",
    "{",
    "a=1 # b",
    "leave_out",
]


def test_hostile_names_of_columns_are_written_so_that_they_are_read_back(tmp_path):
    rng = np.random.default_rng(0)
    columns = {name: rng.choice(["a", 'b"\n#', "]"], N) for name in HOSTILE}
    path = tmp_path / "customers.parquet"
    pa.parquet.write_table(pa.table({'the "id"\n': np.arange(N), **columns}), path)
    found = read_settings(init_campaign(tmp_path / "autumn", path, id='the "id"\n', reward="#").path)
    assert found.id == 'the "id"\n'
    assert {column.name for column in found.features.columns} == set(HOSTILE) - {"#"}
    assert found.features.leave_out == ("#",)


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@pytest.mark.slow
@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_whatever_is_in_the_file_the_settings_are_valid(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("made")
    names = data.draw(st.lists(NAMES.filter(lambda name: name != "key"), unique=True, min_size=1, max_size=6))
    n = data.draw(st.integers(1, 12))
    kinds = st.sampled_from([st.integers(-3, 3), st.floats(), NAMES, st.booleans(), st.dates()])
    columns = {
        name: data.draw(st.lists(st.one_of(data.draw(kinds), st.none()), min_size=n, max_size=n)) for name in names
    }
    path = folder / "customers.parquet"
    pa.parquet.write_table(pa.table({"key": np.arange(n), **columns}), path)
    reward = data.draw(st.one_of(st.none(), st.sampled_from(names).filter(bool)))
    try:
        result = init_campaign(folder / "autumn", path, id="key", reward=reward)
    except ValueError as error:
        assert "has no column that can be a feature" in str(error)  # noqa: PT017
        return
    found = read_settings(result.path)
    assert {column.name for column in found.features.columns} | set(found.features.leave_out) == set(names)
    assert all(line.isprintable() for line in result.path.read_text(encoding="utf-8").split("\n"))
