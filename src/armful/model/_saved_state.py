"""The arrays of a saved ridge state, checked before they are used."""

import math
import os
from contextlib import suppress

import numpy as np

from armful.checks import FloatArray
from armful.errors import FileFormatError
from armful.files._npz_format import Arrays
from armful.model._factor import Factor
from armful.model._provenance import Sources
from armful.model._qr import SumOfSquares, frozen

NAMES = ("root", "rows", "solved", "n")
MOST_OF_NONE = 2**20
"""The largest number of entries of a root in an empty batch, of which the file holds no byte."""


def restored(
    ridge: object, arrays: Arrays, path: str | os.PathLike[str]
) -> tuple[float, SumOfSquares, Factor, FloatArray, Sources]:
    """Return the ridge and the parts of a `RidgeState`, or raise `FileFormatError` if they are inconsistent."""
    refusal = FileFormatError(f"{path} does not hold a consistent ridge state")
    present = [arrays[name] for name in NAMES if name in arrays]
    if len(present) != len(NAMES) or not (isinstance(ridge, float) and math.isfinite(ridge) and ridge > 0):
        raise refusal
    root, rows, solved, n = present
    size = root.shape[-1] if root.ndim else 0
    square = (*n.shape, size, size)
    fit = size >= 2 and root.shape == solved.shape == square
    fit = fit and size**2 <= max(root.size, MOST_OF_NONE)
    fit = fit and rows.ndim == root.ndim and (*rows.shape[:-2], rows.shape[-1]) == square[:-1]
    fit = fit and all(array.dtype == np.float64 and np.isfinite(array).all() for array in present)
    sources = arrays.get("sources", np.zeros(0, dtype=np.int64))  # the first files have none
    if not fit or (n < 0).any() or sources.ndim != 1 or sources.dtype != np.int64:
        raise refusal
    with suppress(ArithmeticError, ValueError), np.errstate(all="ignore"):
        total, known = SumOfSquares(frozen(root), (frozen(rows),), rows.shape[-2]), Factor(solved)
        known.refuse_lost_ridge(ridge)
        if Factor.of(total, ridge).is_like(known.triangle):
            return ridge, total, known, n, frozenset(sources.tolist())
    raise refusal
