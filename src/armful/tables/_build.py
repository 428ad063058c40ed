"""Writing a table to disk: atomically, in bounded memory, refusing rows that are not finite and repeated ids."""

import json
import os
import sys
import tempfile
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from armful import checks
from armful.errors import with_message
from armful.files._atomic_file import PartFile, real_target, replacing, write_all
from armful.tables._columns import Block, Ids
from armful.tables._csv import Dialect
from armful.tables._ids import refuse_repeated_in
from armful.tables._progress import progress_bar
from armful.tables._row_blocks import rows_per_block
from armful.tables._sources import open_source
from armful.tables._table_file import END, END_MARK, LONGEST_ID, START, START_MARK, VERSION

ID_BLOCK = 1 << 20
"""Bytes of ids that one checksum covers."""


def build(
    source: Any,
    path: Path,
    *,
    id: str | None,
    columns: Sequence[str] | None,
    dtype: str,
    dialect: Dialect,
    progress: bool,
) -> None:
    """Write the rows of `source` as a table at `path`; see `Table.build`."""
    checks.one_of("dtype", dtype, ("float32", "float64"))
    _refuse_target(path)
    rows = open_source(source, id=id, columns=columns, dialect=dialect)
    with writing(path, rows.n_features, rows.columns, dtype=dtype, total=rows.total) as append:
        show = progress and sys.stderr.isatty()
        with progress_bar(f"building {path.name}", rows.total, show=show) as advance:
            for block in rows.blocks:
                append(block)
                advance(len(block.X), "")


@contextmanager
def writing(
    path: Path, n_features: int, columns: list[str] | None, *, dtype: str, total: int | None = None
) -> Iterator[Callable[[Block], None]]:
    """Give a function that appends a block of rows; the table replaces the file at `path` when all are there.

    total: the number of rows, if it is known, for the message of a full disk.
    """
    with replacing(path) as part, _TableWriter(part, n_features, dtype) as writer:
        part.needs = (total or 0) * n_features * np.dtype(dtype).itemsize
        bad_rows = _BadRows(columns)

        def append(block: Block) -> None:
            X = _as_stored(block.X, dtype)
            if bad_rows.none_so_far(block, X):
                writer.append(X, block.ids)

        yield append
        bad_rows.refuse()
        writer.finish(columns)


def _as_stored(X: NDArray[Any], dtype: str) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(X, dtype=np.dtype(dtype).newbyteorder("<"))


class _BadRows:
    """Rows with features that are not finite: their number, their columns and a description of the first."""

    def __init__(self, columns: list[str] | None) -> None:
        self._names = columns
        self._rows = self._n_bad = 0
        self._first = ""
        self._columns: set[int] = set()

    def none_so_far(self, block: Block, X: NDArray[Any]) -> bool:
        """Count those of another block and return whether there were none so far. X: the block as it is stored."""
        if not np.isfinite(X).all():
            bad = ~np.isfinite(X)
            self._columns.update(np.flatnonzero(bad.any(axis=0)).tolist())
            self._first = self._first or self._describe(block, *np.argwhere(bad)[0].tolist())
            self._n_bad += int(bad.any(axis=1).sum())
        self._rows += len(X)
        return not self._n_bad

    def _describe(self, block: Block, row: int, column: int) -> str:
        value = float(block.X[row, column])
        what = "no number (null or NaN)" if np.isnan(value) else f"{value}"
        if np.isfinite(value):
            what += ', too large for dtype="float32",'
        id = None if block.ids is None else block.ids[row]
        arm = f"row {self._rows + row}" if id is None else f"the arm of id {id if isinstance(id, str) else int(id)!r}"
        return f"{arm} has {what} in column {self._name(column)}"

    def _name(self, column: int) -> str:
        return str(column) if self._names is None else repr(self._names[column])

    def refuse(self) -> None:
        """Raise ValueError if there were any, or no rows at all."""
        if not self._rows:
            raise ValueError("the source holds no rows, and a table needs one arm at least")
        if self._n_bad:
            columns = sorted(self._columns)
            named = ", ".join(self._name(column) for column in columns[:10]) + (", ..." if len(columns) > 10 else "")
            raise ValueError(
                f"features must be finite numbers, but {self._first}; {self._n_bad:,} of {self._rows:,} rows have such "
                f"values, in columns {named}: fill them in, drop the rows, or leave the columns out with columns=[...]"
            )


class _SectionWriter:
    """Writes a section, and keeps its length and the checksum of each block."""

    def __init__(self, descriptor: int, block: int) -> None:
        self._descriptor, self._block = descriptor, block
        self.length, self._checksums = 0, list[int]()

    def append(self, data: Any) -> None:
        view = memoryview(data)
        write_all(self._descriptor, view)
        begin = 0
        while begin < len(view):
            to_next_block = self._block - self.length % self._block
            piece = view[begin : begin + to_next_block]
            if to_next_block == self._block:
                self._checksums.append(0)
            self._checksums[-1] = zlib.crc32(piece, self._checksums[-1])
            self.length += len(piece)
            begin += to_next_block

    def info(self, offset: int) -> dict[str, Any]:
        return {"offset": offset, "bytes": self.length, "block": self._block, "crc32": self._checksums}


