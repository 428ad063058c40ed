"""Constraints with a solver that takes required and excluded arms."""

from numpy.random import Generator
from numpy.typing import ArrayLike

from armful.checks import FloatArray
from armful.constraints.base import Constraint
from armful.constraints.selection import Selection


class RestrictableConstraint(Constraint):
    """A constraint for `n_arms` arms whose solver takes required and excluded arms: a subclass writes `_solve`."""

    uses_features = False
    n_arms: int
    _arms_are = "arms"

    def best(self, scores: ArrayLike, X: FloatArray | None = None, rng: Generator | None = None) -> Selection:
        return self.best_given(scores, rng, X=X)

    def check_n_arms(self, n_arms: int) -> None:
        if n_arms != self.n_arms:
            raise ValueError(f"{type(self).__name__} has {self.n_arms} {self._arms_are}, got {n_arms} arms")
