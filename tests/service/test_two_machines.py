"""Two services, as on two machines, that serve one campaign in one PostgreSQL store."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest

from tests.postgresql import own_schema
from tests.service.running import Service, until

pytestmark = pytest.mark.slow
SETTINGS = """
name = "autumn"
store = {store}
id = "item"
choose.k = 2
policy.cap = 1.0
features.ready = 3
holdout.share = 0
[outcomes]
reward = "click"
window = "1 hour"
learn = "at once"
"""
WAITS = "another process updates this campaign"


@pytest.fixture
def machines(tmp_path):
    """Two running services; each has a folder of its own, and the store is all that they share."""
    started = []
    with own_schema() as store:
        try:
            for name in ("first", "second"):
                (tmp_path / name).mkdir()
                (tmp_path / name / "campaign.toml").write_text(SETTINGS.format(store=json.dumps(store)))
                options = ["--port", "0", "--update-every", "0.1s", "--json"]
                started.append(Service("armful", "serve", name, *options, cwd=tmp_path))
            yield started
        finally:
            for each in started:
                each.close()


def candidates(seed):
    return {f"a{i}": row for i, row in enumerate(np.random.default_rng(seed).normal(size=(10, 3)) / 3)}


def rewards_of(decision):
    return {id: float(i == 0) for i, id in enumerate(decision.ids)}


def deciding(service):
    """The version of the model that decides; `/v1/model` has the newest in the store, which comes a little earlier."""
    text = httpx.get(f"{service.url}/metrics", timeout=600, trust_env=False).text
    return int(float(re.search(r"^armful_model_version (\S+)", text, re.MULTILINE)[1]))


def model_of(n, *services):
    """Wait until these services decide by the same model of n rewards, and return what each says of it."""

    def answers():
        models = []
        for service in services:
            with service.client(timeout=600) as client:
                models.append(client.model())
        versions = {*map(deciding, services), *(each.model.version for each in models)}
        is_there = len(versions) == 1 and all(each.model.n_observations == n for each in models)
        return models if is_there else None

    return until(answers, f"one model of {n} rewards")


def test_what_is_decided_at_one_is_read_and_rewarded_at_the_other(machines):
    with machines[0].client(timeout=600) as first, machines[1].client(timeout=600) as second:
        for here, there in ((first, second), (second, first)):
            decision = here.decide(candidates(0), unit="user-17")
            stored = there.decision(decision)
            assert [arm.id for arm in stored.chosen] == decision.ids
            assert stored.unit == "user-17"
            assert there.reward(decision, rewards_of(decision)).new == 2
            assert here.reward(decision, rewards_of(decision)).repeated == 2
            assert {arm.id: arm.reward for arm in here.decision(decision).chosen} == rewards_of(decision)


def test_a_key_sent_to_both_at_once_gives_one_decision(machines):
    with (
        machines[0].client(timeout=600) as first,
        machines[1].client(timeout=600) as second,
        ThreadPoolExecutor(2) as pool,
    ):
        for i in range(20):
            asked = [
                pool.submit(client.decide, candidates(i), unit="user-17", key=f"page {i}") for client in (first, second)
            ]
            one, other = (each.result() for each in asked)
            assert (one.decision_id, one.ids) == (other.decision_id, other.ids)
            assert sorted([one.repeated, other.repeated]) == [False, True]
        assert first.status().decisions == second.status().decisions == 20


def test_one_of_them_learns_for_both_and_the_other_takes_over(machines):
    (waiting,) = until(lambda: [each for each in machines if WAITS in each.log()], "an updater that waits")
    (learning,) = (each for each in machines if each is not waiting)
    with machines[0].client(timeout=600) as first, machines[1].client(timeout=600) as second:
        for i in range(20):
            here, there = (first, second) if i % 2 else (second, first)
            decision = here.decide(candidates(i))
            (here if i % 4 < 2 else there).reward(decision, rewards_of(decision))
    one, other = model_of(40, *machines)
    assert one.coefficients == other.coefficients
    assert WAITS not in learning.log()

    assert learning.end() == 0
    with waiting.client(timeout=600) as client:
        decision = client.decide(candidates(0))
        assert decision.model_version >= one.model.version
        client.reward(decision, rewards_of(decision))
    (after,) = model_of(42, waiting)
    assert after.model.version > one.model.version
