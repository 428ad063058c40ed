"""The two clients send the same requests, try again where that is safe, and say in one sentence what failed."""

import asyncio
import json
from datetime import date

import httpx
import numpy as np
import pytest

import armful
from armful.service import _calls

DECIDED = {
    "decision_id": "17",
    "chosen": [
        {"id": "b", "position": 1, "predicted": 0.2, "bonus": 0.1, "capped": False, "probability": 0.9},
        {"id": "a", "position": 2, "predicted": 0.1, "bonus": 0.1, "capped": True, "probability": None},
    ],
    "model_version": 3,
    "share": "chosen",
    "repeated": False,
    "notes": ["k is 3, and 2 of 2 candidates are all that may be chosen"],
    "something_newer": 1,
}
COUNTS = {"new": 1, "repeated": 0, "corrected": 0}


class Service:
    """Answers with what is next in a list, and remembers the requests; an exception is raised."""

    def __init__(self, *answers):
        self.answers, self.requests = list(answers), []

    def __call__(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, type):
            raise answer("it broke", request=request)
        if isinstance(answer, int):
            problem = {"type": "about:blank", "title": "No", "status": answer, "detail": "this was refused."}
            return httpx.Response(answer, json=problem)
        return answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)

    @property
    def bodies(self):
        return [json.loads(request.content) for request in self.requests]


@pytest.fixture(params=["sync", "async"])
def call(request, monkeypatch):
    """Call a method of a client against a service; pauses are noted and not waited for."""
    pauses = []

    async def soon(seconds):
        pauses.append(seconds)

    monkeypatch.setattr("armful.service.client.time.sleep", pauses.append)
    monkeypatch.setattr("armful.service._async_client.asyncio.sleep", soon)

    def call(service, method, *args, key=None, attempts=5, **options):
        transport = httpx.MockTransport(service)
        if request.param == "sync":
            with armful.Client("http://service", key, attempts=attempts, transport=transport) as client:
                return getattr(client, method)(*args, **options)

        async def one():
            async with armful.AsyncClient("http://service", key, attempts=attempts, transport=transport) as client:
                return await getattr(client, method)(*args, **options)

        return asyncio.run(one())

    call.pauses = pauses
    return call


def test_a_decision_is_asked_for_and_read(call):
    service = Service(DECIDED)
    decision = call(
        service,
        "decide",
        {"a": {"price": 1.5, "since": date(2026, 1, 5)}, "b": np.array([0.5, 2.0])},
        2,
        context={"hour": np.int64(7)},
        unit="user-1",
        key="armful_1_secret",
        constraint={"exclude": ["c"]},
    )
    (request,), (body,) = service.requests, service.bodies
    assert (request.method, request.url.path) == ("POST", "/v1/decisions")
    assert request.headers["authorization"] == "Bearer armful_1_secret"
    assert len(body.pop("key")) == 32
    assert body == {
        "candidates": [
            {"id": "a", "columns": {"price": 1.5, "since": "2026-01-05"}},
            {"id": "b", "features": [0.5, 2.0]},
        ],
        "context": {"hour": 7},
        "constraint": {"exclude": ["c"], "k": 2},
        "unit": "user-1",
    }
    assert decision.ids == ["b", "a"]
    assert decision.notes == DECIDED["notes"]
    assert (decision.decision_id, decision.model_version, decision.share) == ("17", 3, "chosen")
    assert (decision.chosen[0].probability, decision.chosen[1].probability, decision.chosen[1].capped) == (0.9, None, 1)


AGE = {"version": 3, "made_at": "2026-01-05T12:00:00+00:00", "checked_at": None, "n_observations": 7.0}
STATUS = {"campaign": "autumn", "decisions": 9, "rewards": 8, "outstanding": 7, "registered_arms": 6, "model": AGE}
MODEL = {"campaign": "autumn", "policy": "CappedC2UCB", "n_features": 1, "model": AGE}
STORED = DECIDED | {"decided_at": "2026-01-05T12:00:00Z", "closes_at": "2026-01-06T12:00:00Z", "runner_up": {"id": "c"}}


