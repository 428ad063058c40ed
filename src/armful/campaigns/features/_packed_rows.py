"""Features as they were written: a category as the number of its feature, not as a row of zeros and a one."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.checks import IntArray

Bytes = NDArray[np.uint8]

CHUNK = 4096
"""Rows that are spread at a time: they stay in the processor's cache, although they are written column by column."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Written:
    """What was written for each of n rows.

    Attributes
    ----------
    first : int
        The feature that was written to, or the one from which `features` count.
    features : ndarray of unsigned int, shape (n,), or None
        The feature of each row; None if it is the same for all.
    values : ndarray of float32 or bool, shape (n,), or None
        What was written; None if it is a one in each row.
    """

    first: int
    features: NDArray[Any] | None
    values: NDArray[Any] | None

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """What there is of features and values."""
        return [array for array in (self.features, self.values) if array is not None]

    def each(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> "Written":
        """Return the same with both arrays changed."""
        return Written(
            first=self.first,
            features=None if self.features is None else change(self.features),
            values=None if self.values is None else change(self.values),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class PackedRows:
    """Some rows of features, n of them, in a fraction of the memory.

    Attributes
    ----------
    n : int
    written : tuple of Written
        Where a feature of a row was not written to, it is 0.
    """

    n: int
    written: tuple[Written, ...]

    @property
    def n_bytes(self) -> int:
        """How many bytes `to_bytes` gives."""
        return sum(array.nbytes for each in self.written for array in each.arrays)

    def to_bytes(self) -> Iterable[Bytes]:
        """Yield all arrays, as bytes."""
        for each in self.written:
            for array in each.arrays:
                yield np.ascontiguousarray(array).view(np.uint8)

    def from_bytes(self, data: Bytes) -> "PackedRows":
        """Return rows that have the layout of these, from their bytes."""
        begin = 0

        def read(array: NDArray[Any]) -> NDArray[Any]:
            nonlocal begin
            begin += array.nbytes
            return data[begin - array.nbytes : begin].view(array.dtype)

        return replace(self, written=tuple(each.each(read) for each in self.written))

    def layout(self) -> "PackedRows":
        """Return rows for `from_bytes` that take no memory."""
        empty = tuple(each.each(lambda array: np.broadcast_to(array.dtype.type(0), self.n)) for each in self.written)
        return replace(self, written=empty)

    def take(self, rows: slice | IntArray) -> "PackedRows":
        """Return some of the rows."""
        n = len(range(*rows.indices(self.n))) if isinstance(rows, slice) else rows.size
        return PackedRows(n=n, written=tuple(each.each(lambda array: array[rows]) for each in self.written))

    def spread(self, X: NDArray[np.float32], one: np.float32) -> None:
        """Write the features into X, `(n, n_features)`, which holds zeros; one: what stands for 1."""
        n_features = X.shape[1]
        for begin in range(0, self.n, CHUNK):
            rows = slice(begin, min(begin + CHUNK, self.n))
            some = X[rows]
            starts = np.arange(0, some.size, n_features)
            for each in self.written:
                values: Any = one if each.values is None else each.values[rows]
                if each.values is not None and each.values.dtype == bool:
                    values = values * one
                if each.features is None:
                    some[:, each.first] = values
                else:
                    some.reshape(-1)[starts + (each.features[rows] + np.int64(each.first))] = values
