"""Rows of features times a small matrix, a block of rows at a time."""

from collections.abc import Callable

import numpy as np

from armful.checks import FloatArray

BLOCK = 512
"""Rows multiplied at a time: a block and its product stay in the processor's cache."""

LONE = 2 * BLOCK
"""Up to so many rows are one block: two that overlap would cost more."""

SUMMED = 256
"""Features summed up at a time."""

HALVED = 48
"""From so many features on it pays to leave out the quarter of a triangle's product that is zero."""

Results = tuple[FloatArray, ...]


def multiply(
    X: FloatArray,
    matrix: FloatArray,
    kernel: Callable[[FloatArray, FloatArray], Results],
    *,
    some_of_many: bool = False,
) -> Results:
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
    n, columns = X.shape[-2], matrix.swapaxes(-1, -2)
    lone, multiple = (BLOCK, BLOCK) if some_of_many else (LONE, 8)
    with np.errstate(over="ignore", invalid="ignore"):
        if n <= lone:
            if n % multiple == 0:
                return kernel(columns, np.ascontiguousarray(X).swapaxes(-1, -2))
            return tuple(part[..., :n] for part in kernel(columns, _filled_up(X, multiple).swapaxes(-1, -2)))
        results: Results = ()
        for begin in range(0, n, BLOCK):
            rows = slice(min(begin, n - BLOCK), min(begin + BLOCK, n))
            block = np.ascontiguousarray(X[rows]) if X.ndim == 2 else X[..., rows, :]
            parts = kernel(columns, block.swapaxes(-1, -2))
            results = results or tuple(np.empty((*part.shape[:-1], n)) for part in parts)
            for result, part in zip(results, parts, strict=True):
                result[..., rows] = part
        return results


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