def test_rewards_arms_and_reading(call):
    unmatched = [{"index": 0, "decision_id": "17", "id": "a", "why": "no"}]
    put = {"registered": 1, "withdrawn": 1, "total": 5}
    service = Service(COUNTS, COUNTS | {"unmatched": unmatched}, put, STORED, STATUS, MODEL)
    assert call(service, "reward", "17/../x", {"a": 1.0}).new == 1
    assert call(service, "rewards", [(17, "a", 0.5)]).unmatched[0].why == "no"
    assert call(service, "put_arms", {"a": [1.0]}, withdraw=["b"]).total == 5
    stored = call(service, "decision", 17)
    assert stored.notes == DECIDED["notes"]
    assert (stored.chosen[1].capped, stored.runner_up.id, stored.closes_at.day) == (True, "c", 6)
    assert call(service, "status").model.made_at.isoformat() == AGE["made_at"]
    assert call(service, "model").model.version == 3
    assert [(request.method, request.url.raw_path.decode()) for request in service.requests] == [
        ("POST", "/v1/decisions/17%2F..%2Fx/rewards"),
        ("POST", "/v1/rewards"),
        ("PUT", "/v1/arms"),
        ("GET", "/v1/decisions/17"),
        ("GET", "/v1/status"),
        ("GET", "/v1/model"),
    ]
    assert json.loads(service.requests[0].content) == {"rewards": [{"id": "a", "reward": 1.0}]}
    assert json.loads(service.requests[1].content) == {"rewards": [{"decision_id": "17", "id": "a", "reward": 0.5}]}
    assert json.loads(service.requests[2].content) == {"arms": [{"id": "a", "features": [1.0]}], "withdraw": ["b"]}


@pytest.mark.parametrize(
    "trouble", [429, 502, 503, 504, httpx.ConnectError, httpx.ReadTimeout, httpx.RemoteProtocolError, httpx.ReadError]
)
def test_what_fails_on_the_way_is_sent_again_with_the_same_key(call, trouble):
    service = Service(trouble, trouble, DECIDED | {"repeated": True})
    assert call(service, "decide", ["a", "b"]).repeated
    assert service.bodies[0] == service.bodies[1] == service.bodies[2]
    assert len(call.pauses) == 2
    assert 0 < call.pauses[0] <= _calls.FIRST_PAUSE_SECONDS < call.pauses[1] * 2 <= 4 * _calls.FIRST_PAUSE_SECONDS


def test_each_decision_has_a_key_of_its_own(call):
    service = Service(DECIDED, DECIDED)
    call(service, "decide", ["a"])
    call(service, "decide", ["a"])
    assert service.bodies[0]["key"] != service.bodies[1]["key"]


def test_keys_are_in_the_order_in_which_they_were_made(monkeypatch):
    keys = []
    for milliseconds in (1, 1_800_000_000_000, 1_800_000_000_001, 4_000_000_000_000):
        monkeypatch.setattr(_calls.time, "time_ns", lambda now=milliseconds: now * 1_000_000)
        keys.append(_calls.new_key())
    assert keys == sorted(keys)
    assert {len(key) for key in keys} == {32}


def test_an_empty_key_is_sent_as_it_is_so_that_the_service_refuses_it():
    body = _calls.decide(["a"], None, None, None, "", None).body
    assert json.loads(body)["key"] == ""


def test_attempts_wait_as_long_as_the_documentation_says(monkeypatch):
    monkeypatch.setattr(_calls.random, "uniform", lambda *bounds: bounds[1])

    def pauses(attempts):
        counting = _calls.Attempts("http://service", attempts)
        return sum(counting.pause_after(httpx.Response(503)) for _ in range(attempts - 1))

    assert (round(pauses(5), 1), round(pauses(9), 1)) == (1.5, 22.7)


@pytest.mark.parametrize("asked", ["3", "1e9", "-1", "nan", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_pause_that_the_service_asks_for_is_made_within_reason(call, asked):
    service = Service(httpx.Response(429, headers={"retry-after": asked}), DECIDED)
    call(service, "decide", ["a"])
    low, high = {"3": (3, 3), "1e9": (_calls.LONGEST_PAUSE_SECONDS,) * 2}.get(asked, (0, _calls.FIRST_PAUSE_SECONDS))
    assert low <= call.pauses[0] <= high


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 500])
def test_a_refusal_is_an_error_at_once(call, status):
    service = Service(status)
    with pytest.raises(armful.ServiceError, match=f"^the service answered {status}: this was refused") as caught:
        call(service, "reward", "17", {"a": 1.0})
    assert (caught.value.status, caught.value.problem["title"], call.pauses) == (status, "No", [])


def test_attempts_end(call):
    service = Service(*[503] * 3)
    with pytest.raises(armful.ServiceError, match="answered 503"):
        call(service, "status", attempts=3)
    service = Service(*[httpx.ConnectError] * 3)
    sentence = "^http://service does not answer after 3 attempts: it broke; is the service running there"
    with pytest.raises(armful.ServiceError, match=sentence) as caught:
        call(service, "status", attempts=3)
    assert (caught.value.status, caught.value.problem) == (None, {})


@pytest.mark.parametrize("content", [b"<html>", b"[]", b"\xff", b"{}"])
def test_an_answer_of_something_else_is_named(call, content):
    for status in (200, 404):
        with pytest.raises(armful.ServiceError, match=r"no answer of a decision service|answered 404: Not Found"):
            call(Service(httpx.Response(status, content=content)), "decide", ["a"])


