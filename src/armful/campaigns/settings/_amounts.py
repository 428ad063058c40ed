"""Durations and sizes with their units, as people write them."""

import re
from datetime import timedelta
from typing import Any

from armful.campaigns.settings._checking import LARGEST_WHOLE, Check

UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400}
SHORT = {"s": "second", "sec": "second", "m": "minute", "min": "minute", "h": "hour", "d": "day", "w": "week"}
SIZES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 10**3, "MB": 10**6, "GB": 10**9}
LONGEST = 3660 * 86400
_AMOUNT = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*([A-Za-z]+)\s*", re.ASCII)


def duration(value: Any) -> timedelta:
    """Return a duration that is written with its unit; raise ValueError with a hint, which may be empty.

    Examples
    --------
    >>> duration("90 minutes"), duration("30s")
    (datetime.timedelta(seconds=5400), datetime.timedelta(seconds=30))
    """
    found = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError
    unit = found[2] if found[2] in SHORT else found[2].removesuffix("s")
    unit = SHORT.get(unit, unit)
    if unit not in UNITS:
        raise ValueError
    seconds = float(found[1]) * UNITS[unit]
    if not 1e-6 <= seconds <= LONGEST:
        raise ValueError("it must be longer than 0 and at most ten years")
    return timedelta(seconds=seconds)


def size(value: Any) -> int:
    """Return a number of bytes that is written with its unit, or alone; raise ValueError with a hint.

    Examples
    --------
    >>> size("8 MiB"), size("100 kB"), size(4096)
    (8388608, 100000, 4096)
    """
    found = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    if found is not None and found[2] in SIZES:
        value = round(float(found[1]) * SIZES[found[2]])
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError
    if not 1 <= value <= LARGEST_WHOLE:
        raise ValueError(f"it must be at least 1 byte and at most {LARGEST_WHOLE:,}")
    return value


DURATION = Check('a duration like "14 days", "2 weeks", "36 hours", "90 minutes" or "30 seconds"', duration)
SIZE = Check('a size like "8 MiB" or "500 kB"', size)
