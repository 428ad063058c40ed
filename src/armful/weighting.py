"""Rows that count for more or less than one, and rows whose noise is partly shared."""

import numpy as np
from numpy.typing import ArrayLike

from armful import checks
from armful.checks import FloatArray


def check_weights(weights: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """A weight for each row, none negative."""
    w = checks.floats("weights", weights)
    if w.shape != shape:
        raise ValueError(f"weights must have shape {shape}, one for each row of features, got {w.shape}")
    checks.refuse_not_finite("weights", w)
    if (w < 0).any():
        raise ValueError(f"weights must not be negative, got {w.min()}")
    return w


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
