"""What a ledger refuses: the base of its contract suite."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from armful.testing._expectations import expect_refusal
from armful.testing._made_rounds import NOON, add, chosen_arms, everything, made_arms

if TYPE_CHECKING:
    from armful.ledger import Ledger


class LedgerRefusals:
    """The checks that what is refused is refused in one sentence, and changes nothing."""

    def url(self) -> str:
        """Return the URL of an empty store, another one at each call."""
        raise NotImplementedError(f"{type(self).__name__} must define url(self)")

    def test_rounds_are_numbered_one_by_one(self) -> None:
        with self._new() as ledger:
            first = made_arms(np.random.default_rng(2), ["a", "b"])
            expect_refusal("a second round before the first", add, ledger, first, 2)
            add(ledger, first, 1)
            for number in (0, 1, 3):
                self._expect_unchanged(ledger, f"round {number} after round 1", add, ledger, first, number)
            add(ledger, first, 2)
            assert [info.number for info in ledger.rounds()] == [1, 2]

    def test_a_key_is_that_of_one_round(self) -> None:
        arms = made_arms(np.random.default_rng(3), ["a"])
        with self._new() as ledger, self._beside(ledger, "other") as other:
            add(ledger, arms, 1, key="monday")
            self._expect_unchanged(ledger, "a key twice", partial(add, ledger, arms, 2, key="monday"))
            add(ledger, arms, 2, key=None)
            add(ledger, arms, 3, key=None)
            add(other, arms, 1, key="monday")

    def test_the_recipe_is_frozen_by_the_first_round_that_has_one(self) -> None:
        arms = made_arms(np.random.default_rng(4), ["a"])
        with self._new() as ledger:
            add(ledger, arms, 1)
            add(ledger, arms, 2, recipe="one")
            self._expect_unchanged(ledger, "another recipe", partial(add, ledger, arms, 3, recipe="two"))
            add(ledger, arms, 3, recipe="one")
            add(ledger, arms, 4)
            assert ledger.recipe == "one"

    def test_bad_rounds_are_refused_and_change_nothing(self) -> None:
        rng = np.random.default_rng(6)
        good = made_arms(rng, ["a", "b"])
        bad: dict[str, Mapping[str, Any]] = {
            "an id twice": {"ids": ["a", "a"]},
            "an empty id": {"ids": ["a", ""]},
            "an id with NUL": {"ids": ["a", "b\0c"]},
            "an id that is no Unicode": {"ids": ["a", "\ud800"]},
            "an unknown share": {"shares": ["chosen", "spare"]},
            "infinite features": {"features": [[1.0, np.inf], [0.0, 0.0]]},
            "features for one": {"features": [[1.0, 2.0]]},
            "flat features": {"features": [1.0, 2.0]},
            "bonus for one": {"bonus": [1.0]},
            "groups for one": {"groups": {"region": ["north"]}},
        }
        with self._new() as ledger:
            for what, changes in bad.items():
                wrong = {**vars(good), **changes}
                self._expect_unchanged(ledger, what, _add_made, ledger, wrong)
            further: dict[str, dict[str, Any]] = {
                "details beyond JSON": {"details": {"a": object()}},
                "details with NaN": {"details": {"a": np.nan}},
                "a time without a zone": {"chosen_at": datetime(2026, 3, 1)},
                "a key that is no Unicode": {"key": "\udcff"},
                "a key with NUL": {"key": "a\0b"},
            }
            for what, options in further.items():
                self._expect_unchanged(ledger, what, partial(add, ledger, good, 1, settings="x", **options))
            expect_refusal("a round that is not there", ledger.chosen, 1)
            expect_refusal("a round that is not there", ledger.round, 1)
            expect_refusal("a round that is not there", ledger.outcomes, 1)

    def test_bad_rewards_are_refused_and_change_nothing(self) -> None:
        with self._new() as ledger:
            add(ledger, made_arms(np.random.default_rng(11), ["a", "b"]), 1)
            ledger.add_rewards([1], ["a"], [1.0], NOON)
            for what, arguments in {
                "an arm that was not chosen": ([1, 1], ["b", "c"], [1.0, 1.0], NOON),
                "a round that is not there": ([1, 2], ["b", "b"], [1.0, 1.0], NOON),
                "an arm twice": ([1, 1], ["b", "b"], [1.0, 1.0], NOON),
                "NaN": ([1, 1], ["a", "b"], [0.0, np.nan], NOON),
                "infinity": ([1], ["b"], [-np.inf], NOON),
                "too few rewards": ([1, 1], ["a", "b"], [0.0], NOON),
                "rounds that are no whole numbers": ([1.5], ["b"], [0.0], NOON),
                "a time without a zone": ([1], ["b"], [0.0], datetime(2026, 3, 1)),
                "an id that is no Unicode": ([1], ["\udcff"], [0.0], NOON),
            }.items():
                self._expect_unchanged(ledger, what, ledger.add_rewards, *arguments)
            self._expect_unchanged(ledger, "forgetting what is no Unicode", ledger.forget, ["\udcff"])
            assert ledger.add_rewards([], [], [], NOON).new == 0

    def _new(self, url: str | None = None, campaign: str = "autumn", settings: str = "") -> "Ledger":
        from armful.ledger import Ledger  # noqa: PLC0415 - needs SQLAlchemy

        self._last_url = self.url() if url is None else url
        return Ledger.open(self._last_url, campaign, create=True, settings=settings)

    def _beside(self, ledger: "Ledger", campaign: str) -> "Ledger":
        return self._new(self._last_url, campaign)

    def _expect_unchanged(self, ledger: "Ledger", what: str, action: Callable[..., object], *arguments: Any) -> None:
        before = everything(ledger)
        expect_refusal(what, action, *arguments)
        assert everything(ledger) == before, f"{what} is refused, and yet changed something"


def _add_made(ledger: "Ledger", arrays: Mapping[str, Any]) -> None:
    add(ledger, chosen_arms(**arrays), 1)
