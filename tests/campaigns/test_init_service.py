"""`init_service`: settings of a service from items, past impressions or a number of features."""

import os
import re
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from armful.campaigns.features import _size
from armful.campaigns.init import init_service
from armful.campaigns.settings import ServiceSettings, parse_settings, read_settings
from tests.campaigns.test_init_campaign import uncommented

N = 600


def impressions(**more):
    rng = np.random.default_rng(0)
    item = rng.integers(0, 40, N)
    return {
        "impression_id": np.arange(N),
        "shown_at": np.datetime64("2026-01-01") + rng.integers(0, 100, N),
        "user_id": [f"u{i}" for i in rng.integers(0, 90, N)],
        "item_id": [f"i{i}" for i in item],
        "category": [("news", "sport", "life", "tech")[i % 4] for i in item],
        "price": 5.0 + item,
        "position": rng.integers(1, 6, N),
        "country": rng.choice(["PT", "DE", "FR"], N),
        "clicked": rng.integers(0, 2, N),
        **more,
    }


@pytest.fixture
def written(tmp_path):
    def write(columns, name="impressions.csv"):
        pa.csv.write_csv(pa.table(columns), tmp_path / name)
        return tmp_path / name

    return write


def test_past_impressions_become_settings_that_say_what_was_guessed(tmp_path, written):
    result = init_service(tmp_path / "shop", written(impressions()), context=["country"])
    found = read_settings(result.path)
    assert (found.name, found.id, found.choose.k, found.outcomes.reward) == ("shop", "item_id", 5, "clicked")
    assert {column.name: column.kind for column in found.features.columns} == {
        "category": "category",
        "price": "number",
        "country": "category",
    }
    assert found.features.leave_out == ("impression_id", "shown_at", "user_id", "position", "clicked")
    assert found.features.interactions == (("category", "country"), ("price", "country"))
    assert found.service == ServiceSettings(explore=0.02, context=("country",))
    assert found.outcomes.window == timedelta(minutes=30)
    said = "\n".join(result.explanations)
    assert "id: item_id, 40 different ones in the rows looked at" in said
    assert "context, which comes once with a request: country" in said
    # 1 + 5 categories with "other", 1 price, 4 countries with "other"; (5 + 1) x 4 products
    assert "these make 35 features, 24 of them products of an item's column and one of the context" in said
    assert result.questions == ["is clicked the reward that counts? If not, change outcomes.reward"]


def test_without_a_context_what_differs_within_an_item_is_asked_about(tmp_path, written):
    result = init_service(tmp_path / "shop", written(impressions()))
    assert read_settings(result.path).service.context == ()
    assert any("describe the request and not the item: country?" in question for question in result.questions)


def test_a_file_of_items_has_one_row_for_each(tmp_path, written):
    rng = np.random.default_rng(1)
    items = {
        "sku": [f"s{i}" for i in range(80)],
        "released": np.datetime64("2020-01-01") + rng.integers(0, 900, 80),
        "brand": rng.choice(["x", "y", "z"], 80),
    }
    result = init_service(tmp_path / "shop", written(items), k=3, reward="bought")
    found = read_settings(result.path)
    assert (found.id, found.choose.k, found.outcomes.reward) == ("sku", 3, "bought")
    assert {column.name: column.kind for column in found.features.columns} == {"released": "date", "brand": "category"}
    assert "id: sku, which differs in every row" in result.explanations
    assert result.questions == []


def test_ready_features_need_no_file(tmp_path):
    found = read_settings(init_service(tmp_path / "shop", features=20, id="ad", reward="click", k=2).path)
    assert len(found.features.ready) == 20
    assert (found.id, found.choose.k, found.outcomes.reward, found.source) == ("ad", 2, "click", None)


