"""Checks of scores and indices; numbers and names for labels."""

from collections.abc import Hashable, Iterable, Set
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armful import checks
from armful.checks import FloatArray, IntArray

NO_ARMS: IntArray = np.zeros(0, dtype=np.int64)


def check_scores(scores: ArrayLike) -> FloatArray:
    """Return scores as `(n_arms,)` finite numbers."""
    array = checks.floats("scores", scores)
    if array.ndim != 1:
        raise ValueError(f"scores must have shape (n_arms,), got {array.shape}")
    checks.refuse_not_finite("scores", array)
    return array


def check_indices(indices: ArrayLike | Set[int], n_arms: int | None = None) -> IntArray:
    """Return arm indices as `(k,)` int64; raise ValueError if one is not from 0 to `n_arms - 1`, if that is known."""
    try:
        array = np.asarray(list(indices) if isinstance(indices, Set) else indices)
    except ValueError:
        raise ValueError("indices must be whole numbers of shape (k,), got lists within a list") from None
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"indices must be whole numbers of shape (k,), got {array.dtype} of shape {array.shape}")
    if n_arms is not None and (array.min() < 0 or array.max() >= n_arms):
        wrong = array[(array < 0) | (array >= n_arms)][0]
        raise ValueError(f"indices must be from 0 to {n_arms - 1}, got {wrong}")
    return array.astype(np.int64)


def numbered(labels: Iterable[Hashable] | NDArray[Any]) -> tuple[list[Hashable], IntArray]:
    """Return the distinct labels in order of appearance, and the number of each entry's label.

    Raises
    ------
    TypeError
        If a label cannot be hashed.
    """
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "iubUS":
        distinct, first, codes = np.unique(labels, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return distinct[order].tolist(), np.argsort(order)[codes].astype(np.int64)
    numbers: dict[Hashable, int] = {}
    coded = [numbers.setdefault(label, len(numbers)) for label in labels]
    return list(numbers), np.array(coded, dtype=np.int64)


def repeated(indices: IntArray) -> int:
    """Return how many indices are repetitions of others."""
    return indices.size - np.unique(indices).size


def plain(label: object) -> str:
    """Return a label as it appears in a name: a string as it is, anything else by its repr."""
    return label if isinstance(label, str) else repr(label)


def with_others(first: IntArray, second: IntArray) -> NDArray[np.bool_]:
    """Return which arms share their pair of numbers, each at least 0, with another arm, `(n_arms,)`."""
    _, which, counts = np.unique(first * (second.max() + 1) + second, return_inverse=True, return_counts=True)
    several: NDArray[np.bool_] = counts[which] > 1
    return several
