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
from armful.objectives import Objective


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
    noise: float | Literal["bernoulli"] = 1.0
    objective: Objective | None = None

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or self.mean.shape != self.features.shape[:1]:
            raise ValueError(
                "a round needs features (n_arms, n_features) and a mean reward for each arm, got shapes "
                f"{self.features.shape} and {self.mean.shape}"
            )
        if isinstance(self.noise, str):
            checks.one_of("noise", self.noise, ("bernoulli",))
        else:
            checks.at_least_zero("noise", self.noise)
        self.features.flags.writeable = self.mean.flags.writeable = False  # the simulation may keep them

    def rewards(self, rng: Generator) -> FloatArray:
        """What each arm would pay, `(n_arms,)`: drawn for all arms, so that every policy meets the same luck."""
        if self.noise == "bernoulli":
            return (rng.random(self.mean.size) < self.mean).astype(np.float64)
        return self.mean if self.noise == 0 else self.mean + self.noise * rng.standard_normal(self.mean.size)

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
            return self.constraint.best(self.mean, self.features).value
        problem = (self.objective, self.mean, self.features, self.constraint)
        ratio = objectives.best(*problem, np.random.default_rng(0)).ratio
        best = objectives.best_by_enumeration(*problem).value
        return best if math.isnan(ratio) else ratio * best


def played(environment: "Environment", n_rounds: int, rng: Generator) -> Iterator[Round]:
    """Exactly so many rounds of a world, or an error if it gives fewer."""
    count = 0
    for count, shown in enumerate(islice(environment.rounds(n_rounds, rng), n_rounds), start=1):  # noqa: B007
        yield shown
    if count < n_rounds:
        raise ValueError(f"{type(environment).__name__} gave {count} rounds where {n_rounds} were asked for")


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
