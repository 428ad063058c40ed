"""Observations before they are learned: checked, weighted, whitened for shared noise, and reduced if very many."""

import numpy as np
from numpy.typing import ArrayLike

from armful import checks
from armful.checks import FloatArray
from armful.errors import PrecisionError
from armful.model._qr import stacked_root

ROWS_PER_QR = 2048
"""The largest number of rows in one QR: one of a million rows would need several times their memory."""

FEW = 64
"""Up to this many rows, or two per feature, are learned as they are; more are first reduced to a root."""


def check_rewards(X: FloatArray, rewards: ArrayLike, batch: tuple[int, ...]) -> FloatArray:
    """Return a reward for each row of `X`, refused if their number or the leading axes differ."""
    r = checks.floats("rewards", rewards)
    if r.shape != X.shape[:-1]:
        raise ValueError(
            f"rewards must have shape {X.shape[:-1]}, one for each row of features, got {checks.shape_of(r)}"
        )
    if X.shape[:-2] != batch:
        raise ValueError(f"features must have the leading axes {batch} of the state, got {X.shape[:-2]}")
    return r


def check_weights(weights: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Return weights as an array of this shape, refused if one is negative."""
    w = checks.floats("weights", weights)
    if w.shape != shape:
        raise ValueError(f"weights must have shape {shape}, one for each row of features, got {checks.shape_of(w)}")
    checks.refuse_not_finite("weights", w)
    if (w < 0).any():
        raise ValueError(f"weights must not be negative, got {w.min()}")
    return w


def total_weight(n: FloatArray, weights: FloatArray) -> FloatArray:
    """Return `n` plus the sum of the weights `(..., k)`, refused if it overflows."""
    with np.errstate(over="ignore"):
        total = np.asarray(n + weights.sum(axis=-1))
    if not checks.all_finite(total):
        raise PrecisionError("the sum of the weights is beyond the range of float64; scale them down")
    return total


def whiten(rows: FloatArray, weights: FloatArray, shock: float) -> FloatArray:
    """Return rows times a square root of `W = (diag(1/w) + shock 11')^-1`, so that their plain sum is the weighted one.

    W = D (I + shock q q')^-1 D with q = sqrt(w), D = diag(q), and (I + shock q q')^-1 = (I - c q q')^2.
    """
    q = np.sqrt(weights)[..., None]  # (..., k, 1)
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow is refused by learn
        scaled = q * rows
        if shock == 0:
            return scaled
        total = np.sum(q**2, axis=-2, keepdims=True)  # q'q, (..., 1, 1)
        c = np.where(total > 0, -np.expm1(-0.5 * np.log1p(shock * total)) / np.where(total > 0, total, 1.0), 0.0)
        return np.asarray(scaled - c * q * np.sum(q * scaled, axis=-2, keepdims=True))


def rows_to_learn(X: FloatArray, r: FloatArray, weights: FloatArray | None, shock: float) -> FloatArray:
    """Return rows whose sum of squares is the weighted one of `[x r]`; not many more rows than features."""
    k, d = X.shape[-2:]
    if shock > 0:  # all rows at once: each depends on the others
        return whiten(_with_rewards(X, r), np.ones(r.shape) if weights is None else weights, shock)
    if k <= max(FEW, 2 * d):
        return _with_rewards(X, r) if weights is None else whiten(_with_rewards(X, r), weights, 0.0)
    root = np.zeros((*X.shape[:-2], d + 1, d + 1))
    for begin in range(0, k, ROWS_PER_QR):
        part = slice(begin, begin + ROWS_PER_QR)
        rows = _with_rewards(X[..., part, :], r[..., part])
        root = stacked_root(root, rows if weights is None else whiten(rows, weights[..., part], 0.0))
    return root


def _with_rewards(X: FloatArray, rewards: FloatArray) -> FloatArray:
    """Return each row of features with its reward appended."""
    return np.concatenate([X, rewards[..., None]], axis=-1)
