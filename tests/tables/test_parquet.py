"""Arms that stay in Parquet files."""

import os
import pickle
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import fs, parquet

from armful import C2UCB, CappedC2UCB, FileFormatError, Quotas, Table, TopK
from armful.scan import _dispatch as dispatch
from armful.tables import parquet as parquet_tables
from armful.tables.parquet import ParquetTable
from tests.cluster.test_cluster import workers
from tests.scan.plain import assert_plain

N, D = 1000, 5


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(parquet_tables, "rows_per_block", lambda n_features: 250)
    monkeypatch.setattr(dispatch, "SCAN_FROM", 1)


def rows(n=N, seed=0):
    return np.random.default_rng(seed).standard_normal((n, D))


def columns_of(X, **more):
    return pa.table(more | {f"x{i}": X[:, i] for i in range(X.shape[1])})


def written(folder, X, **more):
    """Three files, one of them below, of row groups of 100, 300 and 70 rows, beside what is not to be read."""
    columns = columns_of(X, **more)
    (folder / "b").mkdir(parents=True)
    parquet.write_table(columns[:350], folder / "a.parquet", row_group_size=100)
    parquet.write_table(columns[350:650], folder / "b" / "b.parquet", row_group_size=300)
    parquet.write_table(columns[650:650], folder / "c.parquet")
    parquet.write_table(columns[650:], folder / "d.parquet", row_group_size=70)
    (folder / "_SUCCESS").touch()
    return folder


def test_the_rows_are_those_of_the_files_in_order(tmp_path):
    X = rows()
    table = ParquetTable(written(tmp_path / "x", X))
    assert (table.n_arms, table.n_features, len(table), table.columns) == (N, D, N, [f"x{i}" for i in range(D)])
    assert repr(table) == f"ParquetTable(n_arms=1000, n_features=5, source={str(tmp_path / 'x')!r})"
    for begin, end in ((0, N), (0, 1), (99, 101), (340, 660), (649, 650), (999, 1000), (7, 7)):
        assert np.array_equal(table.rows(begin, end), X[begin:end])
    for indices in ([], [3], [999, 0, 350, 349, 350, 650], list(range(N))[::-1]):
        assert np.array_equal(table.take(np.array(indices, dtype=np.int64)), X[indices])


def test_blocks_are_whole_row_groups(tmp_path):
    blocks = ParquetTable(written(tmp_path / "x", rows())).blocks
    assert [block.stop for block in blocks] == [200, 350, 650, 860, 1000]
    assert [block.start for block in blocks] == [0, 200, 350, 650, 860]


def test_a_choice_is_that_of_the_same_rows_in_memory(tmp_path):
    X = rows()
    table = ParquetTable(written(tmp_path / "x", X))
    quotas = Quotas(np.arange(N) % 9, at_least=1, total=40)
    for policy in (C2UCB(n_features=D, seed=0), CappedC2UCB(n_features=D, cap=4.0, seed=0)):
        for constraint in (TopK(30), quotas, TopK(30), quotas):
            choice = assert_plain(policy, table, X, constraint)
            assert choice.ids is None
            policy.learn(choice.features, choice.features[:, 0])
    assert len(choice.explain(most=2).arms) == 2


def test_the_arms_chosen_last_are_not_read_again(tmp_path, monkeypatch):
    table = ParquetTable(written(tmp_path / "x", rows()))
    chosen = np.array([5, 900, 300])
    first = table.take(chosen)
    monkeypatch.setattr(parquet_tables._ParquetStore, "_read", lambda *_: pytest.fail("read again"))
    again = table.take(chosen)
    assert np.array_equal(again, first)
    again[:] = 0
    assert np.array_equal(table.take(chosen), first)


