"""Guesses in words, as `armful init` says them."""

from collections.abc import Sequence

from armful.campaigns.init._guessing import ColumnGuess

MOST_NAMES = 8
"""Columns that one line names."""


def columns_as_words(columns: Sequence[ColumnGuess]) -> list[str]:
    """Return a line for each kind of column, and one for those that are left out."""
    used = [column for column in columns if column.settings is not None]
    lines = []
    words = {"number": "numbers", "category": "categories", "date": "dates", "text": "texts, by their words"}
    for kind, word in words.items():
        of_kind = [column for column in used if column.settings and column.settings.kind == kind]
        plain = [column for column in of_kind if column.settings and not column.settings.log]
        logs = [column for column in of_kind if column.settings and column.settings.log]
        lines += [f"{word}: {listed(plain)}"] if plain else []
        lines += [f"{word} by their logarithm, since they are very skewed: {listed(logs)}"] if logs else []
    left_out = [column for column in columns if column.settings is None]
    lines += [f"left out: {listed(left_out, with_reasons=True)}"] if left_out else []
    return lines


def separated(delimiter: str) -> str:
    """Return what separates columns, if it is no comma."""
    return "" if delimiter == "," else f" separated by {'tabs' if delimiter == chr(9) else repr(delimiter)}"


def listed(columns: Sequence[ColumnGuess], *, with_reasons: bool = False) -> str:
    """Return the names of some columns, with the reasons for their guesses if asked."""
    shown = [f"{column.name} ({column.why})" if with_reasons else column.name for column in columns[:MOST_NAMES]]
    more = len(columns) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
