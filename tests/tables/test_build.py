import errno
import gzip
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from decimal import Decimal

import dask.array as da
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armful.errors import FileFormatError
from armful.tables import _build as building
from armful.tables import _columns as columns
from armful.tables import _csv as csvfile
from armful.tables import _files as files
from armful.tables import _ids as id_rules
from armful.tables import _sources as sources
from armful.tables.table import Table

N = 1300


class Stream:
    """An Arrow stream of somebody else's."""

    def __init__(self, reader):
        self.reader = reader

    def __arrow_c_stream__(self, requested_schema=None):
        return self.reader.__arrow_c_stream__(requested_schema)


class Frame:
    """What a DataFrame is to armful: something that gives an Arrow stream."""

    def __init__(self, table, chunk=None):
        self.table, self.chunk = table, chunk

    def __arrow_c_stream__(self, requested_schema=None):
        batches = self.table.to_batches(max_chunksize=self.chunk)
        return pa.RecordBatchReader.from_batches(self.table.schema, batches).__arrow_c_stream__(requested_schema)


def features(n=N, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def arrow(X, ids=None, **more):
    columns = {} if ids is None else {"id": ids}
    return pa.table(columns | {f"x{j}": X[:, j] for j in range(X.shape[1])} | more)


def build(source, path, **options):
    return Table.build(source, path, progress=False, **options)


def refusal(kind, source, path, **options):
    """The sentence by which it is refused; what was in the folder is there afterwards, and nothing else."""
    before = {file.name: file.read_bytes() for file in path.parent.iterdir() if file.is_file()}
    with pytest.raises(kind) as refused:
        build(source, path, **options)
    after = {file.name: file.read_bytes() for file in path.parent.iterdir() if file.is_file()}
    assert after == before
    message = str(refused.value)
    assert "\n" not in message
    return message


def same(table, X, ids=None):
    assert np.array_equal(table.rows(0, len(table)), X)
    assert (table.ids is None) if ids is None else (table.ids.tolist() == list(ids))


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def path(tmp_path):
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "arms"


class TestSources:
    X, ids = features(), [f"c{i}" for i in range(N)]

    def test_a_parquet_file(self, tmp_path, path):
        pq.write_table(arrow(self.X, self.ids), tmp_path / "a.parquet", row_group_size=300)
        for source in (tmp_path / "a.parquet", str(tmp_path / "a.parquet"), (tmp_path / "a.parquet").as_uri()):
            table = build(source, path)
            same(table, self.X, self.ids)
            assert table.columns == ["x0", "x1", "x2"]

    def test_a_file_without_an_ending_counts_as_parquet(self, tmp_path, path):
        pq.write_table(arrow(self.X), tmp_path / "data")
        same(build(tmp_path / "data", path), self.X)

    def test_a_directory_of_parquet_files_in_the_order_of_their_names(self, tmp_path, path):
        data = tmp_path / "data"
        (data / "more").mkdir(parents=True)
        (data / "_temporary").mkdir()
        whole = arrow(self.X, np.arange(N))
        pq.write_table(whole.slice(500, 500), data / "b.parquet")
        pq.write_table(whole.slice(0, 500), data / "a.parquet")
        pq.write_table(whole.slice(1000).select(["x2", "id", "x0", "x1"]), data / "more" / "a.pq")
        pq.write_table(whole, data / "_temporary" / "c.parquet")
        pq.write_table(whole, data / ".hidden.parquet")
        (data / "_SUCCESS").touch()
        for source in (data, f"{data}/", data.as_uri()):
            same(build(source, path), self.X, range(N))

    @pytest.mark.parametrize("packed", [False, True])
    def test_a_csv_file(self, tmp_path, path, packed):
        rows = zip(self.ids, self.X.tolist(), strict=True)
        text = "id,x0,x1,x2\n" + "".join(f"{name},{','.join(map(repr, row))}\n" for name, row in rows)
        source = tmp_path / ("a.csv.gz" if packed else "a.csv")
        source.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
        same(build(source, path), self.X, self.ids)
        same(build(source.as_uri(), path, columns=["x2"]), self.X[:, 2:], self.ids)

    def test_a_csv_file_whose_whole_numbers_go_on_as_fractions(self, tmp_path, path, monkeypatch):
        monkeypatch.setattr(csvfile, "CSV_BLOCK", 1000)
        numbers = [str(i) for i in range(1000)] + ["0.5", "1e3"]
        (tmp_path / "a.csv").write_text("x,flag\n" + "".join(f"{number},true\n" for number in numbers))
        same(build(tmp_path / "a.csv", path), np.array([[float(number), 1.0] for number in numbers]))

    def test_arrow_streams(self, path):
        whole = arrow(self.X, self.ids)
        streams = [Frame(whole), Frame(whole, 7), whole, whole.to_reader(100)]
        for source in streams:
            same(build(source, path), self.X, self.ids)

    def test_a_stream_of_one_large_batch_goes_in_blocks(self, path, monkeypatch):
        monkeypatch.setattr(columns, "rows_per_block", lambda n_features: 512)
        monkeypatch.setattr(building, "rows_per_block", lambda n_features: 512)
        table = build(Frame(arrow(self.X, np.arange(N))), path)
        assert table.block_rows == 512
        same(table, self.X, range(N))
        bad = self.X.copy()
        bad[1200, 1] = np.nan
        assert "but row 1200 has no number" in refusal(ValueError, arrow(bad), path)

    def test_arrays_and_tables(self, path):
        same(build(self.X, path), self.X)
        same(build(np.asfortranarray(self.X), path), self.X)
        same(build(Table.wrap(self.X, self.ids), path), self.X, self.ids)
        named = build(arrow(self.X, np.arange(N)), path)
        table = build(named, path, columns=["x2", "x0"], dtype="float32")  # over itself
        same(table, self.X[:, [2, 0]].astype("float32"), range(N))
        assert table.columns == ["x2", "x0"]

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_every_kind_of_number(self, path, dtype):
        columns = {
            "int8": pa.array([1, -2], pa.int8()),
            "uint64": pa.array([2**64 - 1, 3], pa.uint64()),
            "int64": pa.array([2**53 + 1, -(2**62)], pa.int64()),
            "bool": pa.array([True, False]),
            "half": pa.array(np.array([0.5, -2], dtype=np.float16)),
            "single": pa.array([0.1, 3], pa.float32()),
            "double": pa.array([0.1, 3]),
            "decimal": pa.array([Decimal("1.25"), Decimal("-3.50")]),
            "wide": pa.array([Decimal("1.25"), Decimal("-3.50")], pa.decimal256(50, 10)),
        }
        truth = np.column_stack([np.array(column.to_pylist(), dtype=np.float64) for column in columns.values()])
        table = build(pa.table(columns), path, dtype=dtype)
        assert table.dtype == dtype
        same(table, truth.astype(dtype))

    @pytest.mark.parametrize(
        "ids",
        [
            pa.array([3, 1], pa.int8()),
            pa.array([3, 2**63 - 1], pa.uint64()),
            pa.array([-3, -(2**63)]),
            pa.array(["a", ""]),
            pa.array(["zoë", "日本"], pa.large_string()),
            pa.array(["a", "b"], pa.string_view()),
            pa.array(["a", "b"]).dictionary_encode(),
        ],
    )
    def test_every_kind_of_id(self, path, ids):
        same(build(pa.table({"id": ids, "x": [1, 2]}), path), [[1], [2]], ids.to_pylist())

    def test_the_id_column_may_have_another_name(self, path):
        source = pa.table({"who": ["a", "b"], "id": [5, 6], "x": [1, 2]})
        table = build(source, path, id="who")
        same(table, [[5, 1], [6, 2]], ["a", "b"])
        assert table.columns == ["id", "x"]
        same(build(source, path, columns=["x"]), [[1], [2]], [5, 6])

    def test_columns_are_picked_and_ordered(self, tmp_path, path):
        pq.write_table(arrow(self.X, self.ids, name=["text"] * N), tmp_path / "a.parquet")
        table = build(tmp_path / "a.parquet", path, columns=("x2", "x0"))
        same(table, self.X[:, [2, 0]], self.ids)
        assert table.columns == ["x2", "x0"]

    def test_a_stale_number_of_columns_is_no_matter_when_they_are_picked(self, tmp_path, path):
        (tmp_path / "data").mkdir()
        pq.write_table(arrow(self.X), tmp_path / "data" / "a.parquet")
        pq.write_table(arrow(self.X).drop_columns("x1"), tmp_path / "data" / "b.parquet")
        same(build(tmp_path / "data", path, columns=["x0"]), np.tile(self.X[:, :1], (2, 1)))

    def test_the_index_of_pandas_is_no_feature_unless_it_is_named(self, tmp_path, path):
        whole = arrow(self.X, __index_level_0__=np.arange(N), __index_level_1__=["a"] * N)
        pq.write_table(whole, tmp_path / "a.parquet")
        for source in (whole, Frame(whole), tmp_path / "a.parquet"):
            table = build(source, path)
            same(table, self.X)
            assert table.columns == ["x0", "x1", "x2"]
            same(build(source, path, id="__index_level_0__"), self.X, range(N))
            same(build(source, path, columns=["__index_level_0__"]), np.arange(N)[:, None])

    def test_a_list_of_parquet_files_in_its_order(self, tmp_path, path):
        pq.write_table(arrow(self.X[:500]), tmp_path / "b.parquet")
        pq.write_table(arrow(self.X[500:]), tmp_path / "a.parquet")
        same(build([tmp_path / "b.parquet", str(tmp_path / "a.parquet")], path), self.X)
        same(build(((tmp_path / "b.parquet").as_uri(), tmp_path / "a.parquet"), path), self.X)

    def test_the_length_of_a_stream_is_not_asked_for_where_that_costs(self, path):
        class Result(Frame):
            @property
            def shape(self):
                pytest.fail("a query")

            __len__ = shape.fget

        whole = arrow(self.X, self.ids)
        same(build(Result(whole), path), self.X, self.ids)
        options = {"id": None, "columns": None, "dialect": csvfile.Dialect()}
        assert sources.open_source(Result(whole), **options).total is None
        assert sources.open_source(whole, **options).total == N
        Frames = type("DataFrame", (Frame,), {"__len__": lambda self: N, "__module__": "pandas"})
        assert sources.open_source(Frames(whole), **options).total == N


class TestCsv:
    @pytest.fixture
    def source(self, tmp_path):
        return tmp_path / "a.csv"

    @pytest.mark.parametrize(
        ("written", "ids"),
        [
            (["7", "0", "-8"], [7, 0, -8]),
            (["9223372036854775807", "-9223372036854775808"], [2**63 - 1, -(2**63)]),
            (["007", "8"], ["007", "8"]),
            (["8", "007"], ["8", "007"]),
            (["+7", "8"], ["+7", "8"]),
            (["-0", "8"], ["-0", "8"]),
            (["9223372036854775808", "8"], ["9223372036854775808", "8"]),
            (["1.50", "2"], ["1.50", "2"]),
            (["2024-01-01", "2024-01-02"], ["2024-01-01", "2024-01-02"]),
            (["true", "NA"], ["true", "NA"]),
        ],
    )
    def test_ids_are_never_changed(self, source, path, written, ids):
        source.write_text("id,x\n" + "".join(f"{name},1\n" for name in written))
        same(build(source, path), [[1]] * len(ids), ids)
        same(build(source, path, id_type="string"), [[1]] * len(ids), written)

    @pytest.mark.parametrize("odd", ["007", "c7", "9223372036854775808"])
    def test_ids_that_are_no_numbers_far_down_are_named(self, source, path, monkeypatch, odd):
        monkeypatch.setattr(csvfile, "CSV_BLOCK", 1000)
        names = [*map(str, range(2000)), odd]
        source.write_text("id,x\n" + "".join(f"{name},1\n" for name in names))
        message = refusal(ValueError, source, path)
        assert f'a.csv has numbers before {odd!r} in row 2000: pass id_type="string" to keep all' in message
        same(build(source, path, id_type="string"), [[1]] * 2001, names)

    def test_words_that_go_on_as_numbers_are_words(self, source, path, monkeypatch):
        monkeypatch.setattr(csvfile, "CSV_BLOCK", 1000)
        names = ["c7", *map(str, range(2000))]
        source.write_text("id,x\n" + "".join(f"{name},1\n" for name in names))
        same(build(source, path), [[1]] * 2001, names)

    @pytest.mark.parametrize("first", ["1", "a"])
    def test_an_id_that_is_empty_is_refused(self, source, path, first):
        source.write_text(f"id,x\n{first},1\n,2\n")
        assert "'id' is empty in row 1" in refusal(ValueError, source, path)

    @pytest.mark.parametrize("mark", [";", "\t", "|"])
    def test_other_delimiters(self, source, path, mark):
        source.write_text(f"id{mark}x\n1{mark}1,5\n")
        shown = repr(mark)
        assert refusal(FileFormatError, source, path) == (
            f"{source} looks separated by {shown}: set delimiter to {shown}, or save the file with ','"
        )
        source.write_text(f"id{mark}x\n1{mark}1.5\n")
        same(build(source, path, delimiter=mark), [[1.5]], [1])

    def test_options_that_make_no_sense_are_refused(self, source, path):
        source.write_text("id,x\n1,2\n")
        for delimiter in ("", ";;", "\n", "é", None):
            assert "delimiter must be one character" in refusal(ValueError, source, path, delimiter=delimiter)
        assert "id_type must be" in refusal(ValueError, source, path, id_type="int")
        for options in ({"delimiter": ";"}, {"id_type": "string"}):
            assert "are for CSV files, got Table" in refusal(ValueError, arrow(features()), path, **options)
        pq.write_table(arrow(features()), source.with_name("a.parquet"))
        assert "a.parquet: leave them" in refusal(ValueError, source.with_name("a.parquet"), path, delimiter=";")

    @pytest.mark.parametrize(
        "content",
        [
            "id,x\nzoë,1\n".encode("latin-1"),
            "name,x\nzoë,1\n".encode("latin-1"),
            "größe,x\n1,1\n".encode("latin-1"),
            "id,x\nzoë,1\n".encode("utf-16"),
        ],
    )
    def test_what_is_not_utf8_is_refused(self, source, path, content):
        source.write_bytes(content)
        assert refusal(FileFormatError, source, path) == f"{source} is not UTF-8: save it as UTF-8"

    @pytest.mark.parametrize("content", ["id,x\n", "id,x", "x\n"])
    def test_a_header_alone_is_no_table(self, source, path, content):
        source.write_text(content)
        assert refusal(ValueError, source, path).startswith(f"{source} holds no rows")


class TestRefusals:
    X = features(5)

    @pytest.fixture(autouse=True)
    def old_table(self, path):
        build(features(seed=9), path)

    def test_rows_that_are_not_finite_are_named_by_id_and_counted(self, path):
        X = features(3000)
        X[7, 1], X[8, 1], X[2999, 2] = np.nan, np.inf, -np.inf
        message = refusal(ValueError, Frame(arrow(X, [f"c{i}" for i in range(3000)]), 1000), path)
        assert message.startswith("features must be finite numbers, but the arm of id 'c7' has no number (null or NaN)")
        assert "in column 'x1'; 3 of 3,000 rows have such values, in columns 'x1', 'x2': fill them in" in message
        assert "the arm of id 17 has" in refusal(ValueError, arrow(X[7:], np.arange(17, 3010)), path)
        without = refusal(ValueError, arrow(np.vstack([X[:1], X[8:]])), path)
        assert "but row 1 has inf in column 'x1'; 2 of 2,993 rows" in without

    @pytest.mark.parametrize(
        "column",
        [
            pa.array([1, None, 3]),
            pa.array([1.0, None, 3.0]),
            pa.array([True, None, False]),
            pa.array([np.float16(1), None, np.float16(2)], pa.float16()),
            pa.array([Decimal(1), None, Decimal(2)]),
        ],
    )
    def test_null_is_no_number(self, path, column):
        message = refusal(ValueError, pa.table({"x": column}), path)
        assert "but row 1 has no number (null or NaN) in column 'x'; 1 of 3 rows" in message

    def test_what_is_not_numeric_is_named_with_its_type(self, path):
        source = arrow(
            self.X,
            region=["n"] * 5,
            day=pa.array([0] * 5, pa.date32()),
            tags=[[1]] * 5,
            kind=pa.array(["a"] * 5).dictionary_encode(),
        )
        message = refusal(ValueError, source, path)
        assert "'region' (string), 'day' (date32[day]), 'tags' (list<" in message
        assert "'kind' (dictionary<" in message
        assert "encode them as numbers, or leave them out with columns=[...]" in message
        for kind in (pa.timestamp("s"), pa.null(), pa.duration("s"), pa.binary()):
            assert f"'x' ({kind})" in refusal(ValueError, pa.table({"x": pa.array([None], kind)}), path)

    def test_a_long_list_is_cut(self, path):
        message = refusal(ValueError, pa.table({f"x{i}": ["a"] for i in range(100)}), path)
        assert "'x9' (string) and 90 more:" in message

    def test_missing_columns_are_named(self, path):
        message = refusal(ValueError, arrow(self.X), path, columns=["x1", "age", "sex"], id="who")
        assert message == "the Table has no column 'who', 'age', 'sex'; its columns are 'x0', 'x1', 'x2'"

    def test_choices_that_make_no_sense_are_refused(self, path):
        whole = arrow(self.X, np.arange(5))
        assert "got the string 'x1'" in refusal(ValueError, whole, path, columns="x1")
        assert "'x1' is there twice" in refusal(ValueError, whole, path, columns=["x1", "x1"])
        assert "'id' is the id" in refusal(ValueError, whole, path, columns=["id", "x1"])
        assert "no column left" in refusal(ValueError, whole, path, columns=[])
        assert "no column left" in refusal(ValueError, pa.table({"id": [1]}), path)
        twice = pa.table([pa.array([1]), pa.array([2])], names=["x", "x"])
        assert "'x' is there twice" in refusal(ValueError, twice, path)
        assert "an array has no names" in refusal(ValueError, self.X, path, columns=["a"])
        assert "names a column" in refusal(ValueError, self.X, path, id="a")
        assert "dtype must be one of" in refusal(ValueError, self.X, path, dtype="int8")
        assert "got list" in refusal(ValueError, [[1.0]], path)

    def test_ids_that_stand_twice_are_named(self, path, monkeypatch):
        X = features(70_000, 1)
        for ids in (np.arange(70_000), np.array([f"c{i}" for i in range(70_000)])):
            ids[69_000] = ids[66_000]
            message = refusal(ValueError, Frame(arrow(X, ids), 10_000), path)
            assert f"but {ids[66_000].item()!r} is in rows 66000 and 69000: keep one" in message

    def test_how_many_ids_stand_more_than_once_is_said(self, path, monkeypatch):
        for ids in ([3, 1, 2, 1, 1, 3], list("cabaac")):
            message = refusal(ValueError, arrow(features(6), ids), path)
            assert message.endswith("keep one of them (2 of the ids are there more than once)")
        monkeypatch.setattr(id_rules, "ID_ROWS", 1)
        assert "(1 or more of the ids" in refusal(ValueError, arrow(features(6), [3, 1, 2, 1, 1, 3]), path)

    def test_a_feature_that_looks_like_the_id_is_warned_of(self, path):
        for name in ("ID", "customer_id", "Customer_ID"):
            source = pa.table({name: [7, 8], "x": [1.0, 2.0]})
            with pytest.warns(
                UserWarning, match=f"^column '{name}' is taken as a feature; if it names .*say id='{name}'$"
            ) as seen:
                Table.build(source, path, progress=False)
            assert [warning.filename for warning in seen] == [__file__]
            same(build(source, path, id=name), [[1], [2]], [7, 8])
            same(build(source, path, columns=[name]), [[7], [8]])
            words = pa.table({name: ["a", "b"], "x": [1.0, 2.0]})
            assert refusal(ValueError, words, path).endswith(f"; if {name!r} names the arms, say id={name!r}")
        build(pa.table({"paid": [1, 2], "share_id": [0.5, 1.5], "an_id": [5, 6]}), path, id="an_id")
        build(pa.table({"paid": [1, 2], "share_id": [0.5, 1.5]}), path)

    def test_what_has_no_columns_of_numbers_is_refused_with_what_to_do(self, path):
        class Broken:
            def __init__(self, error):
                self.error = error

            def __arrow_c_stream__(self, requested_schema=None):
                raise self.error

        class Series(Frame):
            def to_frame(self):
                return Frame(self.table)

        class LazyFrame:
            def collect(self):
                return arrow(features())

        twice = Broken(ValueError("Duplicate column names found: ['x', 'x']"))
        mixed = Broken(pa.ArrowTypeError("Expected bytes, got a 'int' object", "Conversion failed for column x"))
        assert refusal(ValueError, twice, path) == (
            "the Broken could not be read as an Arrow stream: Duplicate column names found: ['x', 'x']"
        )
        assert refusal(ValueError, mixed, path).endswith(
            "Expected bytes, got a 'int' object; Conversion failed for column x"
        )
        assert refusal(ValueError, Series(arrow(self.X)), path).endswith("a Series: pass what its .to_frame() gives")
        assert refusal(ValueError, LazyFrame(), path).endswith("a LazyFrame: pass what its .collect() gives")
        assert "id must be the name of a column, got int" in refusal(ValueError, arrow(self.X), path, id=0)
        message = refusal(ValueError, da.ones((4, 2)), path)
        assert "got a dask Array: choose from a dask array with policy.choose(..., client=client)" in message

    def test_files_that_are_something_else_are_named(self, tmp_path, path):
        (tmp_path / "a.txt").write_text("x,y\n1,2\n")
        message = refusal(FileFormatError, tmp_path / "a.txt", path)
        assert message == f"{tmp_path / 'a.txt'} is not a Parquet file; CSV files must end in .csv or .csv.gz"
        message = refusal(FileFormatError, path, path.with_name("other"))
        assert message == f"{path} is an armful table already: open it with armful.Table.open"
        (tmp_path / "a.csv").write_text("x,y\n1,2\n")
        assert "a.csv is a CSV file" in refusal(FileFormatError, [tmp_path / "a.csv"] * 2, path)

    def test_a_source_that_may_not_be_read_is_said_to_be_so(self):
        with (
            pytest.raises(PermissionError, match=r"^no permission to read a.csv: ask its owner") as refused,
            files.readable_errors("a.csv", "CSV"),
        ):
            raise PermissionError(errno.EACCES, "Permission denied")
        assert refused.value.errno == errno.EACCES

    @pytest.mark.parametrize("function", ["open", "replace"])
    def test_a_folder_that_may_not_be_written_to_is_named(self, path, monkeypatch, function):
        real = getattr(os, function)

        def refuse(name, *rest, **options):
            if str(name).endswith(".part"):
                raise PermissionError(errno.EACCES, "Permission denied", str(name))
            return real(name, *rest, **options)

        monkeypatch.setattr(os, function, refuse)
        message = refusal(PermissionError, self.X, path)
        assert message == f"no permission to write in {path.parent}: give another folder"

    def test_a_target_that_may_not_be_read_is_named(self, path, monkeypatch):
        def refuse(_):
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(building, "_start", refuse)
        assert refusal(PermissionError, self.X, path).startswith(f"no permission to read {path}, which exists already")

    def test_ids_with_the_same_hash_are_no_repetition(self, path, monkeypatch):
        monkeypatch.setattr(building, "hash", len, raising=False)
        ids = [f"c{i}" for i in range(N)]
        same(build(arrow(features(), ids), path), features(), ids)
        ids[900] = "c7"
        assert "but 'c7' is in rows 7 and 900" in refusal(ValueError, arrow(features(), ids), path)

    def test_ids_must_be_there_and_be_whole_numbers_or_strings(self, path):
        def of(ids):
            return Frame(pa.table({"id": ids, "x": [1] * len(ids)}), 2)

        assert "'id' is empty in row 3" in refusal(ValueError, of(pa.array([1, 2, 3, None])), path)
        assert "'id' is empty in row 0" in refusal(ValueError, of(pa.array([None, "a"])), path)
        assert "'id' (double)" in refusal(ValueError, of(pa.array([1.0, 2.0])), path)
        assert "'id' (bool)" in refusal(ValueError, of(pa.array([True])), path)
        assert "ids must be at most" in refusal(ValueError, of(pa.array([1, 2**63], pa.uint64())), path)
        assert "NUL" in refusal(ValueError, of(pa.array(["a", "b\0"])), path)
        assert "at most 1000 bytes, got one of 1001: 'zzzz" in refusal(
            ValueError, of(pa.array(["a", "z" * 1001])), path
        )
        same(build(of(pa.array(["a", "z" * 1000])), path), [[1], [1]], ["a", "z" * 1000])

    def test_numbers_too_large_for_float32_are_refused(self, path):
        source = pa.table({"id": [4, 5], "x": [1.0, 1e300]})
        message = refusal(ValueError, source, path, dtype="float32")
        assert "but the arm of id 5 has 1e+300, too large for dtype=\"float32\", in column 'x'" in message
        same(build(source, path), [[1.0], [1e300]], [4, 5])

    def test_nothing_makes_no_table(self, tmp_path, path):
        pq.write_table(arrow(self.X[:0]), tmp_path / "a.parquet")
        (tmp_path / "a.csv").write_text("x,y\n")
        (tmp_path / "b.csv").write_text("")
        (tmp_path / "empty").mkdir()
        assert "holds no rows" in refusal(ValueError, tmp_path / "a.parquet", path)
        assert "holds no rows" in refusal(ValueError, tmp_path / "a.csv", path)
        assert "b.csv could not be read as CSV: Empty CSV" in refusal(FileFormatError, tmp_path / "b.csv", path)
        assert "holds no rows" in refusal(ValueError, arrow(self.X[:0]), path)
        assert "directory without Parquet files" in refusal(ValueError, tmp_path / "empty", path)
        assert "one of each at least" in refusal(ValueError, self.X[:0], path)

    def test_files_that_differ_are_named(self, tmp_path, path):
        data = tmp_path / "data"
        data.mkdir()
        pq.write_table(arrow(self.X, np.arange(5)), data / "a.parquet")

        def second(table, **options):
            pq.write_table(table, data / "b.parquet")
            message = refusal(ValueError, data, path, **options)
            assert str(data / "b.parquet") in message
            return message

        assert "('more' is in one only)" in second(arrow(self.X, np.arange(5), more=self.X[:, 0]))
        assert "('x2' is in one only)" in second(arrow(self.X[:, :2], np.arange(5)))
        assert "has no column 'x2'" in second(arrow(self.X[:, :2], np.arange(5)), columns=["x2"])
        assert "another kind than the first" in second(arrow(self.X, list("abcde")))
        assert "'x2' (string)" in second(arrow(self.X[:, :2], np.arange(5), x2=list("abcde")))

    def test_sources_that_cannot_be_read_are_named(self, tmp_path, path):
        (tmp_path / "a.parquet").write_bytes(b"no parquet" * 100)
        assert "a.parquet could not be read as Parquet" in refusal(FileFormatError, tmp_path / "a.parquet", path)
        assert "nowhere.csv does not exist" in refusal(FileNotFoundError, tmp_path / "nowhere.csv", path)
        assert "foo://bar/x could not be read" in refusal(ValueError, "foo://bar/x", path)

    def test_a_damaged_page_of_parquet_is_named(self, tmp_path, path):
        pq.write_table(arrow(features()), tmp_path / "a.parquet", use_dictionary=False, compression="zstd")
        data = bytearray((tmp_path / "a.parquet").read_bytes())
        data[100:5000] = bytes(4900)
        (tmp_path / "a.parquet").write_bytes(data)
        message = refusal((OSError, FileFormatError), tmp_path / "a.parquet", path)
        assert "a.parquet could not be read" in message

    def test_words_far_down_in_a_csv_file_are_named(self, tmp_path, path, monkeypatch):
        monkeypatch.setattr(csvfile, "CSV_BLOCK", 1000)
        (tmp_path / "a.csv").write_text("x\n" + "1\n" * 2000 + "many\n")
        message = refusal(FileFormatError, tmp_path / "a.csv", path)
        assert "a.csv could not be read as CSV" in message
        assert "'many'" in message

    def test_gaps_far_down_in_a_csv_file_are_named(self, tmp_path, path, monkeypatch):
        monkeypatch.setattr(csvfile, "CSV_BLOCK", 1000)
        (tmp_path / "a.csv").write_text("x,y\n" + "1,\n" * 2000 + "NA,3\n")
        assert "but row 0 has no number (null or NaN) in column 'y'; 2,001 of 2,001" in refusal(
            ValueError, tmp_path / "a.csv", path
        )

    def test_a_target_that_is_no_table_is_not_written_over(self, tmp_path, path):
        pq.write_table(arrow(self.X), path.with_name("a.parquet"))
        message = refusal(FileExistsError, path.with_name("a.parquet"), path.with_name("a.parquet"))
        assert "a.parquet exists and is not an armful table" in message
        assert "is a folder; give the name of a file in it" in refusal(IsADirectoryError, self.X, tmp_path)
        with pytest.raises(FileNotFoundError, match=r"^there is no folder .*nowhere to write arms to$"):
            build(self.X, tmp_path / "nowhere" / "arms")
        path.with_name("empty").touch()
        same(build(self.X, path.with_name("empty")), self.X)


ENDLESS = """
import sys, time
import numpy as np, pyarrow as pa
from armful.tables.table import Table

def batches():
    for i in range(100_000):
        time.sleep(0.005)
        ids = [f"c{i}-{j}" for j in range(500)]
        yield pa.record_batch({"id": ids, "x": np.full(500, float(i))})

schema = pa.schema({"id": pa.string(), "x": pa.float64()})
Table.build(pa.RecordBatchReader.from_batches(schema, batches()), sys.argv[1])
"""


def parts_of(process, path):
    return list(path.parent.glob(f"arms.{process.pid}.*.part"))


class TestAccidents:
    X = features()

    @pytest.fixture
    def endless(self, path, interruptible):
        """A process that builds at `path`, well under way, over a table that is there."""
        build(self.X, path)
        process = subprocess.Popen([sys.executable, "-c", ENDLESS, str(path)], stderr=subprocess.PIPE, text=True)
        until = time.monotonic() + 900
        while not any(part.stat().st_size > 20_000 for part in parts_of(process, path)):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.01)
        yield process
        process.kill()
        process.communicate()

    def test_a_build_that_is_killed_leaves_the_old_table(self, path, endless):
        (part,) = [part.name for part in parts_of(endless, path)]
        same(build(self.X, path), self.X)
        assert names_in(path.parent) == ["arms", part]  # the other build is alive, and is let be
        endless.send_signal(signal.SIGKILL)
        endless.wait()
        assert names_in(path.parent) == ["arms", part]
        same(Table.open(path), self.X)
        with pytest.raises(FileFormatError, match="its build was interrupted or it was cut off: build it again"):
            Table.open(path.with_name(part))
        path.with_name("other.7.part").touch()  # of another table
        path.with_name("arms.part").touch()
        same(build(self.X + 1, path), self.X + 1)
        assert names_in(path.parent) == ["arms", "arms.part", "other.7.part"]

    def test_a_build_that_is_interrupted_cleans_up(self, path, endless):
        endless.send_signal(signal.SIGINT)
        error = endless.communicate(timeout=900)[1]
        assert error.splitlines()[-1] == "KeyboardInterrupt"
        assert endless.returncode != 0
        assert names_in(path.parent) == ["arms"]
        same(Table.open(path), self.X)

    def test_an_interrupt_anywhere_cleans_up(self, path, monkeypatch):
        build(self.X, path)
        real, n_calls = os.write, 0
        for stop_at in range(1, 100):
            n_calls = 0

            def interrupted(descriptor, data, stop_at=stop_at):
                nonlocal n_calls
                n_calls += 1
                if n_calls == stop_at:
                    raise KeyboardInterrupt
                return real(descriptor, data)

            with monkeypatch.context() as patch:
                patch.setattr(os, "write", interrupted)
                try:
                    build(arrow(self.X + 1, [f"c{i}" for i in range(N)]), path)
                    break
                except KeyboardInterrupt:
                    assert names_in(path.parent) == ["arms"]
                    same(Table.open(path), self.X)
        assert stop_at > 5
        same(Table.open(path), self.X + 1, [f"c{i}" for i in range(N)])

    @pytest.mark.parametrize("call", ["fsync", "replace"])
    def test_a_failure_at_the_end_cleans_up(self, path, monkeypatch, call):
        build(self.X, path)

        def failing(*_):
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(os, call, failing)
        with pytest.raises(OSError, match="Input/output"):
            build(self.X + 1, path)
        assert names_in(path.parent) == ["arms"]
        same(Table.open(path), self.X)

    def test_a_disk_that_fills_up_anywhere_leaves_the_old_table(self, path, monkeypatch):
        build(self.X, path)
        source = arrow(self.X + 1, [f"c{i}" for i in range(N)])
        real = os.write
        for full_at in range(1, 100):
            room = [full_at]

            def filling(descriptor, data, room=room):
                room[0] -= 1
                if room[0] == 0:
                    return real(descriptor, data[: len(data) // 2]) if len(data) > 1 else real(descriptor, data)
                if room[0] < 0:
                    raise OSError(errno.ENOSPC, "No space left on device")
                return real(descriptor, data)

            with monkeypatch.context() as patch:
                patch.setattr(os, "write", filling)
                try:
                    build(source, path)
                    break
                except OSError as error:
                    number, message = error.errno, str(error)
            assert number == errno.ENOSPC
            begin = f"{path} could not be written: No space left on device; it needs at least "
            assert message.startswith(begin)
            assert message.endswith("iB free")
            assert names_in(path.parent) == ["arms"]
            same(Table.open(path), self.X)
        assert full_at > 5
        same(Table.open(path), self.X + 1, [f"c{i}" for i in range(N)])

    def test_a_real_limit_of_the_system_is_reported(self, path):
        build(self.X, path)
        code = """
import resource, sys
import numpy as np, pyarrow as pa
from armful.tables.table import Table
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
batches = (pa.record_batch({"x": np.zeros(50_000)}) for _ in range(10))
try:
    Table.build(pa.RecordBatchReader.from_batches(pa.schema({"x": pa.float64()}), batches), sys.argv[1])
except OSError as error:
    print(error)
"""
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True, timeout=900
        )
        assert done.stdout.startswith(f"{path} could not be written: File too large; it needs at least 1.00 MiB, and")
        assert names_in(path.parent) == ["arms"]
        same(Table.open(path), self.X)

    @pytest.mark.parametrize("own", [True, False])
    def test_a_source_that_fails_midway_cleans_up(self, path, own):
        def failing(error):
            yield arrow(self.X).to_batches()[0]
            raise error

        def stream(error):
            reader = pa.RecordBatchReader.from_batches(arrow(self.X).schema, failing(error))
            return reader if own else Stream(reader)

        build(self.X, path)
        with pytest.raises(RuntimeError if own else ValueError, match=r"the connection is gone\.?$"):
            build(stream(RuntimeError("the connection is gone")), path)
        with pytest.raises(KeyboardInterrupt):
            build(stream(KeyboardInterrupt()), path)
        assert names_in(path.parent) == ["arms"]
        same(Table.open(path), self.X)

    def test_of_two_builds_at_once_the_one_that_ends_last_stays(self, path):
        inside, go_on = threading.Event(), threading.Event()

        def batches():
            inside.set()
            go_on.wait(900)
            yield from arrow(self.X).to_batches()

        slow = pa.RecordBatchReader.from_batches(arrow(self.X).schema, batches())
        thread = threading.Thread(target=build, args=(slow, path))
        thread.start()
        inside.wait(900)
        same(build(self.X + 1, path), self.X + 1)
        go_on.set()
        thread.join()
        same(Table.open(path), self.X)
        assert names_in(path.parent) == ["arms"]


MEASURED = """
import re, sys
from armful.tables.table import Table
Table.build(sys.argv[1], sys.argv[2])
print(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1])
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["numbers", "text"])
def test_memory_is_bounded_however_many_the_arms_are(tmp_path, kind):
    """900,000 arms more are 144 MB more of features, in one row group; of each 8 bytes may be held."""
    peak = []
    for n in (300_000, 1_200_000):
        numbers = np.arange(n)
        ids = numbers if kind == "numbers" else np.char.add("customer-", numbers.astype(str))
        whole = arrow(np.random.default_rng(0).random((n, 20)), ids)
        pq.write_table(whole, tmp_path / "a.parquet", row_group_size=n, use_dictionary=False)
        del whole
        code = [sys.executable, "-c", MEASURED, str(tmp_path / "a.parquet"), str(tmp_path / "arms")]
        done = subprocess.run(code, capture_output=True, text=True, check=True, timeout=900)
        peak.append(int(done.stdout) / 1024)
    assert peak[1] < 300
    assert peak[1] - peak[0] < 100


class TestProgress:
    CODE = """
import sys, numpy as np
from armful.tables.table import Table
Table.build(np.zeros((70_000, 40)), sys.argv[1], progress=sys.argv[2] == "on")
"""

    def shown_on_a_terminal(self, path, switch):
        ours, theirs = pty.openpty()
        environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
        code = [sys.executable, "-c", self.CODE, str(path), switch]
        process = subprocess.Popen(code, stderr=theirs, env=environment)
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 10_000):
                shown += piece
        except OSError:  # the other side is closed
            pass
        os.close(ours)
        assert process.wait(900) == 0
        return shown.decode()

    def test_a_bar_is_drawn_on_a_terminal(self, path):
        shown = self.shown_on_a_terminal(path, "on")
        assert "building arms" in shown
        assert "70000/70000" in shown

    def test_it_can_be_switched_off(self, path):
        assert self.shown_on_a_terminal(path, "off") == ""

    def test_nothing_is_drawn_elsewhere(self, path):
        code = [sys.executable, "-c", self.CODE, str(path), "on"]
        done = subprocess.run(code, capture_output=True, text=True, check=True, timeout=900)
        assert (done.stdout, done.stderr) == ("", "")


def test_pyarrow_that_is_missing_is_named(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match=r"the extra \[tables\], in a clone by: pip install '\.\[tables\]'$"):
        build("a.parquet", path)
    same(build(features(), path), features())  # arrays need none
