"""Decisions over HTTP are those of the policy, are stored as they are answered, and are made once for each key."""

import copy
import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np
import pytest

from armful.campaigns import Campaign
from armful.campaigns.decisions.published import PublishedModel
from armful.campaigns.holdout import uniforms
from armful.constraints import Excluding, Quotas, Requiring, TopK
from armful.ledger import Ledger, ModelInfo
from armful.service._deciding import fingerprint_of
from armful.service._messages import decision_decoder
from armful.service._problems import ProblemError
from tests.service.small_service import SETTINGS, features, make_campaign, request_of, serving


def ids_of(response):
    """Return the ids of the chosen arms, in the order of the slate."""
    return [arm["id"] for arm in response.json()["chosen"]]


def publish(folder, X, rewards, version=1, pending=()):
    """Publish a model that has learned these rewards, and return its policy."""
    with Campaign.open(folder) as campaign:
        policy = campaign.settings.policy.make(X.shape[1], 0)
        policy.learn(X, rewards)
        now = datetime.now(UTC)
        model = PublishedModel(
            version=version,
            made_at=now,
            state=policy.state,
            pending=np.zeros((0, X.shape[1])),
            position_weights=np.ones(3),
            n_observations=float(len(X)),
            names=tuple(f"x{i + 1}" for i in range(X.shape[1])),
        )
        info = ModelInfo(
            version=version,
            position=campaign.ledger.position(),
            closed_until=now,
            last_round=campaign.ledger.last_number(),
            made_at=now,
            checked_at=now,
            n_observations=float(len(X)),
        )
        assert campaign.ledger.publish_model(info, model.to_bytes(), '{"rewards": 50, "outstanding": 2, "notes": []}')
    return policy


@pytest.fixture
def folder(tmp_path):
    return make_campaign(tmp_path / "autumn")


@pytest.fixture
def taught(folder):
    """A campaign whose model has learned 50 rewards, and the same policy."""
    rng = np.random.default_rng(7)
    X = features(50, seed=7).astype(np.float32)
    with serving(folder):  # freezes the recipe
        pass
    return folder, publish(folder, X, rng.random(50))


def test_the_set_is_that_of_the_plain_policy(taught):
    folder, policy = taught
    with serving(folder) as service:
        for seed in range(5):
            X = features(40, seed=seed)
            answer = service.post("/v1/decisions", request_of(X)).json()
            choice = policy.choose(X.astype(np.float32), TopK(3))
            assert [arm["id"] for arm in answer["chosen"]] == [f"a{i}" for i in choice.indices]
            assert [arm["position"] for arm in answer["chosen"]] == [1, 2, 3]
            np.testing.assert_allclose([arm["predicted"] for arm in answer["chosen"]], choice.mean, rtol=1e-9)
            np.testing.assert_allclose([arm["bonus"] for arm in answer["chosen"]], choice.bonus, rtol=1e-9)
            assert [arm["capped"] for arm in answer["chosen"]] == choice.capped.tolist()
            assert [arm["probability"] for arm in answer["chosen"]] == [1.0] * 3
            assert answer["model_version"] == 1
            assert answer["share"] == "chosen"
            assert not answer["repeated"]


def test_a_decision_is_stored_as_it_is_answered(taught):
    folder, _ = taught
    X = features(20)
    begin = datetime.now(UTC)
    with serving(folder) as service:
        answer = service.post("/v1/decisions", request_of(X, unit="user-17", key="k")).json()
    with Campaign.open(folder) as campaign:
        info, arms = campaign.ledger.round(1), campaign.ledger.chosen(1)
    assert answer["decision_id"] == "1"
    assert (info.key, info.unit, info.model_version) == ("k", "user-17", 1)
    assert begin <= info.chosen_at <= datetime.now(UTC)
    assert info.closes_at == info.chosen_at + timedelta(minutes=30)
    order = np.argsort(arms.positions)
    assert arms.ids[order].tolist() == [arm["id"] for arm in answer["chosen"]]
    assert arms.predicted[order].tolist() == [arm["predicted"] for arm in answer["chosen"]]
    assert arms.probabilities[order].tolist() == [arm["probability"] for arm in answer["chosen"]]
    assert set(arms.shares.tolist()) == {"chosen"}
    rows = [int(name[1:]) for name in arms.ids]
    np.testing.assert_array_equal(arms.features, X.astype(np.float32)[rows])


