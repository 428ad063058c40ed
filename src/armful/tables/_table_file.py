"""A table of arms on disk: one open file, read by position and checked block by block.

The layout, all numbers little-endian, nothing between the parts:

| bytes | what |
| --- | --- |
| 8 | `ARMTABLE` |
| 8 | the version of the layout, an unsigned integer: 1 |
| n_arms x n_features x 4 or 8 | the features, row after row, as float32 or float64 |
| n_arms x 8, or none | ids that are whole numbers, as int64 |
| (n_arms + 1) x 8, or none | ids that are strings: where each begins in the text, as uint64, and where the last ends |
| any, or none | the text of the ids, UTF-8, without separators |
| any | the footer, JSON: `n_arms`, `n_features`, `dtype`, `block_rows`, `columns` (names, or null) and `sections` |
| 8 | the length of the footer in bytes |
| 4 | the CRC-32 (as of zlib) of the footer |
| 4 | `ATBL` |

`sections` gives, for each of `features`, `ids`, `id_begins` and `id_text` that is there, its `offset` in the file, its
length `bytes`, and `crc32`: one for each `block` of so many bytes. Any program can read it: the features are
`numpy.memmap(path, dtype="<f8", mode="r", offset=16, shape=(n_arms, n_features))`.

A file without its last 16 bytes was never finished.
"""

import os
import stat
import struct
import weakref
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray
from armful.errors import FileFormatError, with_message
from armful.files._atomic_file import kind_of
from armful.tables._footer import SectionInfo, parse_footer
from armful.tables._row_blocks import joined_in_order
from armful.tables.rows import Store

VERSION = 1
START = struct.Struct("<8sQ")
START_MARK = b"ARMTABLE"
END = struct.Struct("<QI4s")
END_MARK = b"ATBL"
LONGEST_ID = 1000
"""In bytes. numpy reserves the length of the longest string for every string, so one long id would fill the memory."""
ID_ROWS = 1 << 16
"""Ids read at a time."""
READ_GAP = 1 << 16
"""Rows fewer bytes apart than this are read by one call: copying the gap costs no more than a second call."""

Bytes = NDArray[np.uint8]


