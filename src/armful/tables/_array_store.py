"""Features and ids of a table that are in memory."""

import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray
from armful.tables._table_file import natural_block


class ArrayStore:
    """Features `(n_arms, n_features)` in C order, float32 or float64, that do not change, and their ids if any.

    float32_copy: whether float64 features are also kept in float32. What is in a file is not: it may be larger than
    memory.
    """

    path = None

    def __init__(
        self, X: NDArray[Any], ids: NDArray[Any] | None, *, float32_copy: bool, columns: Sequence[str] | None = None
    ) -> None:
        self.columns = None if columns is None else list(columns)
        self.X, self.ids, self.float32_copy = X, ids, float32_copy
        self.n_arms, self.n_features = X.shape
        self.dtype = X.dtype
        self.block_rows = natural_block(self.n_features)
        self.has_ids = ids is not None
        self._rows = X.view()
        self._rows.flags.writeable = False
        self._single: NDArray[np.float32] | None = None
        if float32_copy and X.dtype == np.float64 and not _in_a_file(X):
            with np.errstate(over="ignore"):
                self._single = X.astype(np.float32)

    def refuse_changed(self) -> None:
        """An array promised not to change."""

    def rows(self, begin: int, end: int) -> NDArray[Any]:
        """The rows themselves."""
        return self._rows[begin:end]

    def rounded(self, begin: int, end: int) -> NDArray[np.float32] | None:
        """The rows in float32, if they are kept in it too."""
        return None if self._single is None else self._single[begin:end]

    def take(self, indices: IntArray) -> FloatArray:
        """Some rows."""
        return self.X[indices].astype(np.float64, copy=False)

    def ids_at(self, indices: IntArray) -> NDArray[Any]:
        """Some ids."""
        assert self.ids is not None
        return self.ids[indices]


def _in_a_file(X: object) -> bool:
    """Whether the array is a view of a file, which `numpy.memmap` and others make of it."""
    while isinstance(X, np.ndarray | memoryview):
        X = X.base if isinstance(X, np.ndarray) else X.obj
    return isinstance(X, mmap.mmap)
