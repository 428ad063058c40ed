"""The rows of a file, a DataFrame or an Arrow stream as record batches, in bounded memory."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from armful.errors import FileFormatError, NoRowsError
from armful.tables._columns import feature_columns, refuse_column_choice
from armful.tables._csv import CSV_BLOCK, Dialect, refuse_header
from armful.tables._files import (
    CSV_ENDINGS,
    FileStamp,
    display_name,
    find_files,
    is_files,
    open_parquet,
    raise_unreadable,
    readable_errors,
    schema_and_metadata,
)
from armful.tables._frames import refuse_dask
from armful.tables._sources import stream_length

BATCH_ROWS = 1 << 16
LOOK = 1 << 14
FEW = 0.1
"""Texts are read as a dictionary if the distinct ones are at most this share of the first rows."""
DICTIONARY = pa.dictionary(pa.int32(), pa.string())
RAGGED = re.compile(r"Expected (\d+) columns, got (\d+): (.*)")
COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
CONVERSION = re.compile(r"In CSV column #(\d+): .*conversion error to (\w+).*: invalid value '(.*)'", re.DOTALL)


@dataclass(frozen=True, eq=False)
class RowReader:
    """Rows to be read once.

    Attributes
    ----------
    schema : pyarrow.Schema
        The columns that are read.
    n_rows : int or None
        How many rows there are, None if that is not known before reading.
    n_bytes : int or None
        The size of the files, None if there are none.
    batches : iterator of pyarrow.RecordBatch
        The rows. Texts may be dictionary-encoded.
    read_bytes : callable
        Returns how many bytes of the files are read by now; 0 if there are none.
    """

    schema: pa.Schema
    n_rows: int | None
    n_bytes: int | None
    batches: Iterator[pa.RecordBatch]
    read_bytes: Callable[[], int]


def open_rows(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    text: Sequence[str] = (),
    delimiter: str = ",",
    read: Sequence[str] | None = None,
) -> RowReader:
    """Return the rows of a source.

    Parameters
    ----------
    source : path, list of paths, DataFrame or Arrow data
        CSV or Parquet files, a folder of Parquet files, or whatever gives an Arrow stream.
    columns : sequence of str, optional
        Which columns must be there; by default all.
    text : sequence of str
        Columns of a CSV file that are read as they are written. In the others, numbers are float64.
    delimiter : str
        What separates the columns of a CSV file.
    read : sequence of str, optional
        Which of `columns` to read from files, in this order; by default all of them.

    Returns
    -------
    RowReader

    Raises
    ------
    ValueError
        A column is not there, or there are no rows.
    FileFormatError
        A file cannot be read. Also raised while rows are read.
    """
    refuse_dask("source", source)
    dialect = Dialect(delimiter=delimiter)
    if is_files(source):
        files, name = find_files(source), display_name(source)
        are_csv = {file.path.lower().endswith(CSV_ENDINGS) for file in files}
        if len(are_csv) > 1:
            raise ValueError(f"{name} are of several formats: give CSV files or Parquet files, not both")
        if are_csv == {True}:
            return _from_csv(files, name, columns, text, dialect, read)
        return _from_parquet(files, name, columns, read)
    kind = type(source).__name__
    if kind == "LazyFrame":
        raise ValueError("source must be in memory, got a LazyFrame: pass what its .collect() gives")
    if not hasattr(source, "__arrow_c_stream__") or hasattr(source, "to_frame"):
        raise ValueError(f"source must be a file, a folder of Parquet files, a DataFrame or an Arrow table, got {kind}")
    return _from_stream(source, columns)


def _from_csv(
    files: Sequence[FileStamp],
    name: str,
    columns: Sequence[str] | None,
    text: Sequence[str],
    dialect: Dialect,
    read: Sequence[str] | None,
) -> RowReader:
    names, types = _csv_types(files[0], text, dialect)
    needed = names if columns is None else list(columns)
    _refuse_columns(name, names, needed)
    wanted = needed if read is None else list(read)
    kinds = {column: types[column] for column in wanted}
    sizes, position = [file.size or 0 for file in files], [0]

    def batches() -> Iterator[pa.RecordBatch]:
        for i, file in enumerate(files):
            present = names if i == 0 else _csv_types(file, text, dialect)[0]
            _refuse_columns(file.path, present, needed)
            with _csv_errors(file.path, present):
                raw = file.system.open_input_file(file.path)
                for batch in _open_csv(raw, file.path, dialect, column_types=kinds, include_columns=wanted):
                    position[0] = sum(sizes[:i]) + raw.tell()
                    yield from _sliced(batch)
        position[0] = sum(sizes)

    return RowReader(pa.schema(list(kinds.items())), None, sum(sizes), batches(), lambda: position[0])


def _refuse_columns(name: str, available: Sequence[str], needed: Sequence[str]) -> None:
    """Raise ValueError if a column is not in a file, or in it twice."""
    twice = next((column for column in needed if available.count(column) > 1), None)
    if twice is not None:
        raise ValueError(f"column {twice!r} is there twice in {name}: each must be there once")
    refuse_column_choice(name, list(available), list(needed))


def _csv_types(file: FileStamp, text: Sequence[str], dialect: Dialect) -> tuple[list[str], dict[str, pa.DataType]]:
    """Return the columns and the type of each: pyarrow's guesses from the first rows, so wide that later rows fit.

    Whole numbers may be followed by decimals and no value by numbers: all are float64. Dates stay as they are written.
    """
    refuse_header(file, file.path, dialect.delimiter)
    types = {}
    with _csv_errors(file.path, ()):
        raw = file.system.open_input_file(file.path)
        first = _open_csv(raw, file.path, dialect, column_types=dict.fromkeys(text, pa.string())).read_next_batch()
        for field, column in zip(first.schema, first.columns, strict=True):
            types[field.name] = _wide_type(field.type, column, file.path)
    return first.schema.names, types


def _wide_type(kind: pa.DataType, column: pa.Array, path: str) -> pa.DataType:
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind):
        return pa.float64()
    if pa.types.is_binary(kind):
        raise FileFormatError(f"{path} is not UTF-8: save it as UTF-8")
    return kind if pa.types.is_boolean(kind) else DICTIONARY if _repeats(column) else pa.string()


def _open_csv(raw: Any, path: str, dialect: Dialect, **options: Any) -> Any:
    codec = next((codec for ending, codec in COMPRESSED.items() if path.lower().endswith(ending)), None)
    return csv.open_csv(
        raw if codec is None else pa.CompressedInputStream(raw, codec),
        read_options=csv.ReadOptions(block_size=CSV_BLOCK),
        parse_options=csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
        convert_options=csv.ConvertOptions(**options),
    )


@contextmanager
def _csv_errors(path: str, names: Sequence[str]) -> Iterator[None]:
    """Turn pyarrow's errors into one sentence, with the name of the column in place of its number."""
    with readable_errors(path, "CSV"):
        try:
            yield
        except pa.ArrowInvalid as error:
            _refuse_row(path, str(error))
            found = CONVERSION.search(str(error))
            if found is None or found[2] not in ("double", "bool"):
                raise
            expected = "numbers" if found[2] == "double" else "true or false"
            column = names[int(found[1])]
            raise ValueError(f"column {column!r} of {path} should hold {expected}, got {found[3]!r}") from None


