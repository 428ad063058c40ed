"""Rounds made for the contract suite of the ledger, and a ledger of plain dictionaries to compare with."""

import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

if TYPE_CHECKING:
    from armful.ledger import ChosenArms, Ledger

NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


def chosen_arms(**arrays: Any) -> "ChosenArms":
    """Return a `ChosenArms`."""
    from armful.ledger import ChosenArms  # noqa: PLC0415 - needs SQLAlchemy

    return ChosenArms(**arrays)


def made_arms(rng: Generator, ids: list[str], *, n_features: int = 2, n_groups: int = 0) -> "ChosenArms":
    """Return arms with these ids in random order, and random numbers for all else."""
    n = len(ids)
    shares = rng.choice(["chosen", "holdout", "no-contact"], n)
    return chosen_arms(
        ids=np.array(ids, dtype=np.str_)[rng.permutation(n)],
        positions=rng.permutation(n),
        shares=shares,
        predicted=np.where(shares == "no-contact", np.nan, rng.normal(size=n)),
        bonus=np.where(shares == "no-contact", np.nan, rng.normal(size=n)),
        capped=rng.random(n) < 0.5,
        probabilities=np.where(rng.random(n) < 0.5, np.nan, rng.random(n)),
        features=rng.normal(size=(n, n_features)).astype(np.float32),
        groups={f"quota {i}": rng.choice(["north", "süd", 'a"b', ""], n) for i in range(n_groups)},
    )


def add(ledger: "Ledger", arms: "ChosenArms", number: int, **options: Any) -> Any:
    """Add a round with what most checks do not care about."""
    defaults: dict[str, Any] = {
        "key": None,
        "details": {},
        "settings": "",
        "chosen_at": NOON,
        "closes_at": NOON + timedelta(days=1),
    }
    return ledger.add_round(number=number, chosen=arms, **{**defaults, **options})


def in_order(arms: "ChosenArms") -> "ChosenArms":
    """Return the arms by share and position."""
    order: NDArray[np.intp] = np.lexsort((arms.positions, arms.shares))
    groups = {name: values[order] for name, values in arms.groups.items()}
    return chosen_arms(**{name: groups if name == "groups" else values[order] for name, values in vars(arms).items()})


def expect_same_arms(actual: "ChosenArms", expected: "ChosenArms") -> None:
    """Fail unless all arrays are the same to the bit."""
    for name, values in vars(expected).items():
        found = getattr(actual, name)
        if name == "groups":
            same = {key: found[key].tolist() for key in found} == {key: values[key].tolist() for key in values}
        else:
            same = found.shape == values.shape and np.array_equal(found, values, equal_nan=values.dtype.kind == "f")
        assert same, f"{name}: {found}, expected {values}"


def everything(ledger: "Ledger") -> object:
    """Return all that a ledger says, to compare."""
    rounds = ledger.rounds()
    outcomes = [ledger.chosen_and_outcomes(info.number) for info in rounds]
    plain = [(chosen.ids.tolist(), chosen.features.tobytes(), repr(result)) for chosen, result in outcomes]
    return rounds, plain, ledger.settings, ledger.recipe, ledger.position(), ledger.last_reward_positions()


def play(ledger: "Ledger", rng: Generator, n_steps: int) -> None:
    """Write at random, and compare with what dictionaries say: the rounds, then rewards, corrections, erasures."""
    truth: dict[int, dict[str, list[float]]] = {}
    everyone = [f"p{i}" for i in range(30)]
    for _ in range(n_steps):
        action = rng.choice(["round", "rewards", "rewards", "rewards", "forget"]) if truth else "round"
        if action == "round":
            number = len(truth) + 1
            arms = made_arms(rng, rng.choice(everyone, 12, replace=False).tolist())
            add(ledger, arms, number)
            truth[number] = {arm: [] for arm in arms.ids.tolist()}
        elif action == "rewards":
            pairs = [(number, arm) for number, arms in truth.items() for arm in arms]
            some = [pairs[i] for i in rng.permutation(len(pairs))[: rng.integers(0, 20)]]
            values = rng.integers(0, 3, len(some)).astype(float)
            known = [truth[number][arm] for number, arm in some]
            expected = [
                "new" if not before else "repeated" if before[-1] == value else "corrected"
                for before, value in zip(known, values.tolist(), strict=True)
            ]
            counts = ledger.add_rewards([n for n, _ in some], [a for _, a in some], values, NOON)
            for kind in ("new", "repeated", "corrected"):
                assert getattr(counts, kind) == expected.count(kind), f"{counts}, expected {expected}"
            for before, value, kind in zip(known, values.tolist(), expected, strict=True):
                if kind != "repeated":
                    before.append(value)
        else:
            gone = rng.choice(everyone, 2, replace=False).tolist()
            there = {arm for arms in truth.values() for arm in arms}
            assert ledger.forget(gone) == len(there & set(gone))
            truth = {n: {arm: v for arm, v in arms.items() if arm not in gone} for n, arms in truth.items()}
        _compare(ledger, truth)


def _compare(ledger: "Ledger", truth: Mapping[int, Mapping[str, list[float]]]) -> None:
    assert [info.number for info in ledger.rounds()] == list(truth)
    for number, arms in truth.items():
        chosen, outcomes = ledger.chosen_and_outcomes(number)
        assert sorted(chosen.ids.tolist()) == sorted(arms)
        assert chosen.ids.tolist() == outcomes.ids.tolist() == ledger.chosen_ids(number).tolist()
        assert outcomes.position == ledger.position()
        for arm, reward, corrected in zip(chosen.ids, outcomes.rewards, outcomes.corrected, strict=True):
            history = arms[str(arm)]
            assert [reward] == history[-1:] or (np.isnan(reward) and not history), f"{arm}: {reward}, {history}"
            assert corrected == (len(history) > 1)


def in_threads(action: Callable[[int], None], n_threads: int) -> None:
    """Call `action` with 0, 1, ... in so many threads at once; raise the first error of one."""
    errors: list[BaseException] = []

    def run(worker: int) -> None:
        try:
            action(worker)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(worker,)) for worker in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
