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
    """Return whether `X` is an object of dask, without importing dask."""
    return type(X) is not np.ndarray and type(X).__module__.partition(".")[0] == "dask"


def row_chunks(name: str, X: Any, n_columns: int | None = None) -> Any:
    """Return the dask array chunked along its first axis only; refuse one that cannot be read by rows.

    n_columns: the length of the second axis, if there is one.
    """
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
    expected = (X.shape[0],) if n_columns is None else (X.shape[0], n_columns)
    if X.shape != expected:
        shape = "(n_arms,)" if n_columns is None else f"(n_arms, {n_columns})"
        raise ValueError(f"{name} must have shape {shape}, got {X.shape}")
    if X.shape[0] == 0:
        raise ValueError(f"{name} must have at least one row, got {X.shape}")
    return X if n_columns is None or X.numblocks[1] == 1 else X.rechunk({1: -1})


def values_per_row(name: str, values: ArrayLike | None, rows: tuple[int, ...], runner: DaskRunner) -> Sequence[Any]:
    """Return one number for each row of features, in chunks of the lengths `rows`."""
    if values is None:
        return [None] * len(rows)
    array: Any = row_chunks(name, values) if is_dask(values) else checks.floats(name, values)
    if array.shape != (sum(rows),):
        raise ValueError(f"{name} must have shape ({sum(rows)},), one for each row of features, got {array.shape}")
    if is_dask(values):
        return chunk_tasks(array.rechunk((rows,)))
    return runner.keep([array[begin:end] for begin, end in pairwise(chunk_offsets(rows).tolist())])


def chunk_tasks(X: Any) -> list[Any]:
    """Return a task for each chunk, in order."""
    return list(X.to_delayed().ravel())


def chunk_offsets(rows: Sequence[int]) -> IntArray:
    """Return where chunks of the lengths `rows` begin, and where the last one ends, `(n_chunks + 1,)`."""
    return np.concatenate([[0], np.cumsum(rows, dtype=np.int64)])
