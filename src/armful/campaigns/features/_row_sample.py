"""A uniform sample of rows that come in batches."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armful.checks import IntArray
from armful.randomness import tie_keys

SAMPLE = 100_000


class RowSample:
    """A uniform sample of at most `size` rows: those with the smallest hash of their position.

    So it is the same however the rows are divided into batches.
    """

    def __init__(self, size: int = SAMPLE) -> None:
        self.size, self.n_rows = size, 0
        self._limit = np.uint64(np.iinfo(np.uint64).max)
        self._keys: list[NDArray[np.uint64]] = []
        self._rows: list[pa.Table] = []
        self._n_kept = 0

    def select(self, n_rows: int) -> IntArray:
        """Return which of the next `n_rows` rows may be in the sample; `add` takes these."""
        keys = tie_keys(0, np.arange(self.n_rows, self.n_rows + n_rows))
        chosen = np.flatnonzero(keys <= self._limit)
        self.n_rows += n_rows
        self._keys.append(keys[chosen])
        return chosen

    def add(self, rows: pa.RecordBatch) -> None:
        """Add the rows that `select` returned."""
        self._rows.append(pa.Table.from_batches([rows]))
        self._n_kept += rows.num_rows
        if self._n_kept > 2 * self.size:
            self._shrink()

    def rows(self) -> pa.Table:
        """Return the sample, in the order of the rows."""
        self._shrink()
        return self._rows[0]

    def _shrink(self) -> None:
        keys, rows = np.concatenate(self._keys), pa.concat_tables(self._rows)
        if len(keys) > self.size:
            chosen = np.sort(np.argpartition(keys, self.size - 1)[: self.size])
            keys, rows = keys[chosen], rows.take(chosen)
            self._limit = keys.max()
        self._keys, self._rows, self._n_kept = [keys], [rows.combine_chunks()], len(keys)