class _TableWriter:
    """Writes a table block by block. Besides one block it holds 8 bytes for each arm that has an id.

    Ids that are strings are written to temporary files, and copied to the table after the features, which come first.
    """

    def __init__(self, part: PartFile, n_features: int, dtype: str) -> None:
        self._part, self._n_features, self._dtype = part, n_features, dtype
        self._descriptor = descriptor = part.descriptor
        self._block_rows = rows_per_block(n_features)
        self._row_bytes = n_features * np.dtype(dtype).itemsize
        self._features = _SectionWriter(descriptor, self._block_rows * self._row_bytes)
        self._keys = array("q")  # ids that are numbers, or hashes of those that are strings
        self._strings: tuple[_SectionWriter, _SectionWriter] | None = None  # where each id begins, and the text
        self._temporary_files: list[IO[bytes]] = []
        self._n_arms = 0
        write_all(descriptor, START.pack(START_MARK, VERSION))

    def __enter__(self) -> "_TableWriter":
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._temporary_files:
            file.close()

    def append(self, X: NDArray[Any], ids: Ids | None) -> None:
        """Write the next rows, `(m, n_features)`, and their ids."""
        self._features.append(X.reshape(-1).view(np.uint8))
        if isinstance(ids, list):
            self._append_text(ids)
        elif ids is not None:
            self._keys.frombytes(ids.tobytes())
        self._n_arms += len(X)
        texts = self._strings[1].length if self._strings else 0
        self._part.needs = max(self._part.needs, self._features.length + 8 * len(self._keys) + texts)

    def _append_text(self, ids: list[str]) -> None:
        if self._strings is None:
            self._strings = self._temporary_section(), self._temporary_section()
            self._strings[0].append(bytes(8))
        begins, text = self._strings
        pieces = [id.encode() for id in ids]
        joined = b"".join(pieces)
        if b"\0" in joined:
            id = next(id for id in ids if "\0" in id)
            raise ValueError(f"ids must not contain the character NUL, which numpy does not keep, got {id!r}")
        lengths = np.fromiter(map(len, pieces), np.uint64, len(pieces))
        if len(ids) and lengths.max() > LONGEST_ID:
            id = ids[int(np.argmax(lengths))]
            raise ValueError(f"ids must have at most {LONGEST_ID} bytes, got one of {lengths.max()}: {id[:20]!r}...")
        ends = np.cumsum(lengths, dtype="<u8") + np.uint64(text.length)
        text.append(joined)
        begins.append(ends.view(np.uint8))
        self._keys.extend(map(hash, ids))

    def _temporary_section(self) -> _SectionWriter:
        file = tempfile.TemporaryFile(dir=self._part.path.parent, buffering=0)  # noqa: SIM115 - closed with the writer
        self._temporary_files.append(file)
        return _SectionWriter(file.fileno(), ID_BLOCK)

    def finish(self, columns: list[str] | None) -> None:
        """Write the ids and the footer; raise ValueError if ids are repeated."""
        sections = {"features": self._features.info(START.size)}
        offset = START.size + self._features.length
        if self._strings is not None:
            begins, text = self._strings
            sections["id_begins"] = begins.info(offset)
            sections["id_text"] = text.info(offset + begins.length)
            for file in self._temporary_files:
                _copy(file.fileno(), self._descriptor)
        elif self._keys:
            numbers = _SectionWriter(self._descriptor, ID_BLOCK)
            numbers.append(np.frombuffer(self._keys, dtype=np.int64).astype("<i8", copy=False).view(np.uint8))
            sections["ids"] = numbers.info(offset)
        footer = json.dumps(
            {
                "n_arms": self._n_arms,
                "n_features": self._n_features,
                "dtype": self._dtype,
                "block_rows": self._block_rows,
                "columns": columns,
                "sections": sections,
            }
        ).encode()
        write_all(self._descriptor, footer + END.pack(len(footer), zlib.crc32(footer), END_MARK))
        if self._keys:
            refuse_repeated_in(
                self._part.path, np.frombuffer(self._keys, dtype=np.int64), hash if self._strings else int
            )


def _refuse_target(path: Path) -> None:
    """Raise if no file can be at `path`, or if the file there is not a table: arguments may have been swapped."""
    real_target(path)
    try:
        start = _start(path) if path.exists() else b""
    except PermissionError as error:
        raise with_message(error, f"no permission to read {path}, which exists already: give another name") from error
    if start and start != START_MARK:
        raise FileExistsError(f"{path} exists and is not an armful table: give another name, or remove it first")


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(START_MARK))


def _copy(source: int, target: int) -> None:
    os.lseek(source, 0, os.SEEK_SET)
    while piece := os.read(source, ID_BLOCK):
        write_all(target, piece)
