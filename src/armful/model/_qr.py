"""Triangular square roots of sums of squares, `(..., n, n)`: stacked by QR, and inverted."""

import math
from collections.abc import Callable
from functools import cached_property, lru_cache, partial
from typing import Any, Self

import numpy as np
from scipy.linalg.lapack import dtpqrt, dtrtri

from armful.checks import FloatArray

QR_BLOCK, WIDE, WIDE_QR_BLOCK = 8, 128, 16
"""Columns of a QR worked on together: about the fastest to 100 features, and from `WIDE` to 500."""

BUFFERED_ROWS = 256
"""Rows that may wait for a QR."""


class SumOfSquares:
    """`sum x'x` over rows x, as a root R with `R'R` equal to it, and rows that are still to be put into R.

    Most sums are only added to. So that adding costs no QR, rows wait until they are many or the root is asked for.
    What happens when depends on the rows alone, never on who asked: so one that was saved goes on to the last bit.
    """

    def __init__(self, root: FloatArray, waiting: tuple[FloatArray, ...] = ()) -> None:
        self._root, self._waiting = root, waiting
        self._n_waiting: int = sum(rows.shape[-2] for rows in waiting)

    def add(self, rows: FloatArray) -> Self:
        """The sum with these rows, `(..., k, n)`."""
        if self._n_waiting + rows.shape[-2] > BUFFERED_ROWS:
            return type(self)(type(self)(self._root, (*self._waiting, rows)).root)
        new = object.__new__(type(self))
        new._root, new._waiting, new._n_waiting = self._root, (*self._waiting, rows), self._n_waiting + rows.shape[-2]
        return new

    @cached_property
    def root(self) -> FloatArray:
        """The root of the whole sum."""
        return stacked_root(self._root, self.waiting) if self._waiting else self._root

    @property
    def has_buffered_rows(self) -> bool:
        """Whether there are rows that wait."""
        return self._n_waiting > 0

    @property
    def folded_root(self) -> FloatArray:
        """The root of what does not wait."""
        return self._root

    @property
    def waiting(self) -> FloatArray:
        """The rows that wait, `(..., k, n)`."""
        return np.concatenate([self._root[..., :0, :], *self._waiting], axis=-2)

    def map(self, change: Callable[[FloatArray], FloatArray]) -> Self:
        """The same with every array changed, say to a part of its batch."""
        return type(self)(change(self._root), tuple(change(rows) for rows in self._waiting))


def stacked_root(root: FloatArray, rows: FloatArray, *, triangle: bool = False) -> FloatArray:
    """The triangular square root of `root' root + rows' rows`. triangle: the rows are one too."""
    size = root.shape[-1]
    how = rows.shape[-2] if triangle else 0, min(size, QR_BLOCK if size < WIDE else WIDE_QR_BLOCK)
    if root.ndim == 2:
        single: FloatArray = dtpqrt(*how, root, rows)[0]
        return single
    return _one_by_one(partial(dtpqrt, *how), root, rows)


def inverted(triangle: FloatArray) -> FloatArray:
    """The inverse of an upper triangle, which is overwritten."""
    if triangle.ndim == 2:
        single: FloatArray = dtrtri(triangle, overwrite_c=True)[0]
        return single
    return _one_by_one(partial(dtrtri, overwrite_c=True), triangle)


@lru_cache(maxsize=8)
def ridge_root(size: int, ridge: float, batch: tuple[int, ...]) -> FloatArray:
    """A root of `ridge I` for the features, and of 0 for the rewards beside them."""
    root = math.sqrt(ridge) * np.eye(size)
    root[-1, -1] = 0.0
    return np.broadcast_to(root, (*batch, size, size))


def frozen(array: FloatArray) -> FloatArray:
    """The array, which nobody can change any more."""
    array.flags.writeable = False
    return array


def diagonal(matrix: FloatArray) -> FloatArray:
    """The diagonals, `(..., n)`."""
    return np.diagonal(matrix, axis1=-2, axis2=-1)


def product_of_squares(a: FloatArray, b: FloatArray) -> FloatArray | float:
    """The sum of the squares of `a` times that of `b`, `(...)`; infinite or NaN where it is too large."""
    if a.ndim == 2:
        return float(np.vdot(a.T, a.T)) * float(np.vdot(b.T, b.T))  # as they lie in memory
    pairs = zip(_flat(a), _flat(b), strict=True)
    return np.array([product_of_squares(*pair) for pair in pairs], dtype=np.float64).reshape(a.shape[:-2])


def _one_by_one(lapack: Callable[..., Any], *stacks: FloatArray) -> FloatArray:
    """What `lapack` makes of `(..., m, n)` matrices, each by itself: a batch gets the bits that single ones get.

    The result lies in memory column by column, as LAPACK wants it next time.
    """
    results = [lapack(*each)[0].T for each in zip(*map(_flat, stacks), strict=True)]
    columns = np.array(results).reshape(len(results), *stacks[0].shape[-2:])
    return np.swapaxes(columns, -1, -2).reshape(stacks[0].shape)


def _flat(stack: FloatArray) -> FloatArray:
    """One leading axis in place of all."""
    return stack.reshape(math.prod(stack.shape[:-2]), *stack.shape[-2:])
