"""The knapsack problem in integers, exactly, by dynamic programming over the sets that may still become the best.

A set is written as its difference from the break set: arms in falling order of value per cost while they fit (Dantzig
1957). Arms are decided from the break outwards. A state is what was decided so far, as cost and value beyond those of
the break set. It is dropped when another costs no more and has no less value (Nemhauser and Ullmann 1969), and when the
linear relaxation of the undecided arms does not lift it above the best set known (Pisinger 1997); completing states
greedily finds better sets on the way. States are a list, or a table with an entry for every cost where that is expected
to be faster. All sums are of integers, so nothing is lost to rounding; bounds are floats and get a margin.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray
from armful.constraints._knapsack_items import Items, Listed, Moved, Side, Step, Tabled

Mask = NDArray[np.bool_]

ROUNDING = 2.0**-48
"""How far a bound, a float, may be off, relative to the sum of all values."""

CELLS, FEW_CELLS = 16, 20_000
"""A table of this many entries for each state of the list, and this many more, is as fast as the list."""

CELLS_OF_A_TABLE = 64
"""A table may have this many times as many entries, over all its steps, as there may be states: each leaves a bit."""

MANY_STEPS = 32
"""A list too long for this many more steps, or for all that are left, is given up at once."""


class States:
    """The dynamic programme for positive `values` and `costs` `(n_arms,)`; their sums and `capacity` are below 2^60."""

    def __init__(self, values: IntArray, costs: IntArray, capacity: int) -> None:
        density = values / costs
        order = (-density).argsort(kind="stable")
        spent = costs[order].cumsum()
        n_fit = int(spent.searchsorted(capacity, side="right"))
        self.taken = np.zeros(values.size, dtype=bool)
        self.taken[order[:n_fit]] = True
        self.left = capacity - (int(spent[n_fit - 1]) if n_fit else 0)
        self.unit = float(density[order[n_fit]]) if n_fit < values.size else 0.0
        self.margin = ROUNDING * float(values.sum()) - 1.0  # a better set is better by 1 or more
        filled = order[n_fit:][costs[order[n_fit:]] <= self.left][:1]
        self.best = int(values[filled].sum())
        self.loss = np.abs(values - self.unit * costs)
        open_ = np.flatnonzero(self.loss <= self._most())
        self.items = Items.of(open_, values, costs, self.taken)
        self.values, self.costs = self.items.values, self.items.costs
        density = self.values / self.costs
        rising = density.argsort(kind="stable")
        inside = self.taken[self.items.arms[self.items.starts[rising]]]
        self.inside = Side(rising[inside], self.values, self.costs)
        self.outside = Side(rising[~inside][::-1], self.values, self.costs)
        self.history: list[Step] = []
        self.best_state, self.best_rest, self.best_arms = (0, 0), order[:0], filled
        self.cost, self.value = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
        self._next_try = 1

    def search(self, most_states: int, late: Callable[[], bool] = lambda: False) -> bool:
        """Decide all items, until there were so many states in all or it is late; return whether the best is proved."""
        n_states, n_bounded = 0, 0
        while True:
            if self.cost.size > n_bounded or self._n_left() == 0:
                self._bound()
                n_bounded = self.cost.size + self.cost.size // 4 + 4
            if self.cost.size == 0 or self._n_left() == 0:
                return True
            done = self._by_table(CELLS_OF_A_TABLE * (most_states - n_states), late)
            if done is not None:
                return done
            if n_states + self.cost.size * min(self._n_left(), MANY_STEPS) > most_states or late():
                return False
            n_states += self.cost.size
            self._decide(*self._next())

    def chosen(self) -> Mask:
        """Return the best set known."""
        changed = [*self.best_rest.tolist()]
        n_steps, state = self.best_state
        for step in reversed(self.history[:n_steps]):
            state, is_changed = step.before(state)
            if is_changed:
                changed.append(step.item)
        arms = np.append(self.items.members(np.array(changed, dtype=np.int64)), self.best_arms)
        chosen = self.taken.copy()
        chosen[arms] = ~chosen[arms]
        return chosen

    def undecided(self) -> Mask:
        """Return which arms could be changed in a set that is as good as the best known."""
        return self.loss <= self._most() + 1

    def _most(self) -> float:
        """Return how much of the relaxation a better set may lose at most."""
        return self.unit * self.left - self.best + self.margin

    def _n_left(self) -> int:
        return self.inside.n_left() + self.outside.n_left()

    def _next(self) -> tuple[int, int]:
        """Return the next item, of density nearest to the break's, and whether it comes in (1) or goes out (-1)."""
        inside, outside = self.inside, self.outside
        i, j = inside.first, outside.first
        come = i == inside.items.size or (
            j < outside.items.size and self.unit - outside.slopes[j] <= inside.slopes[i] - self.unit
        )
        side = outside if come else inside
        side.first += 1
        return side.items.item(side.first - 1), 1 if come else -1

    def _decide(self, item: int, sign: int) -> None:
        """Branch all states into those without and with a change of this item, and drop the dominated."""
        n_before = self.cost.size
        cost = np.concatenate([self.cost, self.cost + sign * self.costs[item]])
        value = np.concatenate([self.value, self.value + sign * self.values[item]])
        rising = cost.argsort(kind="stable")
        cost, value = cost[rising], value[rising]
        kept = np.concatenate([rising[:0], [0], 1 + np.flatnonzero(value[1:] > np.maximum.accumulate(value)[:-1])])
        cost = cost[kept]
        same = cost[1:] == cost[:-1]  # of equal cost the last has the largest value
        if same.any():
            last = np.append(~same, True)
            cost, kept = cost[last], kept[last]
        self.cost, self.value = cost, value[kept]
        self.history.append(Listed(item, n_before, rising[kept].astype(np.int32)))

    def _bound(self) -> None:
        """Drop the states whose relaxation is no better than the best set."""
        kept = np.flatnonzero(self._bounds(self.cost, self.value, None) + self.margin >= self.best)
        if kept.size < self.cost.size:
            self.cost, self.value = self.cost[kept], self.value[kept]
            last = self.history[-1] if self.history else None
            if isinstance(last, Listed):
                self.history[-1] = last._replace(positions=last.positions[kept])
            elif isinstance(last, Moved):
                self.history[-1] = last._replace(costs=last.costs[kept])

    def _bounds(self, cost: IntArray, value: IntArray, states: IntArray | None) -> FloatArray:
        """Return the relaxation of each state, in rising order of cost; greedy completion may find a better set.

        States that can never fit come last and are left out. The history numbers them by `states`, or else 0, 1, ...
        """
        inside, outside = self.inside, self.outside
        cost_sums, value_sums = outside.cost_sums, outside.value_sums
        fit = int(cost.searchsorted(self.left, side="right"))
        room = int(cost_sums[outside.first]) + self.left - cost[:fit]
        more = cost_sums.searchsorted(room, side="right") - 1
        low = value[:fit] + (value_sums[more] - value_sums[outside.first])
        high: FloatArray = low + outside.slopes[more] * (room - cost_sums[more])
        less = more[:0]
        if fit < cost.size:
            cost_sums, value_sums = inside.cost_sums, inside.value_sums
            excess = int(cost_sums[inside.first]) - self.left + cost[fit:]
            less = cost_sums.searchsorted(excess, side="left")
            less = less[: int(less.searchsorted(inside.items.size, side="right"))]
            low_less = value[fit : fit + less.size] - (value_sums[less] - value_sums[inside.first])
            high_less = low_less + inside.slopes[less - 1] * (cost_sums[less] - excess[: less.size])
            low, high = np.concatenate([low, low_less]), np.concatenate([high, high_less])
        i = int(low.argmax()) if low.size else 0
        if low.size and low[i] > self.best:
            rest = outside.items[outside.first : more[i]] if i < fit else inside.items[inside.first : less[i - fit]]
            self._found(int(low[i]), i if states is None else int(states[i]), rest)
        return high

    def _found(self, value: int, state: int, rest: IntArray) -> None:
        """Keep a better set, a state and further items that are changed; drop the items that it decides."""
        self.best, n_steps = value, len(self.history)
        if n_steps:
            state, is_changed = self.history[-1].before(state)
            n_steps -= 1
            if is_changed:
                rest = np.append(rest, self.history[-1].item)
        self.best_state, self.best_rest, self.best_arms = (n_steps, state), rest, rest[:0]
        self.inside, self.outside = (self._undecided(side) for side in (self.inside, self.outside))

    def _undecided(self, side: Side) -> Side:
        """Return the items whose change costs no more than the relaxation is above the best set."""
        items = side.items[side.first :]
        open_ = np.abs(self.values[items] - self.unit * self.costs[items]) <= self._most()
        return side if open_.all() else Side(items[open_], self.values, self.costs)

    def _windows(self) -> tuple[IntArray, IntArray]:
        """Return the lowest and the highest cost that can matter after each of the next items, both `(n_left,)`.

        A unit of budget that is left, or still to be saved, loses what the densities to come differ from the break's;
        one that is left, no more than its price.
        """
        sides = self.outside, self.inside
        distance = np.concatenate([np.abs(side.slopes[side.first : -1] - self.unit) for side in sides])
        come, go = (self.costs[side.items[side.first :]] for side in sides)
        order = distance.argsort(kind="stable")
        came = np.concatenate([come, np.zeros_like(go)])[order].cumsum()
        gone = np.concatenate([np.zeros_like(come), go])[order].cumsum()
        most, loss = max(self._most(), 1.0), distance[order] - ROUNDING * self.unit
        left, to_save = (
            np.minimum(most / np.maximum(per_unit, 2.0**-60 * most) + 1, 2.0**60).astype(np.int64)
            for per_unit in (np.minimum(loss, (1 - ROUNDING) * self.unit), loss)
        )
        lowest = np.maximum(self.cost[0] - gone, self.left - left)
        highest = np.minimum(self.cost[-1] + came, self.left + np.minimum(to_save, go.sum() - gone))
        return lowest, np.maximum(highest, lowest)

    def _by_table(self, most_cells: int, late: Callable[[], bool]) -> bool | None:
        """Decide items with a table of values by cost, if that is faster; None if it is not, or no longer."""
        n_cells = CELLS * self.cost.size + FEW_CELLS
        if self.cost.size < self._next_try or self.cost[-1] - self.cost[0] > n_cells:
            return None
        self._next_try = 2 * self.cost.size
        lowest, highest = self._windows()
        base, top = int(min(lowest.min(), self.cost[0])), int(max(highest.max(), self.cost[-1]))
        total = float((highest - lowest).astype(np.float64).sum())
        if total > min(n_cells * lowest.size, most_cells) or top - base > 2**25:
            return None
        bits = 29 if float(self.values.sum()) < 2**29 else 60
        nothing = -3 * 2**bits  # adding all values to it, or taking one away, leaves it below all states
        table = np.full(top - base + 1, nothing, dtype=np.int32 if bits == 29 else np.int64)
        scratch = np.empty_like(table)
        table[self.cost - base] = self.value
        self.history.append(Moved(self.cost, into_table=True))
        first, last, step, period = int(self.cost[0]) - base, int(self.cost[-1]) - base, 0, 12
        while True:
            if step in (period, lowest.size):
                positions = first + np.flatnonzero(table[first : last + 1] > -2 * 2**bits)
                cost, value = positions + base, table[positions].astype(np.int64)
                high = self._bounds(cost, value, cost)
                kept = np.flatnonzero(high + self.margin >= self.best)
                if kept.size == 0 or self._n_left() == 0:
                    return True
                if late():
                    return False
                table[first : last + 1] = nothing
                self.cost, self.value = cost[kept], value[kept]
                if CELLS * kept.size + FEW_CELLS < (self.cost[-1] - self.cost[0]) // 4:
                    self.history.append(Moved(self.cost, into_table=False))
                    return None
                table[positions[kept]] = value[kept]
                first, last, step, period = int(positions[kept[0]]), int(positions[kept[-1]]), 0, min(2 * period, 64)
                lowest, highest = self._windows()
            item, sign = self._next()
            shift, gain = sign * self.costs.item(item), sign * self.values.item(item)
            least, most = lowest.item(step) - base, highest.item(step) - base
            step += 1
            begin, end = max(first + shift, least), min(last + shift, most) + 1
            if begin < end:
                moved = np.add(table[begin - shift : end - shift], gain, out=scratch[begin:end])
                entries = table[begin:end]
                changed = moved > entries
                np.maximum(moved, entries, out=entries)
                self.history.append(Tabled(item, shift, begin + base, end - begin, np.packbits(changed)))
                first, last = min(first, begin), max(last, end - 1)
            first, last = max(first, least), min(last, most)
