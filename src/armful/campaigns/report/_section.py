"""What a section of a report is made of, and how its numbers are written."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from armful.campaigns.audit._finding import number, signed
from armful.campaigns.report._data import Mean
from armful.campaigns.report._drawing import Figure

Rows = Sequence[Sequence[str]]

NONE = "\u2013"
"""Stands where there is no number."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of texts; what stands between backquotes is code."""

    title: str
    columns: Sequence[str]
    rows: Rows


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A figure with its table. label: what it shows, for those who do not see it."""

    label: str
    figure: Figure
    table: Table


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the report. text: paragraphs. tables: those without a figure."""

    key: str
    title: str
    text: Sequence[str]
    drawn: Sequence[Drawn] = ()
    tables: Sequence[Table] = ()


def known(value: float | None) -> str:
    """Return a number to three digits, or a dash where there is none."""
    return NONE if value is None or not math.isfinite(value) else number(value)


def known_signed(value: float | None) -> str:
    """Return a number to three digits with its sign, or a dash where there is none."""
    return NONE if value is None or not math.isfinite(value) else signed(value)


def ends(mean: Mean) -> str:
    """Return the ends of an interval, or a dash where there is none."""
    return f"{number(mean.low)} to {number(mean.high)}" if math.isfinite(mean.low) else NONE


def counted(n: int, word: str) -> str:
    """Return a number of things.

    Examples
    --------
    >>> counted(1, "round"), counted(2, "round")
    ('1 round', '2 rounds')
    """
    return f"{n:,} {word}{'' if n == 1 else 's'}"
