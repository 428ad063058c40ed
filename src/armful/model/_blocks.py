"""Rows of features times a small matrix, a block of rows at a time."""

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray

BLOCK, WIDE, WIDE_BLOCK = 1016, 64, 504
"""Rows per product, `WIDE_BLOCK` from `WIDE` features on: a block and its product stay in the processor's cache. No
powers of two: the numbers of a column would then compete for the same lines of the cache."""

LARGEST_SINGLE = 1024
"""Arms that are no more than this are multiplied at once."""

HALVED = 48
"""From this many features on, skipping the zero quarter of a product with a triangle is faster."""

CACHED = 2**15
"""The largest number of elements of a batched product that is computed at once."""

Rows = NDArray[np.floating[Any]]
Results = tuple[FloatArray, ...]
Kernel = Callable[[FloatArray, FloatArray], Results]


def block_size(n_features: int) -> int:
    """Return the number of rows per product."""
    return BLOCK if n_features < WIDE else WIDE_BLOCK


@np.errstate(over="ignore", invalid="ignore")  # faster so than by a with-statement
def multiply(X: Rows, matrix: FloatArray, kernel: Kernel, *, some_of_many: bool = False) -> Results:
    """Return what `kernel` computes from the rows of `X @ matrix`, `(..., n, d)` times `(..., d, m)`: each `(..., n)`.

    The kernel gets both transposed: the product and sums over its columns are faster that way. Equal rows get equal
    results whatever their index, so that ties stay ties. BLAS does not guarantee that: it may sum in another order at
    the end of the rows, or at the end of a thread's share of them. It is made likely by blocks of one size (the last
    overlaps the one before), by padding a single short block with zeros to a multiple of 8 rows, and by a `matrix` of
    at least two columns, since BLAS has another routine for one column. It is made certain by `product_of`, which
    kernels multiply with.

    `some_of_many`: the rows are a subset of many and get the results that they would get among all of them, so a short
    block is padded to a whole one. Infinite and NaN features show in the result; numpy's warnings are silenced.
    """
    columns = matrix.swapaxes(-1, -2)
    if matrix.ndim != 3 or X.shape[:-2] not in ((), (len(matrix),)):
        return multiply_columns(X, columns, kernel, some_of_many)
    n_learners = len(matrix)
    at_a_time = CACHED // (min(X.shape[-2], BLOCK // 2) * matrix.shape[-1] + 1) + 1
    if n_learners <= at_a_time:
        return multiply_columns(X, columns, kernel, some_of_many)
    results: Results = ()
    for begin in range(0, n_learners, at_a_time):
        learners = slice(begin, begin + at_a_time)
        parts = multiply_columns(X if X.ndim == 2 else X[learners], columns[learners], kernel, some_of_many)
        results = results or tuple(np.empty((n_learners, *part.shape[1:])) for part in parts)
        _fill_in(results, learners, parts)
    return results


def multiply_columns(X: Rows, columns: FloatArray, kernel: Kernel, some_of_many: bool = False) -> Results:
    """Return what `multiply` returns for a matrix that is given transposed; numpy warns where a result overflows."""
    n, size = X.shape[-2], block_size(X.shape[-1])
    largest, multiple = (size, size) if some_of_many else (LARGEST_SINGLE, 8)
    if n <= largest:
        if n % multiple == 0:
            return kernel(columns, np.ascontiguousarray(X, dtype=np.float64).swapaxes(-1, -2))
        return tuple([part[..., :n] for part in kernel(columns, _padded(X, multiple).swapaxes(-1, -2))])
    results: Results = ()
    for begin in range(0, n, size):
        block = slice(min(begin, n - size), min(begin + size, n))
        parts = kernel(columns, np.ascontiguousarray(X[..., block, :], dtype=np.float64).swapaxes(-1, -2))
        results = results or tuple(np.empty((*part.shape[:-1], n)) for part in parts)
        _fill_in(results, (..., block), parts)
    return results


def _fill_in(results: Results, where: Any, parts: Results) -> None:
    for result, part in zip(results, parts, strict=True):
        result[where] = part


