"""The sources of a table as blocks of rows: Parquet, CSV, Arrow streams, arrays and other tables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from armful.tables._columns import Block, ColumnSelection, import_pyarrow, refuse_column_choice, refuse_non_names
from armful.tables._csv import Dialect, read_csv
from armful.tables._files import (
    CSV_ENDINGS,
    FileStamp,
    display_name,
    find_files,
    is_files,
    open_parquet,
    raise_unreadable,
    readable_errors,
    select_columns,
)
from armful.tables._frames import refuse_dask
from armful.tables.table import Table


@dataclass(frozen=True, eq=False)
class Source:
    """Rows in the order of the source; their number and the names of their columns, if these are known."""

    n_features: int
    columns: list[str] | None
    total: int | None
    blocks: Iterator[Block]


def open_source(source: Any, *, id: str | None, columns: Sequence[str] | None, dialect: Dialect) -> Source:
    """Return the blocks of `source`; raise ValueError or FileFormatError for what can be seen before reading them."""
    refuse_non_names(id, columns)
    refuse_dask("source", source)
    if is_files(source):
        return _from_files(source, id, columns, dialect)
    if dialect != Dialect():
        raise ValueError(f"delimiter= and id_type= are for CSV files, got {type(source).__name__}: leave them out")
    if isinstance(source, np.ndarray):
        return _from_table(Table.wrap(source), id, columns)
    if isinstance(source, Table):
        return _from_table(source, id, columns)
    kind = type(source).__name__
    if hasattr(source, "to_frame"):
        raise ValueError(f"source must have columns, got a {kind}: pass what its .to_frame() gives")
    if hasattr(source, "__arrow_c_stream__"):
        return _from_stream(source, id, columns)
    if kind == "LazyFrame":
        raise ValueError("source must be in memory, got a LazyFrame: pass what its .collect() gives")
    raise ValueError(f"source must be a file, a directory, a URI, an Arrow stream, an array or a Table, got {kind}")


def _from_table(table: Table, id: str | None, columns: Sequence[str] | None) -> Source:
    if id is not None:
        raise ValueError(
            f"id={id!r} names a column, and this source has ids or none: Table.wrap(X, ids=...) gives them"
        )
    chosen = slice(None) if columns is None else _column_indices(table.columns, list(columns))
    kept = table.columns if columns is None else list(columns)

    def blocks() -> Iterator[Block]:
        for block in table.blocks:
            ids = table.ids_of(np.arange(block.start, block.stop))
            as_read = ids.tolist() if ids is not None and ids.dtype.kind == "U" else ids
            yield Block(table.rows(block.start, block.stop)[:, chosen], as_read)

    return Source(table.n_features if kept is None else len(kept), kept, table.n_arms, blocks())


def _column_indices(names: list[str] | None, columns: list[str]) -> list[int]:
    if names is None:
        raise ValueError("columns= picks columns by name, and an array has no names: pick them before, X[:, [...]]")
    refuse_column_choice("the table", names, columns)
    return [names.index(name) for name in columns]


def _from_stream(source: Any, id: str | None, columns: Sequence[str] | None) -> Source:
    pa = import_pyarrow()
    name, what, total = f"the {type(source).__name__}", "an Arrow stream", stream_length(source)
    with readable_errors(name, what):
        try:
            # A reader of pyarrow's own, asked directly, lets through the exceptions of the Python code behind it.
            own = isinstance(source, pa.RecordBatchReader)
            reader = source if own else pa.RecordBatchReader.from_stream(source)
        except (TypeError, ValueError) as error:  # columns that Arrow cannot have
            raise_unreadable(name, what, error)
    selection = ColumnSelection.of(reader.schema, name, id, columns)

    def batches() -> Iterator[Any]:
        with readable_errors(name, what):
            yield from reader

    return _from_batches(batches(), selection, total)


def stream_length(source: Any) -> int | None:
    """Return the number of rows if that is free; None for a result of DuckDB, whose stream a query would end."""
    if type(source).__module__.partition(".")[0] in ("pandas", "polars"):
        return len(source)
    n_rows = getattr(source, "num_rows", None)
    return n_rows if isinstance(n_rows, int) else None


def _from_batches(batches: Iterator[Any], selection: ColumnSelection, total: int | None) -> Source:
    return Source(len(selection.columns), selection.columns, total, selection.blocks(batches))


def _from_files(source: Any, id: str | None, columns: Sequence[str] | None, dialect: Dialect) -> Source:
    files, name = find_files(source), display_name(source)
    if len(files) == 1 and files[0].path.lower().endswith(CSV_ENDINGS):
        selection, batches = read_csv(files[0], name, id, columns, dialect)
        return _from_batches(batches, selection, None)
    if dialect != Dialect():
        raise ValueError(f"delimiter= and id_type= are for CSV files, got {name}: leave them out")
    selection, metadatas = select_columns(files, name, id, columns)
    return _from_batches(_parquet(files, selection), selection, sum(metadata.num_rows for metadata in metadatas))


def _parquet(files: list[FileStamp], selection: ColumnSelection) -> Iterator[Any]:
    for file in files:
        with readable_errors(file.path, "Parquet"), open_parquet(file) as opened:
            yield from opened.iter_batches(batch_size=selection.batch_rows, columns=selection.names)
