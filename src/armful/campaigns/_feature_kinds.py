"""The kinds of columns as features: what the recipe freezes of each column, and how it turns values into features."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from armful.campaigns import _column_values as values
from armful.checks import FloatArray, IntArray

Features = NDArray[np.float32]
OTHER, MISSING = "other", "missing"


class Target:
    """Where a column's features are written: some columns of the features `X` `(n, d)`, which hold zeros before.

    Parameters
    ----------
    X : array of float32, `(n, d)`
        The features of all columns.
    first : int
        The first of the columns to write.
    one : float
        What is written for 1: everything is divided by the square root of d.
    """

    def __init__(self, X: Features, first: int, one: float) -> None:
        self.X, self.first, self.one = X, first, one

    @cached_property
    def _begins(self) -> IntArray:
        """The index of each row's first feature to write, in the flattened features."""
        n, d = self.X.shape
        return np.arange(self.first, n * d, d) if d else np.zeros(n, dtype=np.int64)

    def write(self, feature: int, numbers: FloatArray | NDArray[np.bool_]) -> None:
        """Write a number for each row."""
        self.X[:, self.first + feature] = numbers * self.one

    def mark(self, features: IntArray) -> None:
        """Write a one into the given feature of each row."""
        self.X.reshape(-1)[self._begins + features] = self.one

    def write_at(self, features: IntArray, numbers: FloatArray) -> None:
        """Write a number into the given feature of each row."""
        self.X.reshape(-1)[self._begins + features] = numbers * self.one


class ColumnFeatures(Protocol):
    """What a kind of column is: it knows its column, the names of its features, and how to write them."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the file that it reads."""

    @property
    def names(self) -> list[str]:
        """The names of its features."""

    def write(self, columns: Sequence[pa.Array], target: Target) -> None:
        """Write the features of its columns."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A number as a feature from 0 to 1, or as a linear spline: hat functions on knots, of which two add up to 1.

    Numbers beyond `low` and `high`, or beyond the first and the last knot, count as these. If `low` equals `high` there
    is no feature.
    """

    low: float
    high: float
    log: bool = False
    knots: tuple[float, ...] = ()

    def names(self, column: str) -> list[str]:
        """Return the names of the features."""
        if self.knots:
            return [f"{column}: spline {i + 1}" for i in range(len(self.knots))]
        return [] if self.low == self.high else [f"{column}: log" if self.log else column]

    def write(self, numbers: FloatArray, target: Target) -> None:
        """Write the features of finite numbers."""
        if self.low == self.high:
            return
        if not self.knots:
            low, high = self._transformed(np.array([self.low, self.high])).tolist()
            target.write(0, np.clip((self._transformed(numbers) - low) / (high - low), 0.0, 1.0))
            return
        knots = self._transformed(np.array(self.knots))
        clipped = np.clip(self._transformed(numbers), knots[0], knots[-1])
        left = np.searchsorted(knots[1:-1], clipped, side="right")
        share = (clipped - knots[left]) / np.diff(knots)[left]
        target.write_at(left, 1.0 - share)
        target.write_at(left + 1, share)

    def _transformed(self, numbers: FloatArray) -> FloatArray:
        """Return the numbers or their logarithm, `log(1 + x)`, mirrored for negative ones."""
        return np.copysign(np.log1p(np.abs(numbers)), numbers) if self.log else numbers


@dataclass(frozen=True, kw_only=True)
class Number:
    """Numbers from 0 to 1, or as a spline; missing ones and a code like 999 count as the median, and are marked."""

    column: str
    median: float
    scale: Scale
    code: float | None = None
    missing: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    @property
    def names(self) -> list[str]:
        """The number or its spline, then the marks."""
        code = [] if self.code is None else [f"{self.column}: {self.code:g}"]
        return [*self.scale.names(self.column), *code, *[f"{self.column}: {MISSING}"] * self.missing]

    def write(self, columns: Sequence[pa.Array], target: Target) -> None:
        """Write the features of its column."""
        self.write_numbers(values.numbers(columns[0], self.column), target)

    def write_numbers(self, numbers: FloatArray, target: Target) -> None:
        """Write the features of numbers, NaN where one is missing."""
        is_missing = np.isnan(numbers)
        replaced = is_missing if self.code is None else is_missing | (numbers == self.code)
        self.scale.write(np.where(replaced, self.median, numbers) if replaced.any() else numbers, target)
        mark = len(self.scale.names(self.column))
        if self.code is not None:
            target.write(mark, numbers == self.code)
        if self.missing:
            target.write(mark + (self.code is not None), is_missing)


