"""Made requests with columns, a context and quotas that a campaign knows never make its service fail."""

import copy
from collections import Counter

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import ignored_auth, negative_data_rejection, positive_data_acceptance

from tests.service.small_service import live, make_campaign

pytestmark = pytest.mark.slow
SETTINGS = """name = "autumn"
id = "item"
source = "shop.csv"
holdout.share = 0.1
policy.cap = 1
features.leave_out = ["region"]
features.columns.genre.kind = "category"
features.columns.minutes.kind = "number"
features.columns.released.kind = "date"
features.columns.device.kind = "category"
features.columns.hour.kind = "number"
[outcomes]
reward = "click"
window = "30 minutes"
[service]
context = ["device", "hour"]
explore = 0.2
draws = 5
largest_body = 100000
[choose]
k = 3
[[choose.quotas]]
column = "region"
at_most = 2
"""
ROWS = """item,genre,minutes,released,region,device,hour,click
1,drama,90,2020-01-31,north,phone,7,0
2,comedy,121.5,1999-12-01,south,desktop,21,1
3,,,,,,,0
4,drama,-1,2024-02-29,north,phone,0,1
"""
# A key is not needed on this machine; bounds that fit the document may contradict each other; and what does not fit the
# narrowed document may fit the real one.
EXCLUDED = [ignored_auth, positive_data_acceptance, negative_data_rejection]
NONE = {"type": "null"}
WORD = {"anyOf": [{"enum": ["drama", "phone", ""]}, {"type": "string"}, NONE]}
NUMBER = {
    "anyOf": [{"type": "number", "minimum": -1e9, "maximum": 1e9}, {"type": "integer"}, {"type": "boolean"}, NONE]
}
GROUP = {"anyOf": [{"enum": ["north", "south", "east"]}, {"type": "string"}, {"type": "number"}, NONE]}
DATE = {"anyOf": [{"type": "string", "format": "date"}, NONE]}
COLUMNS = {"genre": WORD, "minutes": NUMBER, "released": DATE, "region": GROUP}
BOUND = {"anyOf": [{"enum": [0, 1, 2, 3]}, {"type": "number", "minimum": 0, "maximum": 1}]}
REGISTERED = {"enum": [f"a{i}" for i in range(9)]}


def some_of(columns):
    return {"type": "object", "properties": columns, "additionalProperties": False}


def narrowed(document):
    """The document with the columns of this campaign; those that are made from any text would all be refused."""
    document = copy.deepcopy(document)
    fields = {name: each.get("properties") for name, each in document["components"]["schemas"].items()}
    for arm in ("Candidate", "RegisteredArm"):
        fields[arm].update(columns=some_of(COLUMNS), features=NONE)
        document["components"]["schemas"][arm]["required"] = ["id", "columns"]
    arms = {"anyOf": [REGISTERED, {"$ref": "#/components/schemas/Candidate"}]}
    fields["DecisionRequest"].update(
        candidates={"anyOf": [{"type": "array", "items": arms, "minItems": 1, "uniqueItems": True}, NONE]},
        context={"anyOf": [some_of({"device": WORD, "hour": NUMBER}), NONE]},
        key=NONE,
    )
    document["paths"]["/v1/decisions"]["post"]["parameters"] = []  # keys that come again would be refused
    least = {"anyOf": [BOUND, some_of({"north": BOUND, "drama": BOUND}), NONE]}
    most = {"anyOf": [{"enum": [1, 2, 3, 0.5]}, BOUND, some_of({"north": BOUND, "drama": BOUND})]}
    fields["Quota"].update(column={"enum": ["region", "genre"]}, at_least=least, at_most=most)
    document["components"]["schemas"]["Quota"]["required"] = ["column", "at_most"]
    quotas = {"type": "array", "items": {"$ref": "#/components/schemas/Quota"}, "minItems": 1, "maxItems": 2}
    few = {"type": "array", "items": REGISTERED, "maxItems": 2}
    fields["ConstraintRequest"].update(k={"enum": [1, 2, 5, None]}, quotas=quotas, exclude=few, require=few)
    document["components"]["schemas"]["ConstraintRequest"]["required"] = ["quotas"]
    return document


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    folder = make_campaign(tmp_path_factory.mktemp("made") / "autumn", settings=SETTINGS)
    (folder / "shop.csv").write_text(ROWS, encoding="utf-8")
    with live(folder, access_log=False) as url:
        rows = [{"genre": "drama", "minutes": i, "region": ["north", "south", None][i % 3]} for i in range(9)]
        arms = [{"id": f"a{i}", "columns": row} for i, row in enumerate(rows)]
        httpx.put(f"{url}/v1/arms", json={"arms": arms}).raise_for_status()
        yield url


@pytest.fixture(scope="module")
def made(url):
    schema = schemathesis.openapi.from_dict(narrowed(httpx.get(f"{url}/openapi.json").json()))
    schema.config.update(base_url=url)
    return schema


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/decisions"), ("PUT", "/v1/arms")])
def test_made_columns_get_what_the_document_says(made, method, path, mode):
    """Some requests must be usable, or this tests little; a tenth or more have each of the fields and are."""
    used = Counter()

    @settings(max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=made[path][method].as_strategy(generation_mode=mode))
    def check(case):
        answer = case.call_and_validate(excluded_checks=EXCLUDED)
        if answer.status_code == 200:
            used.update(fields_of(case.body))

    check()
    if mode is GenerationMode.POSITIVE:
        assert used.keys() >= ({"columns", "context", "quotas"} if method == "POST" else {"columns"})


def fields_of(body):
    """Which of the fields that name columns a request has."""
    arms = [*(body.get("candidates") or ()), *(body.get("arms") or ())]
    found = {
        "columns": any(isinstance(arm, dict) and arm["columns"] for arm in arms),
        "context": body.get("context"),
        "quotas": (body.get("constraint") or {}).get("quotas"),
    }
    return [name for name, given in found.items() if given]


@pytest.mark.parametrize("number", [2**63, -(2**63), 2**64, 10**30, 10**400])
@pytest.mark.parametrize("column", ["minutes", "genre", "region"])
def test_whole_numbers_of_more_than_64_bits_are_refused(url, column, number):
    arm = {"id": "large", "columns": {column: number}}
    answers = [
        httpx.put(f"{url}/v1/arms", json={"arms": [arm]}),
        httpx.post(f"{url}/v1/decisions", json={"candidates": [arm], "key": "large"}),
        httpx.post(f"{url}/v1/decisions", json={"context": {"hour": number}, "key": "large"}),
    ]
    assert [answer.status_code for answer in answers] == [422, 422, 422]
    assert all("9223372036854775807" in answer.json()["detail"] for answer in answers)
    assert httpx.post(f"{url}/v1/decisions", json={}).status_code == 200
