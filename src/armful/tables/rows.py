"""Where the rows of many arms come from."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray
from armful.tables._table_file import natural_block


class Rows(Protocol):
    """Rows of features that are read a block at a time: a `Table`, or an array."""

    n_arms: int
    n_features: int
    block_rows: int

    def rows(self, begin: int, end: int) -> NDArray[Any]:
        """`(end - begin, n_features)`, float32 or float64, in C order."""
        ...

    def take(self, indices: IntArray) -> FloatArray:
        """The rows at `indices`, `(k, n_features)`."""
        ...

    def ids_of(self, indices: IntArray) -> NDArray[Any] | None:
        """What the arms at `indices` are called, `(k,)`; None if they have no ids."""
        ...


class ArrayRows:
    """An array or a memory-mapped matrix of this round, `(n_arms, n_features)`."""

    def __init__(self, X: NDArray[Any]) -> None:
        self.X = X
        self.n_arms, self.n_features = X.shape
        self.block_rows = natural_block(self.n_features)

    def rows(self, begin: int, end: int) -> NDArray[Any]:
        """A view where that is possible."""
        block = np.asarray(self.X[begin:end])
        kept = block.dtype in (np.float32, np.float64)
        return np.ascontiguousarray(block, dtype=None if kept else np.float64)

    def take(self, indices: IntArray) -> FloatArray:
        """A copy."""
        return np.asarray(self.X[indices], dtype=np.float64)

    def ids_of(self, indices: IntArray) -> None:
        """Rows of an array have no ids."""


def blocks_of(rows: Rows) -> list[slice]:
    """The rows from one end to the other, a block at a time: those they come in, or else of `block_rows`."""
    blocks: list[slice] | None = getattr(rows, "blocks", None)
    if blocks is not None:
        return blocks
    return [slice(begin, min(begin + rows.block_rows, rows.n_arms)) for begin in range(0, rows.n_arms, rows.block_rows)]
