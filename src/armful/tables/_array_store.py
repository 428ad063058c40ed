"""Features and ids that are in memory."""

import mmap
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armful import checks
from armful.checks import FloatArray, IntArray
from armful.tables._frames import features_and_names, refuse_dask
from armful.tables._ids import id_array, refuse_repeated
from armful.tables._row_blocks import rows_per_block
from armful.tables.rows import Rows, Store


class ArrayRows(Rows):
    """An array or a memory-mapped matrix of this round, `(n_arms, n_features)`, which may change afterwards."""

    def __init__(self, X: NDArray[Any]) -> None:
        self.X = X
        self.n_arms, self.n_features = X.shape
        self.block_rows = rows_per_block(self.n_features)

    def rows(self, begin: int, end: int) -> NDArray[Any]:
        block = np.asarray(self.X[begin:end])
        kept = block.dtype in (np.float32, np.float64)
        return np.ascontiguousarray(block, dtype=None if kept else np.float64)

    def take(self, indices: IntArray) -> FloatArray:
        return np.asarray(self.X[indices], dtype=np.float64)


class ArrayStore(Store):
    """Features `(n_arms, n_features)` in C order, float32 or float64, that do not change, and their ids if any.

    float32_copy: whether float64 features are also kept in float32. Memory-mapped features are not, since they may be
    larger than memory.
    """

    in_memory = True

    def __init__(
        self, X: NDArray[Any], ids: NDArray[Any] | None, *, float32_copy: bool, columns: Sequence[str] | None = None
    ) -> None:
        self.columns = None if columns is None else list(columns)
        self.X, self.ids, self.float32_copy = X, ids, float32_copy
        self.n_arms, self.n_features = X.shape
        self.dtype = X.dtype
        self.block_rows = rows_per_block(self.n_features)
        self.has_ids = ids is not None
        self._rows = X.view()
        self._rows.flags.writeable = False
        self._float32: NDArray[np.float32] | None = None
        if float32_copy and X.dtype == np.float64 and not _is_memory_mapped(X):
            with np.errstate(over="ignore"):
                self._float32 = X.astype(np.float32)

    def __reduce__(self) -> tuple[Callable[..., "ArrayStore"], tuple[Any, ...]]:
        return partial(ArrayStore, float32_copy=self.float32_copy, columns=self.columns), (self.X, self.ids)

    def rows(self, begin: int, end: int) -> NDArray[Any]:
        return self._rows[begin:end]

    def rows_float32(self, begin: int, end: int) -> NDArray[np.float32] | None:
        return None if self._float32 is None else self._float32[begin:end]

    def take(self, indices: IntArray) -> FloatArray:
        return self.X[indices].astype(np.float64, copy=False)

    def ids_at(self, indices: IntArray) -> NDArray[Any]:
        assert self.ids is not None
        return self.ids[indices]


def wrapped(X: ArrayLike, ids: ArrayLike | None, *, float32_copy: bool) -> ArrayStore:
    """Return the store of features and ids that were checked; see `Table.wrap`."""
    refuse_dask("features", X)
    X, columns = features_and_names(X)
    array = _as_float_matrix(X)
    id_values = None if ids is None else id_array(ids)
    if id_values is not None:
        if id_values.shape != (len(array),):
            raise ValueError(f"ids must have shape ({len(array)},), one for each arm, got {id_values.shape}")
        refuse_repeated(id_values)
    store = ArrayStore(array, id_values, float32_copy=float32_copy, columns=columns)
    for block in store.blocks:
        _refuse_not_finite(array[block], block.start, id_values)
    return store


def _as_float_matrix(X: ArrayLike) -> NDArray[Any]:
    kept = isinstance(X, np.ndarray) and not isinstance(X, np.ma.MaskedArray) and X.dtype in (np.float32, np.float64)
    array = np.ascontiguousarray(X if kept else checks.floats("features", X))
    if np.ndim(X) != 2 or 0 in array.shape:
        raise ValueError(f"features must have shape (n_arms, n_features), one of each at least, got {np.shape(X)}")
    return array


def _refuse_not_finite(block: NDArray[Any], begin: int, ids: NDArray[Any] | None) -> None:
    if np.isfinite(block).all():
        return
    row, column = np.argwhere(~np.isfinite(block))[0].tolist()
    arm = f"row {begin + row}" if ids is None else f"the arm of id {ids[begin + row].item()!r}"
    raise ValueError(f"features must be finite, got {block[row, column]} in {arm}, column {column}")


def _is_memory_mapped(X: object) -> bool:
    while isinstance(X, np.ndarray | memoryview):
        X = X.base if isinstance(X, np.ndarray) else X.obj
    return isinstance(X, mmap.mmap)
