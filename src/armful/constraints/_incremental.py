"""Sets that grow arm by arm and can always be completed to an allowed one: what greedy objectives need."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from armful.checks import IntArray

BoolArray = NDArray[np.bool_]


class Growth(Protocol):
    """A set that begins empty. counts_only: whether nothing but its size is limited."""

    counts_only: bool

    def add(self, arm: int) -> None:
        """Take an arm."""
        ...

    def close(self, arms: IntArray) -> None:
        """Never take these."""
        ...

    def open(self) -> BoolArray:
        """`(n_arms,)`, the arms that may be added next."""
        ...

    def wanted(self) -> BoolArray | None:
        """The arms of which one must still be added, whatever it is worth; None when the set may stay as it is."""
        ...


class CountGrowth:
    """At least `low` and at most `high` arms."""

    counts_only = True

    def __init__(self, n_arms: int, low: int, high: int) -> None:
        self._left = np.ones(n_arms, dtype=bool)
        self._size, self._low, self._high = 0, low, high

    def add(self, arm: int) -> None:
        """Take an arm."""
        self._left[arm] = False
        self._size += 1

    def close(self, arms: IntArray) -> None:
        """Never take these."""
        self._left[arms] = False

    def open(self) -> BoolArray:
        """Any that is left, while there is room."""
        return self._left if self._size < self._high else np.zeros_like(self._left)

    def wanted(self) -> BoolArray | None:
        """Any, until there are enough."""
        return self._left if self._size < self._low else None
