"""Sets under bounds on groups that grow arm by arm and can always be completed."""

from collections.abc import Sequence

import numpy as np

from armful.checks import IntArray
from armful.constraints._groups import Groups, Level, parents_of
from armful.constraints._incremental import BoolArray


class GroupGrowth:
    """Bounds on groups within groups; `levels` from the finest to the coarsest."""

    counts_only = False

    def __init__(self, levels: Sequence[Level], low: int, high: int) -> None:
        n_arms = levels[0].groups.of_arm.size
        everything = Level(
            # The whole as one more level, so that the total is a bound like the others.
            groups=Groups(["all"], np.zeros(n_arms, dtype=np.int64)),
            lower=np.array([low]),
            upper=np.array([high]),
        )
        self._levels = [*levels, everything]
        self._taken = [np.zeros(len(level.groups.labels), dtype=np.int64) for level in self._levels]
        self._parents = [
            parents_of(finer, coarser) for finer, coarser in zip(self._levels, self._levels[1:], strict=False)
        ]
        self._left = np.ones(n_arms, dtype=bool)

    def add(self, arm: int) -> None:
        """Take an arm."""
        self._left[arm] = False
        for level, taken in zip(self._levels, self._taken, strict=True):
            taken[level.groups.of_arm[arm]] += 1

    def close(self, arms: IntArray) -> None:
        """Never take these."""
        self._left[arms] = False

    def open(self) -> BoolArray:
        """The arms after which every bound can still be met."""
        return self._left & self._open_and_lessening()[0][self._levels[0].groups.of_arm]

    def wanted(self) -> BoolArray | None:
        """The arms that lessen what is still lacking; None when nothing is."""
        is_open, lessens, lack = self._open_and_lessening()
        return self._left & (is_open & lessens)[self._levels[0].groups.of_arm] if lack else None

    def _open_and_lessening(self) -> tuple[BoolArray, BoolArray, int]:
        """For each finest group: may it give another arm, would that lessen the lack of the whole; and that lack.

        The lack of a group is what its lower bound or its parts together still need, whichever is more. An arm lessens
        the lack of a group if it lessens that of its part, or if the lower bound asks for more than the parts. It
        may be added if every group above it has room for it besides what it lacks.
        """
        first = self._levels[0]
        lack = np.maximum(first.lower - self._taken[0], 0)
        room = first.upper - self._taken[0]
        group = np.arange(lack.size)  # of each finest group, at the level looked at
        lessens = lack > 0
        is_open = (room > 0) & (lessens | (room > lack))
        for level, taken, parents in zip(self._levels[1:], self._taken[1:], self._parents, strict=True):
            own = np.maximum(level.lower - taken, 0)
            of_parts = np.bincount(parents, weights=lack, minlength=own.size).astype(np.int64)
            lack, room, group = np.maximum(own, of_parts), level.upper - taken, parents[group]
            lessens = lessens | (own > of_parts)[group]
            is_open = is_open & (room > 0)[group] & (lessens | (room > lack)[group])
        return is_open, lessens, int(lack[0])
