"""What a policy thinks of every arm."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray

BoolArray = NDArray[np.bool_]

ESTIMATE_SHARE = 2.0**-20
"""The share of the estimate in a score at a cap, so that ties at the cap are broken by the estimate
(docs/decisions/0010). A power of two, so that rewards and caps in another unit give the same choices."""


@dataclass(frozen=True, eq=False)
class Scores:
    """The score of every arm and where it comes from; all `(..., n_arms)`.

    mean: the estimate. bonus: what the policy adds to it, before any cap. value: the score that the constraint sees.
    capped: where a cap, not mean + bonus, gave the score. cap: the caps, infinite where there are none. A capped score
    is the cap but for a millionth of its distance to the estimate, which orders the arms at the cap.
    """

    mean: FloatArray
    bonus: FloatArray
    value: FloatArray
    capped: BoolArray
    cap: FloatArray | float = math.inf

    @classmethod
    def uncapped(cls, mean: FloatArray, bonus: FloatArray, value: FloatArray | None = None) -> Self:
        """Scores that no cap has touched: mean + bonus, unless the value is known more exactly."""
        score = mean + bonus if value is None else value
        return cls(mean, bonus, score, np.zeros(score.shape, dtype=bool))

    @classmethod
    def clipped(cls, mean: FloatArray, bonus: FloatArray, cap: FloatArray | float) -> Self:
        """Return `min(mean + bonus, cap)` with ties at the cap broken by the estimate.

        As one number: `min(mean + bonus, (1 - e) cap + e mean)`, e the `ESTIMATE_SHARE`. It grows with mean and bonus,
        and where no cap binds it is `mean + bonus` to the last bit.
        """
        optimistic = mean + bonus
        value = np.minimum(optimistic, _at_cap(mean, cap))
        return cls(mean, bonus, value, value < optimistic, cap)

    def at(self, indices: IntArray) -> Self:
        """Return the scores of some arms, `(k,)`; their caps are left out."""
        return type(self)(self.mean[indices], self.bonus[indices], self.value[indices], self.capped[indices])

    def of_costs(self) -> Self:
        """Return the scores of arms whose rewards are minus a cost: one above 0 is taken for a score at a cap of 0."""
        above = self.value > 0
        value = np.where(above, np.minimum(_at_cap(self.mean, 0.0), 0.0), self.value)
        return type(self)(self.mean, self.bonus, value, self.capped | above, np.minimum(self.cap, 0.0))


def _at_cap(mean: FloatArray, cap: FloatArray | float) -> FloatArray:
    """What an arm at its cap scores: the better its estimate, the more, by a millionth of the difference."""
    score: FloatArray = (1 - ESTIMATE_SHARE) * cap + ESTIMATE_SHARE * mean
    return score
