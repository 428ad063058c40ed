"""Categories, ordered values and free text as features."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from armful.campaigns.features._kinds import MISSING, OTHER, ColumnFeatures, Target
from armful.campaigns.reading import _column_values as values
from armful.checks import IntArray


@dataclass(frozen=True, kw_only=True)
class Category(ColumnFeatures):
    """One feature for each category, one for all others, one for missing ones if there were any."""

    kind: ClassVar[str] = "category"

    categories: tuple[str, ...]
    missing: bool = False
    numbers: bool = False

    @property
    def names(self) -> list[str]:
        """The categories, then what stands for the rest."""
        return [f"{self.column}: {word}" for word in [*self.categories, OTHER, *[MISSING] * self.missing]]

    def write(self, columns: Sequence[pa.Array], target: Target) -> None:
        """Write the features of its column."""
        texts = checked_texts(self.column, columns[0], self.categories, self.numbers)
        n = len(self.categories)
        target.mark(positions(texts, self.categories, other=n, missing=n + self.missing))


@dataclass(frozen=True, kw_only=True)
class Ordered(ColumnFeatures):
    """The position of a value in the order, from 0 to 1; what is not in it counts as the median, and is marked."""

    kind: ClassVar[str] = "ordered"

    order: tuple[str, ...]
    median: int
    other: bool = False
    numbers: bool = False

    @property
    def names(self) -> list[str]:
        """The position, then the mark."""
        return [self.column, *[f"{self.column}: {OTHER}"] * self.other]

    def write(self, columns: Sequence[pa.Array], target: Target) -> None:
        """Write the features of its column."""
        texts = checked_texts(self.column, columns[0], self.order, self.numbers)
        found = positions(texts, self.order, other=-1, missing=-1)
        target.write(0, np.where(found < 0, self.median, found) / (len(self.order) - 1))
        if self.other:
            target.write(1, found < 0)


@dataclass(frozen=True, kw_only=True)
class Text(ColumnFeatures):
    """The words of a text, hashed into buckets: those that occur share a row of length 1."""

    kind: ClassVar[str] = "text"

    buckets: int

    @property
    def names(self) -> list[str]:
        """The buckets."""
        return [f"{self.column}: words {i + 1}" for i in range(self.buckets)]

    def write(self, columns: Sequence[pa.Array], target: Target) -> None:
        """Write the features of its column."""
        column = values.texts(columns[0], self.column)
        column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        plain = pc.replace_substring_regex(pc.utf8_lower(column), pattern=r"[^\pL\pN]+", replacement=" ")
        lists = pc.split_pattern(pc.coalesce(plain, ""), " ")
        words, rows = pc.list_flatten(lists), pc.list_parent_indices(lists)
        is_word = pc.not_equal(words, "")
        words, rows = words.filter(is_word).dictionary_encode(), rows.filter(is_word).to_numpy(zero_copy_only=False)
        buckets = [zlib.crc32(word.encode()) % self.buckets for word in words.dictionary.to_pylist()]
        found = np.zeros((len(column), self.buckets))
        found[rows, np.array(buckets, dtype=np.int64)[words.indices.to_numpy()]] = 1.0
        found /= np.sqrt(np.maximum(found.sum(axis=1, keepdims=True), 1.0))
        for bucket in range(self.buckets):
            target.write(bucket, found[:, bucket])


def positions(column: pa.Array, words: Sequence[str], *, other: int, missing: int) -> IntArray:
    """Return the position of each text in `words`; null, "" and "missing" are `missing`, what is not in it `other`."""
    if pa.types.is_dictionary(column.type):
        of_words = positions(column.dictionary, words, other=other, missing=missing)
        indices = column.indices
        if indices.null_count:
            of_words, indices = np.append(of_words, missing), indices.fill_null(len(of_words))
        return np.asarray(of_words[indices.to_numpy()])
    blank = [text for text in ("", MISSING, None) if text not in words]
    known = pa.array([*words, *blank], type=column.type)
    position = np.array([*range(len(words)), *[missing] * len(blank), other])
    return np.asarray(position[pc.index_in(column, value_set=known).fill_null(len(known)).to_numpy()])


def checked_texts(name: str, column: pa.Array, words: Sequence[str], numbers: bool) -> pa.Array:
    """Return a column as texts; raise ValueError if it held texts and now holds numbers, or the reverse.

    numbers: whether it held numbers when it was fitted. Numbers written as text are the same as numbers, as a CSV file
    and a Parquet file of the same customers have them; so are True and true.
    """
    texts = values.texts(column, name)
    if pa.types.is_boolean(column.type):
        written = {word.lower(): word for word in words}
        yes, no = written.get("true", "true"), written.get("false", "false")
        texts = pc.if_else(column, pa.scalar(yes, pa.string()), pa.scalar(no, pa.string()))
    elif values.is_number(column.type) and not numbers:
        text = next((word for word in words if not _is_number(word)), None)
        if text is not None:
            raise ValueError(f"column {name!r} should hold text like {text!r}, got numbers ({column.type})")
    elif numbers and not values.is_number(column.type):
        for text in (texts.dictionary if pa.types.is_dictionary(texts.type) else texts.unique()).to_pylist():
            if text not in (None, "", OTHER, MISSING) and not _is_number(text):
                raise ValueError(f"column {name!r} should hold numbers like {words[0]}, got text like {text!r}")
    return texts


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
