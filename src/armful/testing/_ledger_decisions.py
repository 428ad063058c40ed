"""Decisions and rewards of the service: a part of the contract suite of the ledger."""

import threading
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from armful.testing._expectations import expect_refusal
from armful.testing._ledger_refusals import LedgerRefusals
from armful.testing._made_decisions import Truth, decide, decision_of, expect_block, made_decision, new_rewards, reward
from armful.testing._made_rounds import NOON, add, everything, expect_same_arms, in_order, in_threads, made_arms

BAD_DECISIONS: dict[str, dict[str, Any]] = {
    "a key with NUL": {"key": "a\0b"},
    "a key that no index takes": {"key": "".join(map(chr, range(2000)))},
    "a unit that no index takes": {"unit": "ü" * 1001},
    "a unit that is no Unicode": {"unit": "\ud800"},
    "details that are no text": {"details": {"a": 1}},
    "a time without a zone": {"chosen_at": datetime(2026, 3, 1)},
    "a version that is no number": {"model_version": "7"},
    "a version beyond 64 bits": {"model_version": 2**63},
    "another number of features": {"n_features": 3},
    "a row that is too short": {"rows": [("a", 0, "chosen")]},
}
GOOD_ROW = ("a", 0, "chosen", 0.5, 0.25, False, None, b"\0" * 8, None)
BAD_VALUES: dict[str, tuple[int, Any]] = {
    "an empty id": (0, ""),
    "an id that no index takes": (0, "x" * 2001),
    "an id with NUL": (0, "b\0c"),
    "an id that is a number": (0, 7),
    "a position that is a float": (1, 0.5),
    "a position of numpy": (1, np.int64(3)),
    "an unknown share": (2, "spare"),
    "a prediction that is text": (3, "0.5"),
    "a cap that is a number": (5, 1),
    "infinite features": (7, np.array([1.0, np.inf], dtype="<f4").tobytes()),
    "features for one": (7, b"\0" * 4),
    "groups that are no text": (8, {"region": "north"}),
}


def bad_decisions() -> dict[str, Any]:
    """Return decisions that are to be refused, by what is wrong with them."""
    bad = {what: made_decision(np.random.default_rng(0), **options) for what, options in BAD_DECISIONS.items()}
    for what, (i, value) in BAD_VALUES.items():
        row = (*GOOD_ROW[:i], value, *GOOD_ROW[i + 1 :])
        bad[what] = made_decision(np.random.default_rng(0), rows=[row])
    bad["an arm twice"] = made_decision(np.random.default_rng(0), rows=[GOOD_ROW, GOOD_ROW])
    return bad


