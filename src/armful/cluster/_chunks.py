"""Dask arrays as chunks of rows."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armful import checks
from armful.checks import IntArray
from armful.cluster._dask_runner import DaskRunner, imported


def is_dask(X: object) -> bool:
    """Whether it is of dask, without importing that."""
    return type(X) is not np.ndarray and type(X).__module__.partition(".")[0] == "dask"


def whole_rows(name: str, X: Any) -> Any:
    """The dask array with no more than its first axis divided, refused if it cannot be read by rows."""
    if not isinstance(X, imported("dask.array").Array):
        raise ValueError(
            f"{name} must be a dask array, got a dask {type(X).__name__}; .to_dask_array(lengths=True) makes one of a "
            "DataFrame"
        )
    if not isinstance(X._meta, np.ndarray) or isinstance(X._meta, np.ma.MaskedArray) or X.dtype.kind not in "biuf":
        kind = type(X._meta).__name__
        raise ValueError(f"{name} must be a dask array of real numbers in numpy arrays, got {X.dtype} in {kind}")
    if np.isnan(X.shape).any():
        raise ValueError(f"{name} has chunks of unknown size: call its compute_chunk_sizes() once")
    wanted = 2 if name == "features" else 1
    if X.ndim != wanted:
        shape = "(n_arms, n_features)" if wanted == 2 else "(n_arms,)"
        raise ValueError(f"{name} must have shape {shape}, got {X.shape}")
    if X.shape[0] == 0:
        raise ValueError(f"{name} must have at least one row, got {X.shape}")
    return X.rechunk({1: -1}) if wanted == 2 and X.numblocks[1] > 1 else X


def beside(name: str, values: ArrayLike | None, rows: tuple[int, ...], runner: DaskRunner) -> Sequence[Any]:
    """One number for each row of features, in chunks of so many `rows`."""
    if values is None:
        return [None] * len(rows)
    array: Any = whole_rows(name, values) if is_dask(values) else checks.floats(name, values)
    if array.shape != (sum(rows),):
        raise ValueError(f"{name} must have shape ({sum(rows)},), one for each row of features, got {array.shape}")
    if is_dask(values):
        return chunks_of(array.rechunk((rows,)))
    return runner.keep([array[begin:end] for begin, end in pairwise(ends_of(rows).tolist())])


def chunks_of(X: Any) -> list[Any]:
    """A task for each chunk, in order."""
    tasks: list[Any] = X.to_delayed().ravel().tolist()
    return tasks


def ends_of(rows: Sequence[int]) -> IntArray:
    """Where chunks of so many rows begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(rows, dtype=np.int64)])
