"""The answer of a constraint: a set of arms, its value, and how good it is proved to be."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from armful.checks import IntArray


@dataclass(frozen=True, eq=False)
class Selection:
    """A set of arms, as `Constraint.best` returns it; unpacks into `indices, value, ratio`.

    Attributes
    ----------
    indices : ndarray of shape (k,)
        The arms.
    value : float
        The sum of their scores.
    ratio : float
        `a` in (0, 1] such that no allowed set has a larger value than `value / a`: 1 where the answer is exact, NaN
        where nothing is known.
    """

    indices: IntArray
    value: float
    ratio: float = 1.0

    def __iter__(self) -> Iterator[Any]:
        return iter((self.indices, self.value, self.ratio))

    def __contains__(self, arm: object) -> bool:
        return arm in self.indices.tolist()
