"""Eligibility and must-haves on top of any constraint."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from armful.checks import FloatArray, IntArray
from armful.constraints.growing import Growth
from armful.constraints.selection import (
    NO_ARMS,
    Changeable,
    Constraint,
    Limit,
    Selection,
    check_indices,
    check_scores,
    repeated,
)
from armful.errors import InfeasibleError


class _Restricted(Changeable):
    """A constraint with arms that must be, or must not be, in the set."""

    def __init__(self, constraint: Constraint, arms: ArrayLike) -> None:
        self.constraint = constraint
        self.arms = _distinct(arms)
        self.options = {"constraint": constraint, "arms": self.arms}

    @property
    def k(self) -> int:
        """The size of the largest set that the constraint allows; with the restriction it may be smaller."""
        return self.constraint.k

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.constraint!r}, {self.arms.size} arms)"

    def best(self, scores: ArrayLike, X: FloatArray | None = None, rng: Generator | None = None) -> Selection:
        """The best allowed set."""
        return self.best_given(scores, rng or np.random.default_rng(), required=NO_ARMS, excluded=NO_ARMS)

    def best_given(self, scores: ArrayLike, rng: Generator, *, required: IntArray, excluded: IntArray) -> Selection:
        """The best allowed set, with further restrictions."""
        values = check_scores(scores)
        if self.arms.size and self.arms.max() >= values.size:
            raise ValueError(f"{type(self).__name__} names arm {self.arms.max()}, {values.size} are there, from 0")
        must, must_not = self._restrictions(required, excluded)
        both = np.intersect1d(must, must_not)
        if both.size:
            raise InfeasibleError(f"arm {both[0]} is both required and excluded")
        return best_given(self.constraint, values, rng, required=must, excluded=must_not)

    def limits(self, indices: ArrayLike) -> Iterator[Limit]:
        """The limits of the constraint itself, loosened under the same restriction."""
        for limit in getattr(self.constraint, "limits", lambda _: ())(indices):
            yield Limit(limit.name, self.with_(constraint=limit.loosened))

    def violation(self, indices: ArrayLike) -> float:
        """The violation of the constraint, and one for each arm that breaks the restriction."""
        chosen = check_indices(indices)
        return self.constraint.violation(chosen) + float(self._breaking(np.unique(chosen)))

    def _breaking(self, chosen: IntArray) -> int:
        """How many arms break the restriction."""
        raise NotImplementedError

    def _restrictions(self, required: IntArray, excluded: IntArray) -> tuple[IntArray, IntArray]:
        """The given required and excluded arms, and these."""
        raise NotImplementedError


class Excluding(_Restricted):
    """Another constraint without certain arms: customers who opted out, edges that are closed.

    arms: their indices, or a mask `(n_arms,)` of True and False.

    >>> from armful.constraints import TopK
    >>> Excluding(TopK(2), [0]).best([9.0, 1.0, 2.0]).indices
    array([2, 1])
    """

    def growth(self, n_arms: int) -> Growth:
        """For objectives that add arm by arm."""
        inner: Any = self.constraint
        grown: Growth = inner.growth(n_arms)
        grown.close(self.arms)
        return grown

    def _breaking(self, chosen: IntArray) -> int:
        return int(np.isin(chosen, self.arms).sum())

    def _restrictions(self, required: IntArray, excluded: IntArray) -> tuple[IntArray, IntArray]:
        return required, np.union1d(excluded, self.arms)


class Requiring(_Restricted):
    """Another constraint with certain arms in every set: promised contacts, an item that must be shown.

    arms: their indices, or a mask `(n_arms,)` of True and False.

    >>> from armful.constraints import TopK
    >>> Requiring(TopK(2), [1]).best([9.0, 1.0, 2.0]).indices
    array([1, 0])
    """

    def _breaking(self, chosen: IntArray) -> int:
        return int(np.isin(self.arms, chosen, invert=True).sum())

    def _restrictions(self, required: IntArray, excluded: IntArray) -> tuple[IntArray, IntArray]:
        return np.union1d(required, self.arms), excluded


def best_given(
    constraint: Constraint, scores: FloatArray, rng: Generator, *, required: IntArray, excluded: IntArray
) -> Selection:
    """The best set that `constraint` allows with all the required arms and none of the excluded.

    A constraint that can do it has a method `best_given`. For any other, required arms get a score that outweighs all
    others together and excluded arms its negative: no more is lost by rounding than in summing the scores themselves.
    """
    native: Any = getattr(constraint, "best_given", None)
    if native is not None:
        answer: Selection = native(scores, rng, required=required, excluded=excluded)
        return answer
    outweighs = 2 * float(np.abs(scores).sum()) or 1.0
    changed = scores.copy()
    changed[required], changed[excluded] = outweighs, -outweighs
    picked = constraint.best(changed, rng=rng)
    missing, unwanted = np.setdiff1d(required, picked.indices), np.intersect1d(excluded, picked.indices)
    if missing.size:
        raise InfeasibleError(f"no allowed set has all {required.size} required arms; arm {missing[0]} does not fit")
    if unwanted.size:
        raise InfeasibleError(f"no allowed set does without the excluded arms; arm {unwanted[0]} is needed")
    ratio = picked.ratio if picked.ratio == 1 or not required.size else float("nan")
    return Selection(picked.indices, float(scores[picked.indices].sum()), ratio)


def _distinct(arms: ArrayLike) -> IntArray:
    array = np.asarray(arms)
    indices = np.flatnonzero(array) if array.dtype == np.bool_ else check_indices(array)
    if repeated(indices) or (indices.size and indices.min() < 0):
        raise ValueError(f"arms must be distinct indices counted from 0, or a mask, got {arms!r}")
    return indices
