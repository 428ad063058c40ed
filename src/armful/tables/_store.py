"""What a table reads its features and ids from."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.checks import IntArray
from armful.model._blocks import block_size
from armful.tables.rows import Rows


def rows_per_block(n_features: int) -> int:
    """Return how many rows to read at a time: about 24 MiB of float64, in whole blocks of a matrix product.

    No more: the system gives memory of 32 MiB and above page by page each time, which is slower to fill.
    """
    size = block_size(n_features)
    return max(size, (24 << 20) // (8 * n_features) // size * size)


class Store(Rows):
    """Rows with the further attributes of a table; `Table(store)` is a table of any subclass."""

    dtype: np.dtype[Any] = np.dtype(np.float64)
    columns: list[str] | None = None
    has_ids: bool = False
    path: Path | None = None

    def ids_at(self, indices: IntArray) -> NDArray[Any]:
        """Return the ids of the arms at `indices`, `(k,)`; a store with `has_ids` must define it."""
        raise NotImplementedError(f"{type(self).__name__} has no ids")


def joined_in_order(parts: Sequence[NDArray[Any]], positions: Sequence[IntArray]) -> NDArray[Any]:
    """Return one array in which the values of `parts[i]` are at `positions[i]`."""
    values = np.concatenate(parts)
    values[np.concatenate(positions)] = values.copy()
    return values
