"""Features in a temporary file, for one command only."""

import errno
import os
import shutil
import weakref
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray
from armful.errors import with_message
from armful.files._atomic_file import FULL, size_text
from armful.tables._row_blocks import rows_per_block
from armful.tables._table_file import OpenFile, take_runs
from armful.tables.rows import Store


class ScratchFile(Store):
    """Rows of float32, written by position and, once all are there, read by position.

    The file of `Table.build` is synced and has checksums, since it is kept. This one is removed with its command.

    Parameters
    ----------
    path : Path
        A file that does not exist.
    columns : list of str
        The names of the features.
    """

    dtype = np.dtype(np.float32)
    path: Path
    columns: list[str]

    def __init__(self, path: Path, columns: list[str]) -> None:
        self.path, self.columns, self.n_features, self.n_arms = path, columns, len(columns), 0
        self.block_rows = rows_per_block(self.n_features)
        self._row_bytes = self.n_features * self.dtype.itemsize
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        self._descriptor = os.open(path, flags, 0o600)
        self._one_at_a_time = Lock()
        weakref.finalize(self, os.close, self._descriptor)

    def write(self, begin: int, X: NDArray[np.float32]) -> None:
        """Write rows from index `begin` on. Threads may call it at the same time.

        Raises
        ------
        OSError
            With a sentence, if the disk is full.
        """
        view, offset = np.ascontiguousarray(X).reshape(-1).view(np.uint8).data, begin * self._row_bytes
        try:
            while view:
                done = self._write_some(view, offset)
                view, offset = view[done:], offset + done
        except OSError as error:
            if error.errno not in FULL:
                raise
            size, free = size_text(offset), size_text(shutil.disk_usage(self.path.parent).free)
            reason = os.strerror(error.errno or errno.ENOSPC)
            sentence = (
                f"{self.path} could not be written: {reason}; it needs more than {size}, its disk has {free} free"
            )
            raise with_message(error, sentence) from error
        with self._one_at_a_time:
            self.n_arms = max(self.n_arms, begin + len(X))

    def _write_some(self, view: memoryview, offset: int) -> int:
        if hasattr(os, "pwrite"):
            return os.pwrite(self._descriptor, view, offset)
        with self._one_at_a_time:  # Windows: a file has one position, which all threads share
            os.lseek(self._descriptor, offset, os.SEEK_SET)
            return os.write(self._descriptor, view)

    @cached_property
    def _file(self) -> OpenFile:
        return OpenFile(self.path)

    def rows(self, begin: int, end: int) -> NDArray[Any]:
        values = np.empty((end - begin, self.n_features), dtype=self.dtype)
        self._file.read(begin * self._row_bytes, values.reshape(-1).view(np.uint8))
        values.flags.writeable = False
        return values

    def take(self, indices: IntArray) -> FloatArray:
        return take_runs(self, indices, self._row_bytes)
