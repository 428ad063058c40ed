"""The best set of pairs under capacities of rows and columns: what `Assignment` asks for.

scipy is imported where it is used: its solvers take longer to import than all of armful, and most users need none.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray
from armful.constraints.programs import Rows, SparseMatrix, for_highs, maximise, sparse
from armful.constraints.selection import NO_ARMS

LARGEST_MATRIX = 4_000_000
"""Entries of a dense matrix of scores; beyond this a linear programme over the pairs that are there."""


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
        """The capacities that are left beside the chosen arms; negative where there are too many."""
        used_rows = np.bincount(self.row[chosen], minlength=self.row_capacity.size)
        used_columns = np.bincount(self.column[chosen], minlength=self.column_capacity.size)
        return replace(
            self,
            row_capacity=self.row_capacity - used_rows,
            column_capacity=self.column_capacity - used_columns,
        )

    def transposed(self) -> "Pairs":
        """Rows as columns and columns as rows."""
        return Pairs(self.column, self.row, self.column_capacity, self.row_capacity, self.every_column, self.every_row)


def best_pairs(pairs: Pairs, scores: FloatArray, arms: IntArray, rng: Generator) -> IntArray | None:
    """The best of these arms `(n,)`, in no particular order; None if `every_row` or `every_column` cannot be met."""
    must = pairs.every_row or pairs.every_column
    open_ = (pairs.row_capacity[pairs.row[arms]] > 0) & (pairs.column_capacity[pairs.column[arms]] > 0)
    arms = arms[open_]
    wanted = arms if must else arms[scores[arms] > 0]
    if wanted.size == 0:
        short = (pairs.every_row and pairs.row_capacity.any()) or (pairs.every_column and pairs.column_capacity.any())
        chosen: IntArray | None = None if short else NO_ARMS
    else:
        chosen = (_by_augmenting_paths if _fits_a_matrix(pairs) else _by_simplex)(pairs, scores, wanted, rng)
    if chosen is None or must:
        return chosen
    return np.concatenate([chosen, _that_fit(pairs.left(chosen), arms[scores[arms] == 0], rng)])


def largest_number(pairs: Pairs) -> int:
    """How many arms can be chosen at most, by a maximum flow from rows to columns."""
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
    """Rows that cannot all be used as often as they must, their columns, and how many pairs they can have (Hall 1935).

    Start from a row that a maximum flow leaves short, and follow what could be rerouted: nothing that is reached has
    room, and all that fills it is reached.
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


def _fits_a_matrix(pairs: Pairs) -> bool:
    """Whether one side is used once only (else a pair could be used twice) and copies of all rows and columns fit."""
    rows, columns = np.maximum(pairs.row_capacity, 0), np.maximum(pairs.column_capacity, 0)
    once = rows.max() <= 1 or columns.max() <= 1
    return bool(once and rows.sum() * columns.sum() <= LARGEST_MATRIX and rows.size * columns.size <= LARGEST_MATRIX)


def _by_augmenting_paths(pairs: Pairs, scores: FloatArray, arms: IntArray, rng: Generator) -> IntArray | None:
    """By scipy's linear_sum_assignment, with as many copies of a row or column as its capacity says."""
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415

    n_rows, n_columns = pairs.row_capacity.size, pairs.column_capacity.size
    rows = rng.permutation(np.repeat(np.arange(n_rows), pairs.row_capacity))
    columns = rng.permutation(np.repeat(np.arange(n_columns), pairs.column_capacity))
    if (pairs.every_row and rows.size > columns.size) or (pairs.every_column and columns.size > rows.size):
        return None
    arms = rng.permutation(arms)
    arms = arms[np.argsort(scores[arms], kind="stable")]  # of parallel arms the best is written last
    arm_of = np.full((n_rows, n_columns), -1)
    arm_of[pairs.row[arms], pairs.column[arms]] = arms
    arm_of = arm_of[np.ix_(rows, columns)]
    nobody = -np.inf if pairs.every_row or pairs.every_column else 0.0
    matrix = np.where(arm_of >= 0, scores[arm_of], nobody)
    try:
        chosen: IntArray = arm_of[linear_sum_assignment(matrix, maximize=True)]
    except ValueError:  # infeasible
        return None
    return chosen[chosen >= 0]


def _by_simplex(pairs: Pairs, scores: FloatArray, arms: IntArray, rng: Generator) -> IntArray | None:
    """By the dual simplex of HiGHS, which ends at a vertex, and vertices are sets."""
    from scipy.optimize import linprog  # noqa: PLC0415

    arms = rng.permutation(arms)
    n_rows, n_columns = pairs.row_capacity.size, pairs.column_capacity.size
    places = np.arange(arms.size)
    row_of = np.concatenate([pairs.row[arms], n_rows + pairs.column[arms]])
    matrix = sparse((np.ones(2 * arms.size), (row_of, np.tile(places, 2))), shape=(n_rows + n_columns, arms.size))
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
    answer = maximise(scores[arms], Rows(matrix, np.where(exactly, capacity, 0.0), capacity), rng)
    return None if answer.chosen is None else arms[answer.chosen]


def _that_fit(pairs: Pairs, arms: IntArray, rng: Generator) -> IntArray:
    """Arms in random order while they fit: in each pass those that come first in both their row and their column."""
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
    """A source to each row, rows to columns, each column to a sink; the numbers of source and sink."""
    n_rows, n_columns = pairs.row_capacity.size, pairs.column_capacity.size
    source, sink = n_rows + n_columns, n_rows + n_columns + 1
    rows, columns = np.arange(n_rows), n_rows + np.arange(n_columns)
    begins = np.concatenate([pairs.row, np.full(n_rows, source), columns])
    ends = np.concatenate([n_rows + pairs.column, rows, np.full(n_columns, sink)])
    numbers = np.concatenate([np.ones(pairs.row.size), pairs.row_capacity, pairs.column_capacity])
    return _counted(numbers.astype(np.int32), begins, ends, sink + 1), source, sink


def _counted(numbers: NDArray[np.int32], begins: IntArray, ends: IntArray, size: int) -> SparseMatrix:
    """A sparse square matrix of sums: parallel arms count as many."""
    return sparse((numbers, (begins, ends)), shape=(size, size))
