"""What a kind of column is to the recipe: what is frozen of it, and how its values become features."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armful.campaigns.features._packed_rows import Written
from armful.checks import FloatArray, IntArray

Features = NDArray[np.float32]
OTHER, MISSING = "other", "missing"


class Target:
    """Where a column writes its features; what is not written is 0.

    Parameters
    ----------
    written : list of Written
        Where to add what is written.
    first : int
        The number of the column's first feature.
    one : float
        What is written for 1: everything is divided by the square root of d.
    """

    def __init__(self, written: list[Written], first: int, one: float) -> None:
        self._written, self._first, self._one = written, first, one

    def write(self, feature: int, numbers: FloatArray | NDArray[np.bool_]) -> None:
        """Write a number for each row; true is 1."""
        values = numbers if numbers.dtype == bool else (numbers * self._one).astype(np.float32)
        self._written.append(Written(first=self._first + feature, features=None, values=values))

    def write_as_it_is(self, feature: int, numbers: FloatArray) -> None:
        """Write a number for each row that is not divided."""
        self._written.append(Written(first=self._first + feature, features=None, values=numbers.astype(np.float32)))

    def mark(self, features: IntArray) -> None:
        """Write a one into the given feature of each row."""
        self._written.append(Written(first=self._first, features=_small(features), values=None))

    def write_at(self, features: IntArray, numbers: FloatArray) -> None:
        """Write a number into the given feature of each row."""
        values = (numbers * self._one).astype(np.float32)
        self._written.append(Written(first=self._first, features=_small(features), values=values))


def _small(features: IntArray) -> NDArray[Any]:
    """Return numbers of features in as few bytes as they need."""
    return features.astype(np.min_scalar_type(int(features.max(initial=0))))


class Part(Protocol):
    """A part of the recipe: it knows its columns, the names of its features, and how to write them."""

    kind: ClassVar[str]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the file that it reads."""

    @property
    def names(self) -> list[str]:
        """The names of its features."""

    def write(self, columns: Sequence[pa.Array], target: Target) -> None:
        """Write the features of its columns."""

    def to_dict(self) -> dict[str, Any]:
        """Return all that it is, for JSON."""


@dataclass(frozen=True, kw_only=True)
class ColumnFeatures:
    """The features of one column."""

    kind: ClassVar[str]

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def to_dict(self) -> dict[str, Any]:
        """Return what was frozen."""
        return {"kind": self.kind} | asdict(self)


def unique_names(names: list[str]) -> list[str]:
    """Return the names, numbered where one occurs twice: a column may be called "constant" or "age: missing"."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return result
