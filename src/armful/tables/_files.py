"""Files on pyarrow's filesystems: finding them, the columns of Parquet files, and errors in one sentence."""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from armful.errors import FileFormatError, with_message
from armful.tables._columns import ColumnSelection, feature_columns, import_pyarrow, name_list
from armful.tables._table_file import START_MARK

CSV_ENDINGS = (".csv", ".csv.gz", ".csv.bz2", ".csv.zst")
PARQUET_ENDINGS = (".parquet", ".parq", ".pq")
PARQUET_MARK = b"PAR1"
COLUMN_BUFFER = 256 << 10
"""Bytes of a column read at a time; without it pyarrow reads the whole column of a row group, however large."""


@dataclass(frozen=True)
class FileStamp:
    """A file with its size and time of change when it was found."""

    system: Any
    path: str
    size: int | None
    mtime_ns: int | None

    def refuse_changed(self) -> None:
        """Raise FileFormatError if it was written to or replaced since."""
        from pyarrow import fs  # noqa: PLC0415

        with readable_errors(self.path, "a file"):
            now = self.system.get_file_info(self.path)
        if now.type == fs.FileType.NotFound:
            raise FileNotFoundError(f"{self.path} could not be read: it does not exist any more")
        if (now.size, now.mtime_ns) != (self.size, self.mtime_ns):
            raise FileFormatError(f"{self.path} was changed after the ParquetTable was made: make it again")


def is_files(source: Any) -> bool:
    """Return whether it is the name of a file, a directory or a URI, or a list of such names."""
    names = source if isinstance(source, list | tuple) and source else [source]
    return all(isinstance(name, str | os.PathLike) for name in names)


def display_name(source: Any) -> str:
    """Return the name of a source of files, for an error message."""
    names = [str(name) for name in source] if isinstance(source, list | tuple) else [str(source)]
    return names[0] + (f" and {len(names) - 1:,} more" if len(names) > 1 else "")


def find_files(source: Any, filesystem: Any = None) -> list[FileStamp]:
    """Return the files of a path, a URI or a list of them; of a directory, the Parquet files in it and below."""
    if isinstance(source, list | tuple):
        return [file for name in source for file in find_files(name, filesystem)]
    import_pyarrow()
    from pyarrow import fs  # noqa: PLC0415

    name = os.fspath(source)
    with readable_errors(name, "a file or a directory"):
        if filesystem is not None:
            system, path = filesystem, name
        elif "://" in name:
            system, path = fs.FileSystem.from_uri(name)
        else:
            system, path = fs.LocalFileSystem(), os.path.abspath(name)
        entry = system.get_file_info(path)
    if entry.type == fs.FileType.NotFound:
        raise FileNotFoundError(f"{name} does not exist, expected a file, or a directory of Parquet files")
    entries = _parquet_below(system, path, name) if entry.type == fs.FileType.Directory else [entry]
    return [FileStamp(system, each.path, each.size, each.mtime_ns) for each in entries]


def _parquet_below(system: Any, path: str, name: str) -> list[Any]:
    """Return the Parquet files below a directory, by name, without hidden ones and markers like `_SUCCESS`."""
    from pyarrow import fs  # noqa: PLC0415

    with readable_errors(name, "a directory"):
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


def open_parquet(file: FileStamp, *, read_dictionary: Sequence[str] = ()) -> Any:
    """Return an open Parquet file, to be read some rows at a time.

    read_dictionary: columns of texts to be read as a dictionary.
    """
    from pyarrow import parquet  # noqa: PLC0415

    return parquet.ParquetFile(
        file.system.open_input_file(file.path),
        pre_buffer=False,
        buffer_size=COLUMN_BUFFER,
        read_dictionary=list(read_dictionary),
    )


def select_columns(
    files: Sequence[FileStamp], name: str, id: str | None, columns: Sequence[str] | None
) -> tuple[ColumnSelection, list[Any]]:
    """Return the columns to read of Parquet files, which must have the same ones, and the metadata of each file."""
    metadatas, first = [], None
    for file in files:
        schema, metadata = schema_and_metadata(file)
        if first is None:
            first, selection = schema, ColumnSelection.of(schema, file.path, id, columns)
        elif columns is None and set(feature_columns(schema)) != set(feature_columns(first)):
            differ = name_list(sorted(set(feature_columns(schema)) ^ set(feature_columns(first))))
            raise ValueError(
                f"{file.path} and {files[0].path} do not have the same columns ({differ} is in one only): "
                "make them alike, or pick with columns=[...]"
            )
        selection.refuse_types(schema, file.path, like=first)
        metadatas.append(metadata)
    if not sum(metadata.num_rows for metadata in metadatas):
        raise ValueError(f"{name} holds no rows, and a table needs one arm at least")
    return selection, metadatas


def schema_and_metadata(file: FileStamp) -> tuple[Any, Any]:
    """Return the Arrow schema of a Parquet file, and its metadata; raise FileFormatError if it is something else."""
    with readable_errors(file.path, "Parquet"):
        try:
            with open_parquet(file) as opened:
                return opened.schema_arrow, opened.metadata
        except import_pyarrow().ArrowInvalid:
            _refuse_foreign(file)
            raise


def _refuse_foreign(file: FileStamp) -> None:
    """Raise FileFormatError with the kind of the file if it is not a Parquet file at all."""
    with file.system.open_input_stream(file.path, compression=None) as stream:
        mark = stream.read(len(START_MARK))
    if mark == START_MARK:
        raise FileFormatError(f"{file.path} is an armful table already: open it with armful.Table.open")
    if file.path.lower().endswith(CSV_ENDINGS):
        raise FileFormatError(f"{file.path} is a CSV file: make a table of it alone with armful.Table.build")
    if not mark.startswith(PARQUET_MARK) and not file.path.lower().endswith(PARQUET_ENDINGS):
        raise FileFormatError(f"{file.path} is not a Parquet file; CSV files must end in .csv or .csv.gz")


@contextmanager
def readable_errors(name: str, what: str) -> Iterator[None]:
    """Turn errors of pyarrow and the system into FileFormatError or OSError with one sentence."""
    pa = import_pyarrow()
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError) as error:
        if str(error).rstrip().endswith("\nKeyboardInterrupt"):  # in Python code behind the stream
            raise KeyboardInterrupt from error
        raise_unreadable(name, what, error)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM):
            raise with_message(error, f"no permission to read {name}: ask its owner, or give another source") from error
        raise with_message(error, f"{name} could not be read: {_first_line(error)}") from error


def raise_unreadable(name: str, what: str, error: Exception) -> NoReturn:
    """Raise FileFormatError with the first line of the reason."""
    if what == "CSV" and (isinstance(error, UnicodeDecodeError) or "invalid UTF8" in str(error)):
        raise FileFormatError(f"{name} is not UTF-8: save it as UTF-8") from error
    raise FileFormatError(f"{name} could not be read as {what}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """Return the message without the line of code; in pyarrow's errors the column is a second argument."""
    text = "; ".join(map(str, error.args)) if not isinstance(error, OSError) else str(error)
    line = next(iter(text.splitlines()), type(error).__name__)
    return line.partition(" Detail: Python exception")[0]
