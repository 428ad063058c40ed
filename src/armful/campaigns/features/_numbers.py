"""Numbers and dates as features."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from armful.campaigns.features._kinds import MISSING, ColumnFeatures, Target
from armful.campaigns.reading import _column_values as values
from armful.checks import FloatArray

LARGEST_READY = 1e6
"""Features are meant to be of about unit length. Up to this number float64 holds a ridge of 1 beside the squares of
1e12 observations of 20 features; beyond it, a single arm could make every later model impossible."""


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
            low, high = self.transformed(np.array([self.low, self.high])).tolist()
            target.write(0, (np.clip(self.transformed(numbers), low, high) - low) / (high - low))
            return
        knots = self.transformed(np.array(self.knots))
        clipped = np.clip(self.transformed(numbers), knots[0], knots[-1])
        left = np.searchsorted(knots[1:-1], clipped, side="right")
        share = (clipped - knots[left]) / np.diff(knots)[left]
        target.write_at(left, 1.0 - share)
        target.write_at(left + 1, share)

    def transformed(self, numbers: FloatArray) -> FloatArray:
        """Return the numbers or their logarithm, `log(1 + x)`, mirrored for negative ones."""
        return np.copysign(np.log1p(np.abs(numbers)), numbers) if self.log else numbers


@dataclass(frozen=True, kw_only=True)
class Number(ColumnFeatures):
    """Numbers from 0 to 1, or as a spline; missing ones and a code like 999 count as the median, and are marked."""

    kind: ClassVar[str] = "number"

    median: float
    scale: Scale
    code: float | None = None
    missing: bool = False

    @property
    def names(self) -> list[str]:
        """The number or its spline, then the marks."""
        code = [] if self.code is None else [f"{self.column}: {self.show(self.code)}"]
        return [*self.scale.names(self.column), *code, *[f"{self.column}: {MISSING}"] * self.missing]

    def write(self, columns: Sequence[pa.Array], target: Target) -> None:
        """Write the features of its column."""
        self.write_numbers(values.numbers(columns[0], self.column), target)

    @staticmethod
    def show(number: float) -> str:
        """Return a number as people write it."""
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else str(number)

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

    kind: ClassVar[str] = "date"

    written: str = values.ISO

    @staticmethod
    def show(number: float) -> str:
        """Return a day as people write it."""
        return str(np.datetime64(int(number // 1), "D"))

    def write(self, columns: Sequence[pa.Array], target: Target) -> None:
        """Write the features of its column."""
        self.write_numbers(values.days(columns[0], self.column, self.written), target)


@dataclass(frozen=True, kw_only=True)
class Ready:
    """Columns that are features already, used as they are."""

    kind: ClassVar[str] = "ready"

    columns: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.columns)

    def write(self, columns: Sequence[pa.Array], target: Target) -> None:
        """Write the columns."""
        for i, (name, column) in enumerate(zip(self.columns, columns, strict=True)):
            numbers = values.numbers(column, name)
            if not np.all(np.abs(numbers) <= LARGEST_READY):  # false for NaN
                raise ValueError(
                    f"column {name!r} is a ready feature: every row needs a number of at most {LARGEST_READY:,.0f}; "
                    "scale it"
                )
            target.write_as_it_is(i, numbers)

    def to_dict(self) -> dict[str, Any]:
        """Return what is kept of it."""
        return {"kind": self.kind, "columns": self.columns}
