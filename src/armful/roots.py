"""Triangular square roots of sums of squares, `(..., n, n)`: stacked by QR, and inverted."""

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy.linalg.lapack import dtpqrt, dtrtri

from armful.checks import FloatArray

QR_BLOCK = 16
"""Columns of a QR worked on together: about the fastest from 50 features to 500."""


def stacked_root(root: FloatArray, rows: FloatArray, *, triangle: bool = False) -> FloatArray:
    """The triangular square root of `root' root + rows' rows`. triangle: the rows are one too."""
    qr = partial(dtpqrt, rows.shape[-2] if triangle else 0, min(root.shape[-1], QR_BLOCK))
    return _one_by_one(qr, root, rows)


def inverted(triangle: FloatArray) -> FloatArray:
    """The inverse of an upper triangle."""
    return _one_by_one(dtrtri, triangle)


@lru_cache(maxsize=8)
def ridge_rows(d: int, ridge: float, batch: tuple[int, ...]) -> FloatArray:
    """Rows whose square is `ridge I`, with rewards of 0."""
    return np.broadcast_to(math.sqrt(ridge) * np.eye(d, d + 1), (*batch, d, d + 1))


def diagonal(matrix: FloatArray) -> FloatArray:
    """The diagonals, `(..., n)`."""
    return np.diagonal(matrix, axis1=-2, axis2=-1)


def _one_by_one(lapack: Callable[..., Any], *stacks: FloatArray) -> FloatArray:
    """What `lapack` makes of `(..., m, n)` matrices, each by itself: a batch gets the bits that single ones get."""
    if stacks[0].ndim == 2:
        return np.ascontiguousarray(lapack(*stacks)[0])
    flat = [stack.reshape(-1, *stack.shape[-2:]) for stack in stacks]
    return np.array([lapack(*each)[0] for each in zip(*flat, strict=True)]).reshape(stacks[0].shape)
