"""Arms that stay the same between rounds, in memory or on disk."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armful import checks
from armful.checks import FloatArray, IntArray
from armful.errors import FileFormatError
from armful.tables._array_store import ArrayStore
from armful.tables._frames import features_and_names
from armful.tables._ids import id_array, refuse_repeated
from armful.tables._table_file import ID_ROWS, TableFile


class Table:
    """Arms that stay the same between rounds: features `(n_arms, n_features)`, and an id for each if they have one.

    `Table.wrap` takes an array that promises not to change; `Table.build` writes one from Parquet, CSV, Arrow or
    an array to a file that may be larger than memory; `Table.open` opens that again at once. Rows keep the order of
    the source.

    Attributes: `n_arms`, `n_features`; `dtype`, float32 or float64; `columns`, the names of the features, None for a
    plain array; `path`, the file, None for what is in memory; `block_rows`, how many rows are read at a time.

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

    _ids_differ = True

    def __init__(self, store: ArrayStore | TableFile) -> None:
        if not hasattr(store, "block_rows"):
            raise TypeError(
                "a Table is made by Table.wrap(X), Table.build(source, path) or Table.open(path), got Table of "
                f"{type(store).__name__}"
            )
        self._store = store
        self.n_arms: int = store.n_arms
        self.n_features: int = store.n_features
        self.dtype: np.dtype[Any] = store.dtype
        self.block_rows: int = store.block_rows
        self.path: Path | None = store.path
        self.columns: list[str] | None = store.columns

    @classmethod
    def wrap(cls, X: ArrayLike, ids: ArrayLike | None = None, *, float32_copy: bool = True) -> Self:
        """Rows of features in memory, or in a `numpy.memmap`, that will not change: `(n_arms, n_features)`.

        A DataFrame or an Arrow table gives the names of its columns too.
        float32 and float64 in C order are used where they are, anything else is copied. `ids`: `(n_arms,)`, whole
        numbers or strings, no two the same. float32_copy: also keep the features in float32, half as large, so that a
        round reads half as much; not for a `numpy.memmap`. The copy is made here, so that no round has to wait for it.
        """
        refuse_dask("features", X)
        X, columns = features_and_names(X)
        array = _own_features(X)
        names = None if ids is None else id_array(ids)
        if names is not None:
            if names.shape != (len(array),):
                raise ValueError(f"ids must have shape ({len(array)},), one for each arm, got {names.shape}")
            refuse_repeated(names)
        store = ArrayStore(array, names, float32_copy=float32_copy, columns=columns)
        for begin in range(0, store.n_arms, store.block_rows):
            _refuse_not_finite(array[begin : begin + store.block_rows], begin, names)
        return cls(store)

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
        """Write a table to the file `path` and open it; an older table there stays until the new one is complete.

        source: a Parquet or CSV file, a directory of Parquet files, the URI of either (`s3://...`), a list of Parquet
            files, anything that gives an Arrow stream (DataFrames, `pyarrow.Table`, DuckDB results), an array, or
            another table.
        id: the column that names the arms, whole numbers or strings; by default `id`, if there is such a column.
        columns: the columns that are features, in this order; by default all but the id and the index of pandas.
        dtype: `"float64"`, or `"float32"` for half the size.
        delimiter: what stands between the columns of a CSV file, which must be UTF-8.
        id_type: `"string"` keeps the ids of a CSV file as they are written. By default they are whole numbers if those
            at the beginning of the file are (`7`, not `007` or `+7`), and others further down are refused.
        progress: draw a bar if standard error is a terminal.
        """
        from armful.tables._build import build  # noqa: PLC0415 - needs more than numpy, which is loaded when it is used

        build(
            source,
            _path(path),
            id=id,
            columns=columns,
            dtype=dtype,
            delimiter=delimiter,
            id_type=id_type,
            progress=progress,
        )
        return cls.open(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """A table that `Table.build` wrote, at once: features are read when they are asked for."""
        return cls(TableFile(_path(path)))

    def __len__(self) -> int:
        return self.n_arms

    def __repr__(self) -> str:
        place = "in memory" if self.path is None else f"path={str(self.path)!r}"
        return f"Table(n_arms={self.n_arms}, n_features={self.n_features}, dtype={self.dtype}, {place})"

    def __reduce__(self) -> tuple[Callable[..., "Table"], tuple[Any, ...]]:
        if isinstance(self._store, TableFile):
            return _opened_again, (type(self), self._store.path.absolute(), self._store.identity)
        store = self._store
        return _wrapped_again, (type(self), store.X, store.ids, store.float32_copy, store.columns)

    @property
    def ids(self) -> NDArray[Any] | None:
        """The ids of all arms, `(n_arms,)`, int64 or strings; read from disk each time. None if there are none."""
        return np.concatenate(list(self._id_blocks())) if self._store.has_ids else None

    def rows(self, begin: int, end: int) -> NDArray[Any]:
        """The features of the arms from `begin` up to `end`, `(end - begin, n_features)`, of the table's dtype.

        They are not to be written to. Many threads may read at once.
        """
        if not 0 <= begin <= end <= self.n_arms:
            raise ValueError(f"rows must be within 0 and {self.n_arms}, the number of arms, got {begin} to {end}")
        return self._store.rows(begin, end)

    def rounded(self, begin: int, end: int) -> NDArray[np.float32] | None:
        """The same in float32, for a first look, if the features are kept in it too."""
        return self._store.rounded(begin, end) if isinstance(self._store, ArrayStore) else None

    def take(self, indices: ArrayLike) -> FloatArray:
        """The features of these arms, in any order and as often as they are named: `(k, n_features)` float64."""
        return self._store.take(self._check_indices(indices))

    def ids_of(self, indices: ArrayLike) -> NDArray[Any] | None:
        """The ids of these arms, `(k,)`; None if there are none."""
        wanted = self._check_indices(indices)
        return self._store.ids_at(wanted) if self._store.has_ids else None

    def indices_of(self, ids: ArrayLike) -> IntArray:
        """Where the arms of these ids stand, `(k,)`; one pass over the ids of the table."""
        if not self._store.has_ids:
            raise ValueError("this table has no ids: wrap it with ids=..., or build it with id=...")
        names = id_array(ids).tolist()
        places = dict.fromkeys(names, -1)
        missing, first = len(places), 0
        for block in self._id_blocks():
            if not missing and self._ids_differ:
                break
            for place, name in enumerate(block.tolist(), first):
                if name in places:
                    if places[name] >= 0:
                        raise ValueError(
                            f"id {name!r} stands in rows {places[name]} and {place}, so it names no one arm: keep one "
                            "of them"
                        )
                    places[name] = place
                    missing -= 1
            first += len(block)
        if missing:
            unknown = next(name for name in names if places[name] < 0)
            raise ValueError(
                f"id {unknown!r} is not in the table ({missing:,} of {len(places):,} ids are not); its ids are like "
                f"{self._example()!r}"
            )
        return np.array([places[name] for name in names], dtype=np.int64)

    def refuse_changed(self) -> None:
        """Refuse a file that was written to in place since it was opened; one that was replaced at its path is fine."""
        self._store.refuse_changed()

    def _id_blocks(self) -> Iterator[NDArray[Any]]:
        for begin in range(0, self.n_arms, ID_ROWS):
            yield self._store.ids_at(np.arange(begin, min(begin + ID_ROWS, self.n_arms)))

    def _example(self) -> int | str:
        example: int | str = self._store.ids_at(np.zeros(1, dtype=np.int64)).tolist()[0]
        return example

    def _check_indices(self, indices: ArrayLike) -> IntArray:
        array = np.asarray(indices)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise ValueError(f"indices must be a list of whole numbers, got {array.dtype} of shape {array.shape}")
        if array.size and not (array.min() >= 0 and array.max() < self.n_arms):
            wrong = array[(array < 0) | (array >= self.n_arms)][0]
            raise ValueError(f"indices must be from 0 to {self.n_arms - 1}, got {wrong}")
        return array.astype(np.int64, copy=False)


def refuse_dask(name: str, X: Any) -> None:
    """Refuse what is of dask, which would be worked out in the memory of this process."""
    if type(X).__module__.partition(".")[0] == "dask":
        raise ValueError(
            f"{name} must be in one place, got a dask {type(X).__name__}: choose from a dask array with "
            "policy.choose(..., client=client), or pass what its .compute() gives"
        )


def _path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"path must be the name of a file, got {type(path).__name__}")
    return Path(path)


