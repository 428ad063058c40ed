"""Sets that grow arm by arm and can always be completed to an allowed one: what greedy objectives need."""

import numpy as np

from armful.checks import IntArray
from armful.constraints._ranks import BoolArray, GroupBounds, Ranks


class Growth:
    """A set that begins empty and grows within the bounds of `ranks`, of `n_arms` arms."""

    def __init__(self, ranks: Ranks, n_arms: int) -> None:
        self.counts_only = not ranks.levels
        n_finest = 1 if self.counts_only else ranks.levels[0].lower.size
        total = GroupBounds(np.zeros(n_finest, dtype=np.int64), np.array([ranks.low]), np.array([ranks.high]))
        self._levels = [*ranks.levels, total]
        self._finest = np.zeros(n_arms, dtype=np.int64) if ranks.of_arm is None else ranks.of_arm
        self._taken = [np.zeros_like(level.lower) for level in self._levels]
        self._left = np.ones(n_arms, dtype=bool)
        self._groups = self._addable_and_needed()

    def add(self, arm: int) -> None:
        """Add an arm."""
        self._left[arm] = False
        for level, taken in zip(self._levels, self._taken, strict=True):
            taken[level.of_finest[self._finest[arm]]] += 1
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

    def _arms_of(self, groups: BoolArray) -> BoolArray:
        return self._left if groups.all() else self._left & groups[self._finest]

    def _addable_and_needed(self) -> tuple[BoolArray, BoolArray, int]:
        """Return for each finest group whether it may give another arm and whether that lessens the lack, and the lack.

        The lack of a group is what its lower bound or its parts together still need, whichever is more. An arm lessens
        the lack of a group if it lessens that of its part, or if the lower bound asks for more than the parts. It
        may be added if every group above it has room for it besides what it lacks.
        """
        lack, finer = np.zeros(0, dtype=np.int64), None
        addable = lessens = np.zeros(self._levels[0].of_finest.size, dtype=bool)
        for level, taken in zip(self._levels, self._taken, strict=True):
            own, room, group = np.maximum(level.lower - taken, 0), level.upper - taken, level.of_finest
            if finer is None:
                lack, lessens, addable = own, (own > 0)[group], np.ones_like(addable)
            else:
                parents = np.zeros_like(finer.lower)
                parents[finer.of_finest] = group
                of_parts = np.bincount(parents, weights=lack, minlength=own.size).astype(np.int64)
                lack, lessens = np.maximum(own, of_parts), lessens | (own > of_parts)[group]
            addable = addable & (room > 0)[group] & (lessens | (room > lack)[group])
            finer = level
        return addable, lessens, int(lack[0])
