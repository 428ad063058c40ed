"""The score of every arm. How ties at a cap are broken is decided here and nowhere else (docs/decisions/0010)."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray

BoolArray = NDArray[np.bool_]

ESTIMATE_SHARE = 2.0**-20
"""The share of the estimate in a score at a cap. A power of two, so that rewards and caps in another unit give the same
choices."""


@dataclass(frozen=True, eq=False)
class Scores:
    """The score of every arm and its parts.

    Attributes
    ----------
    mean : ndarray of shape (..., n_arms)
        The estimated mean rewards.
    bonus : ndarray of shape (..., n_arms)
        What the policy adds to them, before any cap.
    value : ndarray of shape (..., n_arms)
        The score that the constraint sees.
    capped : ndarray of bool, of shape (..., n_arms)
        Where a cap, not `mean + bonus`, decided the score.
    cap : ndarray of shape (..., n_arms), or float
        The caps, infinite where there are none.

    Examples
    --------
    >>> scores = Scores.clipped(np.array([0.2, 0.4, 0.1]), np.array([0.9, 0.9, 0.1]), 1.0)
    >>> scores.value.round(3), scores.capped, scores.value.argmax()
    (array([1. , 1. , 0.2]), array([ True,  True, False]), np.int64(1))
    """

    mean: FloatArray
    bonus: FloatArray
    value: FloatArray
    capped: BoolArray
    cap: FloatArray | float = math.inf

    @classmethod
    def uncapped(cls, mean: FloatArray, bonus: FloatArray, value: FloatArray | None = None) -> Self:
        """Return scores without a cap.

        Parameters
        ----------
        mean, bonus : ndarray of shape (..., n_arms)
            As in the class.
        value : ndarray of shape (..., n_arms), optional
            The scores, where they are known more exactly than as `mean + bonus`.
        """
        score = mean + bonus if value is None else value
        return cls(mean, bonus, score, np.zeros(score.shape, dtype=bool))

    @classmethod
    def clipped(cls, mean: FloatArray, bonus: FloatArray, cap: FloatArray | float) -> Self:
        """Return `min(mean + bonus, cap)`, with ties at the cap broken by the estimate.

        Parameters
        ----------
        mean, bonus : ndarray of shape (..., n_arms)
            As in the class.
        cap : ndarray of shape (..., n_arms), or float
            What no mean reward exceeds.

        Notes
        -----
        As one number: `min(mean + bonus, (1 - e) cap + e mean)`, e the `ESTIMATE_SHARE`. Others rely on this alone: it
        never falls when mean or bonus rise, and where no cap binds it is `mean + bonus` to the last bit.
        """
        optimistic = mean + bonus
        value = np.minimum(optimistic, _score_at_cap(mean, cap))
        return cls(mean, bonus, value, value < optimistic, cap)

    def at(self, indices: IntArray) -> Self:
        """Return the scores of some arms, `(k,)`, without their caps."""
        return type(self)(self.mean[indices], self.bonus[indices], self.value[indices], self.capped[indices])

    def of_costs(self) -> Self:
        """Return the scores where rewards are minus a cost: a score above 0 becomes one at a cap of 0."""
        above = self.value > 0
        value = np.where(above, np.minimum(_score_at_cap(self.mean, 0.0), 0.0), self.value)
        return type(self)(self.mean, self.bonus, value, self.capped | above, np.minimum(self.cap, 0.0))


def _score_at_cap(mean: FloatArray, cap: FloatArray | float) -> FloatArray:
    """Return the score of an arm at its cap: the cap, moved a millionth of the way to the estimate."""
    score: FloatArray = (1 - ESTIMATE_SHARE) * cap + ESTIMATE_SHARE * mean
    return score
