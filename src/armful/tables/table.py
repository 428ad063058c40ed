"""Arms that stay the same between rounds, in memory or on disk."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armful.checks import FloatArray, IntArray
from armful.constraints._checks import check_indices
from armful.tables._array_store import wrapped
from armful.tables._csv import Dialect
from armful.tables._ids import find_ids, id_array
from armful.tables._table_file import ID_ROWS, TableFile
from armful.tables.rows import QuickWidths, Rows, Store


class Table(Rows):
    """Arms that stay the same between rounds: features, and an id for each arm if they have ids.

    `Table.wrap` takes an array that will not change. `Table.build` writes a table from Parquet, CSV, Arrow or an array
    to a file that may be larger than memory, and `Table.open` opens that file again. Rows keep the order of the source.

    Attributes
    ----------
    n_arms, n_features : int
        The number of arms, and of features of each arm.
    dtype : numpy.dtype
        float32 or float64.
    columns : list of str or None
        The names of the features; None for a plain array.
    path : pathlib.Path or None
        The file; None for a table in memory.
    block_rows : int
        The number of rows that are read at a time.

    Examples
    --------
    >>> table = Table.wrap([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]], ids=["ann", "bob", "cy"])
    >>> table
    Table(n_arms=3, n_features=2, dtype=float64, in memory)
    >>> table.take([2, 0])
    array([[3., 3.],
           [1., 0.]])
    >>> table.ids_of([2, 0])
    array(['cy', 'ann'], dtype='<U3')
    >>> table.indices_of(["bob"])
    array([1])
    """

    _ids_are_unique = True

    def __init__(self, store: Store) -> None:
        if not isinstance(store, Store):
            raise TypeError(
                "a Table is made by Table.wrap(X), Table.build(source, path) or Table.open(path), got Table of "
                f"{type(store).__name__}"
            )
        self._store = store
        self.n_arms, self.n_features, self.block_rows = store.n_arms, store.n_features, store.block_rows
        self.in_memory = store.in_memory
        self.dtype: np.dtype[Any] = store.dtype
        self.path: Path | None = store.path
        self.columns: list[str] | None = store.columns

    @classmethod
    def wrap(cls, X: ArrayLike, ids: ArrayLike | None = None, *, float32_copy: bool = True) -> Self:
        """Make a table of an array or a `numpy.memmap` that will not change.

        Parameters
        ----------
        X : array_like, shape (n_arms, n_features)
            float32 and float64 in C order are used without a copy; anything else is copied. A DataFrame or an Arrow
            table also gives the names of its columns.
        ids : array_like, shape (n_arms,), optional
            Whole numbers or strings, all different.
        float32_copy : bool
            Whether to keep a second copy of the features in float32, half as large, so that a round reads half as much.
            The copy is made here, not in the first round. A `numpy.memmap` is never copied.

        Returns
        -------
        Table

        Raises
        ------
        ValueError
            Features are not finite numbers or have another shape, or ids are repeated or of another number.
        """
        return cls(wrapped(X, ids, float32_copy=float32_copy))

    @classmethod
    def build(
        cls,
        source: Any,
        path: str | os.PathLike[str],
        *,
        id: str | None = None,
        columns: Sequence[str] | None = None,
        dtype: str = "float64",
        delimiter: str = ",",
        id_type: str | None = None,
        progress: bool = True,
    ) -> Self:
        """Write a table to a file and open it. The file replaces an older table atomically.

        Parameters
        ----------
        source : path, list of paths, Arrow stream, array or Table
            A Parquet or CSV file, a directory of Parquet files, the URI of either (`s3://...`), a list of Parquet
            files, anything that gives an Arrow stream (DataFrames, `pyarrow.Table`, DuckDB results), an array, or
            another table.
        path : path
            The file to write.
        id : str, optional
            The column that names the arms: whole numbers or strings. By default `id`, if there is such a column.
        columns : list of str, optional
            The columns that are features, in this order. By default all but the id and the index of pandas.
        dtype : {"float64", "float32"}
            How features are stored; float32 takes half the space.
        delimiter : str
            The delimiter of a CSV file, which must be UTF-8.
        id_type : {None, "string"}
            `"string"` keeps the ids of a CSV file as they are written. By default they are whole numbers if those at
            the beginning of the file are (`7`, not `007` or `+7`), and a later id that is not is refused.
        progress : bool
            Whether to draw a progress bar if standard error is a terminal.

        Returns
        -------
        Table

        Raises
        ------
        ValueError
            The source has no rows, no numbers, or repeated ids; the message names the column, row or id.
        FileFormatError
            The source cannot be read.
        FileExistsError
            There is a file at `path` that is not a table.
        """
        from armful.tables._build import build  # noqa: PLC0415 - circular: tables are sources too

        csv = Dialect(delimiter=delimiter, id_type=id_type)
        build(source, _path(path), id=id, columns=columns, dtype=dtype, dialect=csv, progress=progress)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a table that `Table.build` wrote. Features are read when they are needed.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Table

        Raises
        ------
        FileNotFoundError
            There is no such file.
        FileFormatError
            The file is not a table, is damaged, or was cut off.
        """
        return cls(TableFile(_path(path)))

    def __len__(self) -> int:
        return self.n_arms

    def __repr__(self) -> str:
        where = "in memory" if self.path is None else f"path={str(self.path)!r}"
        return f"Table(n_arms={self.n_arms}, n_features={self.n_features}, dtype={self.dtype}, {where})"

    def __reduce__(self) -> tuple[Callable[..., "Table"], tuple[Any, ...]]:
        return type(self), (self._store,)

    @property
    def blocks(self) -> list[slice]:
        """The arm indices of each block that is read at a time."""
        return self._store.blocks

    @property
    def ids(self) -> NDArray[Any] | None:
        """The ids of all arms, `(n_arms,)`, int64 or strings, read from disk each time; None if there are none."""
        return np.concatenate(list(self._id_blocks())) if self._store.has_ids else None

    def rows(self, begin: int, end: int) -> NDArray[Any]:
        """Return the features of the arms from `begin` up to `end`. Threads may call it at the same time.

        Parameters
        ----------
        begin, end : int
            Arm indices with `0 <= begin <= end <= n_arms`.

        Returns
        -------
        ndarray of the table's dtype, shape (end - begin, n_features)
            Read-only. A damaged block of a file raises FileFormatError.
        """
        if not 0 <= begin <= end <= self.n_arms:
            raise ValueError(f"rows must be within 0 and {self.n_arms}, the number of arms, got {begin} to {end}")
        return self._store.rows(begin, end)

    def rows_float32(self, begin: int, end: int) -> NDArray[np.float32] | None:
        """Return the same in float32 if such a copy is kept, else None."""
        return self._store.rows_float32(begin, end)

    def quick_widths(self, inverse_root: FloatArray, theta: FloatArray) -> QuickWidths | None:
        """Return a way to means and widths that is faster than multiplying the rows, if there is one, else None."""
        return self._store.quick_widths(inverse_root, theta)

    def take(self, indices: ArrayLike) -> FloatArray:
        """Return the features of some arms, in any order and with repetitions.

        Parameters
        ----------
        indices : array_like of int, shape (k,)
            Arm indices, from 0 to `n_arms - 1`.

        Returns
        -------
        ndarray of float64, shape (k, n_features)
        """
        return self._store.take(check_indices(indices, self.n_arms))

    def sample_rows(self, n_rows: int) -> FloatArray:
        """Return the features of `n_rows` arms that are fast to read, shape (n_rows, n_features)."""
        return self._store.sample_rows(n_rows)

    def ids_of(self, indices: ArrayLike) -> NDArray[Any] | None:
        """Return the ids of some arms.

        Parameters
        ----------
        indices : array_like of int, shape (k,)
            Arm indices.

        Returns
        -------
        ndarray of int64 or str, shape (k,), or None
            None if the table has no ids.
        """
        checked = check_indices(indices, self.n_arms)
        return self._store.ids_at(checked) if self._store.has_ids else None

    def indices_of(self, ids: ArrayLike) -> IntArray:
        """Return the indices of the arms with these ids, by one pass over the ids of the table.

        Parameters
        ----------
        ids : array_like, shape (k,)
            Whole numbers or strings, as the ids of the table are.

        Returns
        -------
        ndarray of int64, shape (k,)

        Raises
        ------
        ValueError
            The table has no ids, an id is not in it, or names two of its rows.
        """
        if not self._store.has_ids:
            raise ValueError("this table has no ids: wrap it with ids=..., or build it with id=...")
        return find_ids(id_array(ids).tolist(), self._id_blocks(), unique=self._ids_are_unique)

    def refuse_changed(self) -> None:
        """Raise if the file was written to in place since it was opened. Replacing it at its path is fine.

        A change raises FileFormatError.
        """
        self._store.refuse_changed()

    def _id_blocks(self) -> Iterator[NDArray[Any]]:
        for begin in range(0, self.n_arms, ID_ROWS):
            yield self._store.ids_at(np.arange(begin, min(begin + ID_ROWS, self.n_arms)))


def _path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"path must be the name of a file, got {type(path).__name__}")
    return Path(path)