def lengths_and_last(columns: FloatArray, rows: FloatArray) -> Results:
    """Return the last column of the product, and the Euclidean length of each row without it: a kernel.

    The matrix must be zero below its diagonal.
    """
    m, d = columns.shape[-2:]
    if d < HALVED:
        product = product_of(columns, rows)
        squares = _column_squares(product[..., :-1, :])
    else:
        half = m - m // 16 * 8  # the larger product has a whole number of BLAS's vectors
        n_threads = _blas_threads()
        squares = _column_squares(product_of(columns[..., :half, :half], rows[..., :half, :], n_threads))
        product = product_of(columns[..., half:, :], rows, n_threads)
        squares += _column_squares(product[..., :-1, :])
    return product[..., -1, :].copy(), np.sqrt(squares, out=squares)


def first_column(columns: FloatArray, rows: FloatArray) -> Results:
    """Return the first column of the product: a kernel."""
    return (product_of(columns, rows)[..., 0, :].copy(),)


def product_of(columns: FloatArray, rows: FloatArray, n_threads: tuple[int, ...] | None = None) -> FloatArray:
    """Return `columns @ rows`, `(..., m, d)` times `(..., d, n)`, equal where columns of `rows` are equal.

    `rows` has the memory layout in which `multiply` passes it to a kernel. Each new shape of product is tested once
    with n equal columns. If their results differ, `rows` is multiplied 8 columns at a time, too few to be divided
    among threads, and if that does not help, one column at a time and always at the same index. n_threads: of each
    BLAS, if the caller knows it.
    """
    m, d = columns.shape[-2:]
    n, in_rows = rows.shape[-1], columns.strides[-1] <= columns.strides[-2]
    n_threads = _blas_threads() if n_threads is None else n_threads
    if _index_does_not_matter(m, d, n, in_rows, n_threads):
        return columns @ rows
    product = np.empty((*np.broadcast_shapes(columns.shape[:-2], rows.shape[:-2]), m, n))
    if n % 8 == 0 and _index_does_not_matter(m, d, 8, in_rows, n_threads):
        for begin in range(0, n, 8):
            product[..., begin : begin + 8] = columns @ rows[..., begin : begin + 8]
        return product
    alone = np.zeros((*rows.shape[:-2], 8, d))
    for i in range(n):
        alone[..., 0, :] = rows[..., i]
        product[..., i] = (columns @ alone.swapaxes(-1, -2))[..., 0]
    return product


@cache
def _index_does_not_matter(m: int, d: int, n: int, in_rows: bool, n_threads: tuple[int, ...]) -> bool:  # noqa: ARG001
    """Return whether n equal columns get equal results from a matrix of this shape and memory order.

    BLAS decides by shapes and its number of threads, not by the numbers, so a few random columns show it:
    another order of summation changes about every other sum, and at least 64 sums are compared.
    """
    rng = np.random.default_rng(0)
    for _ in range(1 + 64 // m):
        columns = rng.standard_normal((m, d)) if in_rows else rng.standard_normal((d, m)).T
        product = columns @ np.repeat(rng.standard_normal((1, d)), n, axis=0).T
        if not (product == product[:, :1]).all():
            return False
    return True


def _blas_threads() -> tuple[int, ...]:
    """Return the number of threads of each BLAS; empty if threadpoolctl is not loaded: then nothing changes it."""
    return tuple([count() for count in _thread_counters()]) if "threadpoolctl" in sys.modules else ()


@cache
def _thread_counters() -> list[Callable[[], int]]:
    """Return a counter of threads for each BLAS; OpenBLAS's own function is 10 times as fast as threadpoolctl's."""
    loaded = import_module("threadpoolctl")  # not from sys.modules, where it may be half loaded by another thread
    libraries = loaded.ThreadpoolController().lib_controllers
    names = [f"{begin}openblas_get_num_threads{end}" for begin in ("", "scipy_") for end in ("", "64_", "_64")]
    return [
        next((getattr(blas.dynlib, name) for name in names if hasattr(blas.dynlib, name)), blas.get_num_threads)
        for blas in libraries
        if blas.user_api == "blas"
    ]


def row_norms(rows: FloatArray) -> FloatArray:
    """Return the Euclidean length of each row: `(..., n, d) -> (..., n)`."""
    norms: FloatArray = np.sqrt(np.einsum("...d,...d->...", rows, rows))
    return norms


def _column_squares(product: FloatArray) -> FloatArray:
    squares: FloatArray = np.einsum("...dn,...dn->...n", product, product)
    return squares


def _padded(X: Rows, multiple: int) -> FloatArray:
    """Return the rows with as many rows of zeros after them as make their number a multiple."""
    *batch, n, d = X.shape
    rows = np.zeros((*batch, n + -n % multiple, d))
    rows[..., :n, :] = X
    return rows
