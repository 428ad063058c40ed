"""Groups of people by a feature: those who have it, or parts of about equal size by its value."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
TENTHS = ("lowest tenth", *(f"{each} tenth" for each in ORDINALS[1:-1]), "highest tenth")
FIFTHS = ("lowest fifth", "second fifth", "middle fifth", "fourth fifth", "highest fifth")


def parts_of(values: FloatArray, n: int) -> tuple[list[str], IntArray]:
    """Return the names of n parts of about equal size by value, and the part of each; equal values are in one part.

    Examples
    --------
    >>> parts_of(np.arange(10.0), 5)[1]
    array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    >>> parts_of(np.array([0.0, 0.0, 0.0, 0.0, 0.5, 1.0]), 5)
    (['lowest of 3 parts', 'second of 3 parts', 'highest of 3 parts'], array([0, 0, 0, 0, 1, 2]))
    """
    edges = np.unique(np.quantile(values, np.arange(1, n) / n))
    part = np.searchsorted(edges, values, side="left")
    present, part = np.unique(part, return_inverse=True)
    m = present.size
    if (n, m) == (5, 5):
        return list(FIFTHS), part
    if (n, m) == (10, 10):
        return list(TENTHS), part
    ends = {0: "lowest", m - 1: "highest"}
    return [f"{ends.get(i, ORDINALS[i])} of {m} parts" for i in range(m)], part


def ranks_of(values: FloatArray) -> FloatArray:
    """Return the rank of each value, from 1 for the lowest; equal values share the mean of their ranks.

    Examples
    --------
    >>> ranks_of(np.array([5.0, 1.0, 5.0, 3.0]))
    array([3.5, 1. , 3.5, 2. ])
    """
    _, of, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[of])


def has_two_values(values: FloatArray) -> bool:
    """Return whether a feature has at most two values, so that every effect of it is a straight line."""
    low, high = values.min(), values.max()
    return bool(np.all((values == low) | (values == high)))


def feature_groups(X: FloatArray, names: list[str]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Return the groups of each feature: those who have it, or fifths; constant features have none."""
    for values, name in zip(X.T, names, strict=True):
        if not values.size or values.min() == values.max():
            continue
        if has_two_values(values):
            yield name, values == values.max()
            continue
        parts, part = parts_of(values, 5)
        for i, words in enumerate(parts):
            yield f"{name}, {words}", part == i
