"""Several workers of one campaign, and slow requests beside quick ones."""

import threading
from datetime import timedelta

import pytest

from armful.constraints import linear
from armful.constraints._milp import Answer
from armful.service import _deciding
from armful.service._problems import ProblemError
from tests.service.small_service import SETTINGS, features, make_campaign, request_of, serving

NEVER = timedelta(days=1)
ARMS = [{"id": name, "features": row} for name, row in zip("abcd", features(4).tolist(), strict=True)]
QUOTAS = {"quotas": [{"column": "genre", "at_most": 1}]}


@pytest.fixture
def folder(tmp_path):
    return make_campaign(tmp_path / "autumn", 'features.leave_out = ["genre"]\n')


@pytest.fixture
def workers(folder):
    """Two workers that do not look by themselves for what the other one has done."""
    with serving(folder, poll_every=NEVER) as one, serving(folder, poll_every=NEVER) as other:
        yield one, other


@pytest.mark.parametrize("request_", [{}, {"candidates": ["a", "b", "c", "d"]}, {"candidates": [{"id": "d"}, ARMS[0]]}])
def test_arms_can_be_chosen_by_every_worker_as_soon_as_they_are_registered(workers, request_):
    one, other = workers
    assert other.post("/v1/decisions", request_).status_code == 422
    assert one.request("PUT", "/v1/arms", json={"arms": ARMS}).status_code == 200
    assert other.post("/v1/decisions", request_).status_code == 200


def test_arms_can_be_chosen_though_another_request_has_just_read_them(workers, monkeypatch):
    one, other = workers
    assert one.request("PUT", "/v1/arms", json={"arms": ARMS}).status_code == 200
    refresh = other.worker.candidates.refresh
    monkeypatch.setattr(other.worker.candidates, "refresh", lambda: refresh() and refresh())
    assert other.post("/v1/decisions", {"candidates": ["a"]}).status_code == 200


def test_arms_that_settings_cannot_use_are_told_of(folder):
    arms = [{**ARMS[0], "columns": {"genre": "drama"}}]
    with serving(folder) as service:
        assert service.request("PUT", "/v1/arms", json={"arms": arms}).status_code == 200
        assert service.get("/v1/status").json()["notes"] == []
    make_campaign(folder, "")
    with serving(folder) as service:
        (note,) = service.get("/v1/status").json()["notes"]
        assert "1 registered arm cannot be chosen; arm 'a'" in note
        assert note in service.post("/v1/decisions", {}).json()["detail"]


def test_arms_can_be_withdrawn_at_every_worker(workers):
    one, other = workers
    one.request("PUT", "/v1/arms", json={"arms": ARMS})
    answer = other.request("PUT", "/v1/arms", json={"withdraw": ["a", "nobody"]})
    assert answer.json() == {"registered": 0, "withdrawn": 1, "total": 3}
    one.worker.candidates.refresh()
    assert one.post("/v1/decisions", {"candidates": ["a"]}).status_code == 422


@pytest.mark.parametrize("slow", ["reading", "choosing"])
def test_a_slow_request_lets_others_pass(folder, monkeypatch, slow):
    begun, may_go_on = threading.Event(), threading.Event()

    def wait():
        begun.set()
        assert may_go_on.wait(120)

    with serving(folder) as service:
        plain_read, plain_choice = service.worker.candidates.read, _deciding.choose_with_inclusion

        def read(request):
            if request.constraint is not None:
                wait()
            return plain_read(request)

        def choose(policy, X, constraint, **more):
            with policy._thread_locks.drawing:
                if len(X) == 5:
                    wait()
                return plain_choice(policy, X, constraint, **more)

        if slow == "reading":
            monkeypatch.setattr(service.worker.candidates, "read", read)
        else:
            monkeypatch.setattr(_deciding, "choose_with_inclusion", choose)
        asked = request_of(features(5), constraint=QUOTAS)
        for i, candidate in enumerate(asked["candidates"]):
            candidate["columns"] = {"genre": "ab"[i % 2]}
        try:
            answer = service.run_later(service.post_later("/v1/decisions", asked))
            assert begun.wait(120)
            other = service.run_later(service.post_later("/v1/decisions", request_of(features(6))))
            assert other.result(60).status_code == 200
        finally:
            may_go_on.set()
        assert len(answer.result(120).json()["chosen"]) == 2