def _refuse_row(path: str, message: str) -> None:
    """Raise FileFormatError with one sentence for a row that cannot be read."""
    if message.startswith("Empty CSV file") or "cannot infer number of columns" in message:
        raise FileFormatError(f"{path} is empty") from None
    if "straddling object" in message:
        sentence = f"{path} has a row of more than {CSV_BLOCK >> 20} MiB: close the quote that is left open in it"
        raise FileFormatError(sentence) from None
    found = RAGGED.search(message)
    if found is not None:
        sentence = f"{path} has a row of {found[2]} values, and its header has {found[1]}: {found[3][:80]!r}"
        raise FileFormatError(sentence) from None


def _from_parquet(
    files: Sequence[FileStamp], name: str, columns: Sequence[str] | None, read: Sequence[str] | None
) -> RowReader:
    found = [schema_and_metadata(file) for file in files]
    first = found[0][0]
    needed = feature_columns(first) if columns is None else list(columns)
    for file, (schema, _) in zip(files, found, strict=True):
        _refuse_columns(file.path, schema.names, needed)
    wanted = needed if read is None else list(read)
    n_rows, n_bytes = sum(metadata.num_rows for _, metadata in found), sum(file.size or 0 for file in files)
    if not n_rows:
        raise NoRowsError(f"{name} holds no rows")
    n_read = [0]

    def batches() -> Iterator[pa.RecordBatch]:
        for file in files:
            with readable_errors(file.path, "Parquet"):
                few = _few_texts(file, wanted)
                with open_parquet(file, read_dictionary=few) as opened:
                    for batch in opened.iter_batches(batch_size=BATCH_ROWS, columns=wanted):
                        n_read[0] += batch.num_rows
                        yield batch.select(wanted)

    schema = pa.schema([first.field(column) for column in wanted])
    return RowReader(schema, n_rows, n_bytes, batches(), lambda: n_bytes * n_read[0] // n_rows)


def _few_texts(file: FileStamp, columns: Sequence[str]) -> list[str]:
    """Return the columns of texts of which there are few: these are read faster as a dictionary."""
    with open_parquet(file) as opened:
        texts = [each for each in columns if str(opened.schema_arrow.field(each).type) in ("string", "large_string")]
        if not texts:
            return []
        first = next(opened.iter_batches(batch_size=LOOK, columns=texts), None)
    return [] if first is None else [name for name in texts if _repeats(first.column(name))]


def _from_stream(source: Any, columns: Sequence[str] | None) -> RowReader:
    name, what = f"the {type(source).__name__}", "an Arrow stream"
    with readable_errors(name, what):
        try:
            own = isinstance(source, pa.RecordBatchReader)
            reader = source if own else pa.RecordBatchReader.from_stream(source)
        except (TypeError, ValueError) as error:  # columns that Arrow cannot have
            raise_unreadable(name, what, error)
    wanted = feature_columns(reader.schema) if columns is None else list(columns)
    _refuse_columns(name, reader.schema.names, wanted)

    def batches() -> Iterator[pa.RecordBatch]:
        with readable_errors(name, what):
            for batch in reader:
                yield from _sliced(batch.select(wanted))

    schema = pa.schema([reader.schema.field(column) for column in wanted])
    return RowReader(schema, stream_length(source), None, batches(), lambda: 0)


def _repeats(column: pa.Array) -> bool:
    """Return whether there are so few distinct texts that a dictionary of them pays."""
    return bool(len(column) and pc.count_distinct(column, mode="all").as_py() <= FEW * len(column))


def _sliced(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for begin in range(0, batch.num_rows, BATCH_ROWS):
        yield batch.slice(begin, BATCH_ROWS)