def test_a_stored_decision_tells_why(taught):
    folder, policy = taught
    X = features(20, seed=3)
    with serving(folder) as service:
        chosen = service.post("/v1/decisions", request_of(X)).json()["chosen"]
        service.post("/v1/decisions/1/rewards", {"rewards": {chosen[1]["id"]: 0.5}})
        stored = service.get("/v1/decisions/1").json()
    scores = policy.choose(X.astype(np.float32), TopK(3))._problem.scores
    order = np.argsort(-scores.value)
    runner_up = order[3]
    assert stored["n_candidates"] == 20
    assert stored["constraint"] == {"k": 3}
    assert stored["runner_up"]["id"] == f"a{runner_up}"
    assert stored["runner_up"]["score"] == pytest.approx(scores.value[runner_up])
    for arm, i in zip(stored["chosen"], order, strict=False):
        assert arm["id"] == f"a{i}"
        assert arm["cap"] == 1.0
        expected = 1.0 if scores.capped[i] else scores.mean[i] + scores.bonus[i]
        assert arm["score"] == pytest.approx(expected)
    assert [arm["reward"] for arm in stored["chosen"]] == [None, 0.5, None]
    assert min(arm["score"] for arm in stored["chosen"]) >= stored["runner_up"]["score"] - 1e-5


def test_a_runner_up_at_the_cap_has_the_cap_as_its_score(folder):
    with serving(folder) as service:  # without a model all arms are at the cap
        service.post("/v1/decisions", request_of(features(20)))
        stored = service.get("/v1/decisions/1").json()
    assert {arm["score"] for arm in stored["chosen"]} == {1.0}
    assert stored["runner_up"]["score"] == 1.0


def test_the_same_key_gives_the_same_decision(folder):
    X = features()
    with serving(folder) as service:
        first = service.post("/v1/decisions", request_of(X, key="monday")).json()
        again = service.post("/v1/decisions", request_of(X, key="monday")).json()
        by_header = service.post("/v1/decisions", request_of(X), headers={"Idempotency-Key": "tuesday"}).json()
        header_again = service.post("/v1/decisions", request_of(X), headers={"Idempotency-Key": "tuesday"}).json()
        assert again == {**first, "repeated": True}
        assert header_again == {**by_header, "repeated": True}
        assert by_header["decision_id"] == "2"
        both = service.post("/v1/decisions", request_of(X, key="a"), headers={"Idempotency-Key": "b"})
        assert both.status_code == 422
        assert service.worker.ledger.last_number() == 2


def test_the_same_request_may_be_written_in_another_way(folder):
    make_campaign(folder, 'features.leave_out = ["genre", "year"]\n')
    columns = {"genre": "drama", "year": 1999}
    request = {"candidates": [{"id": "a", "features": [1.0, 2, 0.5, 4], "columns": columns}], "key": "one"}
    other = {"candidates": [{"columns": dict(reversed(columns.items())), "features": [1, 2.0, 5e-1, 4.0], "id": "a"}]}
    with serving(folder) as service:
        first = service.post("/v1/decisions", request).json()
        again = service.post("/v1/decisions", other, headers={"Idempotency-Key": "one"}).json()
        other["candidates"][0]["columns"]["year"] = 2000
        refused = service.post("/v1/decisions", other, headers={"Idempotency-Key": "one"})
    assert again == {**first, "repeated": True}
    assert refused.status_code == 409


def test_the_same_key_with_another_body_is_refused(folder):
    with serving(folder) as service:
        service.post("/v1/decisions", request_of(features(), key="monday"))
        other = service.post("/v1/decisions", request_of(features(seed=1), key="monday"))
        assert other.status_code == 409
        assert "decision 1" in other.json()["detail"]


