"""Items of the dynamic programme of the knapsack, on both sides of the break, and its steps for backtracking."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray


class Items(NamedTuple):
    """Arms, or several equal arms taken as one; item i is `arms[starts[i] : starts[i] + counts[i]]`."""

    values: IntArray
    costs: IntArray
    arms: IntArray
    starts: IntArray
    counts: IntArray

    @classmethod
    def of(cls, arms: IntArray, values: IntArray, costs: IntArray, taken: NDArray[np.bool_]) -> "Items":
        """Return, for equal arms, one item with 1 of them, with 2, with 4 and so on: these make any number.

        An item is within the break set `taken` `(n_arms,)` or outside it.
        """
        arms = arms[np.lexsort((taken[arms], values[arms], costs[arms]))]
        v, c, t = values[arms], costs[arms], taken[arms]
        differ = (v[1:] != v[:-1]) | (c[1:] != c[:-1]) | (t[1:] != t[:-1])
        begins = np.flatnonzero(np.concatenate([np.ones(min(arms.size, 1), dtype=bool), differ]))
        left = np.diff(np.append(begins, arms.size))
        size, starts, counts = 1, [begins[:0]], [begins[:0]]
        while begins.size:
            n = np.minimum(left, size)
            starts.append(begins)
            counts.append(n)
            begins, left, size = (begins + n)[left > n], (left - n)[left > n], 2 * size
        start, count = np.concatenate(starts), np.concatenate(counts)
        return cls(v[start] * count, c[start] * count, arms, start, count)

    def members(self, items: IntArray) -> IntArray:
        """Return the arms of these items."""
        begins, counts = self.starts[items], self.counts[items]
        within = np.arange(int(counts.sum())) - np.repeat(counts.cumsum() - counts, counts)
        arms: IntArray = self.arms[np.repeat(begins, counts) + within]
        return arms


class Side:
    """Items on one side of the break, from the break outwards; `first` is the first that is undecided."""

    def __init__(self, items: IntArray, values: IntArray, costs: IntArray) -> None:
        zero = np.zeros(1, dtype=np.int64)
        self.items, self.first = items, 0
        self.slopes: FloatArray = np.append(values[items] / costs[items], 0.0)
        self.cost_sums: IntArray = np.concatenate([zero, costs[items].cumsum()])
        self.value_sums: IntArray = np.concatenate([zero, values[items].cumsum()])

    def n_left(self) -> int:
        """Return how many items are undecided."""
        return self.items.size - self.first


class Listed(NamedTuple):
    """A step of a list of states: positions below `n_before` are without the item, others with it."""

    item: int
    n_before: int
    positions: NDArray[np.int32]

    def before(self, state: int) -> tuple[int, bool]:
        """Return the state before this one, and whether the item was changed."""
        position = int(self.positions[state])
        return (position, False) if position < self.n_before else (position - self.n_before, True)


class Tabled(NamedTuple):
    """A step of a table of states: at which costs, from `start` on, the item was changed."""

    item: int
    shift: int
    start: int
    n_costs: int
    changed: NDArray[np.uint8]

    def before(self, state: int) -> tuple[int, bool]:
        """The cost before, and whether the item was changed."""
        position = state - self.start
        if 0 <= position < self.n_costs and self.changed[position // 8] >> (7 - position % 8) & 1:
            return state - self.shift, True
        return state, False


class Moved(NamedTuple):
    """A step between list and table: the costs of the states, moved into a table (`into_table`) or out of one."""

    costs: IntArray
    into_table: bool
    item: int = -1

    def before(self, state: int) -> tuple[int, bool]:
        """Return the position in the list for a cost, or the other way round."""
        return (int(self.costs.searchsorted(state)) if self.into_table else int(self.costs[state])), False


Step = Listed | Tabled | Moved
