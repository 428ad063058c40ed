"""Rewards over HTTP are recorded as `Ledger.add_rewards` records them."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from armful.campaigns import Campaign
from armful.service.updater import _updates
from tests.service.small_service import features, make_campaign, request_of, serving


@pytest.fixture
def folder(tmp_path):
    return make_campaign(tmp_path / "autumn")


@pytest.fixture
def service(folder):
    with serving(folder) as service:
        yield service


def decide(service, n=1):
    """Make decisions, and return the chosen ids of each."""
    answers = [service.post("/v1/decisions", request_of(features(seed=i))).json() for i in range(n)]
    return [[arm["id"] for arm in answer["chosen"]] for answer in answers]


def test_rewards_late_partial_repeated_and_corrected(service):
    ((a, b, c),) = decide(service)

    def post(rewards):
        return service.post("/v1/decisions/1/rewards", {"rewards": rewards}).json()

    assert post({a: 1.0}) == {"new": 1, "repeated": 0, "corrected": 0}
    assert post([{"id": a, "reward": 1.0}, {"id": b, "reward": 0.25}]) == {"new": 1, "repeated": 1, "corrected": 0}
    assert post({b: 0.75}) == {"new": 0, "repeated": 0, "corrected": 1}
    arms = {arm["id"]: arm for arm in service.get("/v1/decisions/1").json()["chosen"]}
    assert [arms[name]["reward"] for name in (a, b, c)] == [1.0, 0.75, None]
    assert [arms[name]["corrected"] for name in (a, b, c)] == [False, True, False]


@pytest.mark.parametrize("id", ["nobody", "no\0body"])
def test_nothing_is_recorded_if_one_arm_was_not_chosen(service, id):
    ((a, *_),) = decide(service)
    response = service.post("/v1/decisions/1/rewards", {"rewards": {a: 1.0, id: 1.0}})
    assert response.status_code == 422
    assert response.json()["detail"] == f"{id!r} was not chosen in decision 1: nothing was changed"
    assert service.worker.ledger.position() == 0


@pytest.mark.parametrize("number", ["2", "999999999999999999", "0", "01", "-1", "x", "1.0", "9" * 40, "%C3%BC", "٣"])
def test_unknown_decisions_are_not_found(service, number):
    ((a, *_),) = decide(service)
    assert service.post(f"/v1/decisions/{number}/rewards", {"rewards": {a: 1.0}}).status_code == 404
    assert service.get(f"/v1/decisions/{number}").status_code == 404


def test_rewards_of_many_decisions_and_those_that_belong_to_none(service):
    chosen = decide(service, 3)
    rewards = [{"decision_id": str(i + 1), "id": ids[i], "reward": float(i)} for i, ids in enumerate(chosen)]
    wrong = [
        {"decision_id": "17", "id": "a", "reward": 1.0},
        {"decision_id": "1", "id": "nobody", "reward": 1.0},
        {"decision_id": "later", "id": "a", "reward": 1.0},
    ]
    mixed = [wrong[0], rewards[0], wrong[1], rewards[1], wrong[2], rewards[2], rewards[2]]
    answer = service.post("/v1/rewards", {"rewards": mixed}).json()
    assert (answer["new"], answer["repeated"], answer["corrected"]) == (3, 1, 0)
    assert [(each["index"], each["decision_id"], each["id"]) for each in answer["unmatched"]] == [
        (0, "17", "a"),
        (2, "1", "nobody"),
        (4, "later", "a"),
    ]
    assert all(each["why"] for each in answer["unmatched"])


def test_the_ledger_is_the_same_as_by_its_own_method(tmp_path):
    rng = np.random.default_rng(3)
    first, second = (make_campaign(tmp_path / name) for name in ("http", "plain"))
    reports = [(int(rng.integers(1, 6)), int(rng.integers(3)), float(rng.integers(3))) for _ in range(40)]
    outcomes = {}
    with serving(first) as service, serving(second) as other:
        for each in (service, other):
            each.worker.models.rng = np.random.default_rng(0)
            each.worker.models.current.policy.rng = np.random.default_rng(0)
        chosen, same = decide(service, 5), decide(other, 5)
        assert chosen == same
        for number, place, reward in reports:
            arm = chosen[number - 1][place]
            over_http = service.post(f"/v1/decisions/{number}/rewards", {"rewards": {arm: reward}}).json()
            counts = other.worker.ledger.add_rewards([number], [arm], [reward], other.worker.now())
            assert over_http == {"new": counts.new, "repeated": counts.repeated, "corrected": counts.corrected}
        assert service.worker.ledger.position() == other.worker.ledger.position()
    for folder in (first, second):
        with Campaign.open(folder) as campaign:
            block = campaign.ledger.block(1, 5)
            outcomes[folder] = (block.ids.tolist(), block.rewards.tolist(), block.corrected.tolist())
    assert str(outcomes[first]) == str(outcomes[second])


@pytest.mark.parametrize("rewards", [None, "1", [1.0], {"a": "1"}, {"a": None}, {"": 1.0}, {"a": True}])
def test_rewards_of_wrong_types_are_refused(service, rewards):
    decide(service)
    assert service.post("/v1/decisions/1/rewards", {"rewards": rewards}).status_code == 422
    assert service.worker.ledger.position() == 0


@pytest.mark.parametrize("rewards", [[], {}])
def test_no_rewards_change_nothing_where_the_decision_is_known(service, rewards):
    decide(service)
    answer = service.post("/v1/decisions/1/rewards", {"rewards": rewards})
    assert answer.json() == {"new": 0, "repeated": 0, "corrected": 0}
    unknown = service.post("/v1/decisions/2/rewards", {"rewards": rewards})
    assert unknown.status_code == 404
    assert unknown.json()["detail"] == "there is no decision 2: nothing was recorded"
    assert service.worker.ledger.position() == 0


@pytest.mark.parametrize("value", [1.1e100, -1e308])
def test_rewards_whose_squares_no_model_could_hold_are_refused(service, value):
    ((a, *_),) = decide(service)
    assert service.post("/v1/decisions/1/rewards", {"rewards": {a: value}}).status_code == 422
    many = [{"decision_id": "1", "id": a, "reward": value}]
    assert service.post("/v1/rewards", {"rewards": many}).status_code == 422
    assert service.worker.ledger.position() == 0


def test_the_largest_features_and_rewards_leave_a_model_that_decides(folder, service):
    largest = np.full((3, 4), 1e6) * [[1, 1, 1, 1], [1, 1, 1, -1], [0.999, 1, 1, 1]]
    for _ in range(3):
        answer = service.post("/v1/decisions", request_of(largest)).json()
        rewards = {arm["id"]: 1e100 for arm in answer["chosen"]}
        assert service.post(f"/v1/decisions/{answer['decision_id']}/rewards", {"rewards": rewards}).status_code == 200
    with Campaign.open(folder, now=lambda: datetime.now(UTC) + timedelta(days=1)) as campaign:
        assert _updates(campaign, timedelta(seconds=30))().n_observations == 9
    service.worker._refresh_model()
    assert service.post("/v1/decisions", request_of(features())).json()["model_version"] == 1
    assert service.get("/v1/model").status_code == 200


def test_the_status_says_when_the_model_is_not_updated_any_more(folder):
    clock = [datetime.now(UTC)]
    with serving(folder, now=lambda: clock[0]) as service, Campaign.open(folder, now=lambda: clock[0]) as campaign:
        update = _updates(campaign, timedelta(seconds=30))
        decide(service)
        update()
        clock[0] += timedelta(seconds=149)
        assert service.get("/v1/status").json()["notes"] == []
        clock[0] += timedelta(seconds=2)
        (note,) = service.get("/v1/status").json()["notes"]
        assert "151 seconds" in note
        update()
        assert service.get("/v1/status").json()["notes"] == []