def test_a_key_gives_its_decision_also_when_it_could_not_be_made_any_more(folder):
    request = {"candidates": ["a", "b", "c", "d"], "key": "monday"}
    arms = [{"id": name, "features": row} for name, row in zip("abcd", features(4).tolist(), strict=True)]
    with serving(folder) as service:
        service.request("PUT", "/v1/arms", json={"arms": arms})
        first = service.post("/v1/decisions", request).json()
        service.request("PUT", "/v1/arms", json={"withdraw": ["a"]})
        assert service.post("/v1/decisions", request).json() == {**first, "repeated": True}
        assert service.post("/v1/decisions", {**request, "key": "tuesday"}).status_code == 422


def test_a_key_gives_its_decision_also_when_no_set_is_found_in_time(folder, monkeypatch):
    request = request_of(features(5), key="monday")
    with serving(folder) as service:
        first = service.post("/v1/decisions", request).json()

        async def too_slow(*_):
            raise ProblemError(503, "no set was found in time")

        monkeypatch.setattr(service.worker.candidates, "is_quick", lambda _: False)
        monkeypatch.setattr(service.worker, "compute", too_slow)
        assert service.post("/v1/decisions", request).json() == {**first, "repeated": True}
        assert service.post("/v1/decisions", {**request, "key": "tuesday"}).status_code == 503


def test_a_smaller_set_is_noted_in_the_answer_and_with_the_decision(folder):
    note = "k is 3, and 2 of 2 candidates are all that may be chosen"
    with serving(folder) as service:
        enough = service.post("/v1/decisions", request_of(features(5))).json()
        request = request_of(features(2), key="monday")
        few = service.post("/v1/decisions", request).json()
        assert (enough["notes"], few["notes"], len(few["chosen"])) == ([], [note], 2)
        assert service.post("/v1/decisions", request).json() == {**few, "repeated": True}
        stored = [service.get(f"/v1/decisions/{number}").json()["notes"] for number in (1, 2)]
        assert stored == [[], [note]]


@pytest.mark.slow
def test_one_key_at_once_from_several_workers_is_one_decision(folder):
    X = features(60)
    with serving(folder) as one, serving(folder) as two, ThreadPoolExecutor(2) as pool:
        keys = [f"key-{i % 5}" for i in range(40)]
        bodies = [request_of(X, key=key) for key in keys]
        answers = pool.map(lambda service: service.post_at_once("/v1/decisions", bodies), (one, two))
        found = list(itertools.chain.from_iterable(answers))
        assert one.worker.ledger.last_number() == 5
    assert {answer.status_code for answer in found} == {200}
    by_key = {}
    for key, answer in zip(keys * 2, found, strict=True):
        by_key.setdefault(key, []).append(answer.json())
    for same in by_key.values():
        assert len({(a["decision_id"], str(a["chosen"])) for a in same}) == 1
        assert sum(not a["repeated"] for a in same) == 1


