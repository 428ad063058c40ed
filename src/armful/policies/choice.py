"""What a policy chose."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful import checks
from armful.checks import FloatArray, IntArray
from armful.constraints.base import Constraint, arm_name
from armful.policies._problem import Problem
from armful.policies.explanation import Explanation, explain

BoolArray = NDArray[np.bool_]

ARRAYS = ("indices", "features", "mean", "bonus", "scores", "capped", "ids")


@dataclass(frozen=True, eq=False)
class Choice:
    """A chosen set of k arms, and why each was chosen; give it to `Policy.learn` with the rewards.

    The arrays are read-only. Copy one to change it.

    Attributes
    ----------
    indices : ndarray of shape (k,)
        The chosen arms, as rows of X.
    features : ndarray of shape (k, n_features)
        Their features.
    value : float
        The value of the set: by the objective or the constraint (which may count costs only), else the sum of scores.
    ratio : float
        `a` in (0, 1]: no allowed set has a value above `value / a`. 1 where the choice is exact.
    mean : ndarray of shape (k,)
        The estimated mean rewards.
    bonus : ndarray of shape (k,)
        What the policy adds to them to explore.
    scores : ndarray of shape (k,)
        `mean + bonus`, or what a cap leaves of it.
    capped : ndarray of bool, of shape (k,)
        Where a cap decided the score.
    ids : ndarray of shape (k,), or None
        The ids of the arms, if they were chosen from a table that has ids.
    columns : tuple of str, or None
        The names of the features, if the arms came with names.
    find_problem : callable
        For `explain`: returns all arms of the round and their scores.
    constraint : Constraint
        Which sets were allowed; it may have names for the arms.
    """

    indices: IntArray
    features: FloatArray
    value: float
    ratio: float
    mean: FloatArray
    bonus: FloatArray
    scores: FloatArray
    capped: BoolArray
    find_problem: Callable[[], Problem] = field(repr=False)
    constraint: Constraint = field(repr=False)
    ids: NDArray[Any] | None = None
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Make the arrays read-only, as views: whoever else holds them may still change theirs."""
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

    @property
    def of_costs(self) -> bool:
        """Whether rewards are minus a cost, as under `Path(costs=True)`."""
        return self.constraint.only_costs

    def name_of(self, row: int) -> str:
        """Return what the arm in a row is called in an error: its id, its name in the constraint, or its index.

        Parameters
        ----------
        row : int
            Which arm of the choice, from 0 to k - 1.
        """
        return arm_name(self.constraint, int(self.indices[row])) if self.ids is None else repr(self.ids[row].item())

    @cached_property
    def _problem(self) -> Problem:
        """All arms of the round and their scores, computed again if there were many."""
        return self.find_problem()

    def explain(self, *, most: int = 20) -> Explanation:
        """Return why these arms were chosen, what would replace each of them, and what each limit costs.

        Parameters
        ----------
        most : int, default 20
            At most so many arms and so many limits are explained, since each takes another choice.

        Returns
        -------
        Explanation

        Raises
        ------
        ValueError
            If the arms have changed since, or were chosen on a cluster.
        """
        if not np.array_equal(self._problem.scores.value[self.indices], self.scores):
            raise ValueError("the arms have changed since they were chosen; choose again, then explain")
        return explain(self._problem, self.indices, self.value, most=checks.count("most", most))
