"""So many arms, or at most so many: uniform matroids."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from armful import checks
from armful.checks import FloatArray, IntArray
from armful.constraints._checks import check_indices
from armful.constraints._ranks import Ranks, at, largest, largest_of_one
from armful.constraints.base import Limit
from armful.constraints.ranked import RankedConstraint
from armful.constraints.selection import Selection
from armful.errors import InfeasibleError
from armful.randomness import Keys, Streams, draw_keys


class _Count(RankedConstraint):
    k: int

    def __init__(self, k: int) -> None:
        self.k = checks.count("k", k)
        self.options = {"k": self.k}


class TopK(_Count):
    """Exactly `k` arms: the k largest scores, largest first (the bases of a uniform matroid).

    Parameters
    ----------
    k : int
        How many, at least 1.

    Raises
    ------
    ValueError
        If `k` is not a whole number of at least 1.

    Examples
    --------
    >>> TopK(2).best([0.3, 0.9, 0.5]).indices
    array([1, 2])
    """

    @cached_property
    def ranks(self) -> Ranks:
        """Exactly k arms."""
        return Ranks((), self.k, self.k)

    def check_n_arms(self, n_arms: int) -> None:
        if self.k > n_arms:
            raise InfeasibleError(f"TopK({self.k}) needs {self.k} arms, {n_arms} are there")

    def best_among(self, scores: FloatArray, key: Keys, arm_indices: IntArray | None = None) -> Selection:
        positions = largest_of_one(scores, self.k, key, arm_indices)
        return Selection(at(arm_indices, positions), float(np.add.reduce(scores[positions])))

    def best_each(
        self, scores: FloatArray, rngs: Sequence[Generator], X: Sequence[FloatArray] | None = None
    ) -> tuple[IntArray, FloatArray]:
        self.check_n_arms(scores.shape[-1])
        indices = largest(scores, self.k, draw_keys(Streams(rngs)))
        return indices, scores[np.arange(len(scores))[:, None], indices].sum(axis=-1)

    def best_values(self, scores: FloatArray, X: Sequence[FloatArray] | None = None) -> FloatArray:
        self.check_n_arms(scores.shape[-1])
        others = scores.shape[-1] - self.k
        values: FloatArray = np.partition(scores, others, axis=-1)[:, others:].sum(axis=-1)
        return values

    def limits(self, indices: ArrayLike) -> list[Limit]:
        return [Limit(f"exactly {self.k}", TopK(self.k + 1))]


class AtMost(_Count):
    """At most `k` arms, largest score first, and none whose score is negative; the set may be empty.

    An arm that scores exactly 0 is chosen while there is room.

    Parameters
    ----------
    k : int
        How many at most, at least 1.

    Raises
    ------
    ValueError
        If `k` is not a whole number of at least 1.

    Examples
    --------
    >>> AtMost(2).best([0.3, -0.9, -0.5]).indices
    array([0])
    """

    @cached_property
    def ranks(self) -> Ranks:
        """At most k arms."""
        return Ranks((), 0, self.k)

    def best_among(self, scores: FloatArray, key: Keys, arm_indices: IntArray | None = None) -> Selection:
        candidates = np.flatnonzero(scores >= 0)
        size = min(self.k, candidates.size)
        positions = candidates[largest_of_one(scores[candidates], size, key, at(arm_indices, candidates))]
        return Selection(at(arm_indices, positions), float(scores[positions].sum()))

    def limits(self, indices: ArrayLike) -> list[Limit]:
        full = check_indices(indices).size == self.k
        return [Limit(f"at most {self.k}", AtMost(self.k + 1))] if full else []