def test_quotas_exclusions_and_requirements_of_a_request(taught):
    folder, policy = taught
    X = features(30, seed=5)
    groups = [("north", "south", "west")[i % 3] for i in range(30)]
    request = request_of(X)
    for candidate, group in zip(request["candidates"], groups, strict=True):
        candidate["columns"] = {"region": group}
    quotas = [{"column": "region", "at_most": 2}]
    more = 'choose.quotas = [{ column = "region", at_most = 2 }]\nchoose.k = 5\n'
    make_campaign(folder, 'features.leave_out = ["region"]\n', SETTINGS.replace("choose.k = 3\n", more))
    with serving(folder) as service:
        one = service.post("/v1/decisions", request).json()
        same = service.post("/v1/decisions", {**request, "constraint": {"k": 5, "quotas": quotas}}).json()
        excluded = service.post("/v1/decisions", {**request, "constraint": {"quotas": [], "exclude": ["a3", "a7"]}})
        required = service.post("/v1/decisions", {**request, "constraint": {"quotas": [], "require": ["a3"]}})
        impossible = service.post("/v1/decisions", {**request, "constraint": {"k": 1, "require": ["a3", "a4"]}})
        stored = service.worker.ledger.chosen(1)
        service.post("/v1/decisions", {**request, "constraint": {"k": 2}})
        found = [service.get(f"/v1/decisions/{number}").json()["constraint"] for number in range(1, 6)]
    said = {"column": "region", "at_least": None, "at_most": 2, "nested": False}
    assert found[:2] == [{"k": 5, "quotas": [said]}] * 2, "of the settings as of a request"
    assert found[2:4] == [{"k": 5, "quotas": [], "n_excluded": 2}, {"k": 5, "quotas": [], "n_required": 1}]
    assert found[4] == {"k": 2, "quotas": [said]}
    features32 = X.astype(np.float32)
    expected = policy.choose(features32, Quotas(groups, at_most=2, total=5)).indices
    assert {arm["id"] for arm in one["chosen"]} == {f"a{i}" for i in expected} == {arm["id"] for arm in same["chosen"]}
    for response, constraint in ((excluded, Excluding(TopK(5), [3, 7])), (required, Requiring(TopK(5), [3]))):
        chosen = {arm["id"] for arm in response.json()["chosen"]}
        assert chosen == {f"a{i}" for i in policy.choose(features32, constraint).indices}
        values = [arm["predicted"] + arm["bonus"] for arm in response.json()["chosen"]]
        assert values == sorted(values, reverse=True), "a slate, the best arm first"
    values = [arm["predicted"] + arm["bonus"] for arm in one["chosen"]]
    assert values == sorted(values, reverse=True)
    assert impossible.status_code == 422
    assert stored.groups["region"].tolist() == [groups[int(name[1:])] for name in stored.ids]


def test_a_bound_of_all_arms_is_not_stored_as_one_arm(tmp_path):
    """In JSON the share 1.0 would be the number 1."""
    more = 'choose.quotas = [{ column = "region", at_most = 1.0 }]\nchoose.k = 5\n'
    settings = SETTINGS.replace("choose.k = 3\n", more)
    folder = make_campaign(tmp_path / "autumn", 'features.leave_out = ["region"]\n', settings)
    request = request_of(features(9)) | {"constraint": {"k": 5}}
    for candidate in request["candidates"]:
        candidate["columns"] = {"region": "north"}
    with serving(folder) as service:
        service.post("/v1/decisions", request)
        (quota,) = service.get("/v1/decisions/1").json()["constraint"]["quotas"]
    assert quota["at_most"] == 5


def test_candidates_without_the_column_of_a_quota_are_told_of(tmp_path):
    folder = make_campaign(tmp_path / "autumn", 'features.leave_out = ["region"]\n')
    request = request_of(features(4)) | {"constraint": {"quotas": [{"column": "region", "at_most": 1}]}}
    with serving(folder) as service:
        (note, _) = reversed(service.post("/v1/decisions", request).json()["notes"])
        assert note == "'region' is missing in 4 of 4 candidates: for quotas they are the group '(none)'"
        for candidate, region in zip(request["candidates"], ["north", None, "south", "west"], strict=True):
            candidate["columns"] = {"region": region}
        assert service.post("/v1/decisions", request).json()["notes"] == [
            "'region' is missing in 1 of 4 candidates: for quotas they are the group '(none)'"
        ]
        assert service.get("/v1/decisions/2").json()["notes"] == [
            "'region' is missing in 1 of 4 candidates: for quotas they are the group '(none)'"
        ]


