"""What is frozen when a campaign is first served."""

import asyncio

import pytest

from armful.campaigns import Campaign
from armful.campaigns.features import _size
from armful.service._preparing import frozen_recipe
from armful.service.app import create_app
from armful.service.updater import _fold

TOP = """\
name = "shop"
id = "item"
policy.cap = 1.0
outcomes.reward = "click"
choose.k = 2
"""
COLUMNS = """\
[features.columns]
price = { kind = "number" }
brand = { kind = "category" }
country = { kind = "category" }
[service]
context = ["country"]
"""
ITEMS = "item,price,brand,country\n" + "\n".join(f"{i},{i % 5},{'xyz'[i % 3]},{'PD'[i % 2]}" for i in range(30))


@pytest.fixture
def opened(tmp_path):
    (tmp_path / "items.csv").write_text(ITEMS)

    def open_campaign(text):
        (tmp_path / "campaign.toml").write_text(text)
        return Campaign.open(tmp_path)

    return open_campaign


def test_the_recipe_is_fitted_on_the_source_and_stays(opened):
    with opened(TOP + 'source = "items.csv"\n' + COLUMNS) as campaign:
        recipe = frozen_recipe(campaign)
        assert recipe.n_features == 24  # 1 + 1 + 4 + 3, and (1 + 4) x 3
    with opened(TOP + COLUMNS.replace("brand", "brand2")) as campaign:
        assert frozen_recipe(campaign) == recipe


def test_a_campaign_that_cannot_be_served_is_closed_again(tmp_path, monkeypatch):
    (tmp_path / "campaign.toml").write_text(TOP + COLUMNS)
    closed, plain = [], Campaign.close
    monkeypatch.setattr(Campaign, "close", lambda campaign: closed.append(campaign.settings.name) or plain(campaign))
    app = create_app(str(tmp_path))

    async def start():
        await app.router.lifespan_context(app).__aenter__()

    with pytest.raises(ValueError, match="shop has no source to work out its features from"):
        asyncio.run(start())
    assert closed == ["shop"]


def test_a_published_model_names_the_features_of_the_recipe(opened):
    with opened(TOP + 'source = "items.csv"\n' + COLUMNS) as campaign:
        fold = _fold(campaign)
        assert list(fold.names) == frozen_recipe(campaign).names
        assert "price" in fold.names


def test_ready_features_are_frozen_too(opened):
    with opened(TOP + "features.ready = 3\n") as campaign:
        assert frozen_recipe(campaign).names == ["x1", "x2", "x3"]
    with opened(TOP + "features.ready = 3\n") as campaign:
        assert campaign.recipe.names == ["x1", "x2", "x3"]
        assert frozen_recipe(campaign) == campaign.recipe
    with (
        opened(TOP + "features.ready = 4\n") as campaign,
        pytest.raises(ValueError, match=r"shop was begun with 3 other features than features\.ready names now"),
    ):
        frozen_recipe(campaign)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (TOP + COLUMNS, "shop has no source to work out its features from: set source in campaign.toml"),
        (TOP + "choose.rest = 2\nfeatures.ready = 3\n", "shop cannot be served: choose.rest must be 0 for a service"),
        (TOP + 'source = "items.csv"\n' + COLUMNS, "the columns make 24 features, and a service can use 5; most come"),
    ],
)
def test_what_cannot_be_served_is_not_frozen(opened, monkeypatch, text, sentence):
    monkeypatch.setattr(_size, "MOST_FEATURES", 5)
    with opened(text) as campaign:
        with pytest.raises(ValueError) as caught:
            frozen_recipe(campaign)
        assert str(caught.value).startswith(sentence)
        assert campaign.recipe is None