class LedgerDecisions(LedgerRefusals):
    """The checks that decisions are rounds, added many at a time."""

    def test_a_decision_comes_back_as_a_round(self) -> None:
        rng = np.random.default_rng(20)
        arms = made_arms(rng, ["a", "名前", "x" * 300], n_groups=2)
        options: dict[str, Any] = {
            "key": "k",
            "unit": "user ü",
            "model_version": 2**62,
            "details": '{"n": [1.5, null]}',
        }
        with self._new() as ledger:
            both = decision_of(arms, **options), decision_of(arms)
            assert decide(ledger, *both, settings="of the service") == [(1, False), (2, False)]
            info = ledger.round(1)
            assert (info.key, info.unit, info.model_version) == ("k", "user ü", 2**62)
            assert (info.details, info.chosen_at, ledger.settings) == ({"n": [1.5, None]}, NOON, "of the service")
            assert (ledger.round(2).key, ledger.round(2).unit, ledger.round(2).model_version) == (None, None, None)
            for number in (1, 2):
                expect_same_arms(ledger.chosen(number), in_order(arms))
            add(ledger, arms, 3)
            assert (decide(ledger), decide(ledger, made_decision(rng))) == ([], [(4, False)])
            assert ledger.settings == "", "settings that are not given are left as they are"

    def test_the_same_key_is_the_same_decision(self) -> None:
        rng = np.random.default_rng(21)
        with self._new() as ledger, self._beside(ledger, "other") as other:
            other.add_decisions([made_decision(rng, key="monday")])
            add(ledger, made_arms(rng, ["a"]), 1, key="of a round")
            keys = ["monday", None, "monday", "of a round", None]
            answers = decide(ledger, *(made_decision(rng, key=key) for key in keys))
            assert answers == [(2, False), (3, False), (2, True), (1, True), (4, False)]
            before = everything(ledger)
            assert decide(ledger, made_decision(rng, ["other", "arms"], key="monday")) == [(2, True)]
            assert everything(ledger) == before

    def test_decisions_and_rewards_agree_with_plain_dictionaries(self) -> None:
        rng, truth = np.random.default_rng(22), Truth()
        everyone = [f"p{i}" for i in range(12)]
        with self._new() as ledger, self._beside(ledger, "other") as other:
            for step in range(25):
                other.add_decisions([made_decision(rng)])
                if step % 5 == 4:
                    gone = set(rng.choice([*everyone, *(f"unit {i}" for i in range(8))], 2, replace=False).tolist())
                    assert ledger.forget(list(gone)) == truth.forget(gone)
                elif step % 2 == 0:
                    decisions = [
                        made_decision(
                            rng,
                            rng.choice(everyone, 3, replace=False).tolist(),
                            key=f"key {rng.integers(20)}" if rng.random() < 0.8 else None,
                            unit=f"unit {rng.integers(8)}" if rng.random() < 0.8 else None,
                        )
                        for _ in range(rng.integers(1, 8))
                    ]
                    assert decide(ledger, *decisions) == [truth.decide(decision) for decision in decisions]
                else:
                    self._reward_at_random(ledger, truth, rng, everyone)
                truth.compare(ledger)
            expect_block(ledger, 1, ledger.last_number())

    def _reward_at_random(self, ledger: Any, truth: Truth, rng: np.random.Generator, everyone: list[str]) -> None:
        requests = [
            new_rewards(
                *(self._reward(truth, rng, everyone) for _ in range(rng.integers(0, 5))),
                strict=bool(rng.random() < 0.5),
            )
            for _ in range(rng.integers(1, 6))
        ]
        for request, answer in zip(requests, reward(ledger, *requests), strict=True):
            expected = truth.reward(request)
            if expected is None:
                assert isinstance(answer, ValueError), f"{answer} though one of {request} is not there"
                continue
            counts = [answer.counts.new, answer.counts.repeated, answer.counts.corrected]
            assert (counts, [i for i, _ in answer.unmatched]) == expected

    def _reward(self, truth: Truth, rng: np.random.Generator, everyone: list[str]) -> tuple[int, str, float]:
        number = int(rng.integers(1, len(truth.rounds) + 1 + (rng.random() < 0.1)))
        there = list(truth.rounds.get(number, {}))
        return number, str(rng.choice(there if there and rng.random() < 0.9 else everyone)), float(rng.integers(3))

    def test_a_bad_decision_does_not_fail_the_others(self) -> None:
        rng, bad = np.random.default_rng(23), bad_decisions()
        with self._new() as ledger:
            mixed = [decision for one in bad.values() for decision in (one, made_decision(rng))]
            answers = decide(ledger, *mixed)
            for what, answer in zip(bad, answers[::2], strict=True):
                assert isinstance(answer, ValueError), f"{what} is not refused"
                assert str(answer).strip(), f"{what} is refused without a message"
                assert "\n" not in str(answer), f"{what} is refused by more than one line: {answer}"
            assert answers[1::2] == [(number, False) for number in range(1, len(bad) + 1)]
            assert ledger.last_number() == len(bad)
            expect_block(ledger, 1, len(bad))

    def test_bad_rewards_are_named_one_by_one(self) -> None:
        rng = np.random.default_rng(24)
        with self._new() as ledger, self._beside(ledger, "other") as other:
            other.add_decisions([made_decision(rng, ["x"]) for _ in range(3)])
            ledger.add_decisions([made_decision(rng, ["a", "b"])])
            bad = [(2, "a", 1.0), (1, "c", 1.0), (1, "a", np.nan), (1, "a", np.inf), (0, "a", 1.0), (2**70, "a", 1.0)]
            bad += [(1, "\ud800", 1.0), (1, "a\0", 1.0), (1, "", 1.0)]
            for one in bad:
                requests = [new_rewards((1, "a", 1.0), one), new_rewards((1, "b", 2.0))]
                refused, added = reward(ledger, *requests)
                assert isinstance(refused, ValueError), f"{one} is not refused"
                assert "\n" not in str(refused), f"{one} is refused by more than one line: {refused}"
                assert added.counts.new + added.counts.repeated == 1
            answer = reward(ledger, new_rewards((1, "a", 1.0), *bad, (1, "b", 2.0), strict=False))[0]
            assert [i for i, _ in answer.unmatched] == list(range(1, len(bad) + 1))
            assert (answer.counts.new, answer.counts.repeated, ledger.position()) == (1, 1, 2)
            late = new_rewards((1, "a", 3.0), received_at=datetime(2026, 3, 1))
            assert isinstance(reward(ledger, late)[0], ValueError), "a time without a zone is not refused"
            assert reward(ledger) == []
            assert reward(ledger, new_rewards((1, np.str_("b"), 2.0)))[0].counts.repeated == 1, "text of numpy is text"

    def test_a_refusal_says_what_is_not_there(self) -> None:
        from armful.ledger import NotChosenError, UnknownRoundError  # noqa: PLC0415 - needs SQLAlchemy

        with self._new() as ledger:
            ledger.add_decisions([made_decision(np.random.default_rng(25), ["a"])])
            answers = ledger.add_reward_requests([new_rewards((7, "a", 1.0)), new_rewards((1, "b", 1.0))])
            assert [type(answer) for answer in answers] == [UnknownRoundError, NotChosenError]

    def test_a_block_says_what_its_rounds_say(self) -> None:
        rng = np.random.default_rng(26)
        with self._new() as ledger, self._beside(ledger, "other") as other:
            assert len(ledger.block(1, 512)) == 0
            for number, ids in enumerate((["a", "b", "c", "d"], [], ["b"], ["a", "d"]), 1):
                add(other, made_arms(rng, ["x", "y"], n_features=3), number)
                add(ledger, made_arms(rng, ids, n_groups=number % 3), number, closes_at=NOON + timedelta(days=number))
            ledger.add_decisions([made_decision(rng, unit="u", model_version=3)])
            ledger.add_rewards([1, 1, 4], ["a", "b", "d"], [1.0, 0.0, 2.0], NOON)
            ledger.add_rewards([1, 3], ["a", "b"], [0.5, 1.0], NOON + timedelta(seconds=1))
            for first, last in ((1, 5), (2, 4), (2, 2), (5, 900), (6, 7)):
                expect_block(ledger, first, last)
            add(ledger, made_arms(rng, ["a"], n_features=5), 6)
            expect_refusal("a block of rounds with other numbers of features", ledger.block, 1, 6)

    def test_rounds_by_the_time_they_closed(self) -> None:
        rng = np.random.default_rng(27)
        minutes = [10, 10, 30, 30, *rng.integers(0, 50, 40).tolist()]
        with self._new() as ledger:
            closing = [NOON + timedelta(minutes=m, microseconds=i % 2) for i, m in enumerate(minutes)]
            ledger.add_decisions([made_decision(rng, closes_at=moment) for moment in closing])
            for after, until in ((-1, 60), (10, 30), (20, 20), (49, 60)):
                bounds = NOON + timedelta(minutes=after), NOON + timedelta(minutes=until)
                expected = [i for i, moment in enumerate(closing, 1) if bounds[0] < moment <= bounds[1]]
                assert ledger.closed_rounds(*bounds).tolist() == expected

    def test_a_unit_is_forgotten_with_its_decisions(self) -> None:
        rng = np.random.default_rng(28)
        with self._new() as ledger, self._beside(ledger, "other") as other:
            units = ["ann", "bob", "ann", None]
            for each in (ledger, other):
                each.add_decisions(
                    [made_decision(rng, unit=u, key=f"{i} {u}", details='{"of": 1}') for i, u in enumerate(units)]
                )
                each.add_reward_requests([new_rewards(*((n, "a", 1.0) for n in (1, 2, 3, 4)))])
            before = ledger.position()
            assert ledger.forget(["ann", "nobody"]) == 1
            assert (ledger.last_erasure(), ledger.last_number()) == (before + 1, 4)
            assert ledger.changed_rounds(before).tolist() == [1, 3]
            for number in (1, 3):
                info = ledger.round(number)
                assert (info.unit, info.key, info.details, len(ledger.chosen(number))) == (None, None, {}, 0)
            assert [ledger.round(n).unit for n in (2, 4)] == ["bob", None]
            assert [len(ledger.chosen(n)) for n in (2, 4)] == [3, 3]
            assert [other.round(n).unit for n in (1, 2, 3, 4)] == units
            assert decide(ledger, made_decision(rng, key="ann 0")) == [(5, False)]
            expect_block(ledger, 1, 5)

    def test_an_arm_that_nearly_was_chosen_is_forgotten_too(self) -> None:
        rng = np.random.default_rng(29)
        details = ['{"runner_up": {"id": "x"}, "n": 1}', '{"runner_up": {"id": "y"}}', '{"note": "x"}']
        with self._new() as ledger, self._beside(ledger, "other") as other:
            for each in (ledger, other):
                each.add_decisions([made_decision(rng, details=text) for text in details])
            assert ledger.forget(["x"]) == 0
            kept = [{"n": 1}, {"runner_up": {"id": "y"}}, {"note": "x"}]
            assert [ledger.round(n).details for n in (1, 2, 3)] == kept
            assert "runner_up" in other.round(1).details

    def test_a_recipe_is_frozen_before_the_first_decision(self) -> None:
        with self._new() as ledger:
            ledger.freeze_recipe("one")
            ledger.freeze_recipe("one")
            self._expect_unchanged(ledger, "another recipe", ledger.freeze_recipe, "two")
            assert ledger.recipe == "one"

    # -- several at once -----------------------------------------------------------------------------

    def test_the_same_key_from_eight_threads_is_one_decision(self) -> None:
        with self._new() as ledger:
            answers: list[Any] = [[] for _ in range(8)]

            def ask(worker: int) -> None:
                rng = np.random.default_rng(worker)
                for i in range(5):
                    answers[worker] += decide(ledger, made_decision(rng, key=f"key {i}"))

            in_threads(ask, 8)
            numbers = np.array([[number for number, _ in some] for some in answers])
            assert (numbers == numbers[0]).all()
            assert sorted(numbers[0].tolist()) == [1, 2, 3, 4, 5] == ledger.block(1, 99).numbers.tolist()
            assert sum(not repeated for some in answers for _, repeated in some) == 5

    def test_requests_of_many_threads_share_transactions_and_lose_nothing(self) -> None:
        from armful.ledger import GroupCommit  # noqa: PLC0415 - needs SQLAlchemy

        with self._new() as ledger, self._beside(ledger, "autumn") as second:
            groups = [GroupCommit(ledger), GroupCommit(second)]
            decided: list[list[Any]] = [[] for _ in range(6)]
            added: list[list[Any]] = [[] for _ in range(6)]

            def decide_and_reward(worker: int) -> None:
                rng, group, answered = np.random.default_rng(worker), groups[worker % 2], threading.Semaphore(0)

                def send_rewards(answer: Any) -> None:
                    for _ in range(2):
                        group.reward(new_rewards((answer.number, "a", float(answer.number))), added[worker].append)
                    decided[worker].append(answer)
                    answered.release()

                for i in range(20):
                    group.decide(made_decision(rng, key=f"{worker}/{i}"), send_rewards)
                for _ in range(20):
                    assert answered.acquire(timeout=300), "a decision has no answer"

            in_threads(decide_and_reward, 6)
            for group in groups:
                group.close()
            assert sorted(answer.number for some in decided for answer in some) == list(range(1, 121))
            for worker, some in enumerate(decided):
                assert [ledger.round(answer.number).key for answer in some] == [f"{worker}/{i}" for i in range(20)]
            assert [len(some) for some in added] == [40] * 6
            assert sum(answer.counts.new for some in added for answer in some) == 120 == ledger.position()
            block = ledger.block(1, 120)
            assert block.rewards[block.ids == "a"].tolist() == [float(number) for number in range(1, 121)]
            expect_block(ledger, 1, 120)
