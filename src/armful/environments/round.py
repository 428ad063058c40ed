"""What a world shows in a round, and what a world is."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal, Protocol

import numpy as np
from numpy.random import Generator

from armful import checks, objectives
from armful.checks import FloatArray, IntArray
from armful.constraints import Constraint
from armful.constraints.base import checked_best
from armful.objectives import Objective
from armful.randomness import Keys, arm_normals, arm_uniforms, draw_key

Noise = float | Literal["bernoulli"]

TOLERANCE = 1e-9
"""How far beyond 0 and 1 a mean may be by rounding."""


@dataclass(frozen=True, eq=False)
class Round:
    """One round: what the learner sees, and the truth that it does not.

    features: `(n_arms, n_features)`. constraint: which sets are allowed. mean: `(n_arms,)`, the true mean rewards.
    noise: the standard deviation of the Gaussian noise on a reward, or `"bernoulli"` for rewards 0 and 1.
    objective: what a set is worth, if not the sum of its rewards.
    """

    features: FloatArray
    constraint: Constraint
    mean: FloatArray
    noise: Noise = 1.0
    objective: Objective | None = None

    def __post_init__(self) -> None:
        for name in ("features", "mean"):
            if not isinstance(getattr(self, name), np.ndarray):  # an array stays the very same
                object.__setattr__(self, name, checks.floats(name, getattr(self, name)))
        if self.features.ndim != 2 or self.mean.shape != self.features.shape[:1]:
            raise ValueError(
                "a round needs features (n_arms, n_features) and a mean reward for each arm, got shapes "
                f"{self.features.shape} and {self.mean.shape}"
            )
        if isinstance(self.noise, str):
            checks.one_of("noise", self.noise, ("bernoulli",))
            if not ((self.mean > -TOLERANCE) & (self.mean < 1 + TOLERANCE)).all():
                lowest, highest = self.mean.min(), self.mean.max()
                raise ValueError(f"with noise 'bernoulli' means must be from 0 to 1, got {lowest:g} to {highest:g}")
        else:
            checks.at_least_zero("noise", self.noise)
        self.features.flags.writeable = self.mean.flags.writeable = False  # the simulation may keep them

    def rewards(self, rng: Generator, indices: IntArray | None = None) -> FloatArray:
        """What these arms pay (or all), one reward for each.

        An arm's luck depends on what is drawn from `rng`, once, and on its number alone: whichever arms a policy
        chooses, it meets the same luck as any other.
        """
        chosen = np.arange(self.mean.size) if indices is None else indices
        return drawn_rewards(self.mean[chosen], self.noise, draw_key(rng), chosen)

    def worth(self, indices: IntArray) -> float:
        """What a set is worth in true means."""
        if self.objective is None:
            return float(self.mean[indices].sum())
        return self.objective.value(self.mean, self.features, indices)

    def to_beat(self) -> float:
        """What regret is counted from: the worth of the best set, times the ratio that the oracle promises for it.

        The best set is found by the constraint itself, or by enumeration under an objective. The answer of an
        approximate constraint stands in for ratio times best, which it is not below; an unknown ratio counts as 1.
        """
        if self.objective is None:
            return checked_best(self.constraint, self.mean, self.features).value
        problem = (self.objective, self.mean, self.features, self.constraint)
        ratio = objectives.best(*problem, np.random.default_rng(0)).ratio
        largest = objectives.best_by_enumeration(*problem).value
        return largest if math.isnan(ratio) else ratio * largest


def drawn_rewards(mean: FloatArray, noise: Noise, key: Keys, arms: IntArray) -> FloatArray:
    """Rewards of `arms` `(..., k)` with these means, for one key or a key of each repetition `(...)`."""
    if noise == "bernoulli":
        return (arm_uniforms(key, arms) < mean).astype(np.float64)
    return mean if noise == 0 else mean + noise * arm_normals(key, arms)


def played(environment: "Environment", n_rounds: int, rng: Generator) -> Iterator[Round]:
    """Exactly so many rounds of a world, or an error if it gives fewer."""
    count = 0
    for count, shown in enumerate(islice(environment.rounds(n_rounds, rng), n_rounds), start=1):  # noqa: B007
        yield shown if isinstance(shown, Round) else _round(shown)
    if count < n_rounds:
        raise ValueError(f"{type(environment).__name__} gave {count} rounds where {n_rounds} were asked for")


def _round(shown: object) -> Round:
    """A round that was given as a plain tuple."""
    if isinstance(shown, tuple) and len(shown) in (3, 4, 5):
        return Round(*shown)
    raise ValueError(f"a world must give rounds as Round(features, constraint, mean), got {type(shown).__name__}")


class Environment(Protocol):
    """A world to learn in: anything with these two.

    Arrays that stay the same from round to round, or from repetition to repetition, are best handed out as the very
    same array: the simulation then does its work once. An array handed out must not change, and is made read-only.
    """

    @property
    def n_features(self) -> int:
        """The length of a feature vector."""
        ...

    def rounds(self, n_rounds: int, rng: Generator) -> Iterator[Round]:
        """The rounds of one repetition; what differs between repetitions is drawn from `rng`."""
        ...
