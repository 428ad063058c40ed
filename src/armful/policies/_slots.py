"""Exploration by slots: some places of a set of the best k arms are filled at random."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray
from armful.constraints._checks import NO_ARMS
from armful.constraints.base import Constraint
from armful.constraints.cardinality import TopK
from armful.constraints.restricted import Excluding, Requiring
from armful.model._qr import frozen

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Slots:
    """The best `k` of some free arms, of which `few` places are explored, or with probability `more` one place more.

    Attributes
    ----------
    n_arms : int
        All arms, also those that are not free.
    free : ndarray of shape (n_free,), or None
        The arms that are neither excluded nor required; None where all are free.
    required : ndarray
        The arms that are in every set.
    k : int
        How many of the free arms are chosen.
    few : int
        `floor(e k)`.
    more : float
        `e k - floor(e k)`.
    """

    n_arms: int
    free: IntArray | None
    required: IntArray
    k: int
    few: int
    more: float

    @classmethod
    def of(cls, constraint: Constraint, n_arms: int, share: float) -> Self | None:
        """Return the slots that a constraint leaves for an exploration share; None if it is not one of the best k."""
        required, excluded = NO_ARMS, NO_ARMS
        while type(constraint) in (Excluding, Requiring):
            required, excluded = constraint._with_own(required, excluded)  # type: ignore[attr-defined]
            constraint = constraint.constraint  # type: ignore[attr-defined]
        if type(constraint) is not TopK:
            return None
        k = constraint.k - required.size
        if not (required.size or excluded.size):
            return slots_of_all(n_arms, k, share)  # type: ignore[return-value]
        is_free = np.ones(n_arms, dtype=bool)
        is_free[required] = is_free[excluded] = False
        return cls(n_arms, np.flatnonzero(is_free), required, k, *_places(share * k))

    @property
    def n_free(self) -> int:
        """The number of free arms."""
        return self.n_arms if self.free is None else self.free.size

    def explore(self, chosen: IntArray, rng: Generator) -> tuple[IntArray, BoolArray]:
        """Return a set with some places explored, and which; `chosen`: the policy's own set, the best arm first."""
        explored = np.zeros(chosen.size, dtype=bool)
        b = self.few + (self.more > 0 and rng.random() < self.more)
        if b == 0:
            return chosen, explored
        of_free = self._is_free(chosen)
        kept = chosen[of_free][: self.k - b]
        others = np.zeros(self.n_arms, dtype=bool)
        others[slice(None) if self.free is None else self.free] = True
        others[kept] = False
        pool = np.flatnonzero(others)
        places = np.flatnonzero(of_free)[rng.permutation(self.k)[:b]]
        explored[places] = True
        indices = chosen.copy()
        indices[places] = rng.choice(pool, size=b, replace=False)
        indices[of_free & ~explored] = kept
        return indices, explored

    def probabilities(self, indices: IntArray, scores: FloatArray) -> FloatArray:
        """Return the probabilities of these arms where the scores `(n_arms,)` are fixed, exactly.

        Equal scores are ranked at random, so an arm has the mean probability of the ranks that its equals take.
        """
        values = scores if self.free is None else scores[self.free]
        own = scores[indices]
        ordered = np.sort(values)
        first = values.size - ordered.searchsorted(own, side="right")
        end = values.size - ordered.searchsorted(own, side="left")
        totals = self._totals
        ranked: FloatArray = (totals[end] - totals[first]) / np.maximum(end - first, 1)
        return ranked if not self.required.size else np.where(self._is_free(indices), ranked, 1.0)

    def weights_of(self, chosen: IntArray, n_arms: int) -> FloatArray:
        """Return what each arm has above the least probability, by its rank in one set, `(n_arms,)`."""
        weights = np.zeros(n_arms)
        weights[chosen[self._is_free(chosen)]] = self._above_least
        return weights

    def weights_of_each(self, scores: FloatArray, rng: Generator) -> FloatArray:
        """Return the sum of the same over the sets of the best by each row of `scores` `(draws, n_arms)`."""
        values = scores if self.free is None else scores[:, self.free]
        if self.k == 0:
            return np.zeros(scores.shape[1])
        sets = np.asarray(TopK(self.k).best_each(values, [rng] * len(values))[0])
        arms = sets if self.free is None else self.free[sets]
        weights = np.broadcast_to(self._above_least, arms.shape)
        return np.asarray(
            np.bincount(arms.ravel(), weights=weights.ravel(), minlength=scores.shape[1]), dtype=np.float64
        )

    def mixed(self, indices: IntArray, weights: FloatArray) -> FloatArray:
        """Return the probabilities of arms by their mean weights `(n_arms,)`."""
        return np.where(self._is_free(indices), self._least + weights[indices], 1.0)

    @cached_property
    def of_best(self) -> FloatArray:
        """The probabilities of the best k of the free arms, the best first, where no scores are equal, `(k,)`."""
        return frozen(np.diff(self._totals[: self.k + 1]))

    @cached_property
    def _least(self) -> float:
        """The probability of the worst arm: by exploration alone."""
        return (1 - self.more) * self._drawn(self.few) + self.more * self._drawn(self.few + 1)

    @cached_property
    def _above_least(self) -> FloatArray:
        """What the arms of the first k ranks have above it, `(k,)`."""
        return self.of_best - self._least

    @cached_property
    def _totals(self) -> FloatArray:
        """The sum of the probabilities of the first m ranks, for all m, `(n_free + 1,)`."""
        m = np.arange(self.n_free + 1)
        return (1 - self.more) * self._total_at(m, self.few) + self.more * self._total_at(m, self.few + 1)

    def _total_at(self, m: IntArray, b: int) -> FloatArray:
        kept = np.minimum(m, self.k - b)
        return np.asarray(kept + (m - kept) * self._drawn(b))

    def _drawn(self, b: int) -> float:
        """Return the probability that an arm which is not kept is drawn for one of b places."""
        return b / (self.n_free - self.k + b) if b else 0.0

    def _is_free(self, indices: IntArray) -> BoolArray:
        if not self.required.size:
            return np.ones(indices.size, dtype=bool)
        return np.isin(indices, self.required, invert=True)


@lru_cache(maxsize=256)
def slots_of_all(n_arms: int, k: int, share: float) -> Slots:
    """Return the slots of the best k of all arms."""
    return Slots(n_arms, None, NO_ARMS, k, *_places(share * k))


def _places(expected: float) -> tuple[int, float]:
    """Return the whole number of places to explore, and the probability of one more."""
    few = math.floor(expected)
    return few, expected - few
