"""Arms that stay in Parquet files, wherever pyarrow's filesystems reach."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray
from armful.scan.columns import Wanted, arrow, id_values, listed
from armful.scan.sources import parquet_files, parquet_opened, reading
from armful.scan.table import Table, id_array
from armful.scan.tablefile import natural_block


class ParquetTable(Table):
    """A `Table` whose arms stay in Parquet files; only what the files say of themselves is read when it is made.

    source: a Parquet file, a directory of them, or the URI of either (`s3://...`). Its rows, in the order of the names
    of the files, are the arms. They must not change while it is used. id: the column that names the arms, whole
    numbers or strings; by default `id`, if there is such a column. columns: those that are features, in this order;
    by default all but the id. filesystem: one of pyarrow's, that `source` is a path on.

    A row group is read at a time, so its size is what memory must hold: `row_group_size=100_000` is a good one to write
    files with. To choose many times on one machine, `Table.build` is faster: Parquet takes long to decode.
    """

    def __init__(
        self, source: Any, *, id: str | None = None, columns: Sequence[str] | None = None, filesystem: Any = None
    ) -> None:
        self._hold(_opened(source, id, columns, filesystem), str(source))

    def _hold(self, store: "_Store", source: str) -> None:
        super().__init__(store)  # type: ignore[arg-type]  # a store like those of tables in memory and on disk
        self.source, self.blocks, self._store = source, store.blocks, store  # type: ignore[assignment]

    def part(self, begin: int, end: int) -> "ParquetTable":
        """The arms from `begin` to `end`, which must be where blocks begin and end."""
        store: _Store = self._store  # type: ignore[assignment]
        return _made_again(type(self), store.part(begin, end), self.source)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_arms={self.n_arms}, n_features={self.n_features}, source={self.source!r})"

    def __reduce__(self) -> tuple[Callable[..., Table], tuple[Any, ...]]:
        return _made_again, (type(self), self._store, self.source)


def _made_again(kind: type[ParquetTable], store: "_Store", source: str) -> ParquetTable:
    table = object.__new__(kind)
    table._hold(store, source)
    return table


@dataclass(frozen=True)
class _RowGroup:
    path: str
    number: int
    n_rows: int


class _Store:
    """Row groups one after the other. first: the place of the first row, where these are a part of all."""

    path = None
    dtype = np.dtype(np.float64)

    def __init__(self, system: Any, groups: Sequence[_RowGroup], wanted: Wanted, first: int = 0) -> None:
        self._system, self._groups, self._wanted, self._first = system, groups, wanted, first
        self._ends = np.concatenate([[0], np.cumsum([group.n_rows for group in groups])])
        self.n_arms, self.n_features = int(self._ends[-1]), len(wanted.columns)
        self.columns = wanted.columns
        self.has_ids = wanted.id is not None
        self.blocks = list(_blocks(self._ends, natural_block(self.n_features)))
        self.block_rows = max(block.stop - block.start for block in self.blocks)
        self._taken: tuple[IntArray, FloatArray] | None = None

    def part(self, begin: int, end: int) -> "_Store":
        """Some of the row groups."""
        here = slice(*np.searchsorted(self._ends, [begin, end]).tolist())
        return _Store(self._system, self._groups[here], self._wanted, self._first + begin)

    def refuse_changed(self) -> None:
        """Files promised not to change."""

    def rows(self, begin: int, end: int) -> FloatArray:
        """The features of these arms, `(end - begin, n_features)`."""
        parts = [
            self._features(i)[max(begin - first, 0) : end - first]
            for i, (first, last) in enumerate(pairwise(self._ends.tolist()))
            if first < end and begin < last
        ]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty((0, self.n_features)), *parts])

    def take(self, indices: IntArray) -> FloatArray:
        """The features of these arms, `(k, n_features)`, holding one row group beside the answer."""
        taken = self._taken  # often the arms chosen last, which the next round begins with
        if taken is not None and np.array_equal(taken[0], indices):
            return taken[1].copy()
        values = np.empty((indices.size, self.n_features))
        for i, here, rows in self._by_group(indices):
            values[here] = self._features(i)[rows]
        self._taken = indices.copy(), values.copy()
        return values

    def ids_at(self, indices: IntArray) -> NDArray[Any]:
        """The ids of these arms, `(k,)`."""
        parts, order = [], []
        for i, here, rows in self._by_group(indices):
            parts.append(self._ids(i)[rows])
            order.append(here)
        if not parts:
            return self._ids(0)[:0]
        ids = np.concatenate(parts)
        ids[np.concatenate(order)] = ids.copy()
        return ids

    def _by_group(self, indices: IntArray) -> Iterator[tuple[int, IntArray, IntArray]]:
        """The row groups with some of these arms: which of them, and which rows of the group they are."""
        of_arm = np.searchsorted(self._ends, indices, side="right") - 1
        for i in np.unique(of_arm).tolist():
            here = np.flatnonzero(of_arm == i)
            yield i, here, indices[here] - self._ends[i]

    def _features(self, i: int) -> FloatArray:
        X, begin = np.empty((self._groups[i].n_rows, self.n_features)), 0
        for block in Wanted(None, self.columns).blocks(self._read(i, self.columns)):
            X[begin : begin + len(block.X)] = block.X
            begin += len(block.X)
        if not np.isfinite(X).all():
            self._refuse(i, X)
        return X

    def _refuse(self, i: int, X: FloatArray) -> None:
        row, column = np.argwhere(~np.isfinite(X))[0].tolist()
        place = f"row {self._first + self._ends[i] + row}"
        who = f"the arm of id {self._ids(i)[row].item()!r}" if self.has_ids else place
        what = "no number (null or NaN)" if np.isnan(X[row, column]) else f"{X[row, column]}"
        raise ValueError(
            f"features must be finite numbers, but {who} has {what} in column {self._wanted.columns[column]!r}: "
            "fill them in, drop the rows, or leave the columns out with columns=[...]"
        )

    def _ids(self, i: int) -> NDArray[Any]:
        name, begin = str(self._wanted.id), self._first + int(self._ends[i])
        parts = []
        for batch in self._read(i, [name]):
            parts.append(id_array(id_values(batch.column(name), name, begin)))
            begin += batch.num_rows
        return np.concatenate(parts)

    def _read(self, i: int, columns: list[str]) -> Iterator[Any]:
        """The columns of a row group, some rows at a time."""
        group = self._groups[i]
        with reading(group.path, "Parquet"), parquet_opened(self._system, group.path) as file:
            yield from file.iter_batches(self._wanted.batch_rows, row_groups=[group.number], columns=columns)


def _blocks(ends: IntArray, n_rows: int) -> Iterator[slice]:
    """Whole row groups, as many together as do not exceed `n_rows`."""
    begin = end = 0
    for last in ends[1:].tolist():
        if last - begin > n_rows and begin < end:
            yield slice(begin, end)
            begin = end
        end = last
    if begin < end:
        yield slice(begin, end)


def _opened(source: Any, id: str | None, columns: Sequence[str] | None, filesystem: Any) -> _Store:
    """The store of the files that are there, refused if they could not be chosen from."""
    arrow()
    from pyarrow import fs  # noqa: PLC0415

    if not isinstance(source, str | os.PathLike):
        raise ValueError(f"source must be a Parquet file, a directory of them, or a URI, got {type(source).__name__}")
    if isinstance(columns, str):
        raise ValueError(f"columns must be a list of names, got the string {columns!r}; [{columns!r}] is a list of one")
    name = os.fspath(source)
    with reading(name, "a file or a directory"):
        if filesystem is not None:
            system, path = filesystem, name
        else:
            system, path = (
                fs.FileSystem.from_uri(name) if "://" in name else (fs.LocalFileSystem(), os.path.abspath(name))
            )
        kind = system.get_file_info(path).type
    if kind == fs.FileType.NotFound:
        raise FileNotFoundError(f"{name} is not there, expected a Parquet file, or a directory of them")
    paths = [path] if kind == fs.FileType.File else parquet_files(system, path, name)
    groups: list[_RowGroup] = []
    first = None
    for each in paths:
        with reading(each, "Parquet"), parquet_opened(system, each) as file:
            schema, metadata = file.schema_arrow, file.metadata
            groups += [
                _RowGroup(each, number, metadata.row_group(number).num_rows)
                for number in range(metadata.num_row_groups)
                if metadata.row_group(number).num_rows
            ]
        if first is None:
            first, wanted = schema, Wanted.of(schema, each, id, columns)
        elif columns is None and set(schema.names) != set(first.names):
            raise ValueError(
                f"{each} and {paths[0]} do not have the same columns "
                f"({listed(sorted(set(schema.names) ^ set(first.names)))} is in one only): "
                "make them alike, or pick with columns=[...]"
            )
        wanted.refuse_types(schema, each, like=first)
    if not groups:
        raise ValueError(f"{name} holds no rows, and a table needs one arm at least")
    return _Store(system, groups, wanted)
