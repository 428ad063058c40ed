"""The rows of a 0/1 program: kept exactly where they are of integers, and scaled for HiGHS.

scipy is imported where it is used: its solvers take longer to import than all of armful, and most users need none.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray
from armful.constraints._cover_cuts import cover

SparseMatrix = Any
"""A `scipy.sparse.csr_array`, whose types say less than its name."""

TOLERANCE = 1e-9
"""How far a row may be beyond its bound, relative to the numbers summed in it, unless these are integers."""

ROUNDING = 1e-12
"""How far a bound that should be whole may be from it, relative to it: 0.3 * 10 is 3."""

NEAR_WHOLE = 1e-3
"""The same in all: a large bound that ends in .5 is not whole."""

EXACT = 2.0**53
"""Sums of integers below this are exact in floats."""

LARGE = 2**16
"""With larger whole coefficients HiGHS has lost sets that are allowed, best ones among them, in each of two ways."""


def sparse(entries: Any, shape: tuple[int, int] | None = None) -> SparseMatrix:
    """Return a sparse matrix from all that scipy makes one of, with indices of 32 bits where they suffice.

    scipy's solvers and graph algorithms are written for those; not every version converts others by itself.
    """
    from scipy.sparse import csr_array  # noqa: PLC0415

    matrix = csr_array(entries, shape=shape)
    if max(*matrix.shape, matrix.nnz) < 2**31:
        matrix.indices = matrix.indices.astype(np.int32, copy=False)
        matrix.indptr = matrix.indptr.astype(np.int32, copy=False)
    return matrix


def whole_bound(bounds: FloatArray, sign: float) -> FloatArray:
    """Return the last integer within each bound, upper (`sign` 1) or lower (-1); integers stay as they are."""
    beyond, nearest = sign * bounds, sign * np.rint(bounds)
    with np.errstate(invalid="ignore"):  # infinite bounds stay as they are
        near = np.abs(beyond - nearest) <= np.minimum(ROUNDING * np.abs(beyond), NEAR_WHOLE)
    return sign * np.where(near, nearest, np.floor(beyond))


@dataclass(frozen=True, eq=False)
class LinearRows:
    """`lower <= matrix @ x <= upper` over x in {0, 1}^n_arms; `matrix` is sparse `(n_rows, n_arms)`.

    Rows of integers are kept exactly, others to within `TOLERANCE`.
    """

    matrix: SparseMatrix
    lower: FloatArray
    upper: FloatArray

    @cached_property
    def _sizes(self) -> SparseMatrix:
        return abs(self.matrix)

    @cached_property
    def whole(self) -> NDArray[np.bool_]:
        """The rows whose coefficients are integers, `(n_rows,)`."""
        whole = np.ones(self.lower.size, dtype=bool)
        whole[self._row_of_entry[self.matrix.data != np.trunc(self.matrix.data)]] = False
        return whole

    @cached_property
    def _row_of_entry(self) -> IntArray:
        return np.repeat(np.arange(self.lower.size), np.diff(self.matrix.indptr))

    @cached_property
    def least(self) -> FloatArray:
        """The lower bounds as they are kept: whole where the row is."""
        return np.where(self.whole, whole_bound(self.lower, -1.0), self.lower)

    @cached_property
    def most(self) -> FloatArray:
        """The upper bounds as they are kept: whole where the row is."""
        return np.where(self.whole, whole_bound(self.upper, 1.0), self.upper)

    def sums(self, chosen: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return `matrix @ x` for these distinct arms, and the tolerance of each row, both `(n_rows,)`."""
        x = np.zeros(self.matrix.shape[1])
        x[chosen] = 1.0
        return self.matrix @ x, np.where(self.whole, ROUNDING, TOLERANCE) * (self._sizes @ x)

    def excess(self, chosen: IntArray) -> FloatArray:
        """Return how far each row is beyond its bounds; 0 if it is kept."""
        sums, slack = self.sums(chosen)
        below, above = np.maximum(self.lower - sums, 0.0), np.maximum(sums - self.upper, 0.0)
        near_lower, near_upper = (np.maximum(slack, TOLERANCE * np.abs(each)) for each in (self.lower, self.upper))
        below[np.where(self.whole, sums >= self.least, below <= near_lower)] = 0.0
        above[np.where(self.whole, sums <= self.most, above <= near_upper)] = 0.0
        for i in np.flatnonzero(self.whole & (slack >= ROUNDING * EXACT / 2)).tolist():
            entries = self._entries(i, chosen)
            below[i], above[i] = (
                max(math.fsum([sign * bound, *(-sign * entries).tolist()]), 0.0) if math.isfinite(bound) else 0.0
                for sign, bound in ((1.0, self.least[i]), (-1.0, self.most[i]))
            )
        return below + above

    def part(self, rows: IntArray) -> "LinearRows":
        """Return some of the rows."""
        return LinearRows(self.matrix[rows], self.lower[rows], self.upper[rows])

    def columns(self, arms: IntArray) -> "LinearRows":
        """Return the rows over some of the arms; no other is chosen."""
        return LinearRows(sparse(self.matrix[:, arms]), self.lower, self.upper)

    def stacked_with(self, others: "LinearRows") -> "LinearRows":
        """Return these rows and the others."""
        from scipy.sparse import vstack  # noqa: PLC0415

        matrix = sparse(vstack([self.matrix, others.matrix]))
        return LinearRows(matrix, np.append(self.lower, others.lower), np.append(self.upper, others.upper))

    def without(self, chosen: IntArray) -> "LinearRows":
        """Return the rows with a cut for this set, which breaks a row, and all that break it in the same way."""
        i = int(np.argmax(self.excess(chosen)))
        if self.whole[i]:
            signs, least = cover(self._entries(i, np.arange(self.matrix.shape[1])), self.least[i], self.most[i], chosen)
        else:
            signs, least = np.ones(self.matrix.shape[1]), 1.0 - chosen.size  # another arm is in, or one of these out
            signs[chosen] = -1.0
        return self.stacked_with(LinearRows(sparse(signs[None, :]), np.array([least]), np.array([math.inf])))

    def _entries(self, i: int, chosen: IntArray) -> FloatArray:
        row = np.zeros(self.matrix.shape[1])
        begin, end = self.matrix.indptr[i : i + 2]
        np.add.at(row, self.matrix.indices[begin:end], self.matrix.data[begin:end])
        return row[chosen]

    @cached_property
    def is_large(self) -> bool:
        """Whether coefficients of rows of integers are so large that HiGHS errs."""
        return bool((self.whole & (self._largest > LARGE)).any())

    @cached_property
    def is_window(self) -> bool:
        """Whether such a row has both a lower and an upper bound: there HiGHS has called sets best that are not."""
        both = np.isfinite(self.lower) & np.isfinite(self.upper)
        return bool((both & self.whole & (self._largest > LARGE)).any())

    @cached_property
    def _largest(self) -> FloatArray:
        largest = np.zeros(self.lower.size)
        np.maximum.at(largest, self._row_of_entry, np.abs(self.matrix.data))
        return largest

    @cached_property
    def for_highs(self) -> "LinearRows":
        """Rows of integers get whole bounds; large or other coefficients become 2^12, since HiGHS allows 1e-6."""
        largest = self._largest
        resized = (~self.whole | (largest > 2**20)) & (largest > 0)
        factor = np.ones(self.lower.size)
        factor[resized] = 2.0 ** (12 - np.floor(np.log2(largest[resized])))
        entries = (self.matrix.data * factor[self._row_of_entry], self.matrix.indices, self.matrix.indptr)
        matrix, least, most = sparse(entries, shape=self.matrix.shape), self.least * factor, self.most * factor
        if not self.is_window:
            return LinearRows(matrix, least, most)
        free = np.full(least.size, np.inf)
        return LinearRows(matrix, least, free).stacked_with(LinearRows(matrix, -free, most))  # HiGHS errs less often so
