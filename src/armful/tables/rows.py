"""The base class of everything that gives the features of many arms a block at a time."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class QuickWidths:
    """Computes the means `x.theta` and widths `|x W|` of rows, about as exactly as float32 does.

    Attributes
    ----------
    matrix : ndarray of shape (n_features, m)
        What rows are multiplied with in float32: for a part of the squared width, |x matrix|^2. The rest of it is
        computed in float64.
    compute : callable
        Takes `begin` and `end` as `Rows.rows` does, and returns means and widths, `(end - begin,)` each. A mean errs by
        at most `(d + 2) u |x|.|theta|`, a width by at most `(d + 2) u (| |x| |matrix| | + width)`, d the number of
        features and u the unit of rounding of float32. Threads call it at the same time.
    """

    matrix: FloatArray
    compute: Callable[[int, int], tuple[FloatArray, FloatArray]]


class Rows(ABC):
    """The features of many arms, read a block at a time. A `Table` is one.

    A subclass sets `n_arms`, `n_features` and `block_rows` and defines `rows` and `take`. The rest has defaults.

    Attributes
    ----------
    n_arms : int
        The number of arms.
    n_features : int
        The number of features of each arm.
    block_rows : int
        The number of rows in a block; the largest, if blocks differ.
    in_memory : bool
        Whether reading a row again is free. False by default.
    """

    n_arms: int
    n_features: int
    block_rows: int
    in_memory: bool = False

    @abstractmethod
    def rows(self, begin: int, end: int) -> NDArray[Any]:
        """Return the features of the arms from `begin` up to `end`.

        Parameters
        ----------
        begin, end : int
            Arm indices with `0 <= begin <= end <= n_arms`.

        Returns
        -------
        ndarray, shape (end - begin, n_features)
            float32 or float64, in C order. It must not be written to.
        """

    @abstractmethod
    def take(self, indices: IntArray) -> FloatArray:
        """Return the features of the arms at `indices`, in that order.

        Parameters
        ----------
        indices : ndarray of int64, shape (k,)
            Arm indices, from 0 to `n_arms - 1`.

        Returns
        -------
        ndarray of float64, shape (k, n_features)
        """

    @property
    def blocks(self) -> list[slice]:
        """The arm indices of each block, from the first arm to the last; `block_rows` rows each by default."""
        starts = range(0, self.n_arms, self.block_rows)
        return [slice(begin, min(begin + self.block_rows, self.n_arms)) for begin in starts]

    def rows_float32(self, begin: int, end: int) -> NDArray[np.float32] | None:
        """Return the same as `rows` in float32, or None (the default) if no such copy is kept."""
        return None

    def quick_widths(self, inverse_root: FloatArray, theta: FloatArray) -> QuickWidths | None:
        """Return a way to means and widths that is faster than multiplying the rows; by default there is none.

        Parameters
        ----------
        inverse_root : ndarray of shape (n_features, n_features)
            W, the inverse of the root of V.
        theta : ndarray of shape (n_features,)
            The estimated coefficients.
        """
        return None

    def ids_of(self, indices: IntArray) -> NDArray[Any] | None:
        """Return the ids of the arms at `indices`, shape (k,), or None (the default) if arms have no ids."""
        return None

    def sample_rows(self, n_rows: int) -> FloatArray:
        """Return the features of `n_rows` arms, at most `n_arms`: evenly spaced ones by default.

        Returns
        -------
        ndarray of float64, shape (n_rows, n_features)
        """
        return self.take(((np.arange(n_rows) + 0.5) * self.n_arms / n_rows).astype(np.int64))

    def refuse_changed(self) -> None:  # noqa: B027 - what is in memory has no file
        """Raise if the file behind the rows has changed since it was opened; do nothing by default.

        Raises
        ------
        FileFormatError
            The file was written to in place.
        """


class Store(Rows):
    """What a `Table` reads its features and ids from; `Table(store)` is a table of any subclass.

    A subclass has what `Rows` asks for. With ids, it sets `has_ids` and writes `ids_at`.

    Attributes
    ----------
    dtype : dtype
        The type of the features as they are kept, float32 or float64.
    columns : list of str or None
        The names of the features.
    has_ids : bool
        Whether the arms have ids.
    path : Path or None
        The file, if there is one.
    """

    dtype: np.dtype[Any] = np.dtype(np.float64)
    columns: list[str] | None = None
    has_ids: bool = False
    path: Path | None = None

    def ids_at(self, indices: IntArray) -> NDArray[Any]:
        """Return the ids of the arms at `indices`, `(k,)`."""
        raise NotImplementedError(f"{type(self).__name__} has no ids")
