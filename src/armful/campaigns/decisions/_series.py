"""Means over time, from the counts of the segments."""

import math
from datetime import UTC, datetime
from typing import Any

import numpy as np

from armful.campaigns.decisions._counts import COLUMNS, SHARES, SUMS, summed
from armful.campaigns.decisions._segments import Segment
from armful.checks import FloatArray

MOST_POINTS = 200
STANDARD_ERRORS = 1.96


def series(segments: list[Segment]) -> list[dict[str, Any]]:
    """Return at most `MOST_POINTS` points of equally many decisions each, the last perhaps of fewer."""
    if not segments:
        return []
    each = [segment.counts for segment in segments]
    widths = np.concatenate([np.full(len(counts.buckets), counts.per_row) for counts in each])
    point = (np.cumsum(widths) - widths) // buckets_of_a_point(int(widths.sum()))
    sums = summed(np.concatenate([counts.buckets for counts in each]), np.flatnonzero(np.diff(point, prepend=-1)))
    return [_point(dict(zip(COLUMNS, row, strict=True))) for row in sums.tolist()]


def buckets_of_a_point(n_buckets: int) -> int:
    """Return how many buckets a point of the series has: a power of two, so that points seldom change."""
    return 1 << max(0, math.ceil(n_buckets / MOST_POINTS) - 1).bit_length()


def mean_of(totals: dict[str, float], share: str) -> dict[str, float | None] | None:
    """Return the mean reward of a share with an interval of 95 % that allows for decisions whose rewards are alike."""
    n, total, squares, product, sizes = (totals[f"{share}_{name}"] for name in SUMS)
    if n == 0:
        return None
    mean = total / n
    variance = max(squares - 2 * mean * product + mean**2 * sizes, 0.0) / n**2
    error = STANDARD_ERRORS * math.sqrt(variance)
    known = n > 1 and variance > 0
    return {"n": n, "mean": mean, "low": mean - error if known else None, "high": mean + error if known else None}


def mean_so_far(totals: dict[str, float], share: str) -> dict[str, float | None] | None:
    """Return the mean reward of a share as if no reward came any more; without an interval, since some will come."""
    n = totals[f"{share}_n"] + totals[f"{share}_open_n"]
    total = totals[f"{share}_sum"] + totals[f"{share}_open_sum"]
    return {"n": n, "mean": total / n, "low": None, "high": None} if n else None


def totals_of(segments: list[Segment]) -> dict[str, float]:
    """Return the sum of each column over all segments."""
    rows = [segment.counts.buckets.sum(axis=0) for segment in segments]
    total: FloatArray = np.sum(rows, axis=0) if rows else np.zeros(len(COLUMNS))
    return dict(zip(COLUMNS, total.tolist(), strict=True))


def _point(totals: dict[str, float]) -> dict[str, Any]:
    by_policy = totals["by_policy"]
    mean = mean_so_far if totals["open"] else mean_of
    return {
        "from": iso(totals["first_at"]),
        "to": iso(totals["last_at"]),
        "decisions": int(totals["decisions"]),
        "open": int(totals["open"]),
        **{share: mean(totals, share) for share in SHARES},
        "predicted": totals["predicted"] / totals["n_predicted"] if totals["n_predicted"] else None,
        "exploring": totals["explored_arms"] / by_policy if by_policy else None,
        "capped": totals["capped"] / by_policy if by_policy else None,
    }


def iso(seconds: float) -> str:
    """Return a moment in seconds since 1970 in ISO format."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()
