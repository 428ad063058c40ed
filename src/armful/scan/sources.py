"""What a table is built from, as blocks of rows: Parquet, CSV, Arrow streams, arrays and other tables."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from armful.errors import FileFormatError
from armful.scan.columns import Block, Wanted, arrow, listed, refuse_choice
from armful.scan.table import Table

CSV_ENDINGS = (".csv", ".csv.gz", ".csv.bz2", ".csv.zst")
PARQUET_ENDINGS = (".parquet", ".parq", ".pq")
COLUMN_BUFFER = 256 << 10
"""Bytes of a column read at a time; without it pyarrow reads its whole part of a row group, however large."""
CSV_BLOCK = 4 << 20


@dataclass(frozen=True, eq=False)
class Source:
    """Rows in the order of the source; how many and what their columns are called, if it is known."""

    n_features: int
    columns: list[str] | None
    total: int | None
    blocks: Iterator[Block]


def open_source(source: Any, *, id: str | None, columns: Sequence[str] | None) -> Source:
    """The blocks of `source`; what can be refused before reading them is refused here."""
    if isinstance(columns, str):
        raise ValueError(f"columns must be a list of names, got the string {columns!r}; [{columns!r}] is a list of one")
    if isinstance(source, np.ndarray):
        return _from_table(Table.wrap(source), id, columns)
    if isinstance(source, Table):
        return _from_table(source, id, columns)
    if hasattr(source, "__arrow_c_stream__"):
        return _from_stream(source, id, columns)
    if isinstance(source, str | os.PathLike):
        return _from_files(os.fspath(source), id, columns)
    raise ValueError(
        f"source must be a file, a directory, a URI, an Arrow stream, an array or a Table, got {type(source).__name__}"
    )


def _from_table(table: Table, id: str | None, columns: Sequence[str] | None) -> Source:
    if id is not None:
        raise ValueError(
            f"id={id!r} names a column, and this source has ids or none: Table.wrap(X, ids=...) gives them"
        )
    chosen = slice(None) if columns is None else _places(table.columns, list(columns))
    kept = table.columns if columns is None else list(columns)

    def blocks() -> Iterator[Block]:
        for begin in range(0, table.n_arms, table.block_rows):
            end = min(begin + table.block_rows, table.n_arms)
            ids = table.ids_of(np.arange(begin, end))
            names = ids.tolist() if ids is not None and ids.dtype.kind == "U" else ids
            yield Block(table.rows(begin, end)[:, chosen], names)

    return Source(table.n_features if kept is None else len(kept), kept, table.n_arms, blocks())


def _places(names: list[str] | None, columns: list[str]) -> list[int]:
    if names is None:
        raise ValueError("columns= picks columns by name, and an array has no names: pick them before, X[:, [...]]")
    refuse_choice("the table", names, columns)
    return [names.index(name) for name in columns]


def _from_stream(source: Any, id: str | None, columns: Sequence[str] | None) -> Source:
    pa = arrow()
    name = f"the {type(source).__name__}"
    with reading(name, "an Arrow stream"):
        # A reader of pyarrow's own, asked directly, lets through the exceptions of the Python code behind it.
        own = isinstance(source, pa.RecordBatchReader)
        reader = source if own else pa.RecordBatchReader.from_stream(source)
    wanted = Wanted.of(reader.schema, name, id, columns)
    total = len(source) if hasattr(source, "__len__") else None
    return _from_batches(_guarded(reader, name, "an Arrow stream"), wanted, total)


def _from_batches(batches: Iterator[Any], wanted: Wanted, total: int | None) -> Source:
    return Source(len(wanted.columns), wanted.columns, total, wanted.blocks(batches))


def _from_files(name: str, id: str | None, columns: Sequence[str] | None) -> Source:
    arrow()
    from pyarrow import fs  # noqa: PLC0415

    with reading(name, "a file or a directory"):
        system, path = fs.FileSystem.from_uri(name) if "://" in name else (fs.LocalFileSystem(), os.path.abspath(name))
        kind = system.get_file_info(path).type
    if kind == fs.FileType.NotFound:
        raise FileNotFoundError(f"{name} is not there, expected a Parquet or CSV file, or a directory of Parquet files")
    if kind == fs.FileType.File and path.lower().endswith(CSV_ENDINGS):
        return _from_csv(system, path, name, id, columns)
    paths = [path] if kind == fs.FileType.File else parquet_files(system, path, name)
    return _from_parquet(system, paths, name, id, columns)


def parquet_files(system: Any, path: str, name: str) -> list[str]:
    """Those in the directory and below, by name; hidden ones and markers like `_SUCCESS` are left out."""
    from pyarrow import fs  # noqa: PLC0415

    with reading(name, "a directory"):
        listing = system.get_file_info(fs.FileSelector(path, recursive=True))
    found = sorted(
        entry.path
        for entry in listing
        if entry.type == fs.FileType.File
        and entry.path.lower().endswith(PARQUET_ENDINGS)
        and not any(part.startswith(("_", ".")) for part in entry.path[len(path) :].split("/"))
    )
    if not found:
        raise ValueError(f"{name} is a directory without Parquet files; their names must end in .parquet")
    return found


def parquet_opened(system: Any, path: str) -> Any:
    """A Parquet file, to be read some rows at a time."""
    from pyarrow import parquet  # noqa: PLC0415

    return parquet.ParquetFile(system.open_input_file(path), pre_buffer=False, buffer_size=COLUMN_BUFFER)


def _from_parquet(system: Any, paths: list[str], name: str, id: str | None, columns: Sequence[str] | None) -> Source:
    total, first = 0, None
    for path in paths:
        with reading(path, "Parquet"), parquet_opened(system, path) as file:
            schema, n_rows = file.schema_arrow, file.metadata.num_rows
        if first is None:
            first, wanted = schema, Wanted.of(schema, path, id, columns)
        elif columns is None and set(schema.names) != set(first.names):
            differ = listed(sorted(set(schema.names) ^ set(first.names)))
            raise ValueError(
                f"{path} and {paths[0]} do not have the same columns ({differ} is in one only): "
                "make them alike, or pick with columns=[...]"
            )
        wanted.refuse_types(schema, path, like=first)
        total += n_rows
    if not total:
        raise ValueError(f"{name} holds no rows, and a table needs one arm at least")

    def batches() -> Iterator[Any]:
        for path in paths:
            with reading(path, "Parquet"), parquet_opened(system, path) as file:
                yield from file.iter_batches(batch_size=wanted.batch_rows, columns=wanted.names)

    return _from_batches(batches(), wanted, total)


def _from_csv(system: Any, path: str, name: str, id: str | None, columns: Sequence[str] | None) -> Source:
    from pyarrow import csv  # noqa: PLC0415

    pa = arrow()

    def reader(**options: Any) -> Any:
        return csv.open_csv(
            system.open_input_stream(path),
            read_options=csv.ReadOptions(block_size=CSV_BLOCK),
            convert_options=csv.ConvertOptions(**options),
        )

    with reading(name, "CSV"):
        schema = reader().schema
    wanted = Wanted.of(schema, name, id, columns, may_be_empty=True)
    # Only the first block was looked at: whole numbers there may be followed by fractions, nothing by something.
    numbers = {
        column: pa.float64()
        for column in wanted.columns
        if pa.types.is_integer(schema.field(column).type) or pa.types.is_null(schema.field(column).type)
    }
    with reading(name, "CSV"):
        rows = reader(include_columns=wanted.names, column_types=numbers)
    return _from_batches(_guarded(rows, name, "CSV"), wanted, None)


def _guarded(batches: Any, name: str, what: str) -> Iterator[Any]:
    with reading(name, what):
        yield from batches


@contextmanager
def reading(name: str, what: str) -> Iterator[None]:
    """What goes wrong below, in one sentence."""
    pa = arrow()
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError) as error:
        if str(error).rstrip().endswith("\nKeyboardInterrupt"):  # in Python code behind the stream
            raise KeyboardInterrupt from error
        raise FileFormatError(f"{name} could not be read as {what}: {_first_line(error)}") from error
    except OSError as error:
        failed = OSError(f"{name} could not be read: {_first_line(error)}")
        failed.errno = error.errno
        raise failed from error


def _first_line(error: Exception) -> str:
    line = next(iter(str(error).splitlines()), type(error).__name__)
    return line.partition(" Detail: Python exception")[0]
