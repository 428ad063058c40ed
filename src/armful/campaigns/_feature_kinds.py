"""What a kind of column is to the recipe: what is frozen of it, and how its values become features."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

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
