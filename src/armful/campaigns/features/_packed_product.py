"""Products of packed rows with a matrix, and their widths, without spreading the rows: most features of a row are 0."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armful.campaigns.features._packed_rows import PackedRows, Written
from armful.checks import FloatArray, IntArray

Float32Array = NDArray[np.float32]

CHUNK_NUMBERS = 180_000
"""Numbers of the product that are computed at a time: they stay in the processor's cache."""

GROUP_ROWS = 1024
"""Several columns of categories are looked up as one while they have at most so many combinations."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Layout:
    """Which features rows have: those of categories, of which each column marks one, and all others.

    Attributes
    ----------
    n_features : int
    one : float
        What is written for 1, as float32.
    intercept : bool
        Whether feature 0 is a one in every row.
    categories : tuple of slice
        The features of each column of categories, in the order in which they are written.
    """

    n_features: int
    one: float
    intercept: bool
    categories: tuple[slice, ...]

    @property
    def groups(self) -> list[list[slice]]:
        """The columns of categories that are looked up as one; at least one group."""
        groups: list[list[slice]] = [[]]
        n_rows = 1
        for each in self.categories:
            size = each.stop - each.start
            if groups[-1] and n_rows * size > GROUP_ROWS:
                groups.append([])
                n_rows = 1
            groups[-1].append(each)
            n_rows *= size
        return groups

    @property
    def is_marked(self) -> NDArray[np.bool_]:
        """Which features are of categories, or the intercept."""
        marked = np.zeros(self.n_features, dtype=bool)
        marked[: int(self.intercept)] = True
        for each in self.categories:
            marked[each] = True
        return marked

    def sums(self, matrix: FloatArray) -> list[FloatArray]:
        """Return for each group the sums of rows of a matrix `(n_features, m)`, one for each of its combinations."""
        tables = []
        for i, group in enumerate(self.groups):
            table = matrix[: int(self.intercept and i == 0)].sum(axis=0, keepdims=True)
            for each in group:
                table = (table[:, None] + matrix[each]).reshape(-1, matrix.shape[1])
            tables.append(table * float(np.float32(self.one)))
        return tables

    def codes(self, rows: PackedRows) -> list[IntArray]:
        """Return for each group the number of each row's combination, `(n,)`."""
        marks = iter([each.features for each in rows.written if each.features is not None and each.values is None])
        result = []
        for group in self.groups:
            codes: IntArray = np.zeros(rows.n, dtype=np.int64)
            for i, each in enumerate(group):
                if i:
                    codes *= each.stop - each.start
                codes += next(marks)
            result.append(codes)
        return result


class PackedProduct:
    """`X @ matrix`, X the features that packed rows stand for; `matrix` is `(n_features, m)`.

    The rows of the matrix that belong to categories are looked up, the others multiplied. Each number errs by at most
    `(d + 2) u |x|.|column|`, d the number of features and u the unit of rounding of float32: of at most d features each
    is multiplied or looked up, and added, once.
    """

    def __init__(self, layout: Layout, matrix: FloatArray) -> None:
        self._layout, self._one = layout, np.float32(layout.one)
        with np.errstate(over="ignore", invalid="ignore"):
            self._matrix: Float32Array = matrix.astype(np.float32)
            self._tables = [table.astype(np.float32) for table in layout.sums(matrix)]

    def __call__(
        self, rows: PackedRows, codes: Sequence[IntArray] | None = None
    ) -> Iterator[tuple[slice, Float32Array]]:
        """Yield the product, some rows at a time; what is yielded is overwritten when the next is asked for.

        codes: those of the layout, if they are known.
        """
        codes, matrix = self._layout.codes(rows) if codes is None else codes, self._matrix
        dense = [each for each in rows.written if each.features is None and each.values is not None]
        placed = [each for each in rows.written if each.features is not None and each.values is not None]
        weights = matrix[[each.first for each in dense]]
        size = min(max(CHUNK_NUMBERS // max(matrix.shape[1], len(dense)), 1), rows.n)
        columns = np.empty((len(dense), size), dtype=np.float32)
        product, found = (np.empty((size, matrix.shape[1]), dtype=np.float32) for _ in range(2))
        for begin in range(0, rows.n, size):
            some = slice(begin, min(begin + size, rows.n))
            here = slice(0, some.stop - begin)
            for column, each in zip(columns, dense, strict=True):
                self._copy_values(each, some, column[here])
            np.matmul(columns[:, here].T, weights, out=product[here])
            for table, code in zip(self._tables, codes, strict=True):
                np.take(table, code[some], axis=0, out=found[here], mode="clip")  # "raise" would copy twice
                product[here] += found[here]
            for each in placed:
                assert each.features is not None
                assert each.values is not None
                np.take(matrix[each.first :], each.features[some], axis=0, out=found[here], mode="clip")
                found[here] *= each.values[some, None]
                product[here] += found[here]
            yield some, product[here]

    def _copy_values(self, each: Written, rows: slice, out: Float32Array) -> None:
        assert each.values is not None
        if each.values.dtype == bool:
            np.multiply(each.values[rows], self._one, out=out)
        else:
            out[:] = each.values[rows]


class PackedWidths:
    """The means `x.theta` and widths `|x W|` of packed rows, W the inverse of the root of V; see `Rows.quick_widths`.

    Q is a rotation, so `|x W| = |x W Q|`. It is chosen such that of the features without categories, of which there are
    m, only the first m columns of `W Q` depend: `|x W|^2` is the square of m numbers, and of others that depend on
    categories alone. The sum of these is looked up, by pairs of groups of categories.
    """

    def __init__(self, layout: Layout, inverse_root: FloatArray, theta: FloatArray) -> None:
        free = ~layout.is_marked
        m = int(np.count_nonzero(free))
        rotation = np.linalg.qr(inverse_root[free].T, mode="complete")[0] if m else np.eye(layout.n_features)
        rotated = inverse_root @ rotation
        self.matrix = rotated[:, :m]
        self._layout = layout
        self._product = PackedProduct(layout, np.column_stack([self.matrix, theta]))
        self._pairs = _squares_by_pairs(layout.sums(rotated[:, m:]))

    def __call__(self, rows: PackedRows) -> tuple[FloatArray, FloatArray]:
        """Return means and widths, `(n,)` each."""
        codes = self._layout.codes(rows)
        mean, width = np.empty(rows.n), np.zeros(rows.n)
        for i, j, table in self._pairs:
            width += np.take(table, codes[i] * table.shape[1] + codes[j] if i < j else codes[i])
        squares = np.empty(rows.n, dtype=np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for some, product in self._product(rows, codes):
                mean[some] = product[:, -1]
                root = product[:, :-1]
                np.einsum("nd,nd->n", root, root, out=squares[some])
            width += squares
            np.maximum(width, 0.0, out=width)
            np.sqrt(width, out=width)
        return mean, width


def _squares_by_pairs(groups: Sequence[FloatArray]) -> list[tuple[int, int, FloatArray]]:
    """Return tables that add up to the squared length of a sum of one row `(m,)` of each group.

    Each is for two groups, and has a row and a column for each combination of their categories; where there is only one
    group, for that group and itself.
    """
    own = [np.einsum("nd,nd->n", group, group) for group in groups]
    if len(groups) == 1:
        return [(0, 0, own[0])]
    pairs = []
    for i, left in enumerate(groups):
        for j in range(i + 1, len(groups)):
            table = 2.0 * (left @ groups[j].T)
            if j == i + 1:
                table += own[i][:, None]
                if j == len(groups) - 1:
                    table += own[j]
            pairs.append((i, j, table))
    return pairs