def test_columns_and_context_are_encoded_by_the_recipe(tmp_path):
    rows = [f"{i},{20 + 3 * i},{'red' if i % 2 else 'blue'},{'DE' if i % 3 else 'FR'}" for i in range(20)]
    folder = make_campaign(
        tmp_path / "shop",
        """source = "items.csv"
features.columns.age.kind = "number"
features.columns.colour.kind = "category"
features.columns.country.kind = "category"
service.context = ["country"]
""",
        SETTINGS.replace("features.ready = 4\n", ""),
    )
    (folder / "items.csv").write_text("\n".join(["item,age,colour,country", *rows]), encoding="utf-8")
    candidates = [{"id": f"i{i}", "columns": {"age": 20 + i, "colour": "red"}} for i in range(8)]
    with serving(folder) as service:
        answer = service.post("/v1/decisions", {"candidates": candidates, "context": {"country": "DE"}})
        assert answer.status_code == 200
        stored = service.worker.ledger.chosen(1)
        wrong = service.post("/v1/decisions", {"candidates": [{"id": "a", "columns": {"age": "old"}}]})
        unknown = service.post("/v1/decisions", {"candidates": candidates, "context": {"planet": "Mars"}})
    import pyarrow as pa  # noqa: PLC0415 - only this test makes a table

    with Campaign.open(folder) as campaign:
        age = [20 + int(name[1:]) for name in stored.ids]
        table = pa.table({"age": age, "colour": ["red"] * 3, "country": ["DE"] * 3})
        expected = np.concatenate([campaign.recipe.transform(batch) for batch in table.to_batches()])
    np.testing.assert_allclose(stored.features, expected, rtol=1e-6)
    assert wrong.status_code == unknown.status_code == 422
    assert "'age'" in wrong.json()["detail"]
    assert "'planet'" in unknown.json()["detail"]


def test_registered_arms_are_candidates_by_id_or_all_of_them(taught):
    folder, policy = taught
    X = features(10, seed=2)
    arms = [{"id": f"a{i}", "features": row} for i, row in enumerate(X.tolist())]
    with serving(folder) as service:
        nobody = service.post("/v1/decisions", {})
        put = service.request("PUT", "/v1/arms", json={"arms": arms, "withdraw": ["nobody"]})
        assert put.json() == {"registered": 10, "withdrawn": 0, "total": 10}
        all_of_them = service.post("/v1/decisions", {}).json()
        some = service.post("/v1/decisions", {"candidates": ["a1", {"id": "a2"}, "a5", "a9"]}).json()
        service.request("PUT", "/v1/arms", json={"withdraw": ["a1", "a2"]})
        gone = service.post("/v1/decisions", {"candidates": ["a1", "a5", "a9"]})
        assert service.get("/v1/status").json()["registered_arms"] == 8
        assert "armful_registered_arms 8.0" in service.get("/metrics").text
    with serving(folder) as service:  # they are in the store
        rest = service.post("/v1/decisions", {}).json()
    assert nobody.status_code == gone.status_code == 422
    assert "'a1'" in gone.json()["detail"]
    X32 = X.astype(np.float32)

    def best(rows):
        return [f"a{rows[i]}" for i in policy.choose(X32[rows], TopK(3)).indices]

    assert [arm["id"] for arm in all_of_them["chosen"]] == best(list(range(10)))
    assert [arm["id"] for arm in some["chosen"]] == best([1, 2, 5, 9])
    assert [arm["id"] for arm in rest["chosen"]] == best([0, *range(3, 10)])


@pytest.mark.slow
def test_the_holdout_is_a_share_of_the_units_with_random_slates(folder):
    make_campaign(folder, settings=SETTINGS.replace("holdout.share = 0", "holdout.share = 0.3"))
    X = features(30)
    units = [f"user-{i}" for i in range(60)]
    expected = uniforms(units, "autumn") < 0.3
    with serving(folder) as service:
        answers = [service.post("/v1/decisions", request_of(X, unit=unit)).json() for unit in units]
        again = [service.post("/v1/decisions", request_of(X, unit=unit)).json()["share"] for unit in units]
        stored = service.worker.ledger.chosen(int(answers[int(np.argmax(expected))]["decision_id"]))
    shares = [answer["share"] for answer in answers]
    assert shares == again == np.where(expected, "holdout", "chosen").tolist()
    assert set(stored.shares.tolist()) == {"holdout"}
    for answer in answers:
        if answer["share"] == "holdout":
            assert [arm["probability"] for arm in answer["chosen"]] == pytest.approx([0.1] * 3)
    slates = {tuple(arm["id"] for arm in a["chosen"]) for a in answers if a["share"] == "holdout"}
    assert len(slates) > 1  # the same by chance alone: less than once in 4,000