def _own_features(X: ArrayLike) -> NDArray[Any]:
    """Rows of features in C order, float32 or float64, `(n, d)` with one of each at least."""
    kept = isinstance(X, np.ndarray) and not isinstance(X, np.ma.MaskedArray) and X.dtype in (np.float32, np.float64)
    array = np.ascontiguousarray(X if kept else checks.floats("features", X))
    if np.ndim(X) != 2 or 0 in array.shape:
        raise ValueError(f"features must have shape (n_arms, n_features), one of each at least, got {np.shape(X)}")
    return array


def _refuse_not_finite(block: NDArray[Any], begin: int, ids: NDArray[Any] | None) -> None:
    if np.isfinite(block).all():
        return
    row, column = (int(place) for place in np.argwhere(~np.isfinite(block))[0])
    place = f"row {begin + row}" if ids is None else f"the arm of id {ids[begin + row].item()!r}"
    raise ValueError(f"features must be finite, got {block[row, column]} in {place}, column {column}")


def _wrapped_again(
    kind: type[Table], X: NDArray[Any], ids: NDArray[Any] | None, float32_copy: bool, columns: list[str] | None
) -> Table:
    return kind(ArrayStore(X, ids, float32_copy=float32_copy, columns=columns))


def _opened_again(kind: type[Table], path: Path, identity: str) -> Table:
    store = TableFile(path)
    if store.identity != identity:
        raise FileFormatError(f"{path} is another table by now: open the new one, and start over with it")
    return kind(store)
