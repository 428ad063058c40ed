"""Triangular square roots of sums of squares, `(..., n, n)`: stacked by QR, and inverted."""

import math
from collections.abc import Callable
from functools import cached_property, lru_cache, partial
from typing import Any, Self

import numpy as np
from scipy.linalg.lapack import dtpqrt, dtrtri

from armful.checks import FloatArray

QR_BLOCK, WIDE, WIDE_QR_BLOCK = 8, 128, 16
"""The block size of a QR, `WIDE_QR_BLOCK` from `WIDE` columns on: about the fastest up to 500 features."""

BUFFERED_ROWS = 256
"""The largest number of rows that a `SumOfSquares` buffers."""


class SumOfSquares:
    """`sum x'x` over rows x, as a triangular root R of the sum over most rows, and a buffer of the others.

    Rows are buffered, so that adding some takes no QR, and folded in by one QR when the buffer is full. When that
    happens depends on the rows alone, not on which attributes were read, so that a sum that was saved and loaded goes
    on to the last bit.
    """

    def __init__(self, folded: FloatArray, buffers: tuple[FloatArray, ...] = (), n_buffered: int = 0) -> None:
        self.folded, self._buffers, self.n_buffered = folded, buffers, n_buffered

    def add(self, rows: FloatArray) -> Self:
        """Return the sum with these rows, `(..., k, n)`."""
        new = type(self)(self.folded, (*self._buffers, rows), self.n_buffered + rows.shape[-2])
        return new if new.n_buffered <= BUFFERED_ROWS else type(self)(new.root)

    @cached_property
    def root(self) -> FloatArray:
        """The root of the whole sum."""
        return stacked_root(self.folded, self.buffered) if self._buffers else self.folded

    @property
    def buffered(self) -> FloatArray:
        """The buffered rows, `(..., k, n)`."""
        return np.concatenate([self.folded[..., :0, :], *self._buffers], axis=-2)

    def map(self, change: Callable[[FloatArray], FloatArray]) -> Self:
        """Return the sum with every array changed, say to a part of its batch."""
        return type(self)(change(self.folded), tuple(change(rows) for rows in self._buffers), self.n_buffered)


def stacked_root(root: FloatArray, rows: FloatArray, *, triangle: bool = False) -> FloatArray:
    """Return the triangular root of `root' root + rows' rows`. triangle: the rows are an upper triangle too."""
    size = root.shape[-1]
    how = rows.shape[-2] if triangle else 0, min(size, QR_BLOCK if size < WIDE else WIDE_QR_BLOCK)
    if root.ndim == 2:
        single: FloatArray = dtpqrt(*how, root, rows)[0]
        return single
    return _one_by_one(partial(dtpqrt, *how), root, rows)


def inverted(triangle: FloatArray) -> FloatArray:
    """Return the inverse of an upper triangle, which is overwritten."""
    if triangle.ndim == 2:
        single: FloatArray = dtrtri(triangle, overwrite_c=True)[0]
        return single
    return _one_by_one(partial(dtrtri, overwrite_c=True), triangle)


@lru_cache(maxsize=8)
def ridge_root(size: int, ridge: float, batch: tuple[int, ...]) -> FloatArray:
    """Return a root of `ridge I` for the features, and of 0 for the reward."""
    root = math.sqrt(ridge) * np.eye(size)
    root[-1, -1] = 0.0
    return np.broadcast_to(root, (*batch, size, size))


def frozen(array: FloatArray) -> FloatArray:
    """Make an array read-only and return it."""
    array.flags.writeable = False
    return array


def diagonal(matrix: FloatArray) -> FloatArray:
    """Return the diagonals, `(..., n)`."""
    return np.diagonal(matrix, axis1=-2, axis2=-1)


def product_of_squares(a: FloatArray, b: FloatArray) -> FloatArray | float:
    """Return the sum of the squares of `a` times that of `b`, `(...)`; infinite or NaN if it overflows."""
    if a.ndim == 2:
        return float(np.vdot(a.T, a.T)) * float(np.vdot(b.T, b.T))  # in the order of memory
    pairs = zip(_flat(a), _flat(b), strict=True)
    return np.array([product_of_squares(*pair) for pair in pairs], dtype=np.float64).reshape(a.shape[:-2])


def _one_by_one(lapack: Callable[..., Any], *stacks: FloatArray) -> FloatArray:
    """Return `lapack` of each of `(..., m, n)` matrices, so that a batch gets the same bits as single ones.

    The result is stored column by column, as LAPACK needs it next time.
    """
    results = [lapack(*each)[0].T for each in zip(*map(_flat, stacks), strict=True)]
    columns = np.array(results).reshape(len(results), *stacks[0].shape[-2:])
    return np.swapaxes(columns, -1, -2).reshape(stacks[0].shape)


def _flat(stack: FloatArray) -> FloatArray:
    """Return the stack with its leading axes as one."""
    return stack.reshape(math.prod(stack.shape[:-2]), *stack.shape[-2:])
