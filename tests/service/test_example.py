"""The example of `/openapi.json` is a request that the campaign answers."""

import pytest

from armful.campaigns.features import FeatureRecipe
from armful.campaigns.features._numbers import Date, Scale
from armful.campaigns.reading._column_values import DOTTED
from armful.campaigns.settings import parse_settings
from armful.service._example import example_decision
from tests.service.small_service import make_campaign, serving

COLUMNS = """name = "shop"
id = "item"
source = "shop.csv"
holdout.share = 0
policy.cap = 1
policy.ridge = 1
outcomes.reward = "click"
outcomes.window = "30 minutes"
service.context = ["device", "hour"]
features.leave_out = ["region", "land", "town", "cost"]
features.columns.genre.kind = "category"
features.columns.rating.kind = "category"
features.columns.age.kind = "ordered"
features.columns.age.order = ["all", "12", "18"]
features.columns.minutes.kind = "number"
features.columns.released.kind = "date"
features.columns.title.kind = "text"
features.columns.device.kind = "category"
features.columns.hour.kind = "number"
"""
ROWS = """item,genre,rating,age,minutes,released,title,device,hour,click,region,land,town,cost
1,drama,1,all,90,31.01.2020,A long day,phone,7,0,north,a,a1,1
2,comedy,2,12,121.5,01.12.1999,A short day,desktop,21,1,south,b,b1,2
3,,,,,,,,,0,,,,
4,drama,2,18,-1,29.02.2024,Rain,phone,0,1,north,a,a2,3
"""
READY = """name = "shop"
id = "item"
holdout.share = 0
policy.cap = 1
outcomes.reward = "click"
outcomes.window = "30 minutes"
"""
READY_AND_REGION = 'features.ready = 2\nfeatures.leave_out = ["region"]\n'


def choose(k, *quotas, budget=""):
    tables = "".join(f"[[choose.quotas]]\n{quota}\n" for quota in quotas)
    return f"[choose]\nk = {k}\n{tables}{budget}"


@pytest.fixture
def examples(tmp_path):
    """Serve a campaign, send its examples as they are, and return the bodies."""

    def send(settings, rows=ROWS):
        folder = make_campaign(tmp_path / "shop", settings=settings)
        (folder / "shop.csv").write_text(rows, encoding="utf-8")
        with serving(folder) as service:
            paths = service.get("/openapi.json").json()["paths"]
            bodies = []
            for method, path in (("post", "/v1/decisions"), ("put", "/v1/arms")):
                body = paths[path][method]["requestBody"]["content"]["application/json"]["example"]
                answer = service.request(method.upper(), path, json=body)
                assert answer.status_code == 200, answer.text
                bodies.append(body)
                if method == "post":
                    assert len(answer.json()["chosen"]) == body["constraint"]["k"]
                    assert all("are the group '(none)'" in note for note in answer.json()["notes"])
        return bodies

    return send


def test_of_ready_features_it_has_as_many_as_the_campaign(examples):
    decision, arms = examples(READY + "features.ready = 20\n" + choose(3))
    assert [len(each["features"]) for each in (*decision["candidates"], *arms["arms"])] == [20, 20, 20]
    assert all("columns" not in each for each in decision["candidates"])


def test_of_columns_it_has_values_that_the_recipe_knows(examples):
    decision, arms = examples(COLUMNS + choose(3, 'column = "region"\nat_most = 2'))
    first, second = (each["columns"] for each in decision["candidates"])
    assert first == {
        "genre": "comedy",
        "rating": "1",
        "age": "all",
        "minutes": 90,
        "released": "31.01.2020",
        "title": "a few words",
        "region": "group-1",
    }
    assert second["genre"] == "drama"
    assert decision["context"] == {"device": "desktop", "hour": 7}
    assert arms["arms"] == decision["candidates"][:1]


def test_columns_that_are_all_constant_make_an_example_without_any(examples):
    settings = COLUMNS.replace('service.context = ["device", "hour"]\n', "").partition("features.columns")[0]
    kinds = 'features.columns.same.kind = "number"\n'
    decision, _ = examples(settings + kinds + choose(1), rows="item,same,click\n1,5,0\n2,5,1\n")
    assert [each["columns"] for each in decision["candidates"]] == [{}, {}]


@pytest.mark.parametrize(
    ("quotas", "groups"),
    [
        (['column = "region"\nat_least = {north = 2, south = 1}'], ["north", "north", "south"]),
        (['column = "region"\nat_most = {north = 0, south = 1}'], ["south"]),
        (['column = "region"\nat_least = 2\nat_most = 3'], ["group-1", "group-1"]),
        (['column = "region"\nat_least = {"(none)" = 1}'], [None]),
        (['column = "rating"\nat_most = 1'], ["1"]),
        (['column = "minutes"\nat_least = {"1234" = 1}'], [1234]),
        (['column = "released"\nat_most = 1'], ["31.01.2020"]),
        (['column = "genre"\nat_least = {drama = 2}', 'column = "region"\nat_most = 1'], ["drama", "drama"]),
        (['column = "land"\nat_most = 1', 'column = "town"\nat_most = 1\nnested = true'], ["group-1"]),
    ],
)
def test_quotas_are_met_by_the_candidates(examples, quotas, groups):
    decision, _ = examples(COLUMNS + choose(5, *quotas))
    column = quotas[0].split('"')[1]
    found = [each["columns"][column] for each in decision["candidates"]]
    assert found == [*groups, groups[0]]
    assert decision["constraint"] == {"k": len(groups)}


@pytest.mark.parametrize("quotas", [[], ['column = "region"\nat_least = {north = 2}']])
@pytest.mark.parametrize("limit", ["3", "0.001", "1e6"])
def test_costs_are_within_the_budget(examples, quotas, limit):
    budget = f'[choose.budget]\ncolumn = "cost"\nlimit = {limit}\n'
    decision, _ = examples(COLUMNS + choose(5, *quotas, budget=budget))
    costs = [each["columns"]["cost"] for each in decision["candidates"]]
    assert sum(costs[:-1]) <= float(limit)


def test_beside_ready_features_a_quota_has_a_column(examples):
    decision, _ = examples(READY + READY_AND_REGION + choose(5, 'column = "region"\nat_least = {north = 1}'))
    assert decision["candidates"][0] == {"id": "a1", "columns": {"region": "north"}, "features": [0.35, 0.71]}


def test_a_quota_of_a_ready_feature_makes_all_of_them_columns(examples):
    decision, _ = examples(READY + 'features.ready = ["new", "price"]\n' + choose(5, 'column = "new"\nat_most = 1'))
    assert decision["candidates"][0] == {"id": "a1", "columns": {"new": 0.35, "price": 0.35}}


@pytest.mark.parametrize(
    "quotas",
    [
        ['column = "region"\nat_least = {north = 11}'],
        ['column = "land"\nat_least = {north = 2}', 'column = "town"\nat_most = 1\nnested = true'],
    ],
)
def test_quotas_that_need_many_arms_or_lie_within_others_are_left_out(examples, quotas):
    decision, _ = examples(COLUMNS + choose(12, *quotas))
    assert decision["constraint"] == {"k": 1, "quotas": []}


def test_dates_are_written_as_in_the_file():
    settings = parse_settings(READY + "features.ready = 1\n" + choose(1), None)
    scale = Scale(low=0, high=9)
    for written, day in ((DOTTED, "06.01.1970"), ("ISO 8601", "1970-01-06")):
        recipe = FeatureRecipe((Date(column="day", median=5.5, scale=scale, written=written),))
        assert example_decision(settings, recipe)["candidates"][0]["columns"] == {"day": day}
