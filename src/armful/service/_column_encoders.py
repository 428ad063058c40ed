"""The columns of a request as features, many at a time: equal to `FeatureRecipe.transform` on the same rows."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armful.campaigns.features._kinds import Features, Part, Target
from armful.campaigns.features._numbers import Date, Number
from armful.campaigns.features._packed_rows import PackedRows, Written
from armful.campaigns.features._texts import Category, Ordered, Text, checked_texts
from armful.campaigns.reading import _column_values
from armful.checks import LARGEST, FloatArray
from armful.service._values import as_number, as_text, shown

Column = Sequence[Any]
NUMBERS = {float, int, bool, type(None)}
TEXTS = {str, type(None)}


class Place(NamedTuple):
    """A part of the recipe, the number of its first feature, and which of the given columns it reads."""

    part: Part
    first: int
    columns: tuple[int, ...]


class ColumnEncoder(Protocol):
    """Writes the features of some columns."""

    def write(self, columns: Sequence[Column], X: Features) -> None:
        """Write into X, `(n, d)`, which holds zeros; any exception if a value cannot be used."""


def column_encoders(places: Sequence[Place], one: float) -> list[ColumnEncoder]:
    """Return what writes these parts; one: what stands for 1."""
    plain = [place for place in places if isinstance(place.part, Number) and not place.part.scale.knots]
    categories = [place for place in places if isinstance(place.part, Category)]
    encoders: list[ColumnEncoder] = []
    if plain:
        encoders.append(PlainNumbers(plain, one))
    if categories:
        encoders.append(Categories(categories, one))
    for place in places:
        if isinstance(place.part, Ordered):
            encoders.append(OrderedValues(place, place.part, one))
        elif not isinstance(place.part, Category) and place not in plain:
            encoders.append(AnyPart(place, one))
    return encoders


class PlainNumbers:
    """Numbers and dates without splines, all columns at once."""

    def __init__(self, places: Sequence[Place], one: float) -> None:
        parts: list[Any] = [place.part for place in places]
        self.columns = [place.columns[0] for place in places]
        self.dates = {i: part for i, part in enumerate(parts) if isinstance(part, Date)}
        self.one = one
        self.median = _column([part.median for part in parts])
        self.code = _column([np.nan if part.code is None else part.code for part in parts])
        self.logs = np.flatnonzero([part.scale.log for part in parts])
        ends = [part.scale.transformed(np.array([part.scale.low, part.scale.high])).tolist() for part in parts]
        self.low, self.high = _column([low for low, _ in ends]), _column([high for _, high in ends])
        self.has_codes = any(part.code is not None for part in parts)
        used = [part.scale.low != part.scale.high for part in parts]
        self.scaled = np.flatnonzero(used)
        self.coded = np.array([i for i, part in enumerate(parts) if part.code is not None], dtype=np.int64)
        self.marked = np.array([i for i, part in enumerate(parts) if part.missing], dtype=np.int64)
        firsts = np.array([place.first for place in places])
        codes = firsts + used
        self.scaled_features = firsts[self.scaled]
        self.code_features = codes[self.coded]
        self.mark_features = (codes + [part.code is not None for part in parts])[self.marked]

    def write(self, columns: Sequence[Column], X: Features) -> None:
        """Write the features of its columns."""
        own: list[Any] = [columns[i] for i in self.columns]
        for i, part in self.dates.items():
            own[i] = days(part, own[i])
        numbers = numbers_of(own, dates=self.dates)
        is_missing = np.isnan(numbers)
        replaced = is_missing | (numbers == self.code) if self.has_codes else is_missing
        values = np.where(replaced, self.median, numbers) if replaced.any() else numbers
        if self.logs.size:
            some = values[self.logs]
            values = values.copy() if values is numbers else values
            values[self.logs] = np.copysign(np.log1p(np.abs(some)), some)
        kept = slice(None) if self.scaled.size == len(own) else self.scaled
        low, high = self.low[kept], self.high[kept]
        scaled = (np.clip(values[kept], low, high) - low) / (high - low)
        X[:, self.scaled_features] = (scaled * self.one).astype(np.float32).T
        one = np.float32(self.one)
        if self.coded.size:
            X[:, self.code_features] = (numbers == self.code)[self.coded].T * one
        if self.marked.size:
            X[:, self.mark_features] = is_missing[self.marked].T * one


class Categories:
    """One feature for each category, all columns at once."""

    def __init__(self, places: Sequence[Place], one: float) -> None:
        self.columns = [place.columns[0] for place in places]
        self.positions = [Positions.of_category(place.part) for place in places]
        self.firsts = np.array([[place.first] for place in places])
        self.one = np.float32(one)

    def write(self, columns: Sequence[Column], X: Features) -> None:
        """Write the features of its columns."""
        found = np.array(
            [
                list(map(positions.__getitem__, columns[i]))
                for positions, i in zip(self.positions, self.columns, strict=True)
            ]
        )
        X.reshape(-1)[found + self.firsts + np.arange(0, X.size, X.shape[1])] = self.one


class OrderedValues:
    """The position of a value in an order."""

    def __init__(self, place: Place, part: Ordered, one: float) -> None:
        self.column, self.first, self.other = place.columns[0], place.first, part.other
        n = len(part.order)
        self.positions = Positions(part, part.order, other=n, missing=n)
        self.values = (np.array([*range(n), part.median]) / (n - 1) * one).astype(np.float32)
        self.marks = (np.arange(n + 1) == n) * np.float32(one)

    def write(self, columns: Sequence[Column], X: Features) -> None:
        """Write the features of its column."""
        found = np.array(list(map(self.positions.__getitem__, columns[self.column])))
        X[:, self.first] = self.values[found]
        if self.other:
            X[:, self.first + 1] = self.marks[found]


class AnyPart:
    """Splines, texts and transformers, by their own code."""

    def __init__(self, place: Place, one: float) -> None:
        self.place, self.one = place, one

    def write(self, columns: Sequence[Column], X: Features) -> None:
        """Write the features of its columns."""
        part, first, own = self.place
        written: list[Written] = []
        target = Target(written, first, self.one)
        match part:
            case Date():
                part.write_numbers(numbers_of([days(part, columns[own[0]])], dates=(0,))[0], target)
            case Number():
                part.write_numbers(numbers_of([columns[own[0]]])[0], target)
            case Text():
                part.write([pa.array(texts_of(columns[own[0]]), pa.string())], target)
            case _:
                part.write([pa.array(columns[i]) for i in own], target)
        PackedRows(n=len(X), written=tuple(written)).spread(X, np.float32(self.one))


class Positions(dict[Any, int]):
    """The position of each value among words; what is not among them is `other`, no value is `missing`."""

    def __init__(self, part: Category | Ordered, words: Sequence[str], *, other: int, missing: int) -> None:
        super().__init__(dict.fromkeys(("", "missing", None), missing))
        self.update({word: i for i, word in enumerate(words)})
        self.part, self.words, self.other = part, words, other
        self.spelling = {word.lower(): word for word in words}

    @classmethod
    def of_category(cls, part: Any) -> "Positions":
        n = len(part.categories)
        return cls(part, part.categories, other=n, missing=n + part.missing)

    def __missing__(self, value: Any) -> int:
        """Return the position of what is not among the words as it is, as `checked_texts` reads it."""
        text = as_text(value)
        if type(value) is not str:
            checked_texts(self.part.column, pa.array([value]), self.words, self.part.numbers)
        elif self.part.numbers:
            checked_texts(self.part.column, pa.array([value], pa.string()), self.words, numbers=True)
        if isinstance(value, bool):
            text = self.spelling.get(str(value).lower())
        return self.get(text, self.other) if text is not None else self.other


def numbers_of(columns: Sequence[Any], dates: Any = ()) -> FloatArray:
    """Return columns of numbers, NaN where one is missing; dates: which of these are arrays already."""
    for i, column in enumerate(columns):
        if i not in dates and not NUMBERS.issuperset(map(type, column)):
            raise TypeError
    numbers = np.array(columns, dtype=np.float64)
    usable = np.abs(numbers) <= LARGEST
    if not usable.all():
        for i in np.flatnonzero(~usable.all(axis=1)).tolist():
            if i not in dates and sum(value is None for value in columns[i]) < np.count_nonzero(~usable[i]):
                raise ValueError
    return numbers


def days(part: Date, column: Column) -> FloatArray:
    """Return a column of dates as days."""
    if not TEXTS.issuperset(map(type, column)):
        raise TypeError
    return _column_values.days(pa.array(column, pa.string()), part.column, part.written)


def texts_of(column: Column) -> Column:
    """Return a column of texts."""
    return column if TEXTS.issuperset(map(type, column)) else [as_text(value) for value in column]


def refuse_value(part: Part, value: Any) -> None:
    """Raise ValueError, with a sentence that goes on after the name of the column, if a value cannot be used."""
    match part:
        case Date():
            if not (value is None or isinstance(value, str)):
                raise ValueError(f"must be a date in quotes, got {shown(value)}")
            _column_values.days(pa.array([value], pa.string()), part.column, part.written)
        case Number():
            as_number(value)
        case Category():
            Positions.of_category(part)[as_text(value) if isinstance(value, list | dict) else value]
        case Ordered():
            as_text(value)
            Positions(part, part.order, other=0, missing=0)[value]
        case Text():
            pa.array([as_text(value)], pa.string())
        case _:
            pa.array([value])


def _column(numbers: Sequence[float]) -> NDArray[np.float64]:
    return np.array(numbers, dtype=np.float64)[:, None]
