"""A CSV file as Arrow batches, with column types set so that pyarrow does not guess them from the first block."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from armful import checks
from armful.errors import FileFormatError, NoRowsError
from armful.tables._columns import ColumnSelection, feature_columns, import_pyarrow
from armful.tables._files import FileStamp, readable_errors

CSV_BLOCK = 4 << 20
HEADER = 1 << 20
"""Bytes in which the end of the first line is searched."""
SEPARATORS = {",": "','", ";": "';'", "\t": "'\\t'", "|": "'|'"}
NUMBER = "^(0|-?[1-9][0-9]{0,18})$"
"""Ids that stay the same when they are read as whole numbers and written again."""


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How a CSV file is written. id_type: `"string"` for ids that stay strings even if they look like numbers."""

    delimiter: str = ","
    id_type: str | None = None

    def __post_init__(self) -> None:
        if (
            not isinstance(self.delimiter, str)
            or len(self.delimiter) != 1
            or self.delimiter in '"\r\n'
            or not self.delimiter.isascii()
        ):
            raise ValueError(f"delimiter must be one character, like ',' or ';', got {self.delimiter!r}")
        if self.id_type is not None:
            checks.one_of("id_type", self.id_type, ("string",))


def read_csv(
    file: FileStamp, name: str, id: str | None, columns: Sequence[str] | None, dialect: Dialect
) -> tuple[ColumnSelection, Iterator[Any]]:
    """Return the columns to read, and an iterator of their batches."""
    from pyarrow import csv  # noqa: PLC0415

    pa = import_pyarrow()

    def reader(types: dict[str, Any], **options: Any) -> Any:
        return csv.open_csv(
            file.system.open_input_stream(file.path),
            read_options=csv.ReadOptions(block_size=CSV_BLOCK),
            parse_options=csv.ParseOptions(delimiter=dialect.delimiter),
            convert_options=csv.ConvertOptions(column_types=types, **options),
        )

    refuse_header(file, name, dialect.delimiter)
    types = {"id" if id is None else id: pa.string()}
    with readable_errors(name, "CSV"):
        schema = reader(types).schema
        seen = {field.name: field.type for field in schema}
    if any(pa.types.is_binary(seen[column]) for column in feature_columns(schema) if columns is None):
        raise FileFormatError(f"{name} is not UTF-8: save it as UTF-8")
    selection = ColumnSelection.of(schema, name, id, columns, may_be_empty=True)
    # The types are those of the first block: later whole numbers may have fractions, and empty columns values.
    for column in selection.columns:
        if pa.types.is_integer(seen[column]) or pa.types.is_null(seen[column]):
            types[column] = pa.float64()
    with readable_errors(name, "CSV"):
        rows = reader(types, include_columns=selection.names)
    batches = _guarded(rows, name)
    return selection, batches if selection.id is None else _with_ids(batches, selection.id, name, dialect.id_type)


def _guarded(rows: Any, name: str) -> Iterator[Any]:
    with readable_errors(name, "CSV"):
        yield from rows


def refuse_header(file: FileStamp, name: str, delimiter: str) -> None:
    """Raise if there are no rows, or if the header is one column by this delimiter and several by another."""
    with readable_errors(name, "CSV"), file.system.open_input_stream(file.path) as stream:
        lines = stream.read(HEADER).splitlines()
    if not lines:
        return
    if lines[0].startswith((b"\xff\xfe", b"\xfe\xff")):  # UTF-16
        raise FileFormatError(f"{name} is not UTF-8: save it as UTF-8")
    if len(lines) == 1 and len(lines[0]) < HEADER - 2:
        raise NoRowsError(f"{name} holds no rows")
    header = lines[0].decode(errors="replace")
    other = [mark for mark in SEPARATORS if mark in header]
    if other and delimiter not in header:
        shown = SEPARATORS[max(other, key=header.count)]
        raise FileFormatError(
            f"{name} looks separated by {shown}: set delimiter to {shown}, or save the file with {delimiter!r}"
        )


def _with_ids(batches: Iterator[Any], id: str, name: str, id_type: str | None) -> Iterator[Any]:
    """Yield the batches with ids as whole numbers if those of the first are; a later id that is not raises."""
    from pyarrow import compute  # noqa: PLC0415

    pa = import_pyarrow()
    are_numbers, begin = None if id_type is None else False, 0
    for batch in batches:
        id_column = batch.schema.get_field_index(id)
        ids = batch.column(id_column)
        empty = compute.index(ids, "").as_py()
        if empty >= 0:
            row = begin + empty
            raise ValueError(f"every arm needs an id, and {id!r} is empty in row {row}: fill it in, or drop the row")
        numbers = None if are_numbers is False else _numbers(ids)
        if are_numbers is None and len(ids):
            are_numbers = numbers is not None
        if are_numbers and numbers is None:
            row, text = next((row, text) for row, text in enumerate(ids.to_pylist(), begin) if not _is_number(text))
            raise ValueError(
                f"ids must be all whole numbers or all strings, and {name} has numbers before {text!r} in row {row}: "
                'pass id_type="string" to keep all as they are written'
            )
        if are_numbers:
            arrays = [numbers if i == id_column else column for i, column in enumerate(batch.columns)]
            yield pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
        else:
            yield batch
        begin += len(ids)


def _numbers(ids: Any) -> Any:
    """Return strings as int64, or None if that would change one of them."""
    from pyarrow import compute  # noqa: PLC0415

    pa = import_pyarrow()
    try:
        return ids.cast(pa.int64()) if compute.all(compute.match_substring_regex(ids, NUMBER)).as_py() else None
    except pa.ArrowInvalid:  # too large
        return None


def _is_number(text: str) -> bool:
    return re.fullmatch(NUMBER, text) is not None and -(2**63) <= int(text) < 2**63
