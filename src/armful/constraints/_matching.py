"""The best set of pairs under capacities of rows and columns: the solver of `Assignment`.

scipy is imported where it is used: its solvers take longer to import than all of armful, and most users need none.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray
from armful.constraints._bipartite import Bipartite, best_matching
from armful.constraints._checks import NO_ARMS
from armful.constraints._milp import for_highs, maximise
from armful.constraints._milp_rows import LinearRows, SparseMatrix, sparse

MOST_COPIES = 4_000_000
"""Pairs of copies of rows and columns; with more of them, a linear program over the pairs themselves is solved."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Arm i joins `row[i]` and `column[i]`, numbers from 0; capacities `(n_rows,)` and `(n_columns,)`."""

    row: IntArray
    column: IntArray
    row_capacity: IntArray
    column_capacity: IntArray
    every_row: bool
    every_column: bool

    def left(self, chosen: IntArray) -> "Pairs":
        """Return the capacities that the chosen arms leave; negative where there are too many."""
        used_rows = np.bincount(self.row[chosen], minlength=self.row_capacity.size)
        used_columns = np.bincount(self.column[chosen], minlength=self.column_capacity.size)
        return replace(
            self, row_capacity=self.row_capacity - used_rows, column_capacity=self.column_capacity - used_columns
        )

    @property
    def needs_some(self) -> bool:
        """Whether the empty set is not allowed."""
        return bool((self.every_row and self.row_capacity.any()) or (self.every_column and self.column_capacity.any()))

    def trimmed(self, arms: IntArray) -> "Pairs":
        """Return the same for these arms alone: a capacity that need not be used is at most the number of arms."""
        rows = np.bincount(self.row[arms], minlength=self.row_capacity.size)
        columns = np.bincount(self.column[arms], minlength=self.column_capacity.size)
        return replace(
            self,
            row_capacity=self.row_capacity if self.every_row else np.minimum(self.row_capacity, rows),
            column_capacity=self.column_capacity if self.every_column else np.minimum(self.column_capacity, columns),
        )

    def transposed(self) -> "Pairs":
        """Return the same with rows and columns exchanged."""
        return Pairs(self.column, self.row, self.column_capacity, self.row_capacity, self.every_column, self.every_row)


class Matcher:
    """Finds the best of some arms, by default of all; what depends on rows and columns only is computed once."""

    def __init__(self, pairs: Pairs, arms: IntArray | None = None) -> None:
        arms = np.arange(pairs.row.size) if arms is None else arms
        open_ = (pairs.row_capacity[pairs.row[arms]] > 0) & (pairs.column_capacity[pairs.column[arms]] > 0)
        self.arms = arms[open_]
        self.pairs = pairs.trimmed(self.arms)
        self.must = pairs.every_row or pairs.every_column
        order = np.lexsort((pairs.column[self.arms], pairs.row[self.arms]))
        self._by_pair = self.arms[order]
        row, column = pairs.row[self._by_pair], pairs.column[self._by_pair]
        first = np.ones(row.size, dtype=np.bool_)
        first[1:] = (row[1:] != row[:-1]) | (column[1:] != column[:-1])
        self._firsts, self._pair = np.flatnonzero(first), np.cumsum(first) - 1
        self._graph, self._pair_of_edge = _copied(self.pairs, row[first], column[first])
        self._as_given = self._pair_of_edge is None and bool(first.all()) and self._is_all(pairs.row.size)

    def _is_all(self, n_arms: int) -> bool:
        """Return whether these are all arms, in rising order of row, then column: arm i is then edge i."""
        return self._by_pair.size == n_arms and bool((self._by_pair[1:] > self._by_pair[:-1]).all())

    def best(self, scores: FloatArray, rng: Generator) -> IntArray | None:
        """Return the best arms, in no particular order; None if `every_row` or `every_column` cannot be met."""
        if self.arms.size == 0:
            return None if self.pairs.needs_some else NO_ARMS
        chosen = self._by_simplex(scores, rng) if self._graph is None else self._by_matching(self._graph, scores, rng)
        if chosen is None or self.must:
            return chosen
        nothing = self.arms[scores[self.arms] == 0]
        return np.concatenate([chosen, _that_fit(self.pairs.left(chosen), nothing, rng)]) if nothing.size else chosen

    def _by_simplex(self, scores: FloatArray, rng: Generator) -> IntArray | None:
        arms = self.arms if self.must else self.arms[scores[self.arms] > 0]
        return _by_simplex(self.pairs, scores, arms, rng) if arms.size else NO_ARMS

    def _by_matching(self, graph: Bipartite, scores: FloatArray, rng: Generator) -> IntArray | None:
        if self._as_given:
            return best_matching(graph, scores, rng)
        arms = self._by_pair if self._firsts.size == self._pair.size else self._best_of_parallel(scores, rng)
        arm_of_edge = arms if self._pair_of_edge is None else arms[self._pair_of_edge]
        edges = best_matching(graph, scores[arm_of_edge], rng)
        return None if edges is None else arm_of_edge[edges]

    def _best_of_parallel(self, scores: FloatArray, rng: Generator) -> IntArray:
        """Return the best arm of each pair of row and column, ties at random."""
        values = scores[self._by_pair]
        best = np.maximum.reduceat(values, self._firsts)[self._pair] == values
        tie_keys = np.where(best, rng.permutation(values.size), -1)
        arms: IntArray = self._by_pair[np.maximum.reduceat(tie_keys, self._firsts)[self._pair] == tie_keys]
        return arms


