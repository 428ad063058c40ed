"""The contract suite of the ledger: the same answers from every database, whatever is written and in which order."""

from datetime import timedelta, timezone

import numpy as np

from armful.testing._expectations import expect_refusal
from armful.testing._ledger_decisions import LedgerDecisions
from armful.testing._ledger_service import LedgerService
from armful.testing._made_rounds import NOON, add, chosen_arms, expect_same_arms, in_order, in_threads, made_arms, play

ODD_IDS = ["7", "007", " 7", "Ærøskøbing", "名前", "a'b\"c;--", "x" * 300, "%s", "🙂", "A", "a", "tab\there", "a\\nb"]
ODD_NUMBERS = [0.1, -0.0, 1e308, 5e-324, -1.7976931348623157e308, 1 / 3, 123456789.123456789]


class LedgerContract(LedgerDecisions, LedgerService):
    """The checks that a ledger passes in every database. Inherit it in a test file and write `url`.

    Examples
    --------
    >>> import secrets, tempfile
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> class TestSqlite(LedgerContract):
    ...     def url(self):
    ...         return f"sqlite:///{Path(folder.name) / secrets.token_hex(8)}.sqlite"
    >>> TestSqlite().test_a_round_comes_back_as_it_was_added()
    >>> folder.cleanup()
    """

    # -- rounds --------------------------------------------------------------------------------------

    def test_a_round_comes_back_as_it_was_added(self) -> None:
        rng = np.random.default_rng(0)
        arms = made_arms(rng, ODD_IDS, n_groups=2)
        with self._new() as ledger:
            assert (ledger.rounds(), ledger.last_round(), ledger.recipe) == ([], None, None)
            details = {"notes": ["größer", None, 1.5], "nested": {"a": True}}
            elsewhere = NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))
            times = {"chosen_at": elsewhere, "closes_at": NOON + timedelta(days=14)}
            info = ledger.add_round(
                number=1, key="week 1", details=details, chosen=arms, settings="k = 2", recipe="{}", **times
            )
            assert (info.number, info.key, info.details) == (1, "week 1", details)
            assert (info.chosen_at, info.chosen_at.utcoffset()) == (NOON, timedelta(0)), f"{info.chosen_at} is not UTC"
            for found in (ledger.round(1), ledger.last_round(), ledger.round_by_key("week 1"), ledger.rounds()[0]):
                assert found == info, f"{found} is another round than {info}"
            assert ledger.round_by_key("week 2") is None
            assert (ledger.settings, ledger.recipe) == ("k = 2", "{}")
            expect_same_arms(ledger.chosen(1), in_order(arms))
            assert ledger.chosen_ids(1).tolist() == in_order(arms).ids.tolist()

    def test_a_round_may_be_empty_and_may_have_no_features(self) -> None:
        rng = np.random.default_rng(1)
        with self._new() as ledger:
            for number, arms in enumerate((made_arms(rng, [], n_features=3), made_arms(rng, ["a"], n_features=0)), 1):
                add(ledger, arms, number)
                expect_same_arms(ledger.chosen(number), in_order(arms))
                assert ledger.outcomes(number).ids.tolist() == arms.ids.tolist()

    def test_settings_are_those_kept_last(self) -> None:
        url = self.url()
        with self._new(url, settings="begun") as ledger:
            assert ledger.settings == "begun"
            ledger.keep_settings("kept")
            assert ledger.settings == "kept"
            add(ledger, made_arms(np.random.default_rng(5), ["a"]), 1, settings="of the round")
        with self._new(url, settings="ignored") as ledger:
            assert ledger.settings == "of the round"

    def test_ids_of_several_rounds_and_shares(self) -> None:
        rng = np.random.default_rng(7)
        everyone = [f"p{i}" for i in range(40)]
        with self._new() as ledger, self._beside(ledger, "other") as other:
            add(other, made_arms(rng, ["stranger"]), 1)
            rounds = {n: made_arms(rng, rng.choice(everyone, 25, replace=False).tolist()) for n in (1, 2, 3)}
            for number, arms in rounds.items():
                add(ledger, arms, number)
            for numbers in ([], [2], [1, 3], [3, 2, 9], range(1, 3000)):
                for shares in (("chosen", "holdout"), ("no-contact",), ()):
                    expected = {
                        arm
                        for number, arms in rounds.items()
                        for arm, share in zip(arms.ids.tolist(), arms.shares.tolist(), strict=True)
                        if number in numbers and share in shares
                    }
                    assert ledger.ids_chosen(iter(numbers), shares).tolist() == sorted(expected)

    # -- rewards -------------------------------------------------------------------------------------

    def test_the_ledger_agrees_with_a_plain_dictionary(self) -> None:
        with self._new() as ledger:
            play(ledger, np.random.default_rng(8), n_steps=30)

    def test_many_rewards_at_once_are_as_many_one_by_one(self) -> None:
        rng = np.random.default_rng(9)
        ids = [f"person {i}" for i in range(10_500)]  # more than are looked up one by one
        with self._new() as ledger:
            add(ledger, made_arms(rng, ids, n_features=1), 1)
            some, first, second = rng.permutation(ids), rng.normal(size=len(ids)), rng.normal(size=len(ids))
            ledger.add_rewards([1] * 3, some[:3], first[:3], NOON)
            counts = ledger.add_rewards([1] * len(ids), some, first, NOON)
            assert (counts.new, counts.repeated, counts.corrected) == (len(ids) - 3, 3, 0)
            counts = ledger.add_rewards([1] * len(ids), some, np.where(first < 0, first, second), NOON)
            n_same = int(np.count_nonzero(first < 0))
            assert (counts.new, counts.repeated, counts.corrected) == (0, n_same, len(ids) - n_same)
            known = dict(zip(some.tolist(), np.where(first < 0, first, second).tolist(), strict=True))
            outcomes = ledger.outcomes(1)
            assert outcomes.rewards.tolist() == [known[arm] for arm in outcomes.ids.tolist()]

    def test_numbers_come_back_to_the_last_bit(self) -> None:
        ids = [f"p{i}" for i in range(len(ODD_NUMBERS))]
        arms = made_arms(np.random.default_rng(10), ids)
        arms = chosen_arms(
            **{**vars(arms), "predicted": ODD_NUMBERS, "bonus": ODD_NUMBERS, "probabilities": ODD_NUMBERS}
        )
        with self._new() as ledger:
            add(ledger, arms, 1)
            ledger.add_rewards([1] * len(ids), ids, ODD_NUMBERS, NOON)
            back, outcomes = ledger.chosen_and_outcomes(1)
            expect_same_arms(back, in_order(arms))
            known = dict(zip(ids, ODD_NUMBERS, strict=True))
            assert outcomes.rewards.tolist() == [known[arm] for arm in outcomes.ids.tolist()]
            assert (outcomes.received_at == NOON.timestamp()).all()

    # -- snapshots and erasing -----------------------------------------------------------------------

    def test_the_newest_snapshot_of_the_same_rounds_is_kept(self) -> None:
        with self._new() as ledger, self._beside(ledger, "other") as other:
            assert ledger.snapshot(1, 1) is None
            ledger.add_snapshot(1, 1, 5, b"\0five")
            ledger.add_snapshot(1, 2, 7, b"other rounds")
            other.add_snapshot(1, 1, 9, b"other campaign")
            ledger.add_snapshot(1, 1, 4, b"older")
            assert ledger.snapshot(1, 1) == (5, b"\0five")
            for position, state in ((5, b"again"), (6, b"newer")):
                ledger.add_snapshot(1, 1, position, state)
                assert ledger.snapshot(1, 1) == (position, state)
            assert ledger.snapshot(1, 2) == (7, b"other rounds")

    def test_people_are_forgotten_in_all_rounds_of_the_campaign(self) -> None:
        rng = np.random.default_rng(12)
        with self._new() as ledger, self._beside(ledger, "other") as other:
            for number, ids in enumerate((["a", "b", "c"], ["b", "c"], ["c"]), 1):
                add(ledger, made_arms(rng, ids), number)
                ledger.add_rewards([number] * len(ids), ids, np.ones(len(ids)), NOON)
            ledger.add_rewards([1], ["b"], [2.0], NOON)
            add(other, made_arms(rng, ["b"]), 1)
            for rounds in ((1, 1), (2, 3), (3, 3)):
                ledger.add_snapshot(*rounds, ledger.position(), b"state")
            read_before = ledger.position()
            assert ledger.forget(["b", "nobody", "b"]) == 1
            assert ledger.forget(["b"]) == 0
            assert [sorted(ledger.chosen(number).ids.tolist()) for number in (1, 2, 3)] == [["a", "c"], ["c"], ["c"]]
            assert [ledger.outcomes(number).rewards.tolist() for number in (1, 2, 3)] == [[1, 1], [1], [1]]
            assert other.chosen_ids(1).tolist() == ["b"]
            assert [ledger.snapshot(*rounds) for rounds in ((1, 1), (2, 3))] == [None, None]
            assert ledger.snapshot(3, 3) == (read_before, b"state")
            ledger.add_snapshot(2, 3, read_before, b"read before b was erased")
            assert ledger.snapshot(2, 3) is None, "a state with an erased person in it is kept"
            now = ledger.last_reward_positions()
            assert now[1] > read_before >= now[3]
            ledger.add_snapshot(2, 3, now[2], b"new")
            assert ledger.snapshot(2, 3) == (now[2], b"new")
            expect_refusal("a reward of an erased person", ledger.add_rewards, [1], ["b"], [1.0], NOON)

    # -- campaigns -----------------------------------------------------------------------------------

    def test_campaigns_share_a_store_and_nothing_else(self) -> None:
        from armful.ledger import Ledger  # noqa: PLC0415 - needs SQLAlchemy

        url, rng = self.url(), np.random.default_rng(13)
        expect_refusal("a store that is not there", Ledger.open, url, "autumn")
        for name in ("spring", "autumn"):
            with self._new(url, name) as ledger:
                add(ledger, made_arms(rng, [name]), 1)
        assert Ledger.campaigns(url) == ["autumn", "spring"]
        with Ledger.open(url, "autumn") as ledger:
            assert ledger.chosen_ids(1).tolist() == ["autumn"]
        message = expect_refusal("a campaign that is not there", Ledger.open, url, "winter")
        assert "'autumn', 'spring'" in message, f"{message} does not name the campaigns that are there"
        expect_refusal("a campaign without a name", Ledger.open, url, "")

    # -- several at once -----------------------------------------------------------------------------

    def test_threads_that_write_at_once_lose_and_double_nothing(self) -> None:
        rng = np.random.default_rng(14)
        ids = [f"p{i}" for i in range(60)]
        with self._new() as ledger:
            add(ledger, made_arms(rng, ids), 1)

            def write(worker: int) -> None:
                for i in range(worker, 60, 2):  # two workers send each reward
                    ledger.add_rewards([1], [ids[i]], [float(i)], NOON)
                while sum(info.details["worker"] == worker for info in ledger.rounds()[1:]) < 3:
                    number = ledger.rounds()[-1].number + 1
                    try:
                        add(ledger, made_arms(np.random.default_rng(worker), ids), number, details={"worker": worker})
                    except ValueError:
                        assert ledger.rounds()[-1].number >= number, "a free number is refused"

            in_threads(write, 4)
            assert ledger.position() == 60, "a reward was doubled"
            outcomes = ledger.outcomes(1)
            assert outcomes.rewards.tolist() == [float(arm[1:]) for arm in outcomes.ids.tolist()]
            assert not outcomes.corrected.any()
            assert [info.number for info in ledger.rounds()] == list(range(1, 14))
            assert all(len(ledger.chosen_ids(number)) == 60 for number in range(1, 14))

    def test_a_store_that_several_open_at_once_is_made_once(self) -> None:
        url, opened = self.url(), []

        def begin(_: int) -> None:
            with self._new(url, "same") as ledger:
                opened.append(ledger.position())

        in_threads(begin, 6)
        assert opened == [0] * 6
