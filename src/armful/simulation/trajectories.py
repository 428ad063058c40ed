"""The result of a simulation, and its random streams."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.random import Generator, SeedSequence

from armful.checks import FloatArray, IntArray

ENVIRONMENT, NOISE, POLICY = range(3)
"""The purposes of the random numbers of a repetition: each has its own stream."""


def generator(seed: int, repetition: int, purpose: int) -> Generator:
    """Return the generator of one repetition for one purpose, the same on whichever worker."""
    return np.random.default_rng(SeedSequence(seed, spawn_key=(repetition, purpose)))


@dataclass(frozen=True, eq=False)
class Trajectories:
    """The result of a simulation, per repetition and round.

    Attributes
    ----------
    regret : ndarray of shape (repetitions, rounds)
        The value of the best allowed set minus that of the chosen one, by the true means.
    rewards : ndarray of shape (repetitions, rounds)
        The sum of the observed rewards.
    pulled : ndarray of shape (repetitions, rounds)
        The number of chosen arms.
    """

    regret: FloatArray
    rewards: FloatArray
    pulled: IntArray

    @classmethod
    def empty(cls, repetitions: int, rounds: int) -> Self:
        """Return trajectories of zeros."""
        shape = (repetitions, rounds)
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.int64))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the repetitions of all parts, in order."""
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
