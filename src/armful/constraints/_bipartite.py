"""The best matching in a bipartite graph, by scipy: dense or sparse, ties at random, proved to be the best.

scipy is imported where it is used: its solvers take longer to import than all of armful, and most users need none.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray
from armful.constraints._milp_rows import SparseMatrix, sparse

DENSE_SHARE = 8
"""A graph that has at least one in so many of the possible edges is solved as a dense matrix."""

SMALL_MATRIX = 30_000
"""A matrix with no more entries is solved as a dense one, however few edges there are."""

BITS = 8
"""Rounded weights have this many bits more than it takes to count rows and columns."""

ROUNDING = 2.0**-48
"""Dual values that differ by less than this, relative to the weights they are made of, are the same."""

ALMOST_NOTHING = 5e-324
"""Stands for a weight of 0, which scipy takes for no edge; nothing changes when it is added to a weight."""

SmallArray = NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Bipartite:
    """A bipartite graph; its edges (`row`, `column`, both `(n_edges,)`) are distinct and sorted by row, then column.

    `every_row` and `every_column` say whether each must be matched; if only one is set, it is `every_row`.
    """

    n_rows: int
    n_columns: int
    row: IntArray
    column: IntArray
    every_row: bool
    every_column: bool

    @cached_property
    def keys(self) -> IntArray:
        """The flat index of each edge in a dense matrix, `(n_edges,)`, rising."""
        return self.row * self.n_columns + self.column

    @cached_property
    def begins(self) -> IntArray:
        """Where the edges of each row begin, `(n_rows + 1,)`."""
        return np.searchsorted(self.row, np.arange(self.n_rows + 1))

    @property
    def is_dense(self) -> bool:
        """Whether a dense matrix is the faster way."""
        size = self.n_rows * self.n_columns
        return size <= max(SMALL_MATRIX, DENSE_SHARE * self.row.size)

    def part(self, edges: IntArray) -> "Bipartite":
        """Return the graph of some of the edges, in rising order, with rows and columns renumbered."""
        rows, row = np.unique(self.row[edges], return_inverse=True)
        columns, column = np.unique(self.column[edges], return_inverse=True)
        return Bipartite(rows.size, columns.size, row, column, self.every_row, self.every_column)

    def edges_at(self, rows: IntArray, columns: IntArray) -> IntArray:
        """Return the edges between these rows, which are distinct, and these columns, where there are any."""
        if self.row.size == self.n_rows * self.n_columns:
            return rows * self.n_columns + columns
        partner = np.full(self.n_rows, -1)
        partner[rows] = columns
        return np.flatnonzero(partner[self.row] == self.column)


def best_matching(graph: Bipartite, weights: FloatArray, rng: Generator) -> IntArray | None:
    """Return the edges of a matching with the largest sum of `weights` `(n_edges,)`; None if there is no matching.

    Where nothing must be matched, only edges of positive weight are taken. Rows and columns are numbered at random
    before scipy sees them, so that ties are broken at random.
    """
    if (graph.every_row and graph.n_rows > graph.n_columns) or (graph.every_column and graph.n_rows < graph.n_columns):
        return None
    chosen = (_dense if graph.is_dense else _sparse)(graph, weights, rng)
    return chosen if chosen is None or graph.every_row else chosen[weights[chosen] > 0]


def dual_values(graph: Bipartite, weights: FloatArray, chosen: IntArray) -> tuple[FloatArray, FloatArray] | None:
    """Return dual values of rows and columns that prove that the matching of these edges is the best, up to rounding.

    They do if `u + v >= weight` on every edge, with equality on those of the matching, and where rows and columns may
    be left out u and v are not negative, and 0 if unmatched. The least v are the lengths of the longest alternating
    paths to each column, found by modified policy iteration (Howard 1960, Puterman and Shin 1978): each column has the
    last edge of its path, the ends of all paths are summed by pointer doubling, and better last edges replace worse. It
    takes far fewer rounds than raising v edge by edge. None if there are none: then the matching is not the best.
    """
    unmatched, no_edge = graph.n_columns, graph.row.size  # where all paths begin, and the last edge of an empty one
    rows = graph.row.take(chosen)
    matched, owned = np.zeros(graph.n_rows), np.full(graph.n_rows, unmatched)
    matched[rows], owned[rows] = weights.take(chosen), graph.column.take(chosen)
    gain, source = np.zeros(no_edge + 1), np.full(no_edge + 1, unmatched)
    gain[:-1], source[:-1] = weights - matched.take(graph.row), owned.take(graph.row)
    begin, end, surely_gained = source[:-1], graph.column, gain[:-1] - ROUNDING * np.abs(gain[:-1])
    v, last = np.zeros(unmatched + 1), np.full(unmatched + 1, no_edge)
    doublings, all_doublings = max(3, unmatched.bit_length() - 6), unmatched.bit_length() + 1
    for turn in range(unmatched + 2):
        needed = v.take(begin)
        needed += surely_gained
        short = (needed > (v * (1 + ROUNDING)).take(end)).nonzero()[0]
        if short.size == 0:
            break
        short = short.take(needed.take(short).argsort())  # of several edges to a column the best is written last
        last[end.take(short)] = short
        length, before = gain.take(last), source.take(last)
        whole_paths = turn % 8 == 7
        for _ in range(all_doublings if whole_paths else doublings):
            length += length.take(before)
            before = before.take(before)
        if whole_paths and before.min() < unmatched:  # a cycle, along which a better matching can be had
            return None
        v = length + v.take(before)
    else:
        return None
    u, v = matched - v.take(owned), v[:-1]
    better_left_out = not graph.every_row and (u < -ROUNDING * np.abs(matched)).any()
    unmatched_value = chosen.size < graph.n_columns and np.delete(v, end.take(chosen)).any()
    return None if better_left_out or unmatched_value else (u, v)


def _dense(graph: Bipartite, weights: FloatArray, rng: Generator) -> IntArray | None:
    """By shortest augmenting paths in a dense matrix (Crouse 2016, Jonker and Volgenant 1987)."""
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415

    shape = (graph.n_rows, graph.n_columns)
    values = weights if graph.every_row else np.maximum(weights, 0.0)
    if weights.size == shape[0] * shape[1]:
        matrix = values.reshape(shape)
    else:
        matrix = np.full(shape, -np.inf if graph.every_row else 0.0)
        matrix.ravel()[graph.keys] = values
    rows, columns = rng.permutation(graph.n_rows), rng.permutation(graph.n_columns)
    try:
        i, j = linear_sum_assignment(matrix[rows].take(columns, axis=1), maximize=True)
    except ValueError:  # infeasible
        return None
    return graph.edges_at(rows[i], columns[j])


def _sparse(graph: Bipartite, weights: FloatArray, rng: Generator) -> IntArray | None:
    """By shortest augmenting paths from edge to edge (Jonker and Volgenant 1987).

    scipy's function for it is several times as fast on a square graph, where it begins with an auction. But that takes
    steps as small as differences of weights, and never ends when one is lost in rounding. So weights are first
    rounded to integers of some 20 bits. Dual values mostly prove that the best matching for these is the best. If
    not, dual values for the integers bound what any edge can be part of, and the few edges that
    could be part of a better matching are searched as they are, without an auction.
    """
    usable = None if graph.every_row else np.flatnonzero(weights > 0)
    if usable is not None and usable.size == 0:
        return usable
    bits = BITS + math.ceil(math.log2(graph.n_rows + graph.n_columns))
    weights = np.ldexp(weights, bits - math.frexp(float(np.abs(weights).max()))[1])  # sums cannot overflow
    whole = np.rint(weights)
    exact = bool((whole == weights).all())
    row, column = _renumbered(graph, rng, usable)
    chosen = duals = None
    for matrix, complete in _square_graphs(graph, row, column, whole if usable is None else whole[usable]):
        found = _matched(matrix, row, column, usable)
        if found is None:
            continue
        if exact and complete:
            return found
        chosen = found
        if dual_values(graph, weights, found) is not None:
            return found
        duals = dual_values(graph, whole, found)
        if duals is not None:
            break
    if chosen is None or exact:
        return chosen
    if duals is None:
        open_ = np.arange(weights.size) if usable is None else usable
    else:
        open_ = _open_edges(graph, weights, chosen, duals[1])
        if open_.size == 0:
            return chosen
    rest = graph.part(open_)
    row, column = _renumbered(rest, rng)
    found = _matched(_wide_graph(rest, row, column, weights[open_]), row, column, open_)
    return None if found is None else np.concatenate([np.setdiff1d(chosen, open_), found])


def _renumbered(graph: Bipartite, rng: Generator, edges: IntArray | None = None) -> tuple[SmallArray, SmallArray]:
    """Return rows and columns of edges, by default of all, with random numbers; those of 16 bits are sorted faster."""
    small = np.uint16 if graph.n_rows + graph.n_columns <= 2**16 else np.int32
    rows: SmallArray = rng.permutation(graph.n_rows).astype(small)
    columns: SmallArray = rng.permutation(graph.n_columns).astype(small)
    row, column = (graph.row, graph.column) if edges is None else (graph.row[edges], graph.column[edges])
    return rows.take(row), columns.take(column)


def _matched(matrix: SparseMatrix, row: SmallArray, column: SmallArray, edges: IntArray | None) -> IntArray | None:
    """Return those of the edges, by default of all, that are in the cheapest full matching of a matrix of costs."""
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching  # noqa: PLC0415

    try:
        partner = min_weight_full_bipartite_matching(matrix)[1]  # of each row, since there are no fewer columns
    except ValueError:  # there is none
        return None
    found: IntArray = (partner.take(row) == column).nonzero()[0]
    return found if edges is None else edges[found]


def _open_edges(graph: Bipartite, weights: FloatArray, chosen: IntArray, v: FloatArray) -> IntArray:
    """Return the edges in which a better matching than the chosen one can differ from it.

    With u such that `u + v >= weight` on every edge, no matching weighs more than all u and v together, and one
    with a certain edge no more than that less what the edge's u + v has over its weight. Of the edges that are left,
    only those on alternating cycles matter: where chosen edges lead from columns to rows, and the others from rows to
    columns, they join vertices that are strongly connected. One further vertex stands for being left out.
    """
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    u = np.full(graph.n_rows, -np.inf if graph.every_row else 0.0)
    firsts = graph.begins[:-1][np.diff(graph.begins) > 0]
    highest = np.maximum.reduceat(weights - v[graph.column], firsts)
    u[graph.row[firsts]] = np.maximum(u[graph.row[firsts]], highest)
    gap = u.sum() + v.sum() - weights[chosen].sum()
    gap += ROUNDING * (np.abs(u).sum() + np.abs(v).sum() + np.abs(weights[chosen]).sum())
    within = u[graph.row] + v[graph.column] - weights <= gap
    within[chosen] = False
    others = np.flatnonzero(within)
    unmatched = graph.n_rows + graph.n_columns
    row, column = np.arange(graph.n_rows), graph.n_rows + np.arange(graph.n_columns)
    has_row, has_column = np.zeros(graph.n_rows, dtype=bool), np.zeros(graph.n_columns, dtype=bool)
    has_row[graph.row[chosen]] = has_column[graph.column[chosen]] = True
    leaves = row[has_row & (u <= gap) & (not graph.every_row)], column[~has_column]
    enters = row[~has_row], column[has_column & (v <= gap) & (not graph.every_column)]
    to_unmatched, from_unmatched = ([np.full(each.size, unmatched) for each in some] for some in (leaves, enters))
    begins = [graph.row[others], column[graph.column[chosen]], *leaves, *from_unmatched]
    ends = [column[graph.column[others]], graph.row[chosen], *to_unmatched, *enters]
    entries = (np.concatenate(begins).astype(np.int32), np.concatenate(ends).astype(np.int32))
    joined = sparse((np.ones(entries[0].size), entries), shape=(unmatched + 1, unmatched + 1))
    part = connected_components(joined, connection="strong")[1]
    edges = np.sort(np.concatenate([others, chosen]))
    several = np.bincount(part) > 1
    same = (part[graph.row[edges]] == part[column[graph.column[edges]]]) & several[part[graph.row[edges]]]
    return np.asarray(edges[same])


def _square_graphs(
    graph: Bipartite, row: SmallArray, column: SmallArray, weights: FloatArray
) -> Iterator[tuple[SparseMatrix, bool]]:
    """Yield costs of square graphs whose full matchings are matchings of this one, and whether all of them are.

    Where some vertices may be left out, a copy of the graph, with rows and columns exchanged, is added to it, and
    each such vertex is joined to its copy by an edge of weight 0: the best of each half is what the best of
    the whole has in it. If it is likely that no vertex is left out, the graph by itself comes first.
    """
    n, m = graph.n_rows, graph.n_columns
    nothing = 1.0 + max(float(weights.max()), 0.0)  # since scipy takes a cost of 0 for no edge
    costs = nothing - weights
    full = n == m and graph.every_row
    if full or (n == m and weights.size >= 2 * n * math.log(n)):
        yield _matrix(costs, row, column, (n, n)), full
    if full:
        return
    loose = np.arange(n if graph.every_row else 0, n + m, dtype=row.dtype)  # edges from a row or column to its copy
    begins = np.concatenate([row, n + column, loose])
    ends = np.concatenate([column, m + row, np.where(loose < n, m + loose, loose - n)])
    values = np.concatenate([costs, costs, np.full(loose.size, nothing)])
    yield _matrix(values, begins, ends.astype(row.dtype), (n + m, n + m)), True


def _wide_graph(graph: Bipartite, row: SmallArray, column: SmallArray, weights: FloatArray) -> SparseMatrix:
    """Return costs of a graph with more columns than rows whose full matchings are matchings of this one.

    Where rows may be left out, each has a further column of its own.
    """
    n, m = graph.n_rows, graph.n_columns
    costs = np.where(weights == 0, ALMOST_NOTHING, -weights)
    if graph.every_row:
        return _matrix(costs, row, column, (n, max(m, n + 1)))
    loose = np.arange(n, dtype=row.dtype)
    costs = np.append(costs, np.full(n, ALMOST_NOTHING))
    return _matrix(costs, np.append(row, loose), np.append(column, m + loose), (n, m + n))


def _matrix(values: FloatArray, row: SmallArray, column: SmallArray, shape: tuple[int, int]) -> SparseMatrix:
    """Return a sparse matrix of distinct entries."""
    order = np.lexsort((column, row))
    begins = np.zeros(shape[0] + 1, dtype=np.int32)
    np.bincount(row, minlength=shape[0]).cumsum(out=begins[1:])
    return sparse((values.take(order), column.take(order).astype(np.int32), begins), shape=shape)
