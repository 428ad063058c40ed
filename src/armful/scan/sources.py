"""What a table is built from, as blocks of rows: Parquet, CSV, Arrow streams, arrays and other tables."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.blocks import BLOCK
from armful.checks import FloatArray
from armful.errors import FileFormatError
from armful.scan.table import Table
from armful.scan.tablefile import natural_block

CSV_ENDINGS = (".csv", ".csv.gz", ".csv.bz2", ".csv.zst")
PARQUET_ENDINGS = (".parquet", ".parq", ".pq")
COLUMN_BUFFER = 256 << 10
"""Bytes of a column read at a time; without it pyarrow reads its whole part of a row group, however large."""
CSV_BLOCK = 4 << 20

Ids = NDArray[np.int64] | list[str]


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows: `X` `(m, n_features)`, not yet looked at, and the ids of the arms, if they have any."""

    X: NDArray[Any]
    ids: Ids | None


@dataclass(frozen=True, eq=False)
class Source:
    """Rows in the order of the source; how many and what their columns are called, if it is known."""

    n_features: int
    columns: list[str] | None
    total: int | None
    blocks: Iterator[Block]


@dataclass(frozen=True, eq=False)
class _Wanted:
    """The columns to read."""

    id: str | None
    columns: list[str]

    @property
    def names(self) -> list[str]:
        return self.columns if self.id is None else [self.id, *self.columns]


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
    _refuse_choice("the table", names, columns)
    return [names.index(name) for name in columns]


def _from_stream(source: Any, id: str | None, columns: Sequence[str] | None) -> Source:
    pa = _arrow()
    name = f"the {type(source).__name__}"
    with _reading(name, "an Arrow stream"):
        # A reader of pyarrow's own, asked directly, lets through the exceptions of the Python code behind it.
        own = isinstance(source, pa.RecordBatchReader)
        reader = source if own else pa.RecordBatchReader.from_stream(source)
    wanted = _wanted(reader.schema, name, id, columns)
    total = len(source) if hasattr(source, "__len__") else None
    return Source(
        len(wanted.columns), wanted.columns, total, _blocks(_guarded(reader, name, "an Arrow stream"), wanted)
    )


def _from_files(name: str, id: str | None, columns: Sequence[str] | None) -> Source:
    _arrow()
    from pyarrow import fs  # noqa: PLC0415

    with _reading(name, "a file or a directory"):
        system, path = fs.FileSystem.from_uri(name) if "://" in name else (fs.LocalFileSystem(), os.path.abspath(name))
        kind = system.get_file_info(path).type
    if kind == fs.FileType.NotFound:
        raise FileNotFoundError(f"{name} is not there, expected a Parquet or CSV file, or a directory of Parquet files")
    if kind == fs.FileType.File and path.lower().endswith(CSV_ENDINGS):
        return _from_csv(system, path, name, id, columns)
    paths = [path] if kind == fs.FileType.File else _parquet_files(system, path, name)
    return _from_parquet(system, paths, name, id, columns)


def _parquet_files(system: Any, path: str, name: str) -> list[str]:
    """Those in the directory and below, by name; hidden ones and markers like `_SUCCESS` are left out."""
    from pyarrow import fs  # noqa: PLC0415

    with _reading(name, "a directory"):
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


def _from_parquet(system: Any, paths: list[str], name: str, id: str | None, columns: Sequence[str] | None) -> Source:
    from pyarrow import parquet  # noqa: PLC0415

    def opened(path: str) -> Any:
        return parquet.ParquetFile(system.open_input_file(path), pre_buffer=False, buffer_size=COLUMN_BUFFER)

    def batches() -> Iterator[Any]:
        for path in paths:
            with _reading(path, "Parquet"), opened(path) as file:
                yield from file.iter_batches(batch_size=_batch_rows(wanted), columns=wanted.names)

    total, first = 0, None
    for path in paths:
        with _reading(path, "Parquet"), opened(path) as file:
            schema, n_rows = file.schema_arrow, file.metadata.num_rows
        if first is None:
            first, wanted = schema, _wanted(schema, path, id, columns)
        elif columns is None and set(schema.names) != set(first.names):
            differ = _listed(sorted(set(schema.names) ^ set(first.names)))
            raise ValueError(
                f"{path} and {paths[0]} do not have the same columns ({differ} is in one only): "
                "make them alike, or pick with columns=[...]"
            )
        _refuse_types(schema, path, wanted, like=first)
        total += n_rows
    if not total:
        raise ValueError(f"{name} holds no rows, and a table needs one arm at least")
    return Source(len(wanted.columns), wanted.columns, total, _blocks(batches(), wanted))


def _from_csv(system: Any, path: str, name: str, id: str | None, columns: Sequence[str] | None) -> Source:
    from pyarrow import csv  # noqa: PLC0415

    pa = _arrow()

    def reader(**options: Any) -> Any:
        return csv.open_csv(
            system.open_input_stream(path),
            read_options=csv.ReadOptions(block_size=CSV_BLOCK),
            convert_options=csv.ConvertOptions(**options),
        )

    with _reading(name, "CSV"):
        schema = reader().schema
    wanted = _wanted(schema, name, id, columns, empty=True)
    # Only the first block was looked at: whole numbers there may be followed by fractions, nothing by something.
    numbers = {
        column: pa.float64()
        for column in wanted.columns
        if pa.types.is_integer(schema.field(column).type) or pa.types.is_null(schema.field(column).type)
    }
    with _reading(name, "CSV"):
        rows = reader(include_columns=wanted.names, column_types=numbers)
    return Source(len(wanted.columns), wanted.columns, None, _blocks(_guarded(rows, name, "CSV"), wanted))