@pytest.mark.parametrize("ready", [True, False])
def test_every_option_is_shown_with_a_comment_and_those_in_comments_are_valid_too(tmp_path, written, ready):
    source = None if ready else written(impressions())
    text = init_service(tmp_path / "shop", source, features=4 if ready else None).path.read_text()
    options = [line for line in text.splitlines() if re.match(r"(# )?\w+ = ", line)]
    assert [line for line in options if "ridge" not in line and " # " not in line[2:] and not line.endswith("[")] == []
    for name in ("recalled.csv", "pinned.csv"):
        (tmp_path / name).touch()
    full = uncommented(text)
    if ready:
        full = full.replace("leave_out = []", 'leave_out = ["region", "cost"]')
    found = parse_settings(full.replace('    "position",', '    "position", "cost",'), tmp_path)
    assert found.choose.exclude == ("recalled.csv",)
    assert found.choose.require == ("pinned.csv",)
    assert found.choose.budget.column == "cost"
    assert found.choose.quotas[0].at_most
    assert len(found.service.positions) == 5
    keys = set(ServiceSettings.__dataclass_fields__) - ({"context"} if ready else set())
    for key in keys:
        assert re.search(rf"^(# )?{key} = ", text, re.MULTILINE), key


@pytest.mark.parametrize(
    ("change", "options", "sentence"),
    [
        ({}, {"features": 3}, "a service begins from a file of items or past impressions, or from a number of ready"),
        ({}, {"context": ["contry"]}, "has no column 'contry'; did you mean 'country'?"),
        ({}, {"context": ["item_id"]}, "item_id is the id of the items, and cannot be a column of the context"),
        ({}, {"context": ["clicked"]}, "clicked cannot be a column of the context: it is the reward"),
        ({}, {"id": "itemid"}, "has no column 'itemid'; did you mean 'item_id'?"),
        ({}, {"reward": "item_id"}, "the reward must be another column than the id, got 'item_id' for both"),
        ({}, {"k": 0}, "k must be a whole number of at least 1, got 0"),
        ({}, {"context": ["category", "price", "country"]}, "has no column that can be a feature of items"),
        ({"item_id": None}, {}, "has no column that is evidently the id of an item: name it by --id; its columns are"),
        ({"item_id": [None, *["a"] * (N - 1)]}, {"id": "item_id"}, "cannot be the id: it is empty in a row"),
    ],
)
def test_what_is_not_enough_is_refused_in_a_sentence_and_nothing_is_left(tmp_path, written, change, options, sentence):
    columns = {name: values for name, values in impressions(**change).items() if values is not None}
    path = written(columns)
    with pytest.raises(ValueError, match=re.escape(sentence)):
        init_service(tmp_path / "shop", path, **options)
    assert os.listdir(tmp_path) == ["impressions.csv"]


def test_a_file_of_ids_alone_is_refused(tmp_path, written):
    with pytest.raises(ValueError, match="has no column that can be a feature of items: it has the ids alone"):
        init_service(tmp_path / "shop", written({"item_id": [f"i{i}" for i in range(5)]}))


def test_neither_a_file_nor_features_are_not_enough(tmp_path):
    with pytest.raises(ValueError, match="a service begins from a file"):
        init_service(tmp_path / "shop")
    with pytest.raises(ValueError, match="a context needs a file with its columns"):
        init_service(tmp_path / "shop", features=3, context=["country"])
    with pytest.raises(ValueError, match=r"features\.ready has 1,001 features, and a service can use 1,000"):
        init_service(tmp_path / "shop", features=1001)
    assert os.listdir(tmp_path) == []


def test_too_many_products_are_refused_before_anything_is_written(tmp_path, written, monkeypatch):
    monkeypatch.setattr(_size, "MOST_FEATURES", 20)
    with pytest.raises(
        ValueError, match=r"make 35 features, and a service can use 20; most come from category .* country"
    ):
        init_service(tmp_path / "shop", written(impressions()), context=["country"])
    assert os.listdir(tmp_path) == ["impressions.csv"]


def test_settings_that_are_there_are_not_overwritten(tmp_path):
    path = init_service(tmp_path / "shop", features=2).path
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="is there already, and it is not overwritten"):
        init_service(tmp_path / "shop", features=2)
    assert path.read_text() == "mine"
