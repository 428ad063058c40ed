"""Arms that stay in Parquet files, wherever pyarrow's filesystems reach."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray
from armful.tables._columns import ColumnSelection, id_values, refuse_names
from armful.tables._files import FileStamp, called, find, is_files, look_through, parquet_opened, reading
from armful.tables._ids import id_array
from armful.tables._table_file import natural_block
from armful.tables.table import Table


class ParquetTable(Table):
    """A `Table` whose arms stay in Parquet files; only what the files say of themselves is read when it is made.

    source: a Parquet file, a directory of them, the URI of either (`s3://...`), or a list of these. Its rows are the
        arms, in the order of the list, and of the names of the files in a directory. A file that changes is refused
        when it is read.
    id: the column that names the arms, whole numbers or strings; by default `id`, if there is such a column. That no
        two are the same is not checked, as that would read all of them; `Table.build` does.
    columns: those that are features, in this order; by default all but the id and the index of pandas.
    filesystem: one of pyarrow's, that `source` is a path on.

    A row group is read at a time, so its size is what memory must hold: `row_group_size=100_000` is a good one to write
    files with. To choose many times on one machine, `Table.build` is faster: Parquet takes long to decode.
    """

    _ids_differ = False

    def __init__(
        self, source: Any, *, id: str | None = None, columns: Sequence[str] | None = None, filesystem: Any = None
    ) -> None:
        self._hold(_opened(source, id, columns, filesystem), called(source))

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
    file: FileStamp
    number: int
    n_rows: int


class _Store:
    """Row groups one after the other. first: the place of the first row, where these are a part of all."""

    path = None
    dtype = np.dtype(np.float64)

    def __init__(self, groups: Sequence[_RowGroup], wanted: ColumnSelection, first: int = 0) -> None:
        self._groups, self._wanted, self._first = groups, wanted, first
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
        return _Store(self._groups[here], self._wanted, self._first + begin)

    def refuse_changed(self) -> None:
        """Each file is looked at when it is read."""

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
        for block in ColumnSelection(None, self.columns).blocks(self._read(i, self.columns)):
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
        group.file.refuse_changed()
        with reading(group.file.path, "Parquet"), parquet_opened(group.file) as opened:
            yield from opened.iter_batches(self._wanted.batch_rows, row_groups=[group.number], columns=columns)


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
    if not is_files(source):
        raise ValueError(
            f"source must be a Parquet file, a directory of them, a URI or a list of these, got {type(source).__name__}"
        )
    refuse_names(id, columns)
    files = find(source, filesystem)
    wanted, described = look_through(files, called(source), id, columns)
    groups = [
        _RowGroup(file, number, metadata.row_group(number).num_rows)
        for file, metadata in zip(files, described, strict=True)
        for number in range(metadata.num_row_groups)
    ]
    return _Store([group for group in groups if group.n_rows], wanted)
