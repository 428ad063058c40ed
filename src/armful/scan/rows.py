"""Where the rows of many arms come from, and all of them seen as one."""

from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from armful.arms import Arms
from armful.blocks import BLOCK, row_norms
from armful.checks import FloatArray, IntArray
from armful.ridge import RidgeState
from armful.scan.tablefile import natural_block
from armful.scan.threads import in_threads


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


class WholeTable(Arms):
    """All arms of a table, as a policy or a constraint that needs to see all of them sees them.

    Some numbers for each arm are held in memory; the features only if they are asked for.
    """

    def __init__(self, table: Rows, state: RidgeState, caps: FloatArray | None = None) -> None:
        self.table, self.state, self.caps = table, state, caps
        self.places = np.arange(table.n_arms)
        self.some_of_many = table.n_arms > BLOCK

    @cached_property
    def X(self) -> FloatArray:  # type: ignore[override]
        """All rows, `(n_arms, n_features)`."""
        return np.asarray(self.table.rows(0, self.table.n_arms), dtype=np.float64)

    @property
    def n_arms(self) -> int:
        """How many arms there are."""
        return self.table.n_arms

    @cached_property
    def mean_and_width(self) -> tuple[FloatArray, FloatArray]:
        """Block by block."""
        mean, width = np.empty(self.n_arms), np.empty(self.n_arms)

        def fill_in(block: slice) -> None:
            mean[block], width[block] = self._part(block).mean_and_width

        blocks = blocks_of(self.table)
        for _ in in_threads(fill_in, blocks, len(blocks)):
            pass
        return mean, width

    @cached_property
    def norm(self) -> FloatArray:
        """Block by block."""
        return np.concatenate([row_norms(np.asarray(self._rows(block))) for block in blocks_of(self.table)])

    def project(self, theta: FloatArray) -> FloatArray:
        """Block by block."""
        return np.concatenate([self._part(block).project(theta) for block in blocks_of(self.table)])

    def ids_of(self, indices: IntArray) -> list[Any] | None:
        """Return the ids of some arms; None if the table has none."""
        ids = self.table.ids_of(indices)
        return None if ids is None else ids.tolist()

    def rows(self, indices: IntArray) -> FloatArray:
        """The features of some arms."""
        return self.table.take(indices)

    def _part(self, block: slice) -> Arms:
        return Arms(self._rows(block), self.state, places=self.places[block] if self.some_of_many else None)

    def _rows(self, block: slice) -> FloatArray:
        return np.asarray(self.table.rows(block.start, block.stop), dtype=np.float64)