def largest_number(pairs: Pairs) -> int:
    """Return how many arms can be chosen at most, by a maximum flow from rows to columns."""
    from scipy.sparse.csgraph import maximum_bipartite_matching, maximum_flow  # noqa: PLC0415

    if pairs.row_capacity.max() <= 1 and pairs.column_capacity.max() <= 1:
        open_ = (pairs.row_capacity[pairs.row] > 0) & (pairs.column_capacity[pairs.column] > 0)
        ones = np.ones(int(open_.sum()), dtype=np.int32)
        graph = _counted(
            ones, pairs.row[open_], pairs.column[open_], max(pairs.row_capacity.size, pairs.column_capacity.size)
        )
        return int((maximum_bipartite_matching(graph, perm_type="column") >= 0).sum())
    network, source, sink = _network(pairs)
    return int(maximum_flow(network, source, sink).flow_value)


def too_few_columns(pairs: Pairs) -> tuple[list[int], list[int], int]:
    """Return rows that cannot be used as often as they must, their columns, and how many pairs these allow.

    There are such rows if a full assignment is impossible (Hall 1935). They are reached, in the residual graph of a
    maximum flow, from a row that it leaves short.
    """
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow  # noqa: PLC0415

    network, source, sink = _network(pairs)
    flow = sparse(maximum_flow(network, source, sink).flow)
    n_rows = pairs.row_capacity.size
    given = flow[[source]].toarray().ravel()[:n_rows]
    short = int(np.flatnonzero(given < pairs.row_capacity)[0])
    residual = sparse((network - flow)[:source, :source])
    residual.eliminate_zeros()
    reached = np.sort(breadth_first_order(residual, short, return_predecessors=False))
    rows = reached[reached < n_rows]
    columns = np.unique(pairs.column[np.isin(pairs.row, rows)])
    return rows.tolist(), columns.tolist(), int(given[rows].sum())


def _copied(pairs: Pairs, row: IntArray, column: IntArray) -> tuple[Bipartite | None, IntArray | None]:
    """Return a graph with as many copies of a row or column as its capacity, and the pair that each edge stands for.

    `row` and `column` are the distinct pairs in rising order. If edge i is pair i, None is returned for the pairs. The
    graph is None where both sides of a pair could be used twice, or where there are too many copies.
    """
    rows, columns = pairs.row_capacity, pairs.column_capacity
    number = rows[row] * columns[column]
    if (rows.max() > 1 and columns.max() > 1) or number.sum() > max(row.size, MOST_COPIES):
        return None, None
    pair = np.repeat(np.arange(row.size), number)
    copy = np.arange(pair.size) - np.repeat(np.cumsum(number) - number, number)
    first_row, first_column = np.cumsum(rows) - rows, np.cumsum(columns) - columns
    row_copy = first_row[row[pair]] + copy % rows[row[pair]]
    column_copy = first_column[column[pair]] + copy // rows[row[pair]]
    sizes = int(rows.sum()), int(columns.sum())
    every = pairs.every_row, pairs.every_column
    if every == (False, True):
        row_copy, column_copy, sizes, every = column_copy, row_copy, sizes[::-1], every[::-1]
    order = np.lexsort((column_copy, row_copy))
    graph = Bipartite(*sizes, row_copy[order], column_copy[order], *every)
    in_order = pair.size == row.size and bool((order[1:] > order[:-1]).all())
    return graph, None if in_order else pair[order]


