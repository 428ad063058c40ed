"""A CSV file as Arrow batches: what pyarrow would guess from its first block is said to it instead."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from armful import checks
from armful.errors import FileFormatError
from armful.tables._columns import ColumnSelection, arrow, features_of
from armful.tables._files import FileStamp, reading

CSV_BLOCK = 4 << 20
HEADER = 1 << 20
"""Bytes that the first line is looked for in."""
SEPARATORS = {";": "';'", "\t": "'\\t'", "|": "'|'"}
NUMBER = "^(0|-?[1-9][0-9]{0,18})$"
"""Ids that come back the same when they are read as whole numbers and written again."""


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How a CSV file is written. id_type: `"string"` for ids that stay strings, though the first look like numbers."""

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
    """The columns to read, and their batches."""
    from pyarrow import csv  # noqa: PLC0415

    pa = arrow()

    def reader(types: dict[str, Any], **options: Any) -> Any:
        return csv.open_csv(
            file.system.open_input_stream(file.path),
            read_options=csv.ReadOptions(block_size=CSV_BLOCK),
            parse_options=csv.ParseOptions(delimiter=dialect.delimiter),
            convert_options=csv.ConvertOptions(column_types=types, **options),
        )

    _refuse_header(file, name, dialect.delimiter)
    types = {"id" if id is None else id: pa.string()}
    with reading(name, "CSV"):
        schema = reader(types).schema
        seen = {field.name: field.type for field in schema}
    if any(pa.types.is_binary(seen[column]) for column in features_of(schema) if columns is None):
        raise FileFormatError(f"{name} is not UTF-8: save it as UTF-8")
    wanted = ColumnSelection.of(schema, name, id, columns, may_be_empty=True)
    # Only the first block was looked at: whole numbers there may be followed by fractions, nothing by something.
    for column in wanted.columns:
        if pa.types.is_integer(seen[column]) or pa.types.is_null(seen[column]):
            types[column] = pa.float64()
    with reading(name, "CSV"):
        rows = reader(types, include_columns=wanted.names)
    batches = _guarded(rows, name)
    return wanted, batches if wanted.id is None else _with_ids(batches, wanted.id, name, dialect.id_type)


def _guarded(rows: Any, name: str) -> Iterator[Any]:
    with reading(name, "CSV"):
        yield from rows


def _refuse_header(file: FileStamp, name: str, delimiter: str) -> None:
    """Refuse a header that is all there is, or that is one column by this delimiter and more by another."""
    with reading(name, "CSV"), file.system.open_input_stream(file.path) as stream:
        lines = stream.read(HEADER).splitlines()
    if not lines:
        return
    if lines[0].startswith((b"\xff\xfe", b"\xfe\xff")):  # UTF-16
        raise FileFormatError(f"{name} is not UTF-8: save it as UTF-8")
    if len(lines) == 1 and len(lines[0]) < HEADER - 2:
        raise ValueError(f"{name} holds no rows, and a table needs one arm at least")
    header = lines[0].decode(errors="replace")
    other = [mark for mark in SEPARATORS if mark in header]
    if other and delimiter not in header:
        shown = SEPARATORS[max(other, key=header.count)]
        raise FileFormatError(f"{name} looks separated by {shown}: pass delimiter={shown}")


def _with_ids(batches: Iterator[Any], id: str, name: str, id_type: str | None) -> Iterator[Any]:
    """The same with ids as whole numbers, if all of the first batch are; one that this would change is refused."""
    from pyarrow import compute  # noqa: PLC0415

    pa = arrow()
    are_numbers, begin = None if id_type is None else False, 0
    for batch in batches:
        place = batch.schema.get_field_index(id)
        ids = batch.column(place)
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
            arrays = [numbers if i == place else column for i, column in enumerate(batch.columns)]
            yield pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
        else:
            yield batch
        begin += len(ids)


def _numbers(ids: Any) -> Any:
    """Strings as int64, or None if that would change one of them."""
    from pyarrow import compute  # noqa: PLC0415

    pa = arrow()
    try:
        return ids.cast(pa.int64()) if compute.all(compute.match_substring_regex(ids, NUMBER)).as_py() else None
    except pa.ArrowInvalid:  # too large
        return None


def _is_number(text: str) -> bool:
    return re.fullmatch(NUMBER, text) is not None and -(2**63) <= int(text) < 2**63
