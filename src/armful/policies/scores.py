"""What a policy thinks of every arm."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Scores:
    """The score of every arm and where it comes from; all `(..., n_arms)`.

    mean: the estimate. bonus: what the policy adds to it, before any cap. value: the score that the constraint sees.
    capped: where a cap, not mean + bonus, gave the score. cap: the caps, infinite where there are none.
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