def _by_simplex(pairs: Pairs, scores: FloatArray, arms: IntArray, rng: Generator) -> IntArray | None:
    """Return the best arms by the dual simplex of HiGHS, which ends at a vertex, and vertices are sets."""
    from scipy.optimize import linprog  # noqa: PLC0415

    arms = rng.permutation(arms)
    n_rows, n_columns = pairs.row_capacity.size, pairs.column_capacity.size
    row_of = np.concatenate([pairs.row[arms], n_rows + pairs.column[arms]])
    matrix = sparse(
        (np.ones(2 * arms.size), (row_of, np.tile(np.arange(arms.size), 2))), shape=(n_rows + n_columns, arms.size)
    )
    capacity = np.concatenate([pairs.row_capacity, pairs.column_capacity]).astype(np.float64)
    exactly = np.repeat([pairs.every_row, pairs.every_column], [n_rows, n_columns])
    order = rng.permutation(capacity.size)
    equal, at_most = order[exactly[order]], order[~exactly[order]]
    result: Any = linprog(
        -for_highs(scores[arms], rng)[0],
        A_ub=matrix[at_most] if at_most.size else None,
        b_ub=capacity[at_most] if at_most.size else None,
        A_eq=matrix[equal] if equal.size else None,
        b_eq=capacity[equal] if equal.size else None,
        bounds=(0, 1),
        method="highs-ds",
    )
    if result.status == 2:
        return None
    if result.status == 0 and np.abs(result.x - np.rint(result.x)).max() < 1e-6:
        chosen: IntArray = arms[result.x > 0.5]
        return chosen
    answer = maximise(scores[arms], LinearRows(matrix, np.where(exactly, capacity, 0.0), capacity), rng)
    return None if answer.chosen is None else arms[answer.chosen]


def _that_fit(pairs: Pairs, arms: IntArray, rng: Generator) -> IntArray:
    """Return arms in random order while they fit: in each pass those that are first in their row and their column."""
    arms = rng.permutation(arms)
    added = [NO_ARMS]
    while arms.size:
        arms = arms[(pairs.row_capacity[pairs.row[arms]] > 0) & (pairs.column_capacity[pairs.column[arms]] > 0)]
        first = np.zeros(arms.size, dtype=int)
        for of_arm in (pairs.row[arms], pairs.column[arms]):
            first[np.unique(of_arm, return_index=True)[1]] += 1
        added.append(arms[first == 2])
        pairs, arms = pairs.left(arms[first == 2]), arms[first < 2]
    return np.concatenate(added)


def _network(pairs: Pairs) -> tuple[SparseMatrix, int, int]:
    """Return the flow network (source, rows, columns, sink), and the numbers of source and sink."""
    n_rows, n_columns = pairs.row_capacity.size, pairs.column_capacity.size
    source, sink = n_rows + n_columns, n_rows + n_columns + 1
    rows, columns = np.arange(n_rows), n_rows + np.arange(n_columns)
    begins = np.concatenate([pairs.row, np.full(n_rows, source), columns])
    ends = np.concatenate([n_rows + pairs.column, rows, np.full(n_columns, sink)])
    numbers = np.concatenate([np.ones(pairs.row.size), pairs.row_capacity, pairs.column_capacity])
    return _counted(numbers.astype(np.int32), begins, ends, sink + 1), source, sink


def _counted(numbers: NDArray[np.int32], begins: IntArray, ends: IntArray, size: int) -> SparseMatrix:
    """Return a sparse square matrix of sums: parallel arms are added up."""
    return sparse((numbers, (begins, ends)), shape=(size, size))
