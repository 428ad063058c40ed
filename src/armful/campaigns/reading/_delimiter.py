"""What separates the columns of a CSV file."""

import csv
from typing import Any

from armful.tables._files import CSV_ENDINGS, find_files, readable_errors

DELIMITERS = (",", ";", "\t", "|")
LOOK = 1 << 18
"""Bytes of the file that are looked at."""
LINES = 100


def is_csv(source: Any) -> bool:
    """Return whether a file is CSV by its name."""
    return find_files(source)[0].path.lower().endswith(CSV_ENDINGS)


def guess_delimiter(source: Any) -> str:
    """Return the character that divides the first lines of a CSV file into the most columns, equally many in each.

    Parameters
    ----------
    source : path
        The file.

    Returns
    -------
    str
        A comma if no character does.
    """
    lines = _first_lines(source)
    return max(DELIMITERS, key=lambda mark: _n_columns(lines[:-1] or lines, mark))  # the last one may be cut off


def delimiter_of(source: Any, column: str, usual: str) -> str:
    """Return the usual delimiter if it finds a column in the header of a CSV file, else the one that is guessed."""
    header = _first_lines(source)[:1]
    try:
        found = any(column in row for row in csv.reader(header, delimiter=usual))
    except csv.Error:
        found = False
    return usual if found else guess_delimiter(source)


def _first_lines(source: Any) -> list[str]:
    file = find_files(source)[0]
    with readable_errors(file.path, "CSV"), file.system.open_input_stream(file.path) as stream:
        start: str = stream.read(LOOK).decode("utf-8-sig", errors="replace")
    return start.splitlines()[: LINES + 1]


def _n_columns(lines: list[str], delimiter: str) -> float:
    """Return how many columns the lines have; fewer if not all have as many as the header."""
    try:
        counts = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error:
        return 0
    return 0 if not counts or counts[0] < 2 else counts[0] * counts.count(counts[0]) / len(counts)
