"""What a simulation gives back, and the random numbers it is made of."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.random import Generator, SeedSequence

from armful.checks import FloatArray, IntArray

WORLD, NOISE, POLICY = range(3)
"""What a repetition's random numbers are for: each has a stream of its own."""


def generator(seed: int, repetition: int, purpose: int) -> Generator:
    """The random numbers of one repetition for one purpose, whoever runs it."""
    return np.random.default_rng(SeedSequence(seed, spawn_key=(repetition, purpose)))


@dataclass(frozen=True, eq=False)
class Trajectories:
    """What happened, each `(repetitions, rounds)`.

    regret: how much less the chosen set is worth, in true means, than the best allowed one.
    rewards: the sum of the rewards seen. pulled: how many arms were chosen.
    """

    regret: FloatArray
    rewards: FloatArray
    pulled: IntArray

    @classmethod
    def empty(cls, repetitions: int, rounds: int) -> Self:
        """Room for so many."""
        shape = (repetitions, rounds)
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.int64))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The repetitions of all parts, in order."""
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    @property
    def total_regret(self) -> FloatArray:
        """The regret of each repetition over all rounds, `(repetitions,)`."""
        return np.asarray(self.regret.sum(axis=1))

    @property
    def mean(self) -> float:
        """The mean total regret."""
        return float(self.total_regret.mean())

    @property
    def stderr(self) -> float:
        """The standard error of the mean total regret; NaN for a single repetition."""
        n = len(self.regret)
        return float(self.total_regret.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
