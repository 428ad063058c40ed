"""One process, threads, memory, disk: the same choice."""

import pickle

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from armful import Table
from armful.scan import _threads as threads
from armful.tables.parquet import ParquetTable
from armful.tables.rows import Store
from armful.testing import ArmsContract


class OnDisk(ArmsContract):
    """Arms that are written to files, each to a new one."""

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path):
        self.names = (tmp_path / f"{i}" for i in range(1000))


class TestAnArray(ArmsContract):
    def arms(self, X):
        return X


@pytest.mark.slow
class TestAnArrayOfManyNarrowRows(ArmsContract):
    n_arms, n_features = 20_001, 6

    def arms(self, X):
        return X


class TestAnArrayInThreads(ArmsContract):
    @pytest.fixture(autouse=True)
    def cores(self, monkeypatch):
        monkeypatch.setattr(threads, "_cores", lambda: 3)

    def arms(self, X):
        return X


class TestAMemoryMapOfFloat32(OnDisk):
    def arms(self, X):
        file = np.memmap(next(self.names), dtype=np.float32, mode="w+", shape=X.shape)
        file[:] = X
        return file


class TestAWrappedTable(ArmsContract):
    def arms(self, X):
        return Table.wrap(X)


class TestATableOnDisk(OnDisk):
    def arms(self, X):
        return Table.build(X, next(self.names), progress=False)


class TestATableOfFloat32(OnDisk):
    def arms(self, X):
        with np.errstate(over="ignore"):
            return Table.build(X.astype(np.float32), next(self.names), dtype="float32", progress=False)


class TestParquet(OnDisk):
    """Two files, of row groups of 1,000 rows and of one."""

    def arms(self, X):
        folder = next(self.names)
        folder.mkdir()
        columns = pa.table({f"x{i}": X[:, i] for i in range(X.shape[1])})
        parquet.write_table(columns[:3100], folder / "a.parquet", row_group_size=1000)
        parquet.write_table(columns[3100:], folder / "b.parquet")
        return ParquetTable(folder)


class Halves(Store):
    """Two matrices one after the other, with nothing but what a store must define."""

    def __init__(self, top, bottom):
        self.halves = top, bottom
        self.n_arms, self.n_features = len(top) + len(bottom), top.shape[1]
        self.block_rows = 5000

    def rows(self, begin, end):
        return np.concatenate(self.halves)[begin:end]

    def take(self, indices):
        return np.concatenate(self.halves)[indices]


class TestAStoreOfOneOwn(ArmsContract):
    def arms(self, X):
        return Table(Halves(X[:7000], X[7000:]))

    def test_it_can_be_pickled_and_has_no_ids(self):
        X = np.random.default_rng(0).standard_normal((20, 3))
        table = pickle.loads(pickle.dumps(Table(Halves(X[:5], X[5:]))))
        assert np.array_equal(table.take([7, 3]), X[[7, 3]])
        assert table.ids is None
        assert table.ids_of([0]) is None
        with pytest.raises(ValueError, match="has no ids"):
            table.indices_of([1])
