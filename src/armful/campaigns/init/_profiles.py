"""What a sample of rows shows about each column of a customers file."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from armful.campaigns.features._row_sample import RowSample
from armful.campaigns.reading import _column_values as values
from armful.campaigns.reading._rows import open_rows
from armful.checks import FloatArray

SAMPLE = 20_000
MOST_KEPT = 1_000
"""Distinct values of a column that are kept, the most frequent ones."""
NO_NUMBER = [*csv.ConvertOptions().null_values]
"""What a CSV file may hold in place of a number."""
_CODE = re.compile(r"[+-]?0\d+")
_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+|[+-]?\d{1,3}(,\d{3})+(\.\d+)?")


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnProfile:
    """What is known of a column.

    Attributes
    ----------
    name : str
    n_rows, n_missing, n_distinct : int
        In the sample; missing values are not counted as distinct.
    counts : dict of str to int
        How often values occur, the most frequent first.
    texts : list of str or None, one for each row of the sample
    numbers : ndarray or None
        One for each row, NaN where it is missing; None if the column does not hold numbers.
    looks : {"numbers", "dates", "truths", "texts", "other"}
    type : str
        The type in the file.
    """

    name: str
    n_rows: int
    n_missing: int
    n_distinct: int
    counts: dict[str, int]
    texts: list[str | None]
    numbers: FloatArray | None
    looks: str
    type: str

    @property
    def all_differ(self) -> bool:
        """Whether no value is missing or repeated in the sample."""
        return self.n_distinct == self.n_rows

    @property
    def known(self) -> FloatArray:
        """The numbers that are not missing."""
        return np.array([]) if self.numbers is None else np.asarray(self.numbers[~np.isnan(self.numbers)])

    @property
    def are_whole(self) -> bool:
        """Whether all are whole numbers."""
        return self.numbers is not None and bool(np.all(self.known == np.round(self.known)))

    @property
    def has_decimal_commas(self) -> bool:
        """Whether texts are numbers with a comma in them."""
        return self.looks == "texts" and bool(self.counts) and all(_COMMA.fullmatch(text) for text in self.counts)


@dataclass(frozen=True, eq=False, kw_only=True)
class FileProfile:
    """A file of customers: its number of rows, and its columns."""

    n_rows: int
    columns: list[ColumnProfile]


def profile_file(source: Any, delimiter: str) -> FileProfile:
    """Return what a sample of all rows of a file shows; CSV is read as text, to see how values are written."""
    names = open_rows(source, delimiter=delimiter).schema.names
    reader = open_rows(source, text=names, delimiter=delimiter)
    sample = RowSample(SAMPLE)
    for batch in reader.batches:
        sample.add(batch.take(pa.array(sample.select(batch.num_rows))))
    rows = sample.rows()
    return FileProfile(n_rows=sample.n_rows, columns=[_profile(name, rows.column(name)) for name in names])


def first_repeat(source: Any, id: str, delimiter: str) -> str | None:
    """Return an id that is in several rows of a file, empty if one is missing; None if all differ."""
    reader = open_rows(source, columns=[id], text=[id], delimiter=delimiter)
    ids = pa.chunked_array([values.texts(batch.column(0), id).cast(pa.string()) for batch in reader.batches])
    if ids.null_count or pc.any(pc.equal(ids, "")).as_py():
        return ""
    if pc.count_distinct(ids).as_py() == len(ids):
        return None
    counts = pc.value_counts(ids)
    return str(counts.filter(pc.greater(counts.field("counts"), 1))[0]["values"].as_py())


def _profile(name: str, column: pa.ChunkedArray) -> ColumnProfile:
    array = column.combine_chunks()
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    try:
        words = values.texts(array, name).cast(pa.string())
    except (ValueError, pa.ArrowException):  # lists, bytes and the like
        words = pa.nulls(len(array), pa.string())
    texts = [None if text is None or not text.strip() else text for text in words.to_pylist()]
    numbers, looks = _numbers_and_looks(array, texts, kind, name)
    if numbers is not None:
        texts = [None if np.isnan(number) else text for number, text in zip(numbers, texts, strict=True)]
    counts = _counts(texts)
    return ColumnProfile(
        name=name,
        n_rows=len(texts),
        n_missing=texts.count(None),
        n_distinct=len(counts),
        counts=dict(list(counts.items())[:MOST_KEPT]),
        texts=texts,
        numbers=numbers,
        looks=looks,
        type=str(kind),
    )


def _numbers_and_looks(
    array: pa.Array, texts: Sequence[str | None], kind: pa.DataType, name: str
) -> tuple[FloatArray | None, str]:
    if pa.types.is_boolean(kind):
        return None, "truths"
    if values.is_number(array.type):
        return values.numbers(array, name), "numbers"
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        is_date = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
        return None, "dates" if is_date else "texts" if pa.types.is_null(kind) else "other"
    numbers = _written_numbers(texts)
    if numbers is not None:
        return numbers, "numbers"
    return None, "dates" if _are_dates(array, name) else "texts"


def _written_numbers(texts: Sequence[str | None]) -> FloatArray | None:
    """Return texts as numbers, NaN for missing ones; None if one is none, or is a code like 007."""
    found = [None if text is None or text.strip() in NO_NUMBER else text.strip() for text in texts]
    known = [text for text in found if text is not None]
    if not known or any(_CODE.fullmatch(text) for text in known):
        return None
    try:
        numbers = pa.array(found, pa.string()).cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return None
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _are_dates(array: pa.Array, name: str) -> bool:
    written = values.date_writing(array)
    if written is None:
        return False
    try:
        values.days(array, name, written)
    except (ValueError, pa.ArrowException):
        return False
    return True


def _counts(texts: Sequence[str | None]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for text in texts:
        if text is not None:
            counts[text] = counts.get(text, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
