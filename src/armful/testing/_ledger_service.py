"""Models, registered arms, keys and space: a part of the contract suite of the ledger."""

import threading
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from armful.testing._expectations import expect_refusal
from armful.testing._ledger_refusals import LedgerRefusals
from armful.testing._made_decisions import decide, expect_block, made_decision, new_rewards
from armful.testing._made_rounds import NOON, in_threads

if TYPE_CHECKING:
    from armful.ledger import Ledger, ModelInfo


def model_info(ledger: "Ledger", **options: Any) -> "ModelInfo":
    """Return the record of the next model."""
    from armful.ledger import ModelInfo  # noqa: PLC0415 - needs SQLAlchemy

    values: dict[str, Any] = {"version": ledger.model_version() + 1, "position": ledger.position(), "last_round": 1}
    values |= {"closed_until": NOON, "made_at": NOON, "checked_at": NOON, "n_observations": 2.5}
    return ModelInfo(**{**values, **options})


class LedgerService(LedgerRefusals):
    """The checks of what a ledger keeps for the service besides its decisions."""

    # -- models --------------------------------------------------------------------------------------

    def test_the_newest_model_is_the_one_published_last(self) -> None:
        with self._new() as ledger, self._beside(ledger, "other") as other:
            assert (ledger.newest_model(), ledger.model_version(), ledger.models()) == (None, 0, [])
            infos = []
            for i in range(3):
                infos.append(model_info(ledger, last_round=i, n_observations=i / 3))
                assert ledger.publish_model(infos[-1], b"\0state %d" % i, f'{{"n": {i}}}')
                assert ledger.newest_model() == (infos[-1], b"\0state %d" % i, f'{{"n": {i}}}')
                assert ledger.newest_model(state=False) == (infos[-1], b"", f'{{"n": {i}}}')
            assert (ledger.models(), ledger.model_version()) == (infos, 3)
            assert (other.newest_model(), other.model_version()) == (None, 0)
            assert other.publish_model(model_info(other), b"", "{}"), "an empty state is a state"
            assert other.newest_model() is not None
            ledger.model_checked(3, NOON + timedelta(hours=1))
            assert [info.checked_at for info in ledger.models()] == [NOON, NOON, NOON + timedelta(hours=1)]
            expect_refusal("a time without a zone", ledger.model_checked, 3, datetime(2026, 3, 1))

    def test_a_model_that_is_late_is_not_published(self) -> None:
        rng = np.random.default_rng(30)
        with self._new() as ledger:
            ledger.add_decisions([made_decision(rng, ["a", "b"], unit="ann")])
            ledger.add_reward_requests([new_rewards((1, "a", 1.0), (1, "b", 0.0))])
            early = model_info(ledger, position=1)
            assert ledger.publish_model(model_info(ledger), b"one", "{}")
            newest = ledger.newest_model()
            for what, late in {
                "a version that is taken": early,
                "a version that is not the next": model_info(ledger, version=3),
                "a position before that of the newest": model_info(ledger, position=1),
            }.items():
                assert not ledger.publish_model(late, b"late", "{}"), f"{what} is published"
                assert ledger.newest_model() == newest
            read_before = model_info(ledger)
            ledger.forget(["ann"])
            assert (ledger.newest_model(), ledger.model_version()) == (None, 1), "a state with an erased person is kept"
            assert not ledger.publish_model(read_before, b"with ann", "{}")
            assert ledger.publish_model(model_info(ledger), b"two", "{}")
            assert (ledger.model_version(), len(ledger.models())) == (2, 2)

    def test_the_last_hundred_models_are_listed_and_one_keeps_its_state(self) -> None:
        with self._new() as ledger:
            for _ in range(103):
                assert ledger.publish_model(model_info(ledger), b"state", "{}")
            assert [info.version for info in ledger.models()] == list(range(4, 104))
            newest = ledger.newest_model()
            assert newest is not None
            assert newest[0].version == 103

    def test_one_of_several_updaters_publishes_each_version(self) -> None:
        with self._new() as ledger:
            published: list[int] = []

            def publish(worker: int) -> None:
                for _ in range(6):
                    info = model_info(ledger)
                    if ledger.publish_model(info, b"%d" % worker, "{}"):
                        published.append(info.version)

            in_threads(publish, 4)
            assert sorted(published) == list(range(1, len(published) + 1)) == [i.version for i in ledger.models()]

    def test_segments_are_snapshots(self) -> None:
        with self._new() as ledger, self._beside(ledger, "other") as other:
            ledger.add_decisions([made_decision(np.random.default_rng(31), [f"p{i}"]) for i in range(6)])
            assert ledger.segments() == {}
            ledger.write_segments({(1, 3): b"\0a", (4, 5): b"b"}, 0)
            other.write_segments({(1, 3): b"other"}, 7)
            ledger.write_segments({}, 0)
            assert ledger.segments() == {(1, 3): (0, b"\0a"), (4, 5): (0, b"b")}
            assert ledger.segments(2) == ledger.segments(4, 5) == {(4, 5): (0, b"b")}
            assert ledger.segments(1, 4) == {(1, 3): (0, b"\0a")}
            assert ledger.snapshot(4, 5) == (0, b"b")
            ledger.write_segments({(4, 6): b"grown"}, 0)
            assert ledger.segments() == {(1, 3): (0, b"\0a"), (4, 6): (0, b"grown")}
            ledger.forget(["p0"])
            ledger.write_segments({(1, 3): b"with p0", (4, 6): b"again"}, 0)
            assert ledger.segments() == {(4, 6): (0, b"again")}
            ledger.write_segments({(1, 3): b"without"}, ledger.position())
            assert ledger.segments()[1, 3] == (1, b"without")

    def test_one_process_at_a_time_holds_the_updater_lock(self) -> None:
        with self._new() as ledger, self._beside(ledger, "autumn") as second, self._beside(ledger, "other") as other:
            with ledger.updater_lock() as first:
                with second.updater_lock() as too, other.updater_lock() as of_another_campaign:
                    assert (first, too, of_another_campaign) == (True, False, True)
                with second.updater_lock() as still:
                    assert not still, "who asks in vain takes the lock away"
            with second.updater_lock() as later:
                assert later

    def test_a_decision_is_told_from_a_round(self) -> None:
        rng = np.random.default_rng(29)
        with self._new() as ledger, self._beside(ledger, "other") as other:
            assert not ledger.has_decisions()
            other.add_decisions([made_decision(rng, model_version=0)])
            ledger.add_decisions([made_decision(rng)])
            assert (ledger.has_decisions(), other.has_decisions()) == (False, True)
            ledger.add_decisions([made_decision(rng, model_version=0)])
            assert ledger.has_decisions()

    # -- arms and keys -------------------------------------------------------------------------------

    def test_registered_arms_are_those_put_last(self) -> None:
        rng, ids = np.random.default_rng(32), ["a", "ü", "x" * 300, "%s", "a'b"]
        with self._new() as ledger, self._beside(ledger, "other") as other:
            assert (ledger.arms_since(0), ledger.put_arms([])) == ((0, []), 0)
            truth: dict[str, tuple[int, bytes | None]] = {}
            for change in range(1, 12):
                other.put_arms([("a", b"other")])
                contents: list[tuple[str, bytes | None]] = [
                    (str(arm), None if rng.random() < 0.3 else rng.bytes(4)) for arm in rng.choice(ids, 3)
                ]
                assert ledger.put_arms(contents) == change
                truth |= {arm: (change, content) for arm, content in contents}
                for after in (0, change // 2, change - 1, change):
                    newest, found = ledger.arms_since(after)
                    assert newest == change
                    assert dict(found) == {arm: content for arm, (when, content) in truth.items() if when > after}
            for bad in ("", "\ud800", "a\0"):
                expect_refusal("a bad id", ledger.put_arms, [("good", b""), (bad, b"")])
            assert ledger.arms_since(0)[0] == 11

    def test_a_registered_arm_is_forgotten(self) -> None:
        with self._new() as ledger, self._beside(ledger, "other") as other:
            for each in (ledger, other):
                each.put_arms([("ann", b"1"), ("bob", b"2")])
            assert (ledger.last_erasure(), ledger.forget(["ann"]), ledger.last_erasure()) == (0, 1, 1)
            assert ledger.arms_since(0) == (1, [("bob", b"2")])
            assert len(other.arms_since(0)[1]) == 2

    def test_keys_are_found_until_they_are_revoked(self) -> None:
        with self._new() as ledger, self._beside(ledger, "other") as other:
            assert (ledger.keys(), ledger.find_key("k1"), ledger.revoke_key("k1")) == ([], None, False)
            first = ledger.add_key(id="k1", hash=b"\0hash", roles=["decide", "reward"], label="the shop's")
            second = ledger.add_key(id="k2", hash=b"2", roles=("read",), expires_at=NOON)
            assert (first.roles, first.label, first.expires_at) == (("decide", "reward"), "the shop's", None)
            assert second.expires_at == NOON
            assert sorted(ledger.keys(), key=lambda info: info.id) == [first, second]
            assert ledger.find_key("k1") == (first, b"\0hash")
            assert (other.keys(), other.find_key("k1")) == ([], None)
            assert ledger.revoke_key("k1")
            found = ledger.find_key("k1")
            assert found is not None
            revoked_at = found[0].revoked_at
            assert revoked_at is not None
            assert ledger.revoke_key("k1"), "a key that is revoked is there"
            listed = ledger.keys()
            assert {info.id: info.revoked_at for info in listed} == {"k1": revoked_at, "k2": None}
            bad: list[dict[str, Any]] = [
                {"id": "k1", "roles": ["read"]},
                {"id": "", "roles": ["read"]},
                {"id": "k3", "roles": ["write"]},
                {"id": "k3", "roles": []},
                {"id": "k3", "roles": ["read"], "expires_at": datetime(2026, 3, 1)},
            ]
            for options in bad:
                expect_refusal(f"a key with {options}", partial(ledger.add_key, hash=b"", **options))
            assert len(ledger.keys()) == 2

    # -- space ---------------------------------------------------------------------------------------

    def test_compacting_changes_nothing_while_others_write(self) -> None:
        rng = np.random.default_rng(33)
        with self._new() as ledger, self._beside(ledger, "autumn") as writer:
            ledger.add_decisions([made_decision(rng) for _ in range(50)])
            ended = threading.Event()

            def write_or_compact(worker: int) -> None:
                if worker == 0:
                    try:
                        for _ in range(3):
                            ledger.compact()
                    finally:
                        ended.set()
                    return
                mine = np.random.default_rng(worker)
                while not ended.is_set():
                    [(number, _)] = decide(writer, made_decision(mine))
                    writer.add_reward_requests([new_rewards((number, "a", 1.0))])

            in_threads(write_or_compact, 3)
            assert ledger.size() > 0
            last = ledger.last_number()
            assert ledger.block(1, last).numbers.tolist() == list(range(1, last + 1))
            assert ledger.position() == last - 50
            expect_block(ledger, max(1, last - 20), last)
