"""Blocks of rows: how many rows to read at a time, and what was read put in order."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.checks import IntArray
from armful.model._blocks import block_size


def rows_per_block(n_features: int) -> int:
    """Return how many rows to read at a time: about 24 MiB of float64, in whole blocks of a matrix product.

    No more: the system gives memory of 32 MiB and above page by page each time, which is slower to fill.
    """
    size = block_size(n_features)
    return max(size, (24 << 20) // (8 * n_features) // size * size)


def joined_in_order(parts: Sequence[NDArray[Any]], positions: Sequence[IntArray]) -> NDArray[Any]:
    """Return one array in which the values of `parts[i]` are at `positions[i]`."""
    values = np.concatenate(parts)
    values[np.concatenate(positions)] = values.copy()
    return values
