"""Constraints whose solver takes required and excluded arms: what `best` and `best_given` have in common there."""

from numpy.random import Generator
from numpy.typing import ArrayLike

from armful.checks import FloatArray, IntArray
from armful.constraints._checks import check_scores
from armful.constraints.base import Constraint, Selection, check_restrictions
from armful.randomness import as_generator


class RestrictableConstraint(Constraint):
    """A constraint with a solver that takes required and excluded arms: a subclass sets `n_arms` and writes `_solve`.

    Attributes
    ----------
    n_arms : int
        The number of arms that the constraint was made for.
    """

    uses_features = False
    n_arms: int
    _arms_are = "arms"

    def best(self, scores: ArrayLike, X: FloatArray | None = None, rng: Generator | None = None) -> Selection:
        return self.best_given(scores, rng, X=X)

    def best_given(
        self,
        scores: ArrayLike,
        rng: Generator | None = None,
        *,
        required: ArrayLike = (),
        excluded: ArrayLike = (),
        X: FloatArray | None = None,
    ) -> Selection:
        values = check_scores(scores)
        if values.size != self.n_arms:
            raise ValueError(f"{type(self).__name__} has {self.n_arms} {self._arms_are}, got {values.size} scores")
        return self._solve(values, as_generator(rng), *check_restrictions(self, required, excluded, self.n_arms))

    def _solve(self, scores: FloatArray, rng: Generator, required: IntArray, excluded: IntArray) -> Selection:
        """Return the best allowed set with all the required arms and none of the excluded."""
        raise NotImplementedError(f"{type(self).__name__} must define _solve(self, scores, rng, required, excluded)")