@pytest.mark.parametrize("strings", [True, False])
def test_ids_come_from_their_column(tmp_path, strings):
    X, ids = rows(), [f"größer {i}" if strings else 10**12 - i for i in range(N)]
    table = ParquetTable(written(tmp_path / "x", X, who=ids), id="who")
    assert table.n_features == D
    assert table.ids_of([999, 0, 350]).tolist() == [ids[999], ids[0], ids[350]]
    assert table.ids_of([]).size == 0
    assert table.ids.tolist() == ids
    assert table.indices_of([ids[700], ids[2]]).tolist() == [700, 2]
    choice = C2UCB(n_features=D, seed=0).choose(table, TopK(7))
    assert choice.ids.tolist() == [ids[i] for i in choice.indices.tolist()]


def test_some_columns_in_another_order_of_any_kind_of_number(tmp_path):
    columns = pa.table(
        {
            "id": ["a", "b"],
            "whole": pa.array([1, -2], pa.int8()),
            "word": ["no", "number"],
            "yes": [True, False],
            "half": pa.array([0.5, 1.5], pa.float32()),
            "exact": [Decimal("1.25"), Decimal("2.50")],
        }
    )
    parquet.write_table(columns, tmp_path / "x.parquet")
    table = ParquetTable(tmp_path / "x.parquet", columns=["exact", "half", "yes", "whole"])
    assert table.rows(0, 2).tolist() == [[1.25, 0.5, 1.0, 1.0], [2.5, 1.5, 0.0, -2.0]]
    assert table.ids.tolist() == ["a", "b"]


def test_files_are_found_by_uri_and_on_another_filesystem(tmp_path):
    X = rows()
    folder = written(tmp_path / "x", X)
    assert np.array_equal(ParquetTable(folder.as_uri()).rows(0, N), X)
    elsewhere = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    assert np.array_equal(ParquetTable("x", filesystem=elsewhere).rows(0, N), X)
    assert np.array_equal(pickle.loads(pickle.dumps(ParquetTable("x", filesystem=elsewhere))).rows(0, N), X)


def test_a_pickled_table_or_part_is_the_same_and_knows_its_files_only(tmp_path):
    X = rows()
    table = ParquetTable(written(tmp_path / "x", X, id=np.arange(N) * 2))
    again = pickle.loads(pickle.dumps(table))
    assert repr(again) == repr(table)
    assert np.array_equal(again.rows(300, 700), X[300:700])
    part = pickle.loads(pickle.dumps(table.part(200, 650)))
    assert (part.n_arms, [block.stop for block in part.blocks]) == (450, [150, 450])
    assert np.array_equal(part.take([0, 449]), X[[200, 649]])
    assert part.ids_of([0, 449]).tolist() == [400, 1298]


@pytest.mark.parametrize("bad", [np.nan, -np.inf, None])
@pytest.mark.parametrize("ids", [None, [f"arm {i}" for i in range(N)]])
def test_a_row_that_cannot_be_scored_is_named(tmp_path, bad, ids):
    X = rows().astype(object)
    X[777, 2] = bad
    columns = {f"x{i}": X[:, i].tolist() for i in range(D)} | ({} if ids is None else {"id": ids})
    parquet.write_table(pa.table(columns), tmp_path / "x.parquet", row_group_size=300)
    table = ParquetTable(tmp_path / "x.parquet")
    who = "row 777" if ids is None else "the arm of id 'arm 777'"
    what = "-inf" if bad == -np.inf else r"no number \(null or NaN\)"
    policy = C2UCB(n_features=D, seed=0)
    before = policy.rng.bit_generator.state
    for read in (
        lambda: policy.choose(table, TopK(3)),
        lambda: table.take([750]),
        lambda: table.part(600, 1000).rows(0, 400),
    ):
        with pytest.raises(
            ValueError, match=f"^features must be finite numbers, but {who} has {what} in column 'x2': "
        ):
            read()
    assert policy.rng.bit_generator.state == before
    assert table.rows(0, 600).shape == (600, D)