@pytest.mark.parametrize(
    ("policy", "n", "in_a_thread"),
    [
        ('kind = "ArmwiseThompson"', 200, False),
        ('kind = "ArmwiseThompson"', 201, True),
        ('kind = "CombLinTS"', 201, True),
        ('kind = "EpsilonGreedy"\npolicy.epsilon = 0.1', 2000, False),
        ('kind = "C2UCB"', 2000, False),
        ('kind = "C2UCB"', 2001, True),
    ],
)
def test_what_takes_long_is_computed_in_a_thread(tmp_path, monkeypatch, policy, n, in_a_thread):
    """Of a policy with 100 draws that is candidates times draws."""
    folder = make_campaign(tmp_path / "autumn", settings=SETTINGS.replace("policy.cap = 1\n", f"policy.{policy}\n"))
    computed = []
    with serving(folder) as service:
        plain = service.worker.compute
        monkeypatch.setattr(service.worker, "compute", lambda *given: computed.append(given) or plain(*given))
        assert service.post("/v1/decisions", request_of(features(n))).status_code == 200
    assert bool(computed) == in_a_thread


def test_slow_requests_beyond_bounds_are_told_to_come_again(folder, monkeypatch):
    monkeypatch.setattr("armful.service._worker.MOST_COMPUTING", 0)
    asked = request_of(features(3), constraint={"k": 2, "quotas": []})
    with serving(folder) as service:
        assert service.post("/v1/decisions", asked).status_code == 200
        response = service.post("/v1/decisions", request_of(features(2001)))
        assert (response.status_code, response.headers["retry-after"]) == (503, "1")


def test_work_that_takes_too_long_is_a_problem_and_counts_until_it_ends(folder, monkeypatch):
    monkeypatch.setattr("armful.service._worker.MOST_COMPUTING", 1)
    begun, may_go_on, said = threading.Event(), threading.Event(), []

    def work():
        begun.set()
        return may_go_on.wait(300)

    with serving(folder) as service:
        worker = service.worker
        monkeypatch.setattr(worker, "_seconds", 0.01)
        try:
            while not begun.is_set():  # on a busy machine its time may be over before it begins
                with pytest.raises(ProblemError) as late:
                    service.run(worker.compute(work))
                said.append(str(late.value))
                assert (late.value.status, late.value.headers["retry-after"]) == (503, "1")
            assert "no set was found in time" in said[0]
            with pytest.raises(ProblemError, match="large requests are waiting"):
                service.run(worker.compute(int))
        finally:
            may_go_on.set()
        (computation,) = worker._computations
        assert computation.result(300)
        monkeypatch.setattr(worker, "_seconds", 300)
        assert service.run(worker.compute(int)) == 0


def test_a_solver_that_finds_no_set_in_time_is_a_problem(tmp_path, monkeypatch):
    folder = make_campaign(tmp_path / "autumn", 'features.leave_out = ["genre", "age"]\n')
    monkeypatch.setattr(linear, "maximise", lambda *_, **__: Answer(None))
    asked = request_of(
        features(4), constraint={"quotas": [{"column": name, "at_most": 1} for name in ("genre", "age")]}
    )
    for i, candidate in enumerate(asked["candidates"]):
        candidate["columns"] = {"genre": "ab"[i % 2], "age": "cd"[i // 2]}
    with serving(folder) as service:
        response = service.post("/v1/decisions", asked)
    assert response.status_code == 503
    assert "no set was found in time (service.timeout is 10 seconds)" in response.json()["detail"]
