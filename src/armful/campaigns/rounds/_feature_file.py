"""The features of all customers of a round, packed, in a file that is removed with its command."""

import os
import shutil
import weakref
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from threading import Lock, local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.campaigns.features import FeatureRecipe
from armful.campaigns.features._packed_product import PackedProduct, PackedWidths
from armful.campaigns.features._packed_rows import Bytes, PackedRows
from armful.checks import FloatArray, IntArray
from armful.errors import with_message
from armful.files._atomic_file import FULL, size_text
from armful.tables._table_file import OpenFile
from armful.tables.rows import QuickWidths, Store

SAMPLED_BLOCKS = 4
"""A sample of rows is read from so many blocks."""


def estimator(recipe: FeatureRecipe, theta: FloatArray) -> Callable[[PackedRows], NDArray[np.float32]]:
    """Return a function that computes `x.theta` of packed rows in float32, `(n,)`."""
    if not theta.any():
        return lambda rows: np.zeros(rows.n, dtype=np.float32)
    if recipe.interactions:
        return lambda rows: recipe.unpack(rows) @ theta.astype(np.float32)
    product = PackedProduct(recipe.layout, theta[:, None])
    return lambda rows: np.concatenate([some[:, 0].copy() for _, some in product(rows)])


class FeatureFile(Store):
    """Packed rows in batches, written in any order and, once all are there, read by position.

    The file of `Table.build` is kept, so it is synced and has checksums. This one is for one command, and a fraction of
    the size.

    Parameters
    ----------
    path : Path
        A file that does not exist.
    recipe : FeatureRecipe
        What packed the rows.
    """

    dtype = np.dtype(np.float32)
    path: Path

    def __init__(self, path: Path, recipe: FeatureRecipe) -> None:
        self.path, self.n_features, self._recipe = path, recipe.n_features, recipe
        self.n_arms = self.block_rows = self._n_bytes = 0
        self._batches: dict[int, tuple[int, PackedRows]] = {}  # by first row: where it is in the file, and its layout
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        self._descriptor = os.open(path, flags, 0o600)
        self._one_at_a_time, self._per_thread = Lock(), local()
        weakref.finalize(self, os.close, self._descriptor)

    def write(self, begin: int, rows: PackedRows) -> None:
        """Write a batch of rows, of which the first has index `begin`. Threads may call it at the same time.

        Raises
        ------
        OSError
            With a sentence, if the disk is full.
        """
        with self._one_at_a_time:
            offset, self._n_bytes = self._n_bytes, self._n_bytes + rows.n_bytes
            self._batches[begin] = offset, rows.layout()
            self.n_arms, self.block_rows = max(self.n_arms, begin + rows.n), max(self.block_rows, rows.n)
        try:
            for data in rows.to_bytes():
                self._write_all(data.data, offset)
                offset += data.size
        except OSError as error:
            if error.errno not in FULL:
                raise
            size, free = size_text(self._n_bytes), size_text(shutil.disk_usage(self.path.parent).free)
            reason = os.strerror(error.errno or 0)
            sentence = f"{self.path} could not be written: {reason}; it needs at least {size}, its disk has {free} free"
            raise with_message(error, sentence) from error

    def _write_all(self, data: memoryview, offset: int) -> None:
        while data:
            if hasattr(os, "pwrite"):
                done = os.pwrite(self._descriptor, data, offset)
            else:  # Windows: a file has one position, which all threads share
                with self._one_at_a_time:
                    os.lseek(self._descriptor, offset, os.SEEK_SET)
                    done = os.write(self._descriptor, data)
            data, offset = data[done:], offset + done

    @cached_property
    def blocks(self) -> list[slice]:
        """The rows of each batch, in order."""
        return [slice(begin, begin + rows.n) for begin, (_, rows) in sorted(self._batches.items())]

    @cached_property
    def _file(self) -> OpenFile:
        return OpenFile(self.path)

    def rows(self, begin: int, end: int) -> NDArray[Any]:
        parts = [
            self._recipe.unpack(
                self._read(block).take(slice(max(begin - block.start, 0), min(end, block.stop) - block.start))
            )
            for block in self._blocks_of(begin, end)
        ]
        return np.concatenate(parts or [np.zeros((0, self.n_features), np.float32)]) if len(parts) != 1 else parts[0]

    def quick_widths(self, inverse_root: FloatArray, theta: FloatArray) -> QuickWidths | None:
        if self._recipe.interactions:
            return None
        widths = PackedWidths(self._recipe.layout, inverse_root, theta)
        return QuickWidths(widths.matrix, partial(self._widths, widths))

    def _widths(self, widths: PackedWidths, begin: int, end: int) -> tuple[FloatArray, FloatArray]:
        parts = [
            widths(self._read(block).take(slice(max(begin - block.start, 0), min(end, block.stop) - block.start)))
            for block in self._blocks_of(begin, end)
        ]
        if len(parts) == 1:
            return parts[0]
        return tuple(np.concatenate([np.zeros(0), *(part[i] for part in parts)]) for i in range(2))  # type: ignore[return-value]

    def take(self, indices: IntArray) -> FloatArray:
        values = np.empty((indices.size, self.n_features))
        order = np.argsort(indices, kind="stable")
        ends = np.searchsorted(indices[order], [block.stop for block in self.blocks])
        for block, first, last in zip(self.blocks, [0, *ends[:-1].tolist()], ends.tolist(), strict=True):
            if first < last:
                here = order[first:last]
                values[here] = self._recipe.unpack(self._read(block).take(indices[here] - block.start))
        return values

    def sample_rows(self, n_rows: int) -> FloatArray:
        """Return rows of a few blocks: reading a row takes as long as reading its block."""
        blocks = self.blocks[:: -(-len(self.blocks) // SAMPLED_BLOCKS)]
        some = np.concatenate([np.arange(block.start, block.stop) for block in blocks])
        if some.size < n_rows:
            return super().sample_rows(n_rows)
        return self.take(some[((np.arange(n_rows) + 0.5) * some.size / n_rows).astype(np.int64)])

    def _blocks_of(self, begin: int, end: int) -> list[slice]:
        return [block for block in self.blocks if block.start < end and begin < block.stop]

    def _read(self, block: slice) -> PackedRows:
        """Return the rows of a block, which are valid until this thread reads the next."""
        offset, layout = self._batches[block.start]
        data: Bytes = self._buffer(layout.n_bytes)
        self._file.read(offset, data)
        return layout.from_bytes(data)

    def _buffer(self, n_bytes: int) -> Bytes:
        """Return the buffer of this thread: new memory would be filled with zeros by the system for each block."""
        buffer: Bytes | None = getattr(self._per_thread, "buffer", None)
        if buffer is None or buffer.size < n_bytes:
            buffer = self._per_thread.buffer = np.empty(n_bytes, dtype=np.uint8)
        return buffer[:n_bytes]