@pytest.mark.parametrize("value", [float("nan"), np.inf, np.float32("nan")])
def test_numbers_that_json_does_not_have_are_not_sent(call, value):
    service = Service()
    with pytest.raises(ValueError, match="must be finite"):
        call(service, "decide", {"a": {"x": value}})
    with pytest.raises(ValueError, match="must be finite"):
        call(service, "reward", "17", {"a": value})
    assert service.requests == []


def test_what_is_missing_may_be_sent(call):
    service = Service(DECIDED)
    call(service, "decide", {"a": {"x": None, "since": date(2026, 1, 5)}})
    assert service.bodies[0]["candidates"] == [{"id": "a", "columns": {"x": None, "since": "2026-01-05"}}]


def test_what_is_no_candidate_is_refused(call):
    with pytest.raises(ValueError, match="got the text 'abc'"):
        call(Service(), "decide", "abc")
    with pytest.raises(ValueError, match="withdraw is a list of ids, got the text 'abc'"):
        call(Service(), "put_arms", {}, withdraw="abc")
    with pytest.raises(TypeError, match="JSON has texts, numbers, lists and mappings, got object"):
        call(Service(), "decide", [{"id": "a", "columns": object()}])


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("decide", ({b"a": [1.0]},)),
        ("decide", ([b"a"],)),
        ("put_arms", ({b"a": [1.0]},)),
        ("put_arms", ([b"a"],)),
        ("reward", ("17", {b"a": 1.0})),
        ("rewards", ([("17", b"a", 1.0)],)),
    ],
)
def test_an_id_that_is_no_text_is_refused(call, method, arguments):
    """JSON would have bytes as another text."""
    with pytest.raises(ValueError, match="the id of an arm is a text, got b'a'"):
        call(Service(), method, *arguments)


def test_rewards_that_are_no_tuples_of_three_are_refused(call):
    with pytest.raises(ValueError, match="rewards are tuples of a decision, an id and a number"):
        call(Service(), "rewards", [("17", "a")])


@pytest.mark.parametrize("kind", [armful.Client, armful.AsyncClient])
def test_an_address_is_shown_without_its_password(kind):
    assert repr(kind("https://me:secret@service/at")) == f"{kind.__name__}('https://service/at')"


def test_arms_are_withdrawn_without_others_to_register(call):
    service = Service({"registered": 0, "withdrawn": 2, "total": 5})
    assert call(service, "put_arms", withdraw=["a", "b"]).withdrawn == 2
    assert service.bodies[0] == {"arms": [], "withdraw": ["a", "b"]}


def test_rewards_and_constraints_are_mappings(call):
    with pytest.raises(ValueError, match=r"rewards is a mapping of ids to numbers, .* got \[1.0, 0.0\]"):
        call(Service(), "reward", "17", [1.0, 0.0])
    with pytest.raises(ValueError, match=r"constraint is a mapping like .*, got TopK\(k=2\)"):
        call(Service(), "decide", ["a", "b"], constraint=armful.TopK(2))


def test_k_is_given_once(call):
    with pytest.raises(ValueError, match="k is 1, and that of constraint is 2: give one of them"):
        call(Service(), "decide", ["a", "b"], 1, constraint={"k": 2})
    service = Service(DECIDED)
    call(service, "decide", ["a", "b"], 2, constraint={"k": 2, "exclude": ["c"]})
    assert service.bodies[0]["constraint"] == {"k": 2, "exclude": ["c"]}


@pytest.mark.parametrize("kind", [armful.Client, armful.AsyncClient])
def test_what_is_no_address_is_refused(kind):
    with pytest.raises(ValueError, match=r"^url is the address of a service, like http://127.0.0.1:8000, got 'autumn'"):
        kind("autumn")
    with pytest.raises(ValueError, match="attempts"):
        kind("http://service", attempts=0)
    for timeout, sentence in [(0, "timeout must be positive, got 0"), (float("nan"), "timeout"), ("10s", "timeout")]:
        with pytest.raises((ValueError, TypeError), match=f"^{sentence}"):
            kind("http://service", timeout=timeout)
    assert repr(kind("http://service", "armful_1_secret")) == f"{kind.__name__}('http://service')"


def test_without_httpx_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "httpx", None)
    monkeypatch.delitem(__import__("sys").modules, "armful.service.client")
    with pytest.raises(ImportError, match=r"^armful.Client needs httpx: install armful with the extra \[serve\]"):
        armful.Client  # noqa: B018


@pytest.mark.parametrize("kind", [armful.Client, armful.AsyncClient])
@pytest.mark.parametrize("key", ["", "armful_1_2\n", "armful_1 2", "armful_ü", "armful_1\x7f"])
def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(kind, key):
    with pytest.raises(ValueError, match="armful key create") as caught:
        kind("http://127.0.0.1:8000", key)
    assert "armful_" not in str(caught.value)
