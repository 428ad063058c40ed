"""What a policy chose."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful import checks
from armful.checks import FloatArray, IntArray
from armful.policies._problem import Problem
from armful.policies.explanation import Explanation, explain

BoolArray = NDArray[np.bool_]

ARRAYS = ("indices", "features", "mean", "bonus", "scores", "capped", "ids")


@dataclass(frozen=True, eq=False)
class Choice:
    """A chosen set of arms, and why each of them was chosen; give it to `learn` with the rewards.

    The arrays are read-only: what was chosen does not change. Copy one to change it.

    indices: `(k,)`, rows of X. features: `(k, n_features)`.
    value: what the set is worth to the objective and the constraint (which may count costs only), else the sum of the
    scores. ratio: no allowed set is worth more than `value / ratio`.
    mean, bonus, scores: `(k,)`, the estimate, what was added to it, and what became of both under the caps.
    capped: `(k,)`, True where a cap gave the score.
    ids: `(k,)`, what the arms are called, if they were chosen from a table that says so.
    chosen_from: works out what `problem` says.
    """

    indices: IntArray
    features: FloatArray
    value: float
    ratio: float
    mean: FloatArray
    bonus: FloatArray
    scores: FloatArray
    capped: BoolArray
    chosen_from: Callable[[], Problem] = field(repr=False)
    ids: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        """Make the arrays read-only, as views: what others may hold of them stays theirs to change."""
        for name in ARRAYS:  # not by vars(self), which is slow to make
            array = getattr(self, name)
            if array is not None:
                view = array.view()
                view.setflags(False)  # by position: faster than write=False
                object.__setattr__(self, name, view)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()

    def __len__(self) -> int:
        return self.indices.size

    @cached_property
    def problem(self) -> Problem:
        """What the set was chosen from: all arms and their scores, worked out anew if there were many."""
        return self.chosen_from()

    def explain(self, *, most: int = 20) -> Explanation:
        """Why these arms: for each the reasons and what would have come in its place, and what each limit costs.

        At most `most` arms and `most` limits are explained, since each is found by choosing anew.
        """
        if not np.array_equal(self.problem.scores.value[self.indices], self.scores):
            raise ValueError("the arms have changed since they were chosen; choose again, then explain")
        return explain(self.problem, self.indices, self.value, most=checks.count("most", most))
