"""Files wherever pyarrow's filesystems reach: which there are, what Parquet says of them, and what goes wrong."""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from armful.errors import FileFormatError, with_message
from armful.tables._columns import ColumnSelection, arrow, features_of, listed
from armful.tables._table_file import START_MARK

CSV_ENDINGS = (".csv", ".csv.gz", ".csv.bz2", ".csv.zst")
PARQUET_ENDINGS = (".parquet", ".parq", ".pq")
PARQUET_MARK = b"PAR1"
COLUMN_BUFFER = 256 << 10
"""Bytes of a column read at a time; without it pyarrow reads its whole part of a row group, however large."""


@dataclass(frozen=True)
class FileStamp:
    """A file as it was when it was found."""

    system: Any
    path: str
    size: int | None
    mtime_ns: int | None

    def refuse_changed(self) -> None:
        """Refuse one that was written to or replaced since."""
        from pyarrow import fs  # noqa: PLC0415

        with reading(self.path, "a file"):
            now = self.system.get_file_info(self.path)
        if now.type == fs.FileType.NotFound:
            raise FileNotFoundError(f"{self.path} could not be read: it is not there any more")
        if (now.size, now.mtime_ns) != (self.size, self.mtime_ns):
            raise FileFormatError(f"{self.path} was changed after the ParquetTable was made: make it anew")


def is_files(source: Any) -> bool:
    """Whether it names a file, a directory or a URI, or is a list of such names."""
    names = source if isinstance(source, list | tuple) and source else [source]
    return all(isinstance(name, str | os.PathLike) for name in names)


def called(source: Any) -> str:
    """What `is_files` allows, for a sentence."""
    names = [str(name) for name in source] if isinstance(source, list | tuple) else [str(source)]
    return names[0] + (f" and {len(names) - 1:,} more" if len(names) > 1 else "")


def find(source: Any, filesystem: Any = None) -> list[FileStamp]:
    """The files of a path, a URI or a list of them; of a directory, the Parquet files in it and below."""
    if isinstance(source, list | tuple):
        return [file for name in source for file in find(name, filesystem)]
    arrow()
    from pyarrow import fs  # noqa: PLC0415

    name = os.fspath(source)
    with reading(name, "a file or a directory"):
        if filesystem is not None:
            system, path = filesystem, name
        elif "://" in name:
            system, path = fs.FileSystem.from_uri(name)
        else:
            system, path = fs.LocalFileSystem(), os.path.abspath(name)
        entry = system.get_file_info(path)
    if entry.type == fs.FileType.NotFound:
        raise FileNotFoundError(f"{name} is not there, expected a file, or a directory of Parquet files")
    entries = _parquet_below(system, path, name) if entry.type == fs.FileType.Directory else [entry]
    return [FileStamp(system, each.path, each.size, each.mtime_ns) for each in entries]


def _parquet_below(system: Any, path: str, name: str) -> list[Any]:
    """The entries of a directory, by name; hidden ones and markers like `_SUCCESS` are left out."""
    from pyarrow import fs  # noqa: PLC0415

    with reading(name, "a directory"):
        listing = system.get_file_info(fs.FileSelector(path, recursive=True))
    found = [
        entry
        for entry in listing
        if entry.type == fs.FileType.File
        and entry.path.lower().endswith(PARQUET_ENDINGS)
        and not any(part.startswith(("_", ".")) for part in entry.path[len(path) :].split("/"))
    ]
    if not found:
        raise ValueError(f"{name} is a directory without Parquet files; their names must end in .parquet")
    return sorted(found, key=lambda entry: str(entry.path))


def parquet_opened(file: FileStamp) -> Any:
    """A Parquet file, to be read some rows at a time."""
    from pyarrow import parquet  # noqa: PLC0415

    return parquet.ParquetFile(file.system.open_input_file(file.path), pre_buffer=False, buffer_size=COLUMN_BUFFER)


def look_through(
    files: Sequence[FileStamp], name: str, id: str | None, columns: Sequence[str] | None
) -> tuple[ColumnSelection, list[Any]]:
    """The columns to read of Parquet files, which must be alike, and what each file says of itself."""
    described, first = [], None
    for file in files:
        schema, metadata = _described(file)
        if first is None:
            first, wanted = schema, ColumnSelection.of(schema, file.path, id, columns)
        elif columns is None and set(features_of(schema)) != set(features_of(first)):
            differ = listed(sorted(set(features_of(schema)) ^ set(features_of(first))))
            raise ValueError(
                f"{file.path} and {files[0].path} do not have the same columns ({differ} is in one only): "
                "make them alike, or pick with columns=[...]"
            )
        wanted.refuse_types(schema, file.path, like=first)
        described.append(metadata)
    if not sum(metadata.num_rows for metadata in described):
        raise ValueError(f"{name} holds no rows, and a table needs one arm at least")
    return wanted, described


def _described(file: FileStamp) -> tuple[Any, Any]:
    with reading(file.path, "Parquet"):
        try:
            with parquet_opened(file) as opened:
                return opened.schema_arrow, opened.metadata
        except arrow().ArrowInvalid:
            _refuse_foreign(file)
            raise


def _refuse_foreign(file: FileStamp) -> None:
    """Say what it is, if it is no Parquet file at all."""
    with file.system.open_input_stream(file.path, compression=None) as stream:
        mark = stream.read(len(START_MARK))
    if mark == START_MARK:
        raise FileFormatError(f"{file.path} is an armful table already: open it with armful.Table.open")
    if file.path.lower().endswith(CSV_ENDINGS):
        raise FileFormatError(f"{file.path} is a CSV file: make a table of it alone with armful.Table.build")
    if not mark.startswith(PARQUET_MARK) and not file.path.lower().endswith(PARQUET_ENDINGS):
        raise FileFormatError(f"{file.path} is not a Parquet file; CSV files must end in .csv or .csv.gz")


@contextmanager
def reading(name: str, what: str) -> Iterator[None]:
    """What goes wrong below, in one sentence."""
    pa = arrow()
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError) as error:
        if str(error).rstrip().endswith("\nKeyboardInterrupt"):  # in Python code behind the stream
            raise KeyboardInterrupt from error
        refuse_unread(name, what, error)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM):
            raise with_message(error, f"no right to read {name}: ask its owner, or give another source") from error
        raise with_message(error, f"{name} could not be read: {_first_line(error)}") from error


def refuse_unread(name: str, what: str, error: Exception) -> NoReturn:
    """Refuse what could not be read, with the first line of the reason."""
    if what == "CSV" and (isinstance(error, UnicodeDecodeError) or "invalid UTF8" in str(error)):
        raise FileFormatError(f"{name} is not UTF-8: save it as UTF-8") from error
    raise FileFormatError(f"{name} could not be read as {what}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """What went wrong, without where in the code; pyarrow puts the column into a second argument."""
    text = "; ".join(map(str, error.args)) if not isinstance(error, OSError) else str(error)
    line = next(iter(text.splitlines()), type(error).__name__)
    return line.partition(" Detail: Python exception")[0]
