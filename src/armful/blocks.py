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

Summary = Callable[[FloatArray], tuple[FloatArray, ...]]


@np.errstate(over="ignore", invalid="ignore")
def multiply(
    X: FloatArray, matrix: FloatArray, summarise: Summary, *, some_of_many: bool = False
) -> tuple[FloatArray, ...]:
    """`summarise` of the rows of `X @ matrix`, `(..., n, d)` times `(..., d, m)`: each `(..., n)`.

    Equal rows get equal results wherever they stand, so that ties stay ties. BLAS does not promise that: its
    kernels sum in another order at the end of an odd number of rows and for products of another size. So all
    blocks have one size (the last overlaps the one before), a lone short block is filled up with zeros, and
    `matrix` must have two columns or more, since one column goes through another kernel altogether.
    `some_of_many`: the rows are some of a larger number and get what they would get among all of them, so a short
    block is filled up to a whole one.

    What is not finite in `X`, or overflows, shows in the result; numpy's warnings about it are silenced.
    """
    n = X.shape[-2]
    lone, multiple = (BLOCK, BLOCK) if some_of_many else (LONE, 8)
    if n <= lone:
        return tuple(part[..., :n] for part in summarise(_product(_filled_up(X, multiple), matrix)))
    results: tuple[FloatArray, ...] = ()
    for begin in range(0, n, BLOCK):
        rows = slice(min(begin, n - BLOCK), min(begin + BLOCK, n))
        block = X[..., rows, :]
        parts = summarise(_product(np.ascontiguousarray(block) if X.ndim == 2 else block, matrix))
        results = results or tuple(np.empty((*part.shape[:-1], n)) for part in parts)
        for result, part in zip(results, parts, strict=True):
            result[..., rows] = part
    return results


def _product(rows: FloatArray, matrix: FloatArray) -> FloatArray:
    """`rows @ matrix`, laid out in memory column by column: both the product and sums over columns are faster so.

    Where there are many features, they are summed up so many at a time: BLAS would divide them by itself, in another
    way with another number of threads, and give other bits.
    """
    columns, rows = np.swapaxes(matrix, -1, -2), np.swapaxes(rows, -1, -2)
    product = columns[..., :SUMMED] @ rows[..., :SUMMED, :]
    for begin in range(SUMMED, columns.shape[-1], SUMMED):
        part = slice(begin, begin + SUMMED)
        product += columns[..., part] @ rows[..., part, :]
    return np.swapaxes(product, -1, -2)


def row_norms(rows: FloatArray) -> FloatArray:
    """The Euclidean length of each row: `(..., n, d) -> (..., n)`."""
    norms: FloatArray = np.sqrt(np.einsum("...d,...d->...", rows, rows))
    return norms


def _filled_up(X: FloatArray, multiple: int) -> FloatArray:
    missing = -X.shape[-2] % multiple
    if not missing:
        return np.ascontiguousarray(X)
    return np.concatenate([X, np.zeros((*X.shape[:-2], missing, X.shape[-1]))], axis=-2)
