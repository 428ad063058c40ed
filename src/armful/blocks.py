"""Rows of features times a small matrix, a block of rows at a time."""

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from armful.checks import FloatArray

BLOCK, WIDE, WIDE_BLOCK = 1024, 64, 512
"""Rows multiplied at a time, and from `WIDE` features on: a block and its product stay in the processor's cache."""

SUMMED = 256
"""Features summed up at a time."""

HALVED = 48
"""From so many features on it pays to leave out the quarter of a triangle's product that is zero."""

CACHED = 2**15
"""Numbers of a product for many learners that are worked on at a time."""

Results = tuple[FloatArray, ...]
Kernel = Callable[[FloatArray, FloatArray], Results]


def block_size(n_features: int) -> int:
    """Rows multiplied at a time."""
    return BLOCK if n_features < WIDE else WIDE_BLOCK


class EachOwn:
    """Rows that every learner of a batch has of its own, `(n, d)` each, and that are not copied beside each other."""

    def __init__(self, arrays: Sequence[FloatArray]) -> None:
        self.arrays = arrays
        self.shape = (len(arrays), *arrays[0].shape)

    def of(self, learners: slice) -> Self:
        """The rows of some learners."""
        return type(self)(self.arrays[learners])

    def rows(self, rows: slice) -> FloatArray:
        """Some rows of each learner, `(learners, n, d)`."""
        return np.stack([array[rows] for array in self.arrays])


def multiply(X: FloatArray | EachOwn, matrix: FloatArray, kernel: Kernel, *, some_of_many: bool = False) -> Results:
    """What `kernel` makes of the rows of `X @ matrix`, `(..., n, d)` times `(..., d, m)`: each `(..., n)`.

    The kernel gets both transposed, and makes their product column by column: it is faster so, and sums over columns
    are too. Equal rows get equal results wherever they stand, so that ties stay ties. BLAS does not promise that: its
    own kernels sum in another order at the end of an odd number of rows and for products of another size. So all
    blocks have one size (the last overlaps the one before), a lone short block is filled up with zeros, and
    `matrix` must have two columns or more, since one column goes through another kernel altogether.
    `some_of_many`: the rows are some of a larger number and get what they would get among all of them, so a short
    block is filled up to a whole one.

    What is not finite in `X`, or overflows, shows in the result; numpy's warnings about it are silenced.
    """
    columns = matrix.swapaxes(-1, -2)
    with np.errstate(over="ignore", invalid="ignore"):
        n_learners = len(matrix) if matrix.ndim == 3 and X.shape[:-2] in ((), (len(matrix),)) else 0
        at_a_time = CACHED // (min(X.shape[-2], BLOCK // 2) * matrix.shape[-1] + 1) + 1
        if n_learners <= at_a_time:
            return _by_blocks(X, columns, kernel, some_of_many)
        results: Results = ()
        for begin in range(0, n_learners, at_a_time):
            learners = slice(begin, begin + at_a_time)
            parts = _by_blocks(_of(X, learners), columns[learners], kernel, some_of_many)
            results = results or tuple(np.empty((n_learners, *part.shape[1:])) for part in parts)
            _fill_in(results, learners, parts)
        return results


def _by_blocks(X: FloatArray | EachOwn, columns: FloatArray, kernel: Kernel, some_of_many: bool) -> Results:
    n, size = X.shape[-2], block_size(X.shape[-1])
    lone, multiple = (size, size) if some_of_many else (BLOCK, 8)
    if n <= lone:
        rows = _rows(X, slice(n))
        if n % multiple == 0:
            return kernel(columns, rows.swapaxes(-1, -2))
        return tuple(part[..., :n] for part in kernel(columns, _filled_up(rows, multiple).swapaxes(-1, -2)))
    results: Results = ()
    for begin in range(0, n, size):
        block = slice(min(begin, n - size), min(begin + size, n))
        parts = kernel(columns, _rows(X, block).swapaxes(-1, -2))
        results = results or tuple(np.empty((*part.shape[:-1], n)) for part in parts)
        _fill_in(results, (..., block), parts)
    return results


def _fill_in(results: Results, where: Any, parts: Results) -> None:
    for result, part in zip(results, parts, strict=True):
        result[where] = part


def _of(X: FloatArray | EachOwn, learners: slice) -> FloatArray | EachOwn:
    if isinstance(X, EachOwn):
        return X.of(learners)
    return X if X.ndim == 2 else X[learners]


def _rows(X: FloatArray | EachOwn, rows: slice) -> FloatArray:
    if isinstance(X, EachOwn):
        return np.ascontiguousarray(X.rows(rows))
    return np.ascontiguousarray(X[..., rows, :])


def lengths_and_last(columns: FloatArray, rows: FloatArray) -> Results:
    """A kernel: the last column of the product, and the length of each row without it.

    The matrix must be zero below its diagonal.
    """
    m, d = columns.shape[-2:]
    if d < HALVED:
        product = product_of(columns, rows)
        squares = _column_squares(product[..., :-1, :])
    else:
        half = m - m // 16 * 8  # the larger product has a whole number of BLAS's vectors
        squares = _column_squares(product_of(columns[..., :half, :half], rows[..., :half, :]))
        product = product_of(columns[..., half:, :], rows)
        squares += _column_squares(product[..., :-1, :])
    return product[..., -1, :].copy(), np.sqrt(squares, out=squares)


def product_of(columns: FloatArray, rows: FloatArray) -> FloatArray:
    """`columns @ rows`.

    Where there are many features, they are summed up so many at a time: BLAS would divide them by itself, in another
    way with another number of threads, and give other bits.
    """
    if columns.shape[-1] <= SUMMED:
        return columns @ rows
    product: FloatArray = columns[..., :SUMMED] @ rows[..., :SUMMED, :]
    for begin in range(SUMMED, columns.shape[-1], SUMMED):
        part = slice(begin, begin + SUMMED)
        product += columns[..., part] @ rows[..., part, :]
    return product


def row_norms(rows: FloatArray) -> FloatArray:
    """The Euclidean length of each row: `(..., n, d) -> (..., n)`."""
    norms: FloatArray = np.sqrt(np.einsum("...d,...d->...", rows, rows))
    return norms


def _column_squares(product: FloatArray) -> FloatArray:
    squares: FloatArray = np.einsum("...dn,...dn->...n", product, product)
    return squares


def _filled_up(X: FloatArray, multiple: int) -> FloatArray:
    missing = -X.shape[-2] % multiple
    return np.concatenate([X, np.zeros((*X.shape[:-2], missing, X.shape[-1]))], axis=-2)
