"""What the recipe freezes, worked out in one pass over the rows of the first round."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from armful.campaigns.features._kinds import MISSING, OTHER, Part
from armful.campaigns.features._numbers import Date, Number, Scale
from armful.campaigns.features._row_sample import RowSample
from armful.campaigns.features._texts import Category, Ordered, Text, checked_texts, positions
from armful.campaigns.reading import _column_values as values
from armful.campaigns.settings import ColumnSettings
from armful.checks import FloatArray
from armful.scan._threads import while_reading
from armful.tables._columns import name_list

ENDS = (0.005, 0.995)
"""The quantiles that become 0 and 1: a few outliers do not squeeze all other numbers together."""
MOST_DISTINCT = 50_000
"""Categories that are counted; if there are more, those that come first."""
CODE_SHARE, CODE_ROWS = 0.05, 10
"""How many numbers of the sample must equal a code."""
FAR = 3.0
"""How far from the rest a code lies, in widths of the rest."""


class OneValue(Exception):
    """A column has the same value in all rows; the message is the reason to leave it out."""


class ColumnFit(Protocol):
    """What is gathered of a column, batch by batch."""

    def add(self, column: pa.Array) -> FloatArray | None:
        """Take the next rows; return their numbers, if a sample of them is needed."""

    def finish(self, sample: FloatArray | None) -> Part:
        """Return what is frozen; raise OneValue if the column is the same in all rows."""


def fit_of(settings: ColumnSettings) -> ColumnFit:
    """Return what gathers a column of this kind."""
    match settings.kind:
        case "number":
            return NumberFit(settings)
        case "date":
            return DateFit(settings)
        case "category":
            return CategoryFit(settings)
        case "ordered":
            return OrderedFit(settings)
        case "text":
            return TextFit(settings)


def gathered(names: Sequence[str], fits: Sequence[ColumnFit], batches: Iterable[pa.RecordBatch]) -> RowSample:
    """Add all rows to the fits of the columns, and return a sample of the numbers of those that need one."""
    sample = RowSample()

    def add(batch: pa.RecordBatch) -> None:
        rows, sampled = sample.select(batch.num_rows), {}
        for name, column, fit in zip(names, columns_named(batch, names), fits, strict=True):
            numbers = fit.add(column)
            if numbers is not None:
                sampled[name] = numbers[rows]
        sample.add(pa.RecordBatch.from_pydict({"": rows} | sampled))

    while_reading(add, batches)
    return sample


def columns_named(batch: pa.RecordBatch, names: Sequence[str]) -> list[pa.Array]:
    """Return columns of a batch; raise ValueError if some are not there."""
    missing = [name for name in names if name not in batch.schema.names]
    if missing:
        raise ValueError(
            f"column {name_list(missing)} is needed for the features and is not there; "
            f"the columns are {name_list(batch.schema.names)}"
        )
    return [batch.column(name) for name in names]


class NumberFit:
    """The range and the number of missing values of a column of numbers."""

    show = staticmethod(Number.show)

    def __init__(self, settings: ColumnSettings) -> None:
        self.settings, self.name = settings, settings.name
        self.low, self.high, self.n_missing = np.inf, -np.inf, 0

    def add(self, column: pa.Array) -> FloatArray:
        """Take the next rows; return their numbers."""
        numbers = self.read(column)
        is_missing = np.isnan(numbers)
        n_missing = int(np.count_nonzero(is_missing))
        known = numbers[~is_missing] if n_missing else numbers
        self.n_missing += n_missing
        if len(known):
            self.low, self.high = min(self.low, float(known.min())), max(self.high, float(known.max()))
        return numbers

    def read(self, column: pa.Array) -> FloatArray:
        """Return the numbers of a column."""
        return values.numbers(column, self.name)

    def finish(self, sample: FloatArray | None) -> Number:
        """Return the median, the bounds and the knots, from the sample."""
        if self.low > self.high:
            raise OneValue("no value in any row")
        if self.low == self.high and not self.n_missing:
            raise OneValue(f"{self.show(self.low)} in every row")
        known = np.array([]) if sample is None else np.sort(sample[~np.isnan(sample)])
        if not len(known):
            known = np.array([self.low, self.high])
        code = None if self.low == self.high else find_code(known)
        rest = known if code is None else known[known != code]
        return self.make(
            column=self.name,
            median=float(_quantile(rest, 0.5)),
            scale=self.scale_of(rest),
            code=code,
            missing=self.n_missing > 0,
        )

    def make(self, **frozen: Any) -> Number:
        """Return what is frozen."""
        return Number(**frozen)

    def scale_of(self, numbers: FloatArray) -> Scale:
        """Return bounds and knots of sorted numbers, without missing ones and codes."""
        low, high = robust_bounds(numbers)
        if low == high:  # all that differ were missed by the sample
            low, high = self.low, self.high
        scale = Scale(low=low, high=high, log=self.settings.log)
        inner = _quantile(numbers, np.arange(1, self.settings.spline - 1) / max(1, self.settings.spline - 1))
        knots = np.unique(np.clip(np.concatenate([[low], inner, [high]]), low, high))
        _, apart = np.unique(scale.transformed(knots), return_index=True)
        if len(apart) < 2:  # their logarithms are equal
            return replace(scale, log=False)
        return replace(scale, knots=tuple(knots[apart].tolist())) if self.settings.spline > 1 else scale


class DateFit(NumberFit):
    """The same of a column of dates, as days."""

    show = staticmethod(Date.show)
    written: str | None = None

    def read(self, column: pa.Array) -> FloatArray:
        """Return the days of a column."""
        self.written = self.written or values.date_writing(column)
        return values.days(column, self.name, self.written or values.ISO)

    def make(self, **frozen: Any) -> Date:
        """Return what is frozen."""
        return Date(**frozen, written=self.written or values.ISO)


class CategoryFit:
    """How often each category occurs; exact as long as there are at most `MOST_DISTINCT`."""

    def __init__(self, settings: ColumnSettings) -> None:
        self.settings, self.name = settings, settings.name
        self.words = pa.array([], type=pa.string())
        self.counts = np.array([], dtype=np.int64)
        self.numbers = True
        self.n_rows = self.n_missing = 0

    def add(self, column: pa.Array) -> None:
        """Take the next rows."""
        self.numbers &= values.is_number(column.type)
        texts = values.texts(column, self.name)
        if not pa.types.is_dictionary(texts.type):
            texts = texts.dictionary_encode()
        indices, words = texts.indices.drop_null().to_numpy(), texts.dictionary.cast(pa.string())
        counts = np.bincount(indices, minlength=len(words))
        found = pc.index_in(words, value_set=self.words)
        is_known = found.is_valid().to_numpy(zero_copy_only=False)
        np.add.at(self.counts, found.drop_null().to_numpy(), counts[is_known])
        new = np.flatnonzero(~is_known & (counts > 0))
        room = MOST_DISTINCT - len(self.words)
        if len(new) > room:
            distinct, first_rows = np.unique(indices, return_index=True)
            new = distinct[np.argsort(first_rows)]
            new = new[~is_known[new]][:room]
        self.words = pa.concat_arrays([self.words, words.take(pa.array(new))])
        self.counts = np.concatenate([self.counts, counts[new]])
        self.n_rows += len(texts)
        self.n_missing += len(texts) - len(indices)

    def finish(self, sample: FloatArray | None) -> Category:
        """Return the most frequent categories, by name."""
        counted = dict(zip(self.words.to_pylist(), self.counts.tolist(), strict=True))
        n_missing = self.n_missing + sum(counted.pop(blank, 0) for blank in (None, "", MISSING))
        if n_missing == self.n_rows:
            raise OneValue("no value in any row")
        if len(counted) == 1 and not n_missing:
            raise OneValue(f"{next(iter(counted))!r} in every row")
        counted.pop(OTHER, None)
        frequent = sorted(counted, key=lambda word: (-counted[word], word))[: self.settings.at_most]
        return Category(
            column=self.name, categories=tuple(sorted(frequent)), missing=n_missing > 0, numbers=self.numbers
        )


class OrderedFit:
    """How often each value of an order occurs."""

    def __init__(self, settings: ColumnSettings) -> None:
        self.settings, self.name, self.order = settings, settings.name, settings.order
        if len(set(self.order)) < max(2, len(self.order)):
            raise ValueError(f"column {self.name!r} needs an order of two or more different values, got {self.order}")
        self.counts = np.zeros(len(self.order) + 1, dtype=np.int64)
        self.numbers = True

    def add(self, column: pa.Array) -> None:
        """Take the next rows."""
        n, are_numbers = len(self.order), values.is_number(column.type)
        self.numbers &= are_numbers
        texts = checked_texts(self.name, column, self.order, are_numbers)
        found = positions(texts, self.order, other=n, missing=n)
        self.counts += np.bincount(found, minlength=n + 1)

    def finish(self, sample: FloatArray | None) -> Ordered:
        """Return the order with the median of the values that are in it."""
        listed, n_other = self.counts[:-1], int(self.counts[-1])
        if not listed.sum():
            raise OneValue(f"no value that is in its order, {', '.join(map(repr, self.order[:5]))}")
        if np.count_nonzero(self.counts) == 1:
            raise OneValue(f"{self.order[int(listed.argmax())]!r} in every row")
        median = int(np.searchsorted(listed.cumsum(), listed.sum() / 2))
        return Ordered(column=self.name, order=self.order, median=median, other=n_other > 0, numbers=self.numbers)


class TextFit:
    """Whether all texts are the same."""

    def __init__(self, settings: ColumnSettings) -> None:
        self.settings, self.name = settings, settings.name
        self.seen: set[str] = set()

    def add(self, column: pa.Array) -> None:
        """Take the next rows."""
        texts = values.texts(column, self.name)
        if len(self.seen) < 2:
            self.seen.update(text or "" for text in texts.unique().slice(0, 3).to_pylist())

    def finish(self, sample: FloatArray | None) -> Text:
        """Return the number of buckets."""
        if len(self.seen) < 2:
            raise OneValue(f"{self.seen.pop()[:40]!r} in every row")
        return Text(column=self.name, buckets=self.settings.buckets)


def find_code(numbers: FloatArray) -> float | None:
    """Return one of the sorted numbers that is evidently a code, like 999 for "never": frequent, and far from others.

    It is the largest or the smallest, at least 5 % of the numbers and 10 of them equal it, the others have three values
    or more, and it lies three times their width away from them, or is the only negative one.
    """
    low, high = numbers[0], numbers[-1]
    below, above = np.searchsorted(numbers, high), np.searchsorted(numbers, low, side="right")
    for code, rest in ((high, numbers[:below]), (low, numbers[above:])):
        n_equal = len(numbers) - len(rest)
        if n_equal < max(CODE_ROWS, CODE_SHARE * len(numbers)) or not _three_differ(rest):
            continue
        gap = max(code - rest[-1], rest[0] - code)
        if gap > FAR * (rest[-1] - rest[0]) or code < 0 <= rest[0]:
            return float(code)
    return None


def _three_differ(numbers: FloatArray) -> bool:
    """Return whether sorted numbers have three values or more."""
    inner = numbers[(numbers > numbers[0]) & (numbers < numbers[-1])] if len(numbers) else numbers
    return len(inner) > 0


def robust_bounds(numbers: FloatArray) -> tuple[float, float]:
    """Return the sorted numbers that become 0 and 1; where nearly all are the same, those of the rest count."""
    low, high = _quantile(numbers, ENDS).tolist()
    if low == high:
        rest = numbers[numbers != low]
        ends = _quantile(rest, ENDS).tolist() if len(rest) else []
        low, high = min([low, *ends]), max([high, *ends])
    return low, high


def _quantile(numbers: FloatArray, q: Sequence[float] | FloatArray | float) -> FloatArray:
    """Return quantiles of sorted numbers that are among them, so that they read well."""
    ranks = np.ceil(np.asarray(q) * len(numbers)).astype(np.int64)
    return np.asarray(numbers[np.maximum(ranks, 1) - 1])
