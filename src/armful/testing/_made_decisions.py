"""Decisions made for the contract suite of the ledger, and plain dictionaries to compare with."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator

from armful.testing._made_rounds import NOON, chosen_arms, expect_same_arms, made_arms

if TYPE_CHECKING:
    from armful.ledger import ChosenArms, Ledger, NewDecision, NewRewards


def decision_of(arms: "ChosenArms", **options: Any) -> "NewDecision":
    """Return a decision with these arms."""
    from armful.ledger import NewDecision  # noqa: PLC0415 - needs SQLAlchemy

    columns = [values.tolist() for values in arms.groups.values()]
    groups: list[str | None] = [
        json.dumps(dict(zip(arms.groups, row, strict=True))) for row in zip(*columns, strict=True)
    ]
    rows = zip(
        arms.ids.tolist(),
        arms.positions.tolist(),
        arms.shares.tolist(),
        _known(arms.predicted),
        _known(arms.bonus),
        arms.capped.tolist(),
        _known(arms.probabilities),
        (row.astype("<f4").tobytes() for row in arms.features),
        groups or [None] * len(arms),
        strict=True,
    )
    defaults: dict[str, Any] = {"key": None, "unit": None, "model_version": None, "details": "{}"}
    defaults |= {"chosen_at": NOON, "closes_at": NOON + timedelta(minutes=30)}
    return NewDecision(**{**defaults, "n_features": arms.features.shape[1], "rows": list(rows), **options})


def _known(values: Any) -> list[float | None]:
    return [None if np.isnan(value) else value for value in values.tolist()]


def made_decision(rng: Generator, ids: Sequence[str] = ("a", "b", "c"), **options: Any) -> "NewDecision":
    """Return a decision with these arms, and random numbers for all else."""
    return decision_of(made_arms(rng, list(ids)), **options)


def new_rewards(*rewards: tuple[int, str, float], strict: bool = True, **options: Any) -> "NewRewards":
    """Return a request of rewards."""
    from armful.ledger import NewRewards  # noqa: PLC0415 - needs SQLAlchemy

    return NewRewards(**{"rewards": rewards, "received_at": NOON, "strict": strict, **options})


def decide(ledger: "Ledger", *decisions: "NewDecision", **options: Any) -> list[Any]:
    """Add decisions, and return (number, repeated) of each, or the error."""
    answers = ledger.add_decisions(decisions, **options)
    return [error if isinstance(error, ValueError) else (error.number, error.repeated) for error in answers]


def reward(ledger: "Ledger", *requests: "NewRewards") -> list[Any]:
    """Add requests of rewards, and return their answers."""
    return list(ledger.add_reward_requests(requests))


def expect_block(ledger: "Ledger", first: int, last: int) -> None:
    """Fail unless a block of rounds says what the rounds say one by one."""
    block = ledger.block(first, last)
    infos = [info for info in ledger.rounds() if first <= info.number <= last]
    assert block.numbers.tolist() == [info.number for info in infos]
    assert block.chosen_at.tolist() == [info.chosen_at.timestamp() for info in infos]
    assert block.closes_at.tolist() == [info.closes_at.timestamp() for info in infos]
    assert block.units.tolist() == [info.unit for info in infos]
    assert block.model_versions.tolist() == [info.model_version or 0 for info in infos]
    assert (block.position, len(block)) == (ledger.position(), len(infos))
    assert (np.diff(block.of_round) >= 0).all()
    for i, info in enumerate(infos):
        chosen, outcomes = ledger.chosen_and_outcomes(info.number)
        mine = block.of_round == i
        groups = {name: values[mine] for name, values in block.groups.items() if name in chosen.groups}
        assert all((values[mine] == "").all() for name, values in block.groups.items() if name not in groups)
        names = ("ids", "positions", "shares", "predicted", "bonus", "capped", "probabilities", "features")
        found = {name: getattr(block, name)[mine] for name in names}
        expect_same_arms(chosen_arms(**found, groups=groups), chosen) if len(chosen) else None
        for name in ("rewards", "received_at", "corrected"):
            np.testing.assert_array_equal(getattr(block, name)[mine], getattr(outcomes, name), err_msg=name)


class Truth:
    """What a ledger of decisions has to say, in dictionaries."""

    def __init__(self) -> None:
        self.rounds: dict[int, dict[str, list[float]]] = {}
        self.keys: dict[str, int] = {}
        self.units: dict[int, str | None] = {}
        self.changed: dict[int, int] = {}
        self.position = 0

    def decide(self, decision: "NewDecision") -> tuple[int, bool]:
        """Return the number of the decision, and whether it was there."""
        if decision.key in self.keys:
            return self.keys[decision.key], True
        number = len(self.rounds) + 1
        self.rounds[number] = {row[0]: [] for row in decision.rows}
        self.units[number] = decision.unit
        if decision.key is not None:
            self.keys[decision.key] = number
        return number, False

    def reward(self, request: "NewRewards") -> tuple[list[int], list[int]] | None:
        """Return how many are new, repeated and corrected, and those unmatched; None if the request is refused."""
        counts = [0, 0, 0]
        unmatched = [i for i, (n, arm, _) in enumerate(request.rewards) if arm not in self.rounds.get(n, {})]
        if unmatched and request.strict:
            return None
        for i, (number, arm, reward) in enumerate(request.rewards):
            if i not in unmatched:
                known = self.rounds[number][arm]
                kind = 0 if not known else 1 if known[-1] == reward else 2
                counts[kind] += 1
                if kind != 1:
                    known.append(reward)
                    self.position += 1
                    self.changed[number] = self.position
        return counts, unmatched

    def forget(self, ids: set[str]) -> int:
        """Erase arms and units; return how many were there."""
        found = {arm for arms in self.rounds.values() for arm in arms} | {unit for unit in self.units.values() if unit}
        if not found & ids:
            return 0
        self.position += 1
        for number, arms in self.rounds.items():
            of_unit = self.units[number] in ids
            if of_unit or arms.keys() & ids:
                self.changed[number] = self.position
                self.rounds[number] = {} if of_unit else {arm: v for arm, v in arms.items() if arm not in ids}
            if of_unit:
                self.units[number] = None
                self.keys = {key: n for key, n in self.keys.items() if n != number}
        return len(found & ids)

    def compare(self, ledger: "Ledger") -> None:
        """Fail unless the ledger says the same."""
        assert (ledger.position(), ledger.last_number()) == (self.position, len(self.rounds))
        for after in {0, self.position // 2, self.position}:
            changed = sorted(number for number, position in self.changed.items() if position > after)
            assert ledger.changed_rounds(after).tolist() == changed
        last: dict[int, int] = {}
        for number, position in self.changed.items():
            last[(number - 1) // 3] = max(position, last.get((number - 1) // 3, 0))
        assert ledger.last_changes(3) == last
        block = ledger.block(1, len(self.rounds))
        assert block.units.tolist() == list(self.units.values())
        found: dict[int, dict[str, tuple[list[float], bool]]] = {number: {} for number in self.rounds}
        for i, arm, reward, corrected in zip(block.of_round, block.ids, block.rewards, block.corrected, strict=True):
            found[int(block.numbers[i])][str(arm)] = ([] if np.isnan(reward) else [float(reward)], bool(corrected))
        assert found == {
            number: {arm: (known[-1:], len(known) > 1) for arm, known in arms.items()}
            for number, arms in self.rounds.items()
        }
