"""Sets that grow arm by arm and can always be completed to an allowed one: what greedy objectives need."""

import numpy as np

from armful.checks import IntArray
from armful.constraints._ranks import Ranks
from armful.constraints._tops import BoolArray

ByGroup = BoolArray | bool
"""Whether something is true of each of the finest groups, or of all arms where there are no groups."""


class Growth:
    """A set that begins empty and grows within the bounds of `ranks`, of `n_arms` arms."""

    def __init__(self, ranks: Ranks, n_arms: int) -> None:
        self.counts_only = not ranks.levels
        self._ranks, self._size = ranks, 0
        self._left = np.ones(n_arms, dtype=bool)
        self._taken = [np.zeros_like(level.lower) for level in ranks.levels]
        self._groups = self._addable_and_needed()

    def add(self, arm: int) -> None:
        """Add an arm."""
        self._left[arm] = False
        self._size += 1
        for level, taken in zip(self._ranks.levels, self._taken, strict=True):
            taken[level.of_finest[self._ranks.of_arm[arm]]] += 1  # type: ignore[index]
        self._groups = self._addable_and_needed()

    def exclude(self, arms: IntArray) -> None:
        """Never add these arms."""
        self._left[arms] = False

    def addable(self) -> BoolArray:
        """Return the arms `(n_arms,)` after which every bound can still be met."""
        return self._arms_of(self._groups[0])

    def needed(self) -> BoolArray | None:
        """Return the arms `(n_arms,)` of which one must still be added; None when the set is allowed as it is."""
        addable, needed, lack = self._groups
        return self._arms_of(addable & needed) if lack else None

    def _arms_of(self, groups: ByGroup) -> BoolArray:
        if isinstance(groups, np.ndarray):
            return self._left & groups[self._ranks.of_arm]
        return self._left if groups else np.zeros_like(self._left)

    def _addable_and_needed(self) -> tuple[ByGroup, ByGroup, int]:
        """Return for each finest group whether it may give another arm and whether that lessens the lack, and the lack.

        The lack of a group is what its lower bound or its parts together still need, whichever is more. An arm lessens
        the lack of a group if it lessens that of its part, or if the lower bound asks for more than the parts. It
        may be added if every group above it, and the whole set, has room for it besides what it lacks.
        """
        addable, lessens, lack = (True, False, 0) if self.counts_only else self._within_groups()
        room, least = self._ranks.high - self._size, max(self._ranks.low - self._size, lack)
        lessens = lessens | (least > lack)
        return addable & (room > 0) & (lessens | (room > least)), lessens, least

    def _within_groups(self) -> tuple[ByGroup, ByGroup, int]:
        """Return the same without the bounds on the whole set."""
        part = np.arange(self._ranks.levels[0].lower.size)
        lack, addable, lessens = np.zeros_like(part), np.ones(part.size, dtype=bool), np.zeros(part.size, dtype=bool)
        for level, taken in zip(self._ranks.levels, self._taken, strict=True):
            own, room, group = level.lower - taken, level.upper - taken, level.of_finest
            parent = np.zeros_like(lack)
            parent[part] = group
            of_parts = np.bincount(parent, weights=lack, minlength=own.size).astype(np.int64)
            lack, lessens, part = np.maximum(own, of_parts), lessens | (own > of_parts)[group], group
            addable = addable & (room > 0)[group] & (lessens | (room > lack)[group])
        return addable, lessens, int(lack.sum())
