"""An explicit list of allowed sets."""

from collections.abc import Iterable, Sequence, Set

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from armful.checks import FloatArray, IntArray
from armful.constraints._checks import check_indices, check_scores, repeated
from armful.constraints.base import Constraint
from armful.constraints.selection import Selection
from armful.errors import InfeasibleError
from armful.randomness import as_generator


class OneOf(Constraint):
    """One of several given sets: any family at all, solved by comparing the values of all its members.

    Parameters
    ----------
    sets : iterable of array_like or set of int
        The allowed sets, each of at least one arm.

    Raises
    ------
    ValueError
        If there is no set, or one is empty or not of distinct arm indices.

    Examples
    --------
    >>> OneOf([[0, 1], [2, 3]]).best([5.0, -4.0, 1.0, 1.0]).indices
    array([2, 3])
    """

    always_exact = True
    uses_features = False
    k: int

    def __init__(self, sets: Iterable[ArrayLike | Set[int]]) -> None:
        if not isinstance(sets, Iterable):
            raise ValueError(f"OneOf needs a list of sets, each a list of arms, got {sets!r}")
        self.sets = [_members(i, members) for i, members in enumerate(sets)]
        if not self.sets:
            raise ValueError("OneOf needs at least one set, got none")
        self.options = {"sets": self.sets}
        self.k = max(members.size for members in self.sets)
        self._members = np.concatenate(self.sets)
        self._starts = np.cumsum([0] + [members.size for members in self.sets[:-1]])

    def best(self, scores: ArrayLike, X: FloatArray | None = None, rng: Generator | None = None) -> Selection:
        indices, values = self.best_each(check_scores(scores)[None], [as_generator(rng)])
        return Selection(indices[0], float(values[0]))

    def best_each(
        self, scores: FloatArray, rngs: Sequence[Generator], X: Sequence[FloatArray] | None = None
    ) -> tuple[list[IntArray], FloatArray]:
        if self._members.max() >= scores.shape[-1]:
            raise InfeasibleError(f"OneOf names arm {self._members.max()}, {scores.shape[-1]} are there, from 0")
        sums = np.add.reduceat(scores[:, self._members], self._starts, axis=-1)
        values = sums.max(axis=-1)
        ties = sums == values[:, None]
        winners = ties.argmax(axis=-1)
        for row in np.flatnonzero(ties.sum(axis=-1) > 1).tolist():
            winners[row] = rngs[row].choice(np.flatnonzero(ties[row]))
        return [self.sets[winner].copy() for winner in winners], values

    def _solve(
        self, scores: FloatArray, rng: Generator, required: IntArray, excluded: IntArray, X: FloatArray | None
    ) -> Selection:
        sets = [s for s in self.sets if np.isin(required, s).all() and not np.isin(excluded, s).any()]
        if not sets:
            raise InfeasibleError("no set of OneOf has all the required arms and none of the excluded")
        return OneOf(sets).best(scores, rng=rng)

    def violation(self, indices: ArrayLike) -> float:
        """Return how many arms differ from the nearest allowed set, repeated ones counted."""
        chosen = check_indices(indices)
        return float(min(np.setxor1d(chosen, members).size for members in self.sets) + repeated(chosen))


def _members(i: int, members: ArrayLike | Set[int]) -> IntArray:
    try:
        arms = check_indices(members)
    except ValueError as error:
        raise ValueError(f"set {i} of OneOf: {error}") from None
    if arms.size == 0:
        raise ValueError(f"every set of OneOf needs at least one arm, set {i} is empty")
    if repeated(arms) or arms.min() < 0:
        raise ValueError(f"a set of OneOf holds distinct arms counted from 0, set {i} is {arms}")
    return arms