def test_what_is_no_table_of_numbers_is_refused(tmp_path):
    columns = columns_of(rows(10), word=["a"] * 10)
    parquet.write_table(columns, tmp_path / "x.parquet")
    for how, sentence in (
        ({}, r"^features must be numbers, and \S+x.parquet has 'word' \(string\): encode"),
        ({"columns": "x1"}, r"^columns must be a list of names, got the string 'x1'"),
        ({"columns": ["x1", "x9"]}, r"x.parquet has no column 'x9'; its columns are 'word', 'x0'"),
        ({"id": "x0", "columns": ["x1"]}, r"^ids must be whole numbers or strings"),
        ({"id": "word", "columns": ["word"]}, r"^column 'word' is the id, so it cannot be a feature too"),
    ):
        with pytest.raises(ValueError, match=sentence):
            ParquetTable(tmp_path / "x.parquet", **how)
    with pytest.raises(FileNotFoundError, match=r"^\S+y.parquet does not exist, expected a file"):
        ParquetTable(tmp_path / "y.parquet")
    with pytest.raises(
        ValueError, match=r"^source must be a Parquet file, a directory of them, a URI or a list of these, got Table"
    ):
        ParquetTable(columns)
    parquet.write_table(columns_of(rows(10))[:0], tmp_path / "empty.parquet")
    with pytest.raises(ValueError, match=r"empty.parquet holds no rows"):
        ParquetTable(tmp_path / "empty.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(FileFormatError, match=r"broken.parquet could not be read as Parquet"):
        ParquetTable(tmp_path / "broken.parquet")
    (tmp_path / "nothing").mkdir()
    with pytest.raises(ValueError, match=r"nothing is a directory without Parquet files"):
        ParquetTable(tmp_path / "nothing")


def test_files_of_different_columns_are_refused(tmp_path):
    folder = tmp_path / "x"
    folder.mkdir()
    parquet.write_table(columns_of(rows(10)), folder / "a.parquet")
    parquet.write_table(columns_of(rows(10), more=np.ones(10)), folder / "b.parquet")
    with pytest.raises(ValueError, match=r"b.parquet and \S+a.parquet do not have the same columns \('more' is in one"):
        ParquetTable(folder)
    assert ParquetTable(folder, columns=["x1", "x0"]).n_arms == 20


def test_a_file_that_is_gone_is_named(tmp_path):
    parquet.write_table(columns_of(rows()), tmp_path / "x.parquet")
    table = ParquetTable(tmp_path / "x.parquet")
    (tmp_path / "x.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"^\S+x.parquet could not be read: it does not exist any more$"):
        table.rows(0, 5)


def test_a_table_is_built_from_one(tmp_path):
    X = rows()
    table = Table.build(ParquetTable(written(tmp_path / "x", X)), tmp_path / "x.table", progress=False)
    assert np.array_equal(table.rows(0, N), X)


def test_a_list_of_files_is_read_in_its_order(tmp_path):
    X = rows(30)
    parts = {"b": X[:10], "a": X[10:20], "c": X[20:]}
    for name, part in parts.items():
        parquet.write_table(columns_of(part), tmp_path / f"{name}.parquet")
    table = ParquetTable([tmp_path / f"{name}.parquet" for name in parts])
    assert np.array_equal(table.rows(0, 30), X)
    assert repr(table).endswith("b.parquet and 2 more')")


def test_the_index_of_pandas_is_no_feature_unless_it_is_named(tmp_path):
    indexed = {"__index_level_0__": np.arange(10) * 3}
    parquet.write_table(columns_of(rows(10), **indexed), tmp_path / "a.parquet")
    parquet.write_table(columns_of(rows(10)), tmp_path / "b.parquet")
    assert ParquetTable(tmp_path).columns == [f"x{i}" for i in range(D)]  # one file with an index, one without
    assert ParquetTable(tmp_path / "a.parquet", id="__index_level_0__").ids_of([2]).tolist() == [6]
    assert ParquetTable(tmp_path / "a.parquet", columns=["__index_level_0__"]).take([2]).tolist() == [[6.0]]


def test_ids_asked_for_that_stand_twice_are_named(tmp_path):
    X, ids = rows(8), [1, 1, 2, 3, 4, 3, 5, 6]
    parquet.write_table(columns_of(X, id=ids), tmp_path / "x.parquet", row_group_size=2)
    table = ParquetTable(tmp_path / "x.parquet")
    for asked, sentence in (
        ([1], r"^id 1 is in rows 0 and 1, so it does not name one arm"),
        ([2, 3], r"^id 3 is in rows 3 and 5, so"),  # the second after all were found
        ([2, 9, 8], r"^id 9 is not in the table \(2 of 3 ids are not\); its ids are like 1$"),
    ):
        with pytest.raises(ValueError, match=sentence):
            table.indices_of(asked)
    assert table.indices_of([6, 2, 6]).tolist() == [7, 2, 7]


def changed(path, n_rows):
    """Other rows in a file that a table was made of."""
    before = path.stat().st_mtime_ns
    parquet.write_table(columns_of(rows(n_rows, seed=1), id=np.arange(n_rows)), path, row_group_size=100)
    os.utime(path, ns=(before + 10**6, before + 10**6))  # clocks of some filesystems are coarse


CHANGED = r"^\S+x.parquet was changed after the ParquetTable was made: make it again$"


@pytest.mark.parametrize("n_rows", [N, N + 1])
def test_files_that_changed_are_refused(tmp_path, n_rows):
    path = tmp_path / "x.parquet"
    parquet.write_table(columns_of(rows(), id=np.arange(N)), path, row_group_size=100)
    table, policy = ParquetTable(path), C2UCB(n_features=D, seed=0)
    part = pickle.dumps(table.part(200, 400))
    changed(path, n_rows)
    for read in (
        lambda: table.rows(0, 5),
        lambda: table.ids_of([3]),
        lambda: pickle.loads(part).rows(0, 5),
        lambda: policy.choose(table, TopK(3)),
    ):
        with pytest.raises(FileFormatError, match=CHANGED):
            read()
    assert np.array_equal(ParquetTable(path).rows(0, 5), rows(n_rows, seed=1)[:5])


@pytest.mark.slow
def test_files_that_changed_are_refused_by_the_workers_of_a_cluster(tmp_path):
    path = tmp_path / "x.parquet"
    parquet.write_table(columns_of(rows(), id=np.arange(N)), path, row_group_size=100)
    table, policy = ParquetTable(path), C2UCB(n_features=D, seed=0)
    with workers(1, tmp_path) as client:
        assert policy.choose(table, TopK(3), client=client).ids.size == 3
        changed(path, N)
        with pytest.raises(FileFormatError, match=CHANGED):
            policy.choose(table, TopK(3), client=client)
        assert policy.choose(ParquetTable(path), TopK(3), client=client).ids.size == 3


def test_what_is_no_parquet_file_is_said_to_be_so(tmp_path):
    Table.build(rows(5), tmp_path / "arms", progress=False)
    (tmp_path / "x.csv").write_text("x,y\n1,2\n")
    (tmp_path / "x.txt").write_text("x,y\n1,2\n")
    for name, sentence in (
        ("arms", r"arms is an armful table already: open it with armful.Table.open$"),
        ("x.csv", r"x.csv is a CSV file: make a table of it alone with armful.Table.build$"),
        ("x.txt", r"x.txt is not a Parquet file; CSV files must end in .csv or .csv.gz$"),
    ):
        with pytest.raises(FileFormatError, match=sentence):
            ParquetTable(tmp_path / name)


def test_a_feature_that_looks_like_the_id_is_warned_of(tmp_path):
    parquet.write_table(columns_of(rows(3), Customer_ID=[1, 2, 3]), tmp_path / "x.parquet")
    sentence = r"^column 'Customer_ID' is taken as a feature; if it names the arms, say id='Customer_ID'$"
    with pytest.warns(UserWarning, match=sentence) as warned:
        ParquetTable(tmp_path / "x.parquet")
    assert [warning.filename for warning in warned] == [__file__]
    assert ParquetTable(tmp_path / "x.parquet", id="Customer_ID").n_features == D
    assert ParquetTable(tmp_path / "x.parquet", columns=["x0", "Customer_ID"]).n_features == 2
    with pytest.raises(ValueError, match="id must be the name of a column, got int"):
        ParquetTable(tmp_path / "x.parquet", id=3)