class OpenFile:
    """An open file, independent of what replaces it at its path; closed with the last reference."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
        self._one_at_a_time = Lock()
        weakref.finalize(self, os.close, self._descriptor)
        self._opened = self._stamp()

    @property
    def size(self) -> int:
        """In bytes, at the time of opening."""
        return self._opened[0]

    def _stamp(self) -> tuple[int, int]:
        status = os.fstat(self._descriptor)
        return status.st_size, status.st_mtime_ns

    def refuse_changed(self) -> None:
        """Raise FileFormatError if the file was written to since it was opened."""
        if self._stamp() != self._opened:
            raise FileFormatError(
                f"{self.path} was changed in place after it was opened: build it again, and open it again"
            )

    def read(self, offset: int, buffer: Bytes) -> None:
        """Fill `buffer` from `offset` on. Threads may call it at the same time."""
        done = 0
        while done < len(buffer):
            try:
                got = self._read_some(offset + done, buffer[done:])
            except OSError as error:
                sentence = f"{self.path} could not be read: {error.strerror}; check its disk"
                raise with_message(error, sentence) from error
            if got == 0:
                raise FileFormatError(f"{self.path} was cut off after it was opened: build it again, and open it again")
            done += got

    def _read_some(self, offset: int, buffer: Bytes) -> int:
        """Read at most `len(buffer)` bytes from `offset` on, and return how many were read."""
        if hasattr(os, "preadv"):
            return os.preadv(self._descriptor, [buffer.data], offset)
        with self._one_at_a_time:  # Windows: a file has one position, which all threads share
            os.lseek(self._descriptor, offset, os.SEEK_SET)
            data = os.read(self._descriptor, len(buffer))
        buffer[: len(data)] = np.frombuffer(data, dtype=np.uint8)
        return len(data)


class Section:
    """A section of the file in blocks, each compared with its checksum the first time it is read."""

    def __init__(self, file: OpenFile, name: str, info: SectionInfo) -> None:
        self.length = info.length
        self._file, self._name, self._offset = file, name.replace("_", " "), info.offset
        self._block, self._checksums = info.block, info.checksums
        self._verified = bytearray(len(self._checksums))

    def read(self, begin: int, buffer: Bytes) -> None:
        """Fill `buffer` with the bytes from `begin` of the section on."""
        self._file.read(self._offset + begin, buffer)
        for block in range(begin // self._block, -(-(begin + len(buffer)) // self._block)):
            if not self._verified[block]:
                self._verify(block, begin, buffer)

    def _verify(self, block: int, begin: int, buffer: Bytes) -> None:
        first, last = block * self._block, min((block + 1) * self._block, self.length)
        if begin <= first and last <= begin + len(buffer):
            whole = buffer[first - begin : last - begin]
        else:
            whole = np.empty(last - first, dtype=np.uint8)
            self._file.read(self._offset + first, whole)
        if zlib.crc32(whole.data) != self._checksums[block]:
            raise FileFormatError(
                f"{self._file.path} is damaged in block {block} of its {self._name}: build it again from its source"
            )
        self._verified[block] = 1


class TableFile(Store):
    """The features and ids of a table on disk; opening reads the footer only."""

    path: Path

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _open_file(path)
        text = _read_footer(self._file)
        self.identity = blake2b(text, digest_size=16).hexdigest()
        try:
            footer = parse_footer(text, room=self._file.size - END.size - len(text))
        except (KeyError, TypeError, ValueError, RecursionError):
            raise FileFormatError(f"{path} has an invalid footer: build it again from its source") from None
        self.n_arms, self.n_features, self.dtype = footer.n_arms, footer.n_features, footer.dtype
        self.block_rows, self.columns = footer.block_rows, footer.columns
        self._row_bytes = self.n_features * self.dtype.itemsize
        sections = {name: Section(self._file, name, info) for name, info in footer.sections.items()}
        self._features, self._ids = sections["features"], sections.get("ids")
        self._begins, self._text = sections.get("id_begins"), sections.get("id_text")
        self.has_ids = self._ids is not None or self._begins is not None

    def __reduce__(self) -> tuple[Callable[..., "TableFile"], tuple[Any, ...]]:
        return _reopen, (self.path.absolute(), self.identity)

    def refuse_changed(self) -> None:
        self._file.refuse_changed()

    def rows(self, begin: int, end: int) -> NDArray[Any]:
        # Read, not mapped: mapped pages would count as memory of the process.
        values = np.empty((end - begin, self.n_features), dtype=self.dtype)
        self._features.read(begin * self._row_bytes, values.reshape(-1).view(np.uint8))
        values.flags.writeable = False
        return values

    def take(self, indices: IntArray) -> FloatArray:
        values = np.empty((len(indices), self.n_features))
        for positions, begin, end in _runs(indices, self.block_rows, READ_GAP // self._row_bytes + 1):
            values[positions] = self.rows(begin, end)[indices[positions] - begin]
        return values

    def ids_at(self, indices: IntArray) -> NDArray[Any]:
        parts, order = [np.empty(0, dtype=np.int64 if self._ids else "U1")], [np.empty(0, dtype=np.int64)]
        for positions, begin, end in _runs(indices, ID_ROWS, ID_ROWS // 8):
            parts.append(self._ids_of_run(indices[positions] - begin, begin, end))
            order.append(positions)
        return joined_in_order(parts, order)

    def _ids_of_run(self, within: IntArray, begin: int, end: int) -> NDArray[Any]:
        """Return the ids of some arms, given by their indices within the run from `begin` to `end`."""
        if self._ids is not None:
            numbers = np.empty(end - begin, dtype="<i8")
            self._ids.read(begin * 8, numbers.view(np.uint8))
            return numbers[within]
        assert self._begins is not None
        assert self._text is not None
        begins = np.empty(end - begin + 1, dtype="<u8")
        self._begins.read(begin * 8, begins.view(np.uint8))
        lengths = np.diff(begins)  # unsigned, so that a falling begin gives a very large length
        if begins[-1] > self._text.length or lengths.max() > LONGEST_ID:
            raise FileFormatError(f"{self.path} has invalid ids: build it again from its source")
        text = np.empty(int(begins[-1] - begins[0]), dtype=np.uint8)
        self._text.read(int(begins[0]), text)
        offsets = (begins - begins[0]).astype(np.int64)
        try:
            return _decode_strings(text, offsets[within], offsets[within + 1])
        except UnicodeDecodeError:
            raise FileFormatError(f"{self.path} has ids that are not UTF-8: build it again from its source") from None


def _reopen(path: Path, identity: str) -> TableFile:
    file = TableFile(path)
    if file.identity != identity:
        raise FileFormatError(f"{path} is another table by now: open the new one, and start over with it")
    return file


def _decode_strings(text: Bytes, begins: IntArray, ends: IntArray) -> NDArray[Any]:
    """Return the pieces of a text in UTF-8 as strings, `(m,)`, by one matrix of bytes with a row for each."""
    lengths = ends - begins
    width = max(1, int(lengths.max()))
    letters = np.zeros((len(lengths), width), dtype=np.uint8)
    before = np.cumsum(lengths) - lengths
    letters[np.arange(width) < lengths[:, None]] = text[np.repeat(begins - before, lengths) + np.arange(lengths.sum())]
    pieces = letters.view(f"S{width}")[:, 0]
    if text.max(initial=0) < 128:  # ASCII, which numpy converts by itself
        return pieces.astype(f"U{width}")
    strings: NDArray[Any] = np.char.decode(pieces, "utf-8")
    return strings


def _runs(indices: IntArray, block: int, near: int) -> Iterator[tuple[IntArray, int, int]]:
    """Yield runs of near arms in one block: their positions in `indices`, the first arm and one past the last."""
    order = np.argsort(indices, kind="stable")
    ordered = indices[order]
    breaks = (np.diff(ordered) > near) | (np.diff(ordered // block) > 0)
    cuts = [0, *(np.flatnonzero(breaks) + 1).tolist(), len(ordered)]
    for first, last in pairwise(cuts):
        if last > first:
            yield order[first:last], int(ordered[first]), int(ordered[last - 1]) + 1


def _open_file(path: Path) -> OpenFile:
    mode = stat.S_IFREG
    with suppress(OSError):  # opening it gives the better message
        mode = path.stat().st_mode
    if not stat.S_ISREG(mode):  # opening a pipe may wait for ever
        raise FileFormatError(f"{path} is a {kind_of(mode)}, expected a table that armful.Table.build wrote")
    try:
        return OpenFile(path)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist: build a table with armful.Table.build(source, path)") from None
    except PermissionError as error:
        raise with_message(error, f"no permission to read {path}: ask its owner") from error


def _read_footer(file: OpenFile) -> bytes:
    """Return the footer; raise FileFormatError if the file is not a complete table."""
    path, size = file.path, file.size
    start = np.zeros(min(START.size, size), dtype=np.uint8)
    file.read(0, start)
    if start.tobytes()[: len(START_MARK)] != START_MARK[:size]:
        raise FileFormatError(f"{path} is not an armful table; make one with armful.Table.build")
    unfinished = FileFormatError(f"{path} is incomplete, its build was interrupted or it was cut off: build it again")
    if size < START.size + END.size:
        raise unfinished
    version = START.unpack(start.tobytes())[1]
    if version != VERSION:
        raise FileFormatError(
            f"{path} has layout version {version}; this armful reads version {VERSION}: upgrade armful"
        )
    end = np.empty(END.size, dtype=np.uint8)
    file.read(size - END.size, end)
    length, checksum, mark = END.unpack(end.tobytes())
    if mark != END_MARK or length > size - START.size - END.size:
        raise unfinished
    footer = np.empty(length, dtype=np.uint8)
    file.read(size - END.size - length, footer)
    if zlib.crc32(footer.data) != checksum:
        raise FileFormatError(f"{path} is damaged in its footer: build it again from its source")
    return footer.tobytes()
