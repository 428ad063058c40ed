"""The OpenAPI document says what the service does, and made requests never make it fail."""

import json

import httpx
import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance

from armful.service._openapi import document
from tests.service.small_service import features, live, make_campaign, request_of, serving


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = make_campaign(tmp_path_factory.mktemp("openapi") / "autumn", 'features.leave_out = ["region"]\n')
    with serving(folder, access_log=False) as service:
        arms = [{"id": f"a{i}", "features": row} for i, row in enumerate(features(5).tolist())]
        assert service.request("PUT", "/v1/arms", json={"arms": arms}).status_code == 200
        assert service.post("/v1/decisions", request_of(features())).status_code == 200
        yield service


@pytest.fixture(scope="module")
def schema(service):
    return service.get("/openapi.json").json()


def validate(answer, schema, operation, status="200"):
    content = operation["responses"][status]["content"]
    (kind,) = content
    jsonschema_rs.validate({**content[kind]["schema"], "components": schema["components"]}, answer)


def test_every_route_of_the_interface_is_described(service, schema):
    offered = {
        (route.path, method.lower())
        for route in service.app.routes
        for method in route.methods - {"HEAD"}
        if not route.path.startswith(("/dashboard", "/docs", "/openapi")) and route.path != "/"
    }
    described = {(path, method) for path, methods in schema["paths"].items() for method in methods}
    assert offered == described
    assert schema["openapi"] == "3.1.0"
    assert json.loads(document("winter", request_of(features())))["info"]["title"] == "armful: winter"


def test_answers_are_as_described(service, schema):
    paths = schema["paths"]
    decided = service.post("/v1/decisions", request_of(features(), unit="u", key="k")).json()
    validate(decided, schema, paths["/v1/decisions"]["post"])
    arm = decided["chosen"][0]["id"]
    number = decided["decision_id"]
    one = service.post(f"/v1/decisions/{number}/rewards", {"rewards": {arm: 1.0}}).json()
    validate(one, schema, paths["/v1/decisions/{id}/rewards"]["post"])
    many = [{"decision_id": number, "id": arm, "reward": 0}, {"decision_id": "77777", "id": arm, "reward": 0}]
    validate(service.post("/v1/rewards", {"rewards": many}).json(), schema, paths["/v1/rewards"]["post"])
    for path in ("/v1/status", "/v1/model", "/healthz", "/readyz"):
        validate(service.get(path).json(), schema, paths[path]["get"])
    validate(service.get(f"/v1/decisions/{number}").json(), schema, paths["/v1/decisions/{id}"]["get"])
    validate(service.get("/v1/decisions/77777").json(), schema, paths["/v1/decisions/{id}"]["get"], "404")


def test_a_wrong_answer_would_be_noticed(service, schema):
    decided = service.post("/v1/decisions", request_of(features())).json()
    del decided["chosen"][0]["bonus"]
    with pytest.raises(jsonschema_rs.ValidationError):
        validate(decided, schema, schema["paths"]["/v1/decisions"]["post"])


# -- made requests, to a server that listens ----------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = make_campaign(tmp_path_factory.mktemp("made") / "autumn", "service.largest_body = 100000\n")
    with live(folder, access_log=False) as url:
        arms = [{"id": str(i), "features": row} for i, row in enumerate(features(5).tolist())]
        httpx.put(f"{url}/v1/arms", json={"arms": arms}).raise_for_status()
        httpx.post(f"{url}/v1/decisions", json={"constraint": {"k": 5}}).raise_for_status()
        yield schemathesis.openapi.from_url(f"{url}/openapi.json")


OPERATIONS = {
    ("POST", "/v1/decisions"): list(GenerationMode),
    ("POST", "/v1/decisions/{id}/rewards"): list(GenerationMode),
    ("POST", "/v1/rewards"): list(GenerationMode),
    ("PUT", "/v1/arms"): list(GenerationMode),
    ("GET", "/v1/decisions/{id}"): list(GenerationMode),
    ("GET", "/v1/status"): [GenerationMode.POSITIVE],
    ("GET", "/v1/model"): [GenerationMode.POSITIVE],
    ("GET", "/metrics"): [GenerationMode.POSITIVE],
}


@pytest.mark.slow
@pytest.mark.parametrize(("operation", "modes"), OPERATIONS.items(), ids=[" ".join(each) for each in OPERATIONS])
def test_made_requests_get_what_the_document_says(made, operation, modes):
    """Requests that fit the document, and requests that do not: never an error of the server, never another shape."""
    method, path = operation
    for mode in modes:

        @settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(case=made[path][method].as_strategy(generation_mode=mode))
        def check(case):
            # A key is not needed on this machine; and what fits the document may still name an arm that is not there.
            case.call_and_validate(excluded_checks=[ignored_auth, positive_data_acceptance])

        check()
