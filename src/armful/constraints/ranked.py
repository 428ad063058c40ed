"""Constraints that scale to millions of arms: bounds on the size of a set and on nested groups."""

from typing import TYPE_CHECKING, TypeGuard

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from armful.checks import FloatArray, IntArray
from armful.constraints._checks import check_indices, check_scores
from armful.constraints._incremental import Growth
from armful.constraints._ranks import Ranks, at
from armful.constraints.base import Constraint
from armful.constraints.selection import Selection
from armful.errors import InfeasibleError
from armful.randomness import Keys, as_generator, draw_key


class RankedConstraint(Constraint):
    """Bounds on the size of a set and on nested groups, so that it scales to millions of arms.

    A subclass sets `k` and `ranks`, and everything else follows from these two; it may override the methods.

    Attributes
    ----------
    ranks : Ranks
        The bounds.

    Examples
    --------
    >>> from armful.constraints import GroupBounds, Ranks
    >>> class AtMostFlagged(RankedConstraint):
    ...     '''At most k arms, and at most m of them flagged.'''
    ...     def __init__(self, flags, k, m):
    ...         self.options = {"flags": flags, "k": k, "m": m}
    ...         groups = GroupBounds(of_finest=np.arange(2), lower=np.array([0, 0]), upper=np.array([k, m]))
    ...         self.k, self.ranks = k, Ranks([groups], low=0, high=k, of_arm=np.asarray(flags, dtype=np.int64))
    >>> AtMostFlagged([1, 1, 0, 0], k=2, m=1).best([4.0, 3.0, 2.0, 1.0]).indices
    array([0, 2])
    """

    always_exact = True
    uses_features = False

    if TYPE_CHECKING:

        @property
        def ranks(self) -> Ranks: ...

    def check_n_arms(self, n_arms: int) -> None:
        """Raise if there is no allowed set of this number of arms."""
        ranks = self.ranks
        if ranks.of_arm is not None and ranks.of_arm.size != n_arms:
            raise ValueError(f"{type(self).__name__} has groups for {ranks.of_arm.size} arms, got {n_arms}")
        if n_arms < ranks.low:
            raise InfeasibleError(f"{self!r} needs {ranks.low} arms, {n_arms} are there")

    def best(self, scores: ArrayLike, X: FloatArray | None = None, rng: Generator | None = None) -> Selection:
        values = check_scores(scores)
        self.check_n_arms(values.size)
        return self.best_among(values, draw_key(as_generator(rng)))

    def best_among(self, scores: FloatArray, key: Keys, arm_indices: IntArray | None = None) -> Selection:
        """Return the best set of some of many arms.

        Parameters
        ----------
        scores : ndarray of shape (n,)
            Finite numbers.
        key : int
            Breaks ties, by `randomness.tie_keys`.
        arm_indices : ndarray of shape (n,), optional
            Which arms the scores are of, if not of all.
        """
        positions = self.ranks.best(scores, key, arm_indices)
        return Selection(at(arm_indices, positions), float(np.add.reduce(scores[positions])))

    def violation(self, indices: ArrayLike) -> float:
        """Return by how many arms the bounds are missed, group by group and in all, repeated arms included."""
        ranks = self.ranks
        chosen = check_indices(indices, None if ranks.of_arm is None else ranks.of_arm.size)
        distinct = np.unique(chosen)
        return float(ranks.violation(distinct) + chosen.size - distinct.size)

    def growth(self, n_arms: int) -> Growth:
        self.check_n_arms(n_arms)
        return Growth(self.ranks, n_arms)


def goes_by_rank(constraint: Constraint) -> TypeGuard[RankedConstraint]:
    """Return whether the constraint is made of bounds on sizes alone, so that it scales."""
    return constraint.ranks is not None