@dataclass(frozen=True, kw_only=True)
class Date(Number):
    """Dates as days from 0 to 1."""

    written: str = values.ISO

    def write(self, columns: Sequence[pa.Array], target: Target) -> None:
        """Write the features of its column."""
        self.write_numbers(values.days(columns[0], self.column, self.written), target)


@dataclass(frozen=True, kw_only=True)
class Category:
    """One feature for each category, one for all others, one for missing ones if there were any."""

    column: str
    categories: tuple[str, ...]
    missing: bool = False
    numbers: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    @property
    def names(self) -> list[str]:
        """The categories, then what stands for the rest."""
        return [f"{self.column}: {word}" for word in [*self.categories, OTHER, *[MISSING] * self.missing]]

    def write(self, columns: Sequence[pa.Array], target: Target) -> None:
        """Write the features of its column."""
        refuse_other_type(self.column, columns[0], self.categories, self.numbers)
        n = len(self.categories)
        target.mark(
            positions(values.texts(columns[0], self.column), self.categories, other=n, missing=n + self.missing)
        )


@dataclass(frozen=True, kw_only=True)
class Ordered:
    """The position of a value in the order, from 0 to 1; what is not in it counts as the median, and is marked."""

    column: str
    order: tuple[str, ...]
    median: int
    other: bool = False
    numbers: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    @property
    def names(self) -> list[str]:
        """The position, then the mark."""
        return [self.column, *[f"{self.column}: {OTHER}"] * self.other]

    def write(self, columns: Sequence[pa.Array], target: Target) -> None:
        """Write the features of its column."""
        refuse_other_type(self.column, columns[0], self.order, self.numbers)
        found = positions(values.texts(columns[0], self.column), self.order, other=-1, missing=-1)
        target.write(0, np.where(found < 0, self.median, found) / (len(self.order) - 1))
        if self.other:
            target.write(1, found < 0)


@dataclass(frozen=True, kw_only=True)
class Text:
    """The words of a text, hashed into buckets: those that occur share a row of length 1."""

    column: str
    buckets: int

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    @property
    def names(self) -> list[str]:
        """The buckets."""
        return [f"{self.column}: words {i + 1}" for i in range(self.buckets)]

    def write(self, columns: Sequence[pa.Array], target: Target) -> None:
        """Write the features of its column."""
        column = values.texts(columns[0], self.column)
        column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        plain = pc.replace_substring_regex(pc.utf8_lower(column), pattern=r"[^\pL\pN]+", replacement=" ")
        lists = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(pc.coalesce(plain, "")))
        words = pc.list_flatten(lists).dictionary_encode()
        buckets = [zlib.crc32(word.encode()) % self.buckets for word in words.dictionary.to_pylist()]
        found = np.zeros((len(column), self.buckets))
        rows = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)
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


def refuse_other_type(name: str, column: pa.Array, words: Sequence[str], numbers: bool) -> None:
    """Raise ValueError if a column of text now holds numbers, or one of numbers now holds text that is none."""
    if values.is_number(column.type) == numbers or pa.types.is_null(column.type):
        return
    if not numbers:
        if not all(_is_number(word) for word in words):
            raise ValueError(f"column {name!r} should hold text like {words[0]!r}, got numbers ({column.type})")
        return
    found = values.texts(column, name)
    for text in (found.dictionary if pa.types.is_dictionary(found.type) else found.unique()).to_pylist():
        if text not in (None, "", OTHER, MISSING) and not _is_number(text):
            raise ValueError(f"column {name!r} should hold numbers like {words[0]}, got text like {text!r}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
