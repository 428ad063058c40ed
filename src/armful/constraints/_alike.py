"""Arms with equal columns in a program: any two may be exchanged, so of those that are alike the best few suffice."""

import numpy as np

from armful.checks import FloatArray, IntArray
from armful.constraints._milp_rows import LinearRows

MOST_ENTRIES = 2**20
"""Matrices with more entries are not searched for equal columns."""


def kinds_of(rows: LinearRows) -> IntArray | None:
    """Return the kind of each arm, counted from 0 `(n_arms,)`: arms of a kind have equal columns; None if too large."""
    n_rows, n_arms = rows.matrix.shape
    if n_rows * n_arms > MOST_ENTRIES:
        return None
    kinds = np.unique(rows.matrix.toarray(), axis=1, return_inverse=True)[1]
    return np.asarray(kinds, dtype=np.int64).reshape(n_arms)


def worth_asking(scores: FloatArray, rows: LinearRows, kinds: IntArray, fixed: FloatArray | None) -> IntArray:
    """Return the arms that a best set can be found among: of each kind so many of the best as the rows allow.

    In any set, an arm can be replaced by one of its kind that is not in it. So there is a best set in which no arm
    outside scores more than one of its kind inside, unless one of them is fixed.
    """
    most = _most_of_each_kind(rows, kinds)
    free = np.ones(scores.size, dtype=bool) if fixed is None else np.isnan(fixed)
    order = np.lexsort((-scores, ~free, kinds))
    sizes = np.bincount(kinds)
    rank = np.arange(scores.size) - (np.cumsum(sizes) - sizes)[kinds[order]]
    kept = np.zeros(scores.size, dtype=bool)
    kept[order] = rank < most[kinds[order]]
    if fixed is not None:
        kept[~free] = fixed[~free] == 1
    return np.flatnonzero(kept)


def _most_of_each_kind(rows: LinearRows, kinds: IntArray) -> FloatArray:
    """Return an upper bound on how many arms of each kind are in an allowed set, by rows without negative numbers."""
    first = np.unique(kinds, return_index=True)[1]
    columns = rows.matrix.toarray()
    usable = (columns >= 0).all(axis=1) & np.isfinite(rows.upper)
    entries, upper = columns[usable][:, first], rows.upper[usable]
    with np.errstate(divide="ignore", invalid="ignore"):
        allowed = np.where(entries > 0, upper[:, None] / entries, np.inf)
    # One more where rounding could matter: too many arms do no harm.
    return np.asarray(np.maximum(np.floor(allowed + 1e-6), 0.0).min(axis=0, initial=np.inf))
