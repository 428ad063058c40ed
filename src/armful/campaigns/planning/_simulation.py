"""A campaign simulated on a sample of the user's own customers."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from armful.arms import Arms
from armful.campaigns.holdout import CHOSEN, HOLDOUT
from armful.checks import FloatArray, IntArray
from armful.constraints import TopK
from armful.model import RidgeState
from armful.model._pending import with_pending
from armful.policies import Policy
from armful.policies.scores import Scores


@dataclass(frozen=True, eq=False, kw_only=True)
class Sample:
    """Rows of customers that stand for all of them: who is held out, and how many rows of each share a round picks.

    Each row that is picked stands for `weights` people, so that a round teaches as much as a real one.
    """

    X: FloatArray  # (m, n_features)
    held: NDArray[np.bool_]
    picks: tuple[int, int]
    weights: tuple[float, float]
    k: int

    @classmethod
    def draw(cls, X: FloatArray, *, n_customers: int, k: int, holdout: float, rng: Generator) -> "Sample":
        m = len(X)
        n_held = round(holdout * m)
        contacts = (1 - holdout) * k, holdout * k
        people = m - n_held, n_held
        picks = tuple(
            min(max(round(real * m / n_customers), 1), available) if real >= 1 else 0
            for real, available in zip(contacts, people, strict=True)
        )
        weights = tuple(real / picked if picked else 0.0 for real, picked in zip(contacts, picks, strict=True))
        held = np.zeros(m, dtype=bool)
        held[rng.permutation(m)[:n_held]] = True
        return cls(
            X=X, held=held, picks=(picks[0], picks[1]), weights=(weights[0], weights[1]), k=max(1, round(contacts[0]))
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class SimulatedRounds:
    """What happened in each round of a simulated campaign, `(rounds,)`.

    `at_cap` is the fraction of people whose score a cap decided, `exploring` the fraction of the chosen whom the
    estimate alone would not have chosen. `chosen`, `best` and `everybody` are mean rewards: of the chosen, of the best
    who could have been, and of all. `variance` and `variance_of_all` are the variances between people of their mean
    rewards: among the chosen, and among all.
    """

    at_cap: FloatArray
    exploring: FloatArray
    chosen: FloatArray
    best: FloatArray
    everybody: float
    variance: float
    variance_of_all: float


def simulate_rounds(
    sample: Sample,
    truth: FloatArray,
    policy: Policy,
    *,
    noise: float,
    rounds: int,
    late: int,
    rest: int,
    rng: Generator,
    step: Callable[[], None],
) -> SimulatedRounds:
    """Return what happens if the mean rewards of the rows are `truth` `(m,)`.

    late: how many rounds pass before the outcomes of one are known; rest: for how many nobody is contacted again.
    """
    state: RidgeState = policy.state  # type: ignore[assignment]
    history: list[tuple[IntArray, IntArray]] = []
    result: dict[str, list[float]] = {name: [] for name in ("at_cap", "exploring", "chosen", "best", "variance")}
    for number in range(rounds):
        if number > late:
            for share, rows in enumerate(history[number - late - 1]):
                state = _learned(state, sample, share, rows, truth, noise, rng)
        pending = [
            _pending(sample, share, rows)
            for both in history[max(number - late, 0) :]
            for share, rows in enumerate(both)
        ]
        policy.state = with_pending(state, np.concatenate(pending)) if pending else state
        resting = np.zeros(truth.size, dtype=bool)
        for both in history[max(number - rest, 0) :] if rest else []:
            resting[np.concatenate(both)] = True
        candidates = np.flatnonzero(~sample.held & ~resting)
        free = np.flatnonzero(sample.held & ~resting)
        scores = _scores(policy, sample.X[candidates], sample.k)
        n = min(sample.picks[CHOSEN], candidates.size)
        rows = candidates[TopK(n).best(scores.value, rng=rng).indices]
        greedy = candidates[TopK(n).best(state.mean(sample.X[candidates]), rng=rng).indices]
        history.append((rows, rng.permutation(free)[: sample.picks[HOLDOUT]]))
        result["at_cap"].append(float(scores.capped.mean()))
        result["exploring"].append(1 - np.isin(rows, greedy).mean())
        result["chosen"].append(truth[rows].mean())
        result["best"].append(np.partition(truth[candidates], -n)[-n:].mean())
        result["variance"].append(truth[rows].var())
        step()
    arrays = {name: np.array(values) for name, values in result.items()}
    return SimulatedRounds(
        at_cap=arrays["at_cap"],
        exploring=arrays["exploring"],
        chosen=arrays["chosen"],
        best=arrays["best"],
        everybody=float(truth.mean()),
        variance=float(arrays["variance"].mean()),
        variance_of_all=float(truth.var()),
    )


def draw_truth(X: FloatArray, *, base_rate: float, spread: float, cap: float, rng: Generator) -> FloatArray:
    """Return mean rewards of all rows, `(m,)`: a random direction in the features, scaled, between 0 and the cap."""
    direction = X @ rng.standard_normal(X.shape[1])
    deviation = direction.std()
    z = (
        (direction - direction.mean()) / deviation
        if deviation > 1e-9 * (abs(direction).max() + 1e-300)
        else np.zeros(len(X))
    )
    return np.clip(base_rate * (1 + spread * z), 0.0, cap)


def _scores(policy: Policy, X: FloatArray, k: int) -> Scores:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of units that do not fit: `choose` says it when it matters
        scores = policy.score(Arms(X, policy.state), k)
    return scores if isinstance(scores, Scores) else Scores.uncapped(scores, np.zeros_like(scores))


def _learned(
    state: RidgeState, sample: Sample, share: int, rows: IntArray, truth: FloatArray, noise: float, rng: Generator
) -> RidgeState:
    """Return the state after the rewards of all whom these rows stand for.

    Two rewards for each row, with half of its weight each, have the mean and the variance of as many as it stands for.
    """
    weight = sample.weights[share]
    if not rows.size:
        return state
    means = truth[rows] + noise * rng.standard_normal(rows.size) / math.sqrt(weight)
    apart = noise * math.sqrt(max(1 - 1 / weight, 0.0))
    X = np.tile(sample.X[rows], (2, 1))
    return state.learn(X, np.concatenate([means - apart, means + apart]), weights=np.full(2 * rows.size, weight / 2))


def _pending(sample: Sample, share: int, rows: IntArray) -> FloatArray:
    """Return rows as long as those of all whom they stand for together."""
    return sample.X[rows] * math.sqrt(sample.weights[share])
