"""Rows as they are learned: those that count for more or less than one, those whose noise is shared, and very many."""

import numpy as np
from numpy.typing import ArrayLike

from armful import checks
from armful.checks import FloatArray
from armful.errors import PrecisionError
from armful.model._qr import stacked_root

LEARNED_AT_A_TIME = 2048
"""Rows that go into one QR: from a million rows, one of all of them would need several times their memory."""

FEW = 64
"""Up to so many rows, or two for each feature, are learned as they are; of more, first a root is made."""


def check_weights(weights: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """A weight for each row, none negative."""
    w = checks.floats("weights", weights)
    if w.shape != shape:
        raise ValueError(f"weights must have shape {shape}, one for each row of features, got {checks.shape_of(w)}")
    checks.refuse_not_finite("weights", w)
    if (w < 0).any():
        raise ValueError(f"weights must not be negative, got {w.min()}")
    return w


def total_weight(n: FloatArray, weights: FloatArray) -> FloatArray:
    """Return `n` and all weights `(..., k)` added up, refused where that leaves float64."""
    with np.errstate(over="ignore"):
        total = np.asarray(n + weights.sum(axis=-1))
    if not checks.all_finite(total):
        raise PrecisionError("the sum of the weights is beyond the range of float64; scale them down")
    return total


def whiten(rows: FloatArray, weights: FloatArray, shock: float) -> FloatArray:
    """Rows times a square root of `W = (diag(1/w) + shock 11')^-1`, so that their plain sum is the weighted one.

    W = D (I + shock q q')^-1 D with q = sqrt(w), D = diag(q), and (I + shock q q')^-1 = (I - c q q')^2.
    """
    q = np.sqrt(weights)[..., None]  # (..., k, 1)
    with np.errstate(over="ignore", invalid="ignore"):  # what is too large is refused when it is learned
        scaled = q * rows
        if shock == 0:
            return scaled
        total = np.sum(q**2, axis=-2, keepdims=True)  # q'q, (..., 1, 1)
        c = np.where(total > 0, -np.expm1(-0.5 * np.log1p(shock * total)) / np.where(total > 0, total, 1.0), 0.0)
        return np.asarray(scaled - c * q * np.sum(q * scaled, axis=-2, keepdims=True))


def rows_to_learn(X: FloatArray, r: FloatArray, weights: FloatArray | None, shock: float) -> FloatArray:
    """Rows whose sum of squares is that of `[x r]`, weighted; not many more than features."""
    k, d = X.shape[-2:]
    if shock > 0:  # all rows at once: each depends on the others
        return whiten(_beside(X, r), np.ones(r.shape) if weights is None else weights, shock)
    if k <= max(FEW, 2 * d):
        return _beside(X, r) if weights is None else whiten(_beside(X, r), weights, 0.0)
    root = np.zeros((*X.shape[:-2], d + 1, d + 1))
    for begin in range(0, k, LEARNED_AT_A_TIME):
        part = slice(begin, begin + LEARNED_AT_A_TIME)
        rows = _beside(X[..., part, :], r[..., part])
        root = stacked_root(root, rows if weights is None else whiten(rows, weights[..., part], 0.0))
    return root


def _beside(X: FloatArray, rewards: FloatArray) -> FloatArray:
    """Each row of features with its reward."""
    return np.concatenate([X, rewards[..., None]], axis=-1)
