"""Products of packed rows with a matrix, without spreading the rows: most features of a row are 0."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from armful.campaigns.features._packed_rows import PackedRows, Written
from armful.checks import IntArray

Float32Array = NDArray[np.float32]

CHUNK_NUMBERS = 180_000
"""Numbers of the product that are computed at a time: they stay in the processor's cache."""

TABLE_NUMBERS = 100_000
"""Several categories are looked up as one while the table of their sums has at most so many numbers."""


def products(
    rows: PackedRows, matrix: Float32Array, one: np.float32, *, intercept: bool
) -> Iterator[tuple[slice, Float32Array]]:
    """Yield `X @ matrix`, X the features that `rows` stand for, some rows at a time; `matrix` is `(n_features, m)`.

    The rows of the matrix that belong to categories are looked up, the others multiplied. Each number errs by at most
    `(d + 2) u |x|.|column|`, d the number of features and u the unit of rounding of float32: of at most d features each
    is multiplied or looked up, and added, once. What is yielded is overwritten when the next is asked for.
    """
    tables = _tables([each for each in rows.written if each.values is None], rows.n, matrix, one, intercept=intercept)
    dense = [each for each in rows.written if each.features is None and each.values is not None]
    placed = [each for each in rows.written if each.features is not None and each.values is not None]
    weights = matrix[[each.first for each in dense]]
    size = max(CHUNK_NUMBERS // matrix.shape[1], 1)
    columns = np.empty((len(dense), size), dtype=np.float32)
    product, found = (np.empty((size, matrix.shape[1]), dtype=np.float32) for _ in range(2))
    for begin in range(0, rows.n, size):
        some = slice(begin, min(begin + size, rows.n))
        here = slice(0, some.stop - begin)
        for column, each in zip(columns, dense, strict=True):
            _copy_values(each, some, one, column[here])
        np.matmul(columns[:, here].T, weights, out=product[here])
        for table, codes in tables:
            np.take(table, codes[some], axis=0, out=found[here], mode="clip")  # "raise" would copy twice
            product[here] += found[here]
        for each in placed:
            assert each.features is not None
            assert each.values is not None
            np.take(matrix[each.first :], each.features[some], axis=0, out=found[here], mode="clip")
            found[here] *= each.values[some, None]
            product[here] += found[here]
        yield some, product[here]


def _copy_values(each: Written, rows: slice, one: np.float32, out: Float32Array) -> None:
    assert each.values is not None
    if each.values.dtype == bool:
        np.multiply(each.values[rows], one, out=out)
    else:
        out[:] = each.values[rows]


def _tables(
    marks: Sequence[Written], n: int, matrix: Float32Array, one: np.float32, *, intercept: bool
) -> list[tuple[Float32Array, IntArray]]:
    """Return tables of sums of rows of the matrix, and for each of n rows its position in each table.

    Each table is for one or several columns of categories: it has a row for each combination of them.
    """
    sums = matrix[:1].astype(np.float64) if intercept else np.zeros((1, matrix.shape[1]))
    codes = np.zeros(n, dtype=np.int64)
    tables = []
    for each in marks:
        assert each.features is not None
        own = matrix[each.first : each.first + int(each.features.max(initial=0)) + 1].astype(np.float64)
        if sums.size * len(own) > TABLE_NUMBERS:
            tables.append((sums, codes))
            sums, codes = np.zeros((1, matrix.shape[1])), np.zeros(n, dtype=np.int64)
        sums = (sums[:, None] + own).reshape(-1, matrix.shape[1])
        codes = codes * len(own) + each.features
    tables.append((sums, codes))
    return [((sums * np.float64(one)).astype(np.float32), codes) for sums, codes in tables]