def test_explored_arms_are_stored_as_such(folder):
    make_campaign(folder, "service.explore = 0.99\n")
    with serving(folder) as service:
        answer = service.post("/v1/decisions", request_of(features(30))).json()
        stored = service.worker.ledger.chosen(1)
    assert stored.shares.tolist().count("explored") >= 2  # floor(0.99 * 3), or one more
    assert sorted(stored.positions.tolist()) == [0, 1, 2]  # within the slate, whoever chose
    assert all(0 < arm["probability"] < 1 for arm in answer["chosen"])


def test_the_probabilities_of_thompson_sampling_are_stored_with_their_number_of_draws(folder):
    make_campaign(folder, settings=SETTINGS.replace("policy.cap = 1\n", 'policy.kind = "ArmwiseThompson"\n'))
    with serving(folder) as service:
        answer = service.post("/v1/decisions", request_of(features(30))).json()
        stored = service.get(f"/v1/decisions/{answer['decision_id']}").json()
    with Campaign.open(folder) as campaign:
        info, arms = campaign.ledger.round(1), campaign.ledger.chosen(1)
    probabilities = [arm["probability"] for arm in answer["chosen"]]
    assert stored["draws"] == info.details["draws"] == 100
    assert [arm["probability"] for arm in stored["chosen"]] == probabilities
    assert arms.probabilities[np.argsort(arms.positions)].tolist() == probabilities
    for hits in 101 * np.array(probabilities):  # the choice itself is one of 101
        assert hits == pytest.approx(round(hits))
        assert 1 <= round(hits) <= 101


def test_a_large_request_is_decided_in_a_thread(taught):
    folder, policy = taught
    X = features(3000, seed=9)
    with serving(folder) as service:
        answer = service.post("/v1/decisions", request_of(X)).json()
    expected = policy.choose(X.astype(np.float32), TopK(3)).indices
    assert [arm["id"] for arm in answer["chosen"]] == [f"a{i}" for i in expected]


def test_a_newer_model_is_swapped_in(folder):
    X = features(50, seed=7).astype(np.float32)
    with serving(folder, poll_every=timedelta(milliseconds=10)) as service:
        assert service.post("/v1/decisions", request_of(features())).json()["model_version"] == 0
        policy = publish(folder, X, np.random.default_rng(1).random(50))
        deadline = datetime.now(UTC) + timedelta(seconds=120)
        while service.post("/v1/decisions", request_of(features())).json()["model_version"] == 0:
            assert datetime.now(UTC) < deadline
        answer = service.post("/v1/decisions", request_of(features(40))).json()
        model = service.get("/v1/model").json()
        status = service.get("/v1/status").json()
        assert service.get("/readyz").status_code == 200
        assert "armful_model_version 1.0" in service.get("/metrics").text
    expected = policy.choose(features(40).astype(np.float32), TopK(3)).indices
    assert [arm["id"] for arm in answer["chosen"]] == [f"a{i}" for i in expected]
    assert model["model"]["version"] == status["model"]["version"] == 1
    assert status["rewards"] == 50
    assert status["outstanding"] == 2


def test_a_large_request_is_decided_by_one_model_when_another_is_swapped_in(taught, monkeypatch):
    """Whoever reads the current model finds another one."""
    folder, _ = taught
    versions = itertools.count(1)
    with serving(folder, poll_every=timedelta(days=1)) as service:
        models = service.worker.models
        first = models.current

        def newer(_):
            policy = copy.copy(first.policy)
            policy.version = next(versions)
            return replace(first, policy=policy, version=policy.version)

        monkeypatch.setattr(type(models), "current", property(newer), raising=False)
        model = models.for_a_thread()
    assert model.policy.version == model.version


