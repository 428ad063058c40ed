"""Means over time, from the counts of the segments."""

import math
from datetime import UTC, datetime
from typing import Any

import numpy as np

from armful.campaigns._intervals import effective_size, interval, wilson
from armful.campaigns.decisions._counts import COLUMNS, SHARES, SUMS, pauses_of, starts_of, summed
from armful.campaigns.decisions._segments import Segment
from armful.checks import FloatArray, IntArray

MOST_POINTS = 200
ROUNDING = 1e-12
"""What rounding leaves, relative to the sum of squares, of a spread that is 0."""


def series(segments: list[Segment]) -> list[dict[str, Any]]:
    """Return at most `MOST_POINTS` points of equally many decisions each, fewer beside a pause and at the end."""
    if not segments:
        return []
    rows = np.concatenate([segment.counts.buckets for segment in segments])
    sums = summed(rows, _begins_of_points(rows))
    yes_or_no = has_yes_or_no(totals_of(segments))
    return [_point(dict(zip(COLUMNS, row, strict=True)), yes_or_no) for row in sums.tolist()]


def _begins_of_points(rows: FloatArray) -> IntArray:
    """Return the rows with which points begin: after so many buckets, and after a pause that is longer than a point.

    If there are more pauses than points can be, the longest count.
    """
    per_point = buckets_of_a_point(int(rows[:, COLUMNS.index("buckets")].sum()))
    begins = np.diff(starts_of(rows) // per_point, prepend=-1) != 0
    pauses = np.where(begins, 0.0, pauses_of(rows))
    most = max(MOST_POINTS - int(begins.sum()), 0)
    longest = np.argsort(-pauses, kind="stable")[:most]
    begins[longest[pauses[longest] >= per_point]] = True
    return np.flatnonzero(begins)


def buckets_of_a_point(n_buckets: int) -> int:
    """Return how many buckets a point of the series has: a power of two, so that points seldom change."""
    return 1 << max(0, math.ceil(n_buckets / MOST_POINTS) - 1).bit_length()


def has_yes_or_no(totals: dict[str, float]) -> bool:
    """Return whether the rewards in some totals are 0 and 1; not if all are 0, which amounts may be as well."""
    return totals["amounts"] == 0 and totals["largest"] == 1


def mean_of(totals: dict[str, float], share: str, *, yes_or_no: bool = False) -> dict[str, float | None] | None:
    """Return the mean reward of a share with an interval of 95 % that allows for decisions whose rewards are alike.

    For rewards of 0 and 1 it comes with the sums behind the interval, so that several points can be drawn as one. Other
    rewards have no interval where all decisions have the same mean.
    """
    n, total, squares, product, sizes = (totals[f"{share}_{name}"] for name in SUMS)
    if n == 0:
        return None
    mean = total / n
    spread = squares - 2 * mean * product + mean**2 * sizes
    error = math.sqrt(spread) / n if spread > ROUNDING * squares else 0.0
    if yes_or_no:
        low, high = wilson(mean, effective_size(mean, error, n, sizes))
        sums = {"squares": squares, "product": product, "sizes": sizes}
        return {"n": n, "mean": mean, "low": low, "high": high, **sums}
    if error == 0:
        return {"n": n, "mean": mean, "low": None, "high": None}
    low, high = interval(mean, error)
    return {"n": n, "mean": mean, "low": low, "high": high}


def mean_so_far(totals: dict[str, float], share: str) -> dict[str, float | None] | None:
    """Return the mean reward of a share as if no reward came any more; without an interval, since some will come."""
    n = totals[f"{share}_n"] + totals[f"{share}_open_n"]
    total = totals[f"{share}_sum"] + totals[f"{share}_open_sum"]
    return {"n": n, "mean": total / n, "low": None, "high": None} if n else None


def totals_of(segments: list[Segment]) -> dict[str, float]:
    """Return each column over all segments: the sum, or the extreme."""
    if not segments:
        return dict.fromkeys(COLUMNS, 0.0)
    rows = np.concatenate([segment.counts.buckets for segment in segments])
    (total,) = summed(rows, np.zeros(1, dtype=np.int64))
    return dict(zip(COLUMNS, total.tolist(), strict=True))


def _point(totals: dict[str, float], yes_or_no: bool) -> dict[str, Any]:
    by_policy = totals["by_policy"]
    return {
        "from": iso(totals["first_at"]),
        "to": iso(totals["last_at"]),
        "decisions": int(totals["decisions"]),
        "open": int(totals["open"]),
        **{
            share: mean_so_far(totals, share) if totals["open"] else mean_of(totals, share, yes_or_no=yes_or_no)
            for share in SHARES
        },
        "predicted": totals["predicted"] / totals["n_predicted"] if totals["n_predicted"] else None,
        "exploring": totals["explored_arms"] / by_policy if by_policy else None,
        "capped": totals["capped"] / by_policy if by_policy else None,
    }


def iso(seconds: float) -> str:
    """Return a moment in seconds since 1970 in ISO format."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()