def _wanted(schema: Any, name: str, id: str | None, columns: Sequence[str] | None, empty: bool = False) -> _Wanted:
    """The id and the features among the columns of `schema`; `empty` ones, without any value so far, may be allowed."""
    if id is None and "id" in schema.names:
        id = "id"
    wanted = _Wanted(id, [column for column in schema.names if column != id] if columns is None else list(columns))
    if id is not None and id in wanted.columns:
        raise ValueError(f"column {id!r} is the id, so it cannot be a feature too: leave it out of columns=[...]")
    if not wanted.columns:
        raise ValueError(f"{name} has no column left for the features; its columns are {_listed(schema.names)}")
    _refuse_types(schema, name, wanted, like=schema, empty=empty)
    return wanted


def _refuse_choice(name: str, there: list[str], chosen: list[str]) -> None:
    times, wishes = Counter(there), Counter(chosen)
    missing = [column for column in chosen if column not in times]
    if missing:
        raise ValueError(f"{name} has no column {_listed(missing)}; its columns are {_listed(there)}")
    twice = [column for column in wishes if times[column] > 1 or wishes[column] > 1]
    if twice:
        raise ValueError(f"column {_listed(twice)} stands twice in {name} or in columns=[...]: each must stand once")


def _refuse_types(schema: Any, name: str, wanted: _Wanted, like: Any, empty: bool = False) -> None:
    """Refuse features that are not numbers, and ids that are neither whole numbers nor strings."""
    types = _arrow().types
    _refuse_choice(name, schema.names, wanted.names)
    is_number = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    kinds = {column: schema.field(column).type for column in wanted.columns}
    wrong = [
        f"{column!r} ({kind})"
        for column, kind in kinds.items()
        if not any(is_one(kind) for is_one in is_number) and not (empty and types.is_null(kind))
    ]
    if wrong:
        raise ValueError(
            f"features must be numbers, and {name} has {_cut(wrong)}: encode them as numbers, or leave them out with "
            "columns=[...]"
        )
    if wanted.id is not None and _id_kind(schema, wanted.id) != _id_kind(like, wanted.id):
        raise ValueError(
            f"ids must be all whole numbers or all strings, and {name} has another kind than the first file"
        )
    if wanted.id is not None and _id_kind(schema, wanted.id) is None:
        kind = schema.field(wanted.id).type
        raise ValueError(f"ids must be whole numbers or strings, and {name} has {wanted.id!r} ({kind}): cast it to one")


def _id_kind(schema: Any, id: str) -> str | None:
    types = _arrow().types
    kind = schema.field(id).type
    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_integer(kind):
        return "numbers"
    return "strings" if str(kind) in ("string", "large_string", "string_view") else None


def _batch_rows(wanted: _Wanted) -> int:
    """Fewer than a block of the table: they are in memory several times, as pages, columns and rows."""
    return max(BLOCK, natural_block(len(wanted.columns)) // 4)


def _blocks(batches: Iterator[Any], wanted: _Wanted) -> Iterator[Block]:
    n_rows, begin = _batch_rows(wanted), 0
    for batch in batches:
        for first in range(0, batch.num_rows, n_rows):
            part = batch.slice(first, n_rows)
            ids = None if wanted.id is None else _ids(part.column(wanted.id), wanted.id, begin)
            yield Block(_transposed([_numbers(part.column(name)) for name in wanted.columns]), ids)
            begin += part.num_rows


def _transposed(columns: list[NDArray[Any]]) -> FloatArray:
    """Columns side by side, `(m, d)`; some rows at a time, since what is written to should stay in the cache."""
    X = np.empty((len(columns[0]), len(columns)))
    for begin in range(0, len(X), BLOCK):
        rows = X[begin : begin + BLOCK]
        for place, column in enumerate(columns):
            rows[:, place] = column[begin : begin + BLOCK]
    return X


def _numbers(column: Any) -> NDArray[Any]:
    """A column as an array of numbers, null as NaN."""
    pa = _arrow()
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    numbers: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return numbers


def _ids(column: Any, name: str, begin: int) -> Ids:
    pa = _arrow()
    if column.null_count:
        row = begin + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise ValueError(f"every arm needs an id, and {name!r} is empty in row {row}: fill it in, or drop the row")
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not pa.types.is_integer(column.type):
        names: list[str] = column.to_numpy(zero_copy_only=False).tolist()
        return names
    try:
        numbers: NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        raise ValueError(
            f"ids must be at most {np.iinfo(np.int64).max}, and {name!r} has larger ones: make them strings"
        ) from None
    return numbers


def _guarded(batches: Any, name: str, what: str) -> Iterator[Any]:
    with _reading(name, what):
        yield from batches


@contextmanager
def _reading(name: str, what: str) -> Iterator[None]:
    """What goes wrong below, in one sentence."""
    pa = _arrow()
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


def _listed(names: Sequence[str]) -> str:
    return _cut([repr(name) for name in names])


def _cut(words: list[str]) -> str:
    """A list that stays readable when there are thousands."""
    return ", ".join(words[:10]) + (f" and {len(words) - 10:,} more" if len(words) > 10 else "")


def _arrow() -> ModuleType:
    try:
        import pyarrow  # noqa: PLC0415
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "pyarrow is needed to read Parquet, CSV and Arrow: pip install 'armful[tables]'"
        ) from None
    module: ModuleType = pyarrow
    return module
