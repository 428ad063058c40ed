"""Candidates as a request has them, the values of their columns, and one sentence for what cannot be used."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from armful.checks import LARGEST

LONGEST_SHOWN = 40
LARGEST_WHOLE = 2**63 - 1


class RawArm(Protocol):
    """A candidate as a request has it: raw columns, or ready features with columns for quotas."""

    @property
    def id(self) -> str:
        """What the arm is called."""

    @property
    def columns(self) -> Mapping[str, Any] | None:
        """The raw columns, by name."""

    @property
    def features(self) -> Sequence[float] | None:
        """The features, where the campaign's are ready."""


def as_number(value: Any) -> float:
    """Return a number, NaN for a missing one; raise ValueError with what came instead."""
    if value is None:
        return math.nan
    if not isinstance(value, bool | int | float):
        raise ValueError(f"must be a number, got {shown(value)}")
    if not abs(value) <= LARGEST:  # false for NaN
        raise ValueError(
            f"must be a finite number of at most {LARGEST:g}, or null if it is missing, got {shown(value)}"
        )
    return float(value)


def as_text(value: Any) -> str | None:
    """Return a value as the recipe writes it, 7 and 7.0 as "7"; raise ValueError with what came instead."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        if not abs(value) <= LARGEST_WHOLE and not (isinstance(value, float) and math.isfinite(value)):
            raise ValueError(f"must be a text or a number of usual size, got {shown(value)}")
        written: str = pa.scalar(value).cast(pa.string()).as_py()
        return written
    raise ValueError(f"must be a text or a number, got {shown(value)}")


def shown(value: Any) -> str:
    """Return what came, for a sentence; shortened where it is long.

    Examples
    --------
    >>> shown("abc"), shown(None), shown(True), shown([1]), shown({}), shown(float("nan"))
    ("the text 'abc'", 'null', 'true', 'a list', 'an object', 'nan')
    """
    match value:
        case None | bool():
            return "null" if value is None else str(value).lower()
        case str():
            return f"the text {value[:LONGEST_SHOWN]!r}{'...' * (len(value) > LONGEST_SHOWN)}"
        case int() | float():
            return "a number of very many digits" if abs(value) > 1e60 and isinstance(value, int) else repr(value)
        case list() | tuple():
            return "a list"
    return "an object" if isinstance(value, dict) else f"a {type(value).__name__}"