def test_each_worker_has_random_numbers_of_its_own(folder):
    """The same by chance alone: less than once in 10^15."""
    make_campaign(folder, "service.explore = 0.99\n")
    with serving(folder) as one, serving(folder) as two:
        slates = [
            [ids_of(service.post("/v1/decisions", request_of(features(1000, seed=4)))) for _ in range(3)]
            for service in (one, two)
        ]
    assert slates[0] != slates[1]


def test_ids_with_every_character_come_back(folder):
    names = ["ü", "雪", "a b", '"', "\\", "\n", "😀", "x" * 200]
    candidates = [{"id": name, "features": row} for name, row in zip(names, features(8).tolist(), strict=True)]
    with serving(folder) as service:
        answer = service.post("/v1/decisions", {"candidates": candidates, "constraint": {"k": 8}, "unit": "ü😀"}).json()
        assert {arm["id"] for arm in answer["chosen"]} == set(names)
        rewards = dict.fromkeys(names, 1.0)
        assert service.post("/v1/decisions/1/rewards", {"rewards": rewards}).json()["new"] == 8
        assert {arm["id"] for arm in service.get("/v1/decisions/1").json()["chosen"]} == set(names)


def test_a_foreign_campaign_has_its_own_decisions(tmp_path):
    store = f'store = "sqlite:///{tmp_path / "shared.sqlite"}"\n'
    one = make_campaign(tmp_path / "one", settings=store + SETTINGS)
    two = make_campaign(tmp_path / "two", settings=store + SETTINGS.replace("autumn", "winter"))
    with serving(one) as first, serving(two) as second:
        first.post("/v1/decisions", request_of(features(), key="same"))
        assert second.get("/v1/decisions/1").status_code == 404
        assert not second.post("/v1/decisions", request_of(features(), key="same")).json()["repeated"]
    assert Ledger.campaigns(f"sqlite:///{tmp_path / 'shared.sqlite'}") == ["autumn", "winter"]


USUAL = [
    b'{"candidates": [{"id": "a", "features": [1, -0.25, 1e-3]}, {"id": "b", "features": [0.1, 0, 2e5]}]}',
    b'{"key": "k", "candidates": [{"features": [1, 2, 3], "id": "a", "columns": {"x": null, "y": "\\u00e9"}}, "b"]}',
    b'{"candidates": [{"id": "a"}, "b"], "constraint": {"k": 1, "exclude": ["b"]}, "context": {"hour": 7}}',
    b"{}",
]
UNUSUAL = [
    b'{"candidates": [{"id": "a", "features": [1, 2]}]}',
    b'{"candidates": [{"id": "a", "features": [1, 2, 3, 4]}]}',
    b'{"candidates": [{"id": "a", "features": []}]}',
    b'{"candidates": [{"id": "a", "features": [1, 2, "3"]}]}',
    b'{"candidates": []}',
    b'{"candidates": [{"id": "", "features": [1, 2, 3]}]}',
    b'{"candidates": [{"id": "a", "features": [1, 2, 3], "more": 1}]}',
    b'{"candidates": [{"id": "a", "features": [1, 2, 3]}]',
]


@pytest.mark.parametrize("body", USUAL)
def test_a_decoder_of_so_many_features_reads_what_that_of_any_number_reads(body):
    quick, plain = decision_decoder(3).decode(body), decision_decoder().decode(body)
    assert msgspec.json.encode(quick) == msgspec.json.encode(plain)
    assert fingerprint_of(quick) == fingerprint_of(plain)


@pytest.mark.parametrize("body", UNUSUAL)
def test_a_decoder_of_so_many_features_reads_nothing_else(body):
    with pytest.raises(msgspec.DecodeError):
        decision_decoder(3).decode(body)


def test_a_wrong_number_of_features_is_named(folder):
    with serving(folder) as service:
        response = service.post("/v1/decisions", request_of(features(d=3)))
        assert response.status_code == 422
        assert response.json()["detail"] == "candidate 'a0' must have 4 features, got 3"
