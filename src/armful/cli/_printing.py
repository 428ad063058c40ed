"""Tables, numbers and names as commands print them."""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text


def draw(columns: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = True) -> None:
    """Print a table of numbers, with names in the first column, or of texts, which are folded if they are too wide."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for index, column in enumerate(columns):
        justify: Literal["right", "left"] = "right" if index and numbers else "left"
        table.add_column(Text(printable(column)), justify=justify, no_wrap=numbers, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console = Console(highlight=False)
    if numbers or not console.is_terminal:  # digits are never cut off, and a file has no width that a table must fit
        unlimited = console.options.update(max_width=10_000)
        console.width = max(console.width, console.measure(table, options=unlimited).maximum)
    console.print(table)


def printable(text: str) -> str:
    r"""Return text from a file of the user's without what would move the cursor or colour the screen.

    Examples
    --------
    >>> printable("north [bold] \x1b[31m")
    'north [bold] �[31m'
    """
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def number(value: float) -> str:
    """Return a mean, with digits by its size; nothing for what is not a number.

    Examples
    --------
    >>> number(0.12345), number(0.02), number(12.345), number(1234.5), number(float("nan"))
    ('0.123', '0.020', '12.35', '1,234', '-')
    """
    if math.isnan(value):
        return "-"
    digits = 3 if abs(value) < 10 else 2 if abs(value) < 1000 else 0
    return f"{value:,.{digits}f}"


def percent(value: float) -> str:
    """Return a fraction in percent; nothing for what is not a number."""
    return "-" if math.isnan(value) else f"{100 * value:.0f} %"


def count(n: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> count(1, "round"), count(2000, "round")
    ('1 round', '2,000 rounds')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def rounds(numbers: Sequence[int]) -> str:
    """Return the numbers of rounds as words, runs of them shortened.

    Examples
    --------
    >>> rounds([]), rounds([1]), rounds([1, 2, 3, 5])
    ('no round', 'round 1', 'rounds 1 to 3, 5')
    """
    if not numbers:
        return "no round"
    runs: list[list[int]] = []
    for each in sorted(numbers):
        if runs and each == runs[-1][-1] + 1:
            runs[-1].append(each)
        else:
            runs.append([each])
    parts = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return f"round{'' if len(numbers) == 1 else 's'} {', '.join(parts)}"


def size(n_bytes: int) -> str:
    """Return a number of bytes in the unit that suits it.

    Examples
    --------
    >>> size(90), size(4096), size(7_544_832), size(12_300_000_000)
    ('90 bytes', '4.1 kB', '7.5 MB', '12.3 GB')
    """
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= factor:
            return f"{n_bytes / factor:,.1f} {unit}"
    return count(n_bytes, "byte")


def date(moment: datetime) -> str:
    """Return a moment to the minute, or the day alone if it is midnight."""
    text = moment.strftime("%Y-%m-%d %H:%M")
    return text.removesuffix(" 00:00")


def window(length: timedelta) -> str:
    """Return a length of time in the largest unit that it is a whole number of.

    Examples
    --------
    >>> window(timedelta(days=14)), window(timedelta(hours=36)), window(timedelta(minutes=90)), window(timedelta(0, 1))
    ('14 days', '36 hours', '90 minutes', '1 second')
    """
    for unit, size in (("day", timedelta(days=1)), ("hour", timedelta(hours=1)), ("minute", timedelta(minutes=1))):
        if length % size == timedelta(0):
            return count(length // size, unit)
    seconds = length.total_seconds()
    return f"{seconds:g} second{'' if seconds == 1 else 's'}"
