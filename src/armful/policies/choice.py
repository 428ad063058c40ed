"""What a policy thinks of every arm, and what it chose."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Scores:
    """The score of every arm and where it comes from; all `(..., n_arms)`.

    mean: the estimate. bonus: what the policy adds to it, before any cap. value: the score that the constraint sees.
    capped: where a cap, not mean + bonus, gave the score.
    """

    mean: FloatArray
    bonus: FloatArray
    value: FloatArray
    capped: BoolArray

    @classmethod
    def uncapped(cls, mean: FloatArray, value: FloatArray) -> Self:
        """Scores that no cap has touched."""
        return cls(mean, value - mean, value, np.zeros(value.shape, dtype=bool))


@dataclass(frozen=True, eq=False)
class Choice:
    """A chosen set of arms, and why each of them was chosen.

    indices: `(k,)`, rows of X. features: `(k, n_features)`, to be given to `learn` with the rewards.
    value: the sum of the scores. ratio: no allowed set scores more than `value / ratio`.
    mean, bonus, scores: `(k,)`, the estimate, what was added to it, and what became of both under the caps.
    capped: `(k,)`, True where a cap gave the score.
    """

    indices: IntArray
    features: FloatArray
    value: float
    ratio: float
    mean: FloatArray
    bonus: FloatArray
    scores: FloatArray
    capped: BoolArray

    def __len__(self) -> int:
        return self.indices.size
