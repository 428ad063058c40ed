"""Arms that stay in Parquet files, on any of pyarrow's filesystems."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray
from armful.tables._columns import ColumnSelection, id_values, refuse_non_names
from armful.tables._files import (
    FileStamp,
    display_name,
    find_files,
    is_files,
    open_parquet,
    readable_errors,
    select_columns,
)
from armful.tables._ids import id_array
from armful.tables._row_blocks import joined_in_order, rows_per_block
from armful.tables.rows import Store
from armful.tables.table import Table


class ParquetTable(Table):
    """A `Table` whose arms stay in Parquet files. Making one reads the metadata of the files only.

    One row group is read at a time, so a row group must fit into memory: write files with `row_group_size=100_000`. To
    choose many times on one machine, `Table.build` is faster, since Parquet takes long to decode.

    Parameters
    ----------
    source : path or list of paths
        A Parquet file, a directory of them, the URI of either (`s3://...`), or a list of these. Its rows are the arms,
        in the order of the list, and in a directory of the names of the files. A file that has changed is refused when
        it is read.
    id : str, optional
        The column that names the arms: whole numbers or strings. By default `id`, if there is such a column. Repeated
        ids are not noticed here, since that would read all of them; `Table.build` notices.
    columns : list of str, optional
        The columns that are features, in this order. By default all but the id and the index of pandas.
    filesystem : pyarrow.fs.FileSystem, optional
        The filesystem on which `source` is a path.

    Raises
    ------
    ValueError
        There are no such columns, or they are not numbers.
    FileFormatError
        A file is not a Parquet file.
    """

    _ids_are_unique = False
    _store: "_ParquetStore"

    def __init__(
        self, source: Any, *, id: str | None = None, columns: Sequence[str] | None = None, filesystem: Any = None
    ) -> None:
        super().__init__(_open_store(source, id, columns, filesystem))
        self.source = self._store.source

    def part(self, begin: int, end: int) -> "ParquetTable":
        """Return the arms from `begin` up to `end` as a table of their own.

        Parameters
        ----------
        begin, end : int
            Arm indices at which blocks begin and end.

        Returns
        -------
        ParquetTable
        """
        return _from_store(type(self), self._store.part(begin, end))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_arms={self.n_arms}, n_features={self.n_features}, source={self.source!r})"

    def __reduce__(self) -> tuple[Callable[..., Table], tuple[Any, ...]]:
        return _from_store, (type(self), self._store)


def _from_store(kind: type[ParquetTable], store: "_ParquetStore") -> ParquetTable:
    table = object.__new__(kind)
    Table.__init__(table, store)
    table.source = store.source
    return table


@dataclass(frozen=True)
class _RowGroup:
    file: FileStamp
    number: int
    n_rows: int


class _ParquetStore(Store):
    """Row groups one after the other. source: the name of the files. first: the index of the first row among all."""

    def __init__(self, groups: Sequence[_RowGroup], selection: ColumnSelection, source: str, first: int = 0) -> None:
        self._groups, self._selection, self.source, self._first = groups, selection, source, first
        self._ends = np.concatenate([[0], np.cumsum([group.n_rows for group in groups])])
        self.n_arms, self.n_features = int(self._ends[-1]), len(selection.columns)
        self.columns: list[str] = selection.columns
        self.has_ids = selection.id is not None
        self._blocks = list(_blocks(self._ends, rows_per_block(self.n_features)))
        self.block_rows = max(block.stop - block.start for block in self._blocks)
        self._taken: tuple[IntArray, FloatArray] | None = None

    @property
    def blocks(self) -> list[slice]:
        return self._blocks

    def part(self, begin: int, end: int) -> "_ParquetStore":
        here = slice(*np.searchsorted(self._ends, [begin, end]).tolist())
        return _ParquetStore(self._groups[here], self._selection, self.source, self._first + begin)

    def sample_rows(self, n_rows: int) -> FloatArray:
        """Return the first rows: others may each be in another row group."""
        return self.take(np.arange(n_rows))

    def rows(self, begin: int, end: int) -> FloatArray:
        parts = [
            self._features(i)[max(begin - first, 0) : end - first]
            for i, (first, last) in enumerate(pairwise(self._ends.tolist()))
            if first < end and begin < last
        ]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty((0, self.n_features)), *parts])

    def take(self, indices: IntArray) -> FloatArray:
        taken = self._taken  # often the arms chosen last, which the next round scores first
        if taken is not None and np.array_equal(taken[0], indices):
            return taken[1].copy()
        values = np.empty((indices.size, self.n_features))
        for i, positions, rows in self._by_group(indices):
            values[positions] = self._features(i)[rows]
        self._taken = indices.copy(), values.copy()
        return values

    def ids_at(self, indices: IntArray) -> NDArray[Any]:
        parts, order = [], []
        for i, positions, rows in self._by_group(indices):
            parts.append(self._ids(i)[rows])
            order.append(positions)
        return joined_in_order(parts, order) if parts else self._ids(0)[:0]

    def _by_group(self, indices: IntArray) -> Iterator[tuple[int, IntArray, IntArray]]:
        """Yield each row group with some of the arms, their positions in `indices` and their rows in the group."""
        of_arm = np.searchsorted(self._ends, indices, side="right") - 1
        for i in np.unique(of_arm).tolist():
            positions = np.flatnonzero(of_arm == i)
            yield i, positions, indices[positions] - self._ends[i]

    def _features(self, i: int) -> FloatArray:
        X, begin = np.empty((self._groups[i].n_rows, self.n_features)), 0
        for block in ColumnSelection(None, self.columns).blocks(self._read(i, self.columns)):
            X[begin : begin + len(block.X)] = block.X
            begin += len(block.X)
        if not np.isfinite(X).all():
            self._raise_not_finite(i, X)
        return X

    def _raise_not_finite(self, i: int, X: FloatArray) -> NoReturn:
        row, column = np.argwhere(~np.isfinite(X))[0].tolist()
        index = self._first + self._ends[i] + row
        arm = f"the arm of id {self._ids(i)[row].item()!r}" if self.has_ids else f"row {index}"
        what = "no number (null or NaN)" if np.isnan(X[row, column]) else f"{X[row, column]}"
        raise ValueError(
            f"features must be finite numbers, but {arm} has {what} in column {self._selection.columns[column]!r}: "
            "fill them in, drop the rows, or leave the columns out with columns=[...]"
        )

    def _ids(self, i: int) -> NDArray[Any]:
        name, begin = str(self._selection.id), self._first + int(self._ends[i])
        parts = []
        for batch in self._read(i, [name]):
            parts.append(id_array(id_values(batch.column(name), name, begin)))
            begin += batch.num_rows
        return np.concatenate(parts)

    def _read(self, i: int, columns: list[str]) -> Iterator[Any]:
        """Yield the columns of a row group, some rows at a time."""
        group = self._groups[i]
        group.file.refuse_changed()
        with readable_errors(group.file.path, "Parquet"), open_parquet(group.file) as opened:
            yield from opened.iter_batches(self._selection.batch_rows, row_groups=[group.number], columns=columns)


def _blocks(ends: IntArray, n_rows: int) -> Iterator[slice]:
    """Yield blocks of whole row groups, as many as do not exceed `n_rows`."""
    begin = end = 0
    for last in ends[1:].tolist():
        if last - begin > n_rows and begin < end:
            yield slice(begin, end)
            begin = end
        end = last
    if begin < end:
        yield slice(begin, end)


def _open_store(source: Any, id: str | None, columns: Sequence[str] | None, filesystem: Any) -> _ParquetStore:
    if not is_files(source):
        raise ValueError(
            f"source must be a Parquet file, a directory of them, a URI or a list of these, got {type(source).__name__}"
        )
    refuse_non_names(id, columns)
    files = find_files(source, filesystem)
    selection, metadatas = select_columns(files, display_name(source), id, columns)
    groups = [
        _RowGroup(file, number, metadata.row_group(number).num_rows)
        for file, metadata in zip(files, metadatas, strict=True)
        for number in range(metadata.num_row_groups)
    ]
    return _ParquetStore([group for group in groups if group.n_rows], selection, display_name(source))
