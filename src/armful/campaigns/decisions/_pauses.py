"""Pauses: times without a decision that are far longer than usual. Points end at them, so that none is drawn inside."""

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray

STRETCH = 8
"""Decisions whose time together says what is usual: several may come at once, so the time between two says little."""

MOST_IN_A_SEGMENT = 8
"""Pauses of a segment that are kept, the longest: its counts must stay small, however irregular its requests are."""


def after_pauses(chosen_at: FloatArray, bucket: int) -> NDArray[np.bool_]:
    """Return for each of some consecutive decisions whether it comes after a pause, `(m,)`.

    A pause is longer than a bucket of decisions usually takes.

    Parameters
    ----------
    chosen_at : ndarray of shape (m,)
        In seconds.
    bucket : int
        How many decisions a bucket has.

    Examples
    --------
    >>> times = np.r_[np.arange(30.0), 500 + np.arange(30.0)]
    >>> np.flatnonzero(after_pauses(times, bucket=64))
    array([30])
    """
    found = np.zeros(chosen_at.size, dtype=bool)
    if chosen_at.size < 3 * STRETCH:
        return found
    usual = float(np.median(chosen_at[STRETCH:] - chosen_at[:-STRETCH])) * bucket / STRETCH
    gaps = np.diff(chosen_at, prepend=chosen_at[0])
    longest = np.argsort(-gaps, kind="stable")[:MOST_IN_A_SEGMENT]
    found[longest] = gaps[longest] > max(usual, 0.0)
    return found


def pauses_before(first: FloatArray, last: FloatArray, n: FloatArray, bucket: int) -> FloatArray:
    """Return how many buckets of decisions would usually have come between each row and the one before, `(n_rows,)`.

    Parameters
    ----------
    first, last : ndarray of shape (n_rows,)
        When the first and the last decision of each row were made, in seconds.
    n : ndarray of shape (n_rows,)
        How many decisions it has.
    bucket : int
        How many decisions a bucket has.

    Examples
    --------
    >>> first, last = np.array([0.0, 64.0, 192.0]), np.array([63.0, 127.0, 255.0])
    >>> pauses_before(first, last, np.full(3, 64.0), bucket=64)
    array([0.      , 0.015625, 1.015625])
    """
    rates = ((last - first) / np.maximum(n - 1, 1))[n > 1]
    usual = bucket * float(np.median(rates)) if rates.size else 0.0
    gaps = np.r_[0.0, np.maximum(first[1:] - last[:-1], 0.0)]
    return gaps / usual if usual > 0 else np.zeros(first.size)
