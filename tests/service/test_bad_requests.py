"""Requests that cannot be used get problem details of one sentence, and change nothing."""

import asyncio
import json

import pytest

from armful.service._limits import RateLimit, read_body
from armful.service._problems import ProblemError
from tests.service.small_service import features, make_campaign, request_of, serving

GOOD = json.dumps(request_of(features()))
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = make_campaign(tmp_path_factory.mktemp("bad") / "autumn", "service.largest_body = 100000\n")
    with serving(folder) as service:
        yield service


def problem(response, status):
    """Check that a response is a problem, and return its sentence."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert body["status"] == status
    assert body["type"]
    assert body["title"]
    assert body["instance"].endswith(response.headers["x-request-id"])
    assert "\n" not in body["detail"]
    assert "Traceback" not in body["detail"]
    return body["detail"]


def deep(n):
    return '{"context": ' + '{"a": ' * n + "1" + "}" * n + "}"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("", 400),
        ("{", 400),
        ("[" * 20000, 422),
        (deep(5), 422),
        (deep(10000), 422),
        (GOOD.replace("0.", "NaN, 0.", 1), 400),
        (GOOD.replace('"features": [', '"features": [Infinity, ', 1), 400),
        (GOOD.replace('"features": [', '"features": [1e999, ', 1), 422),
        (GOOD.replace('"features": [', '"features": [1e39, ', 1), 422),
        (json.dumps(request_of(3e6 * features())), 422),
        (GOOD.replace('"features": [', '"features": ["1", ', 1), 422),
        (GOOD.replace('"features": [', '"features": [null, ', 1), 422),
        (GOOD.replace('"features": [', '"features": [0.5, ', 1), 422),
        (GOOD.replace('"a1"', '"a0"', 1), 422),
        (GOOD.replace('"a1"', '""', 1), 422),
        (GOOD.replace('"a1"', '"a\\u0000"', 1), 422),
        (GOOD.replace('"a1"', '"' + "x" * 201 + '"', 1), 422),
        (GOOD.replace('"a1"', "17", 1), 422),
        (GOOD.replace("candidates", "candidate", 1), 422),
        ('{"candidates": []}', 422),
        ('{"candidates": ["nobody"]}', 422),
        ('{"candidates": "a"}', 422),
        ("[]", 422),
        ("null", 422),
        ("17", 422),
        ('"\\ud800"', 400),
        (json.dumps(request_of(features(), key="")), 422),
        (json.dumps(request_of(features(), key="k" * 201)), 422),
        (json.dumps(request_of(features(), unit=17)), 422),
        (json.dumps(request_of(features(), unit="a\0b")), 422),
        (json.dumps(request_of(features(), key="a\0b")), 422),
        (json.dumps(request_of(features(), context={"a": 1})), 422),
        (json.dumps(request_of(features(), constraint={"k": 0})), 422),
        (json.dumps(request_of(features(), constraint={"k": 1.5})), 422),
        (json.dumps(request_of(features(), constraint={"k": 2**40})), 422),
        (json.dumps(request_of(features(), constraint={"size": 2})), 422),
        (json.dumps(request_of(features(), constraint={"quotas": [{"column": "region"}]})), 422),
        (json.dumps(request_of(features(), constraint={"exclude": [f"a{i}" for i in range(12)]})), 422),
        (json.dumps(request_of(features(), constraint={"require": ["nobody"]})), 422),
    ],
)
def test_bad_bodies_of_decisions(service, body, status):
    before = service.worker.ledger.last_number()
    assert problem(service.post("/v1/decisions", content=body, headers=JSON), status)
    assert service.worker.ledger.last_number() == before


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"unit": 17}, "unit: expected `string | null`, got `integer`"),
        ({"constraint": {"k": 2.5}}, "constraint.k: expected `integer | null`, got `number`"),
        ({"constraint": {"exclude": [True]}}, "constraint.exclude[0]: expected `string`, got `boolean`"),
        ({"str": 1}, "the body: object contains unknown field `str`"),
        ({"key": "a\0b"}, "key: must not hold the character NUL"),
    ],
)
def test_sentences_name_types_as_json_does(service, more, sentence):
    assert problem(service.post("/v1/decisions", request_of(features(), **more)), 422) == sentence


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_rewards_that_are_no_numbers(service, number):
    body = f'{{"rewards": {{"a": {number}}}}}'
    problem(service.post("/v1/decisions/1/rewards", content=body, headers=JSON), 400)


@pytest.mark.parametrize(
    "content", [b"\xff\xfe{}", GOOD.encode("utf-16"), b'{"unit": "\xe9"}', b"\x1f\x8b" + b"x" * 50, b"\x00"]
)
def test_wrong_encodings(service, content):
    problem(service.post("/v1/decisions", content=content, headers=JSON), 400)


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Content-Type", "text/plain"),
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Content-Type", "application/json; charset=latin-1"),
        ("Content-Encoding", "gzip"),
    ],
)
def test_wrong_content_types(service, header, value):
    problem(service.post("/v1/decisions", content=GOOD, headers={**JSON, header: value}), 415)
    problem(service.post("/v1/decisions", content=GOOD), 415)


@pytest.mark.parametrize(
    "value", ["application/json; charset=utf-8", "Application/JSON", 'application/json;charset="UTF-8"']
)
def test_usual_content_types(service, value):
    assert service.post("/v1/decisions", content=GOOD, headers={"Content-Type": value}).status_code == 200


@pytest.mark.parametrize("header", ["ü", "x" * 201, ""])
def test_wrong_idempotency_keys(service, header):
    headers = {**JSON, "Idempotency-Key": header.encode("latin-1")}
    problem(service.post("/v1/decisions", content=GOOD, headers=headers), 422)


def test_a_body_that_is_too_large(service):
    detail = problem(service.post("/v1/decisions", content=" " * 100_001, headers=JSON), 413)
    assert "100000" in detail

    async def parts():
        for _ in range(30):
            yield b" " * 10_000

    problem(service.post("/v1/decisions", content=parts(), headers=JSON), 413)
    assert service.post("/v1/decisions", content=GOOD.ljust(100_000), headers=JSON).status_code == 200


def test_unknown_paths_and_methods(service):
    assert "/nothing" in problem(service.get("/nothing"), 404)
    problem(service.get("/v1/decisions/1/"), 404)
    detail = problem(service.request("DELETE", "/v1/decisions/1"), 405)
    assert "DELETE" in detail
    response = service.get("/v1/decisions")
    problem(response, 405)
    assert response.headers["allow"] == "POST"


def test_more_candidates_than_allowed(tmp_path):
    folder = make_campaign(tmp_path / "autumn", "service.most_arms = 12\n")
    with serving(folder) as service:
        assert service.post("/v1/decisions", request_of(features(12))).status_code == 200
        assert "12" in problem(service.post("/v1/decisions", request_of(features(13))), 422)
        arms = [{"id": f"a{i}", "features": [0.0] * 4} for i in range(13)]
        problem(service.request("PUT", "/v1/arms", json={"arms": arms}), 422)


def test_a_mistake_in_the_service_is_a_problem_too(tmp_path, monkeypatch):
    with serving(make_campaign(tmp_path / "autumn")) as service:
        monkeypatch.setattr(service.worker.decider, "decide", lambda *a, **k: 1 / 0)
        detail = problem(service.post("/v1/decisions", request_of(features())), 500)
        assert "ZeroDivision" not in detail
        assert 'armful_errors_total{route="decide"} 1.0' in service.get("/metrics").text


def test_a_rate_for_each_caller():
    now = [0.0]
    limit = RateLimit(2.0, lambda: now[0])
    for caller in ("a", "b"):
        limit.take(caller)
        limit.take(caller)
        with pytest.raises(ProblemError) as error:
            limit.take(caller)
        assert error.value.status == 429
        assert error.value.headers["retry-after"] == "1"
    now[0] = 0.5
    limit.take("a")
    with pytest.raises(ProblemError):
        limit.take("a")
    now[0] = 1e6  # what was not used is not saved up
    limit.take("a")
    limit.take("a")
    with pytest.raises(ProblemError):
        limit.take("a")


def test_what_is_given_back_may_be_taken_again_but_no_more_than_a_second_has():
    limit = RateLimit(2.0, lambda: 0.0)
    for _ in range(5):
        limit.take("a")
        limit.give_back("a")
    limit.give_back("a")
    limit.give_back("nobody")
    limit.take("a")
    limit.take("a")
    with pytest.raises(ProblemError, match="2 requests a second"):
        limit.take("a")


def test_callers_that_are_remembered_are_bounded():
    limit = RateLimit(1.0)
    for i in range(RateLimit.MOST + 10):
        limit.take(str(i))
    assert len(limit._buckets) == RateLimit.MOST


def test_too_many_requests_are_told_when_to_come_again(tmp_path):
    folder = make_campaign(tmp_path / "autumn", "service.rate = 0.001\n")
    with serving(folder) as service:
        assert service.get("/v1/status").status_code == 200
        response = service.get("/v1/status")
        problem(response, 429)
        assert 1 <= int(response.headers["retry-after"]) <= 1000
        assert service.get("/healthz").status_code == 200


@pytest.mark.parametrize("parts", [[b"x" * 11], [b"x" * 6, b"x" * 5], [b"", b"x" * 11]])
def test_a_body_without_a_length_is_counted(parts):
    messages = [{"type": "http.request", "body": part, "more_body": i < len(parts) - 1} for i, part in enumerate(parts)]

    async def receive():
        return messages.pop(0)

    with pytest.raises(ProblemError) as error:
        asyncio.run(read_body(receive, {}, largest=10, seconds=60))
    assert error.value.status == 413
