import contextlib
import errno
import gc
import json
import os
import pickle
import struct
import subprocess
import sys
import threading
import weakref
import zlib
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from armful.errors import FileFormatError
from armful.model._blocks import block_size
from armful.tables import _build as building
from armful.tables import _row_blocks as row_blocks
from armful.tables import _table_file as table_file
from armful.tables.table import Table

SHORT = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
IDS = {
    "none": None,
    "numbers": lambda n: np.arange(n) * 7 - 3,
    "text": lambda n: [f"é{i}" * (i % 3) + f"-{i}" for i in range(n)],
}


def features(n=1300, d=3, dtype="float64", seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 512 rows however few features there are, so that a small table has several."""
    monkeypatch.setattr(building, "rows_per_block", lambda n_features: 512)


@pytest.fixture(params=IDS)
def ids(request):
    make = IDS[request.param]
    return None if make is None else make(1300)


def on_disk(folder, X, ids=None, name="arms", dtype=None):
    return Table.build(Table.wrap(X, ids), folder / name, dtype=dtype or str(X.dtype), progress=False)


@pytest.fixture(params=["memory", "disk"])
def make(request, tmp_path, small_blocks):
    """A function from features and ids to a table, in memory or on disk."""
    return Table.wrap if request.param == "memory" else lambda X, ids=None: on_disk(tmp_path, X, ids)


def refusal(kind, call, *arguments, **options):
    with pytest.raises(kind) as refused:
        call(*arguments, **options)
    message = str(refused.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_and_take_are_those_of_numpy(make, ids, dtype):
    X = features(dtype=dtype)
    table = make(X, ids)
    assert (len(table), table.n_arms, table.n_features, table.dtype) == (1300, 1300, 3, np.dtype(dtype))
    for begin, end in [(0, 1300), (0, 512), (512, 1024), (1024, 1300), (0, 0), (1300, 1300), (3, 5), (500, 1100)]:
        rows = table.rows(begin, end)
        assert rows.dtype == dtype
        assert rows.flags.c_contiguous
        assert np.array_equal(rows, X[begin:end])
    rng = np.random.default_rng(1)
    for indices in [
        rng.integers(0, 1300, 4000),
        [1299, 0, 0, 7],
        [],
        np.arange(1300)[::-1],
        np.array([5], dtype=np.uint8),
    ]:
        taken = table.take(indices)
        assert taken.dtype == np.float64
        assert np.array_equal(taken, X[np.asarray(indices, dtype=int)])


def test_ids_are_those_that_were_given(make, ids):
    table = make(features(), ids)
    if ids is None:
        assert table.ids is None
        assert table.ids_of([0]) is None
        assert "has no ids" in refusal(ValueError, table.indices_of, [1])
        return
    truth = np.asarray(ids)
    assert table.ids.dtype.kind == truth.dtype.kind
    assert np.array_equal(table.ids, truth)
    indices = np.random.default_rng(2).integers(0, 1300, 3000)
    assert np.array_equal(table.ids_of(indices), truth[indices])
    assert np.array_equal(table.indices_of(truth[indices]), indices)
    assert np.array_equal(table.indices_of(truth[indices].tolist()), indices)
    for nobody in (table.ids_of([]), table.indices_of([])):
        assert nobody.shape == (0,)
    assert table.indices_of([]).dtype == np.int64


def test_unknown_ids_are_named(make):
    numbers, text = make(features(3), [5, 6, 7]), Table.wrap(features(2), ["a", "b"])
    assert refusal(ValueError, numbers.indices_of, [5, 9, 8]) == (
        "id 9 is not in the table (2 of 3 ids are not); its ids are like 5"
    )
    assert refusal(ValueError, numbers.indices_of, ["5"]) == (
        "id '5' is not in the table (1 of 1 ids are not); its ids are like 5"
    )
    assert refusal(ValueError, text.indices_of, ["b", "c"]) == (
        "id 'c' is not in the table (1 of 2 ids are not); its ids are like 'a'"
    )
    assert "whole numbers or" in refusal(ValueError, numbers.indices_of, np.array([5.0]))


@SHORT
@given(st.data())
def test_any_rows_of_a_table_on_disk_are_right(tmp_path, data):
    n, d = data.draw(st.integers(1, 1700), label="n"), data.draw(st.integers(1, 5), label="d")
    X = features(n, d, data.draw(st.sampled_from(["float32", "float64"])))
    text = (
        data.draw(
            st.lists(
                st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
                min_size=n,
                max_size=n,
                unique=True,
            )
        )
        if n < 40
        else [f"{i}" for i in range(n)]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "rows_per_block", lambda n_features: 512)
        table = on_disk(tmp_path, X, text)
    begin = data.draw(st.integers(0, n))
    end = data.draw(st.integers(begin, n))
    indices = np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=50)), dtype=np.int64)
    assert np.array_equal(table.take(indices), X[indices])
    assert np.array_equal(table.rows(begin, end), X[begin:end])
    assert table.ids_of(indices).tolist() == [text[i] for i in indices]
    assert table.indices_of([text[i] for i in indices]).tolist() == indices.tolist()


def test_rows_far_apart_and_near_are_taken_alike(tmp_path):
    X = features(9000, 40)
    table = on_disk(tmp_path, X)
    indices = np.array([0, 1, 300, 8999, 4000, 4001, 4100, 0])
    assert np.array_equal(table.take(indices), X[indices])


def test_taking_far_rows_reads_no_more_than_it_must(tmp_path, monkeypatch):
    table = on_disk(tmp_path, features(9000, 40))
    table.rows(0, 9000)
    got, real = [], os.preadv
    monkeypatch.setattr(
        os, "preadv", lambda fd, buffers, offset: got.append(sum(map(len, buffers))) or real(fd, buffers, offset)
    )
    table.take([8999, 0, 4000])
    assert got == [320, 320, 320]
    got.clear()
    table.take([100, 0, 3])
    assert got == [101 * 320]


def test_indices_and_ranges_outside_are_refused(make):
    table = make(features(10))
    for begin, end in [(-1, 3), (3, 2), (0, 11), (11, 11)]:
        assert f"got {begin} to {end}" in refusal(ValueError, table.rows, begin, end)
    assert refusal(ValueError, table.take, [3, 10]) == "indices must be from 0 to 9, got 10"
    assert refusal(ValueError, table.take, [3, -1]) == "indices must be from 0 to 9, got -1"
    assert "whole numbers" in refusal(ValueError, table.take, [True, False])
    assert "whole numbers" in refusal(ValueError, table.take, [0.5])
    assert "whole numbers" in refusal(ValueError, table.take, [[1]])
    assert "got 10" in refusal(ValueError, table.ids_of, [10])


def test_rows_cannot_be_written_to(make):
    X = features(10)
    table = make(X)
    with pytest.raises(ValueError, match="read-only"):
        table.rows(0, 2)[0, 0] = 1
    X[0, 0] += 0  # the caller's own array stays as it was
    table.take([1])[0, 0] = 5
    assert table.rows(1, 2)[0, 0] == X[1, 0]


def test_blocks_are_whole_and_about_24_mib_of_float64():
    for d in (1, 7, 50, 64, 8192, 100_000):
        rows = row_blocks.rows_per_block(d)
        size = block_size(d)
        assert rows % size == 0
        assert rows == size or rows * d * 8 <= 24 << 20
        assert (rows + size) * d * 8 > 24 << 20
    assert Table.wrap(features(d=50, dtype="float32")).block_rows == row_blocks.rows_per_block(50)


class TestWrap:
    def test_how_many_ids_stand_more_than_once_is_said(self):
        message = refusal(ValueError, Table.wrap, features(6), [1, 7, 2, 7, 7, 2])
        assert message.endswith("but 2 is in rows 2 and 5 (2 of the ids are there more than once)")

    def test_a_dask_array_is_refused(self):
        message = refusal(ValueError, Table.wrap, da.ones((3, 2)))
        assert message.startswith(
            "features must be on one machine, got a dask Array: choose from a dask array with policy"
        )

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_arrays_in_c_order_are_not_copied(self, dtype):
        X = features(dtype=dtype)
        assert np.shares_memory(Table.wrap(X).rows(5, 9), X)

    def test_a_memory_map_stays_on_disk(self, tmp_path):
        np.save(tmp_path / "x.npy", features())
        X = np.load(tmp_path / "x.npy", mmap_mode="r")
        assert np.shares_memory(Table.wrap(X).rows(5, 9), X)

    @pytest.mark.parametrize(
        "X",
        [
            np.asfortranarray(features()),
            features()[::2],
            features()[:, :2],
            features().astype(">f8"),
            features().astype("float16"),
            np.arange(12).reshape(4, 3),
            np.eye(3, dtype=bool),
            [[1, 2], [3, 4]],
        ],
    )
    def test_anything_else_becomes_float64_in_c_order(self, X):
        table = Table.wrap(X)
        assert table.dtype == np.float64
        assert table.rows(0, len(table)).flags.c_contiguous
        assert np.array_equal(table.rows(0, len(table)), np.asarray(X, dtype=np.float64))

    @pytest.mark.parametrize("X", [np.zeros(3), np.zeros((0, 3)), np.zeros((3, 0)), np.zeros((2, 2, 2)), 3.0])
    def test_wrong_shapes_are_refused(self, X):
        assert "shape (n_arms, n_features)" in refusal(ValueError, Table.wrap, X)

    def test_what_is_not_numbers_is_refused(self):
        for X in (np.array([["a"]]), np.array([[1j]]), np.ma.masked_array(np.eye(2)), [[1, 2], [3]]):
            assert refusal(ValueError, Table.wrap, X).startswith("features must be")

    def test_the_first_number_that_is_not_finite_is_named(self, monkeypatch):
        X = features(3000)
        X[2001, 1], X[2500, 0] = np.nan, np.inf
        assert refusal(ValueError, Table.wrap, X) == "features must be finite, got nan in row 2001, column 1"
        with_ids = refusal(ValueError, Table.wrap, X, [f"c{i}" for i in range(3000)])
        assert with_ids == "features must be finite, got nan in the arm of id 'c2001', column 1"
        monkeypatch.setattr("armful.tables._array_store.rows_per_block", lambda d: 512)
        assert refusal(ValueError, Table.wrap, X) == "features must be finite, got nan in row 2001, column 1"

    def test_ids_that_stand_twice_are_named(self):
        X = features(4)
        assert "but 7 is in rows 1 and 3" in refusal(ValueError, Table.wrap, X, [1, 7, 2, 7])
        assert "but 'b' is in rows 0 and 2" in refusal(ValueError, Table.wrap, X, ["b", "c", "b", "d"])

    def test_ids_must_be_one_for_each_and_of_one_kind(self):
        X = features(2)
        assert "shape (2,)" in refusal(ValueError, Table.wrap, X, [1, 2, 3])
        assert "got shape (1, 2)" in refusal(ValueError, Table.wrap, X, [[1, 2]])
        assert "int and str" in refusal(ValueError, Table.wrap, X, ["a", 1])
        assert "float64" in refusal(ValueError, Table.wrap, X, np.array([1.0, 2.0]))
        assert "bool" in refusal(ValueError, Table.wrap, X, [True, False])
        assert "NUL" in refusal(ValueError, Table.wrap, X, ["a\0", "a"])
        assert "at most" in refusal(ValueError, Table.wrap, X, np.array([1, 2**64 - 1], dtype=np.uint64))
        assert Table.wrap(X, np.array([2, 1], dtype=np.uint8)).ids.dtype == np.int64
        assert Table.wrap(X, np.array(["b", "a"], dtype=object)).ids.tolist() == ["b", "a"]

    def test_it_has_no_file(self):
        table = Table.wrap(features())
        assert table.path is None
        assert table.columns is None
        table.refuse_changed()


def test_tables_are_known_by_identity_and_can_be_let_go(make):
    X = features(10)
    first, second = make(X), Table.wrap(X)
    assert len({first, second, first}) == 2
    seen = weakref.ref(first)
    del first
    gc.collect()
    assert seen() is None


def test_the_file_is_closed_with_the_table(tmp_path):
    table = on_disk(tmp_path, features())
    path = table.path
    assert times_open(path) == 1
    del table
    gc.collect()
    assert times_open(path) == 0


def times_open(path):
    """How often this process has the file open; not how many files, since other tests leave some to the collector."""
    n = 0
    for descriptor in range(1024):
        with contextlib.suppress(OSError):
            n += os.path.samestat(os.fstat(descriptor), path.stat())
    return n


def test_many_threads_may_read_at_once(tmp_path, small_blocks):
    X = features(5000)
    table = on_disk(tmp_path, X)
    wrong = []

    def read(seed):
        rng = np.random.default_rng(seed)
        for _ in range(200):
            begin, end = np.sort(rng.integers(0, 5001, 2)).tolist()
            if not np.array_equal(table.rows(begin, end), X[begin:end]):
                wrong.append((begin, end))

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


class TestPickling:
    LOADING = """
import pickle, sys
table = pickle.load(sys.stdin.buffer)
print(repr(table), float(table.take([3, 7]).sum()), table.ids_of([2]))
"""

    def loaded(self, table):
        code, data = [sys.executable, "-c", self.LOADING], pickle.dumps(table)
        return subprocess.run(code, input=data, capture_output=True, check=True, timeout=900)

    def test_another_process_sees_the_same(self, make):
        X = features(2000)
        table = make(X, [f"a{i}" for i in range(2000)])
        done = self.loaded(table)
        assert done.stdout.decode().strip() == f"{table!r} {float(X[[3, 7]].sum())} ['a2']"

    def test_a_table_on_disk_goes_by_its_path(self, tmp_path):
        assert len(pickle.dumps(on_disk(tmp_path, features(5000)))) < 1000
        assert len(pickle.dumps(Table.wrap(features(5000)))) > 5000 * 24

    def test_a_relative_path_is_found_from_elsewhere(self, tmp_path, monkeypatch):
        on_disk(tmp_path, features())
        monkeypatch.chdir(tmp_path)
        data = pickle.dumps(Table.open("arms"))
        monkeypatch.chdir("/")
        assert len(pickle.loads(data)) == 1300

    def test_another_table_at_the_path_is_refused(self, tmp_path):
        data = pickle.dumps(on_disk(tmp_path, features()))
        on_disk(tmp_path, features(seed=1))
        assert "another table by now" in refusal(FileFormatError, pickle.loads, data)
        on_disk(tmp_path, features())  # the same content is the same table
        assert len(pickle.loads(data)) == 1300


class TestFile:
    def test_numpy_and_json_alone_read_it(self, tmp_path, small_blocks):
        X, ids = features(dtype="float32"), np.arange(1300) * 3
        on_disk(tmp_path, X, ids)
        data = (tmp_path / "arms").read_bytes()
        length, checksum, mark = struct.unpack("<QI4s", data[-16:])
        footer = json.loads(data[-16 - length : -16])
        assert (data[:8], data[8:16], mark) == (b"ARMTABLE", (1).to_bytes(8, "little"), b"ATBL")
        assert checksum == zlib.crc32(data[-16 - length : -16])
        assert {name: footer[name] for name in ("n_arms", "n_features", "dtype", "block_rows", "columns")} == {
            "n_arms": 1300,
            "n_features": 3,
            "dtype": "float32",
            "block_rows": 512,
            "columns": None,
        }
        assert np.array_equal(np.memmap(tmp_path / "arms", "<f4", "r", 16, (1300, 3)), X)
        part = footer["sections"]["ids"]
        assert np.array_equal(np.frombuffer(data, "<i8", 1300, part["offset"]), ids)
        for part in footer["sections"].values():
            stretch = data[part["offset"] :][: part["bytes"]]
            pieces = [stretch[i : i + part["block"]] for i in range(0, part["bytes"], part["block"])]
            assert [zlib.crc32(piece) for piece in pieces] == part["crc32"]
        assert sum(part["bytes"] for part in footer["sections"].values()) == len(data) - 32 - length

    def test_strings_are_read_by_their_offsets(self, tmp_path):
        names = ["ann", "", "zoë", "日本"]
        on_disk(tmp_path, features(4), names)
        data = (tmp_path / "arms").read_bytes()
        sections = json.loads(data[-16 - struct.unpack("<Q", data[-16:-8])[0] : -16])["sections"]
        begins = np.frombuffer(data, "<u8", 5, sections["id_begins"]["offset"]).tolist()
        text = data[sections["id_text"]["offset"] :]
        assert [text[a:b].decode() for a, b in pairwise(begins)] == names

    def test_opening_reads_no_features(self, tmp_path, monkeypatch):
        on_disk(tmp_path, features(200_000))
        got, real = [], os.preadv
        monkeypatch.setattr(
            os, "preadv", lambda fd, buffers, offset: got.append(sum(map(len, buffers))) or real(fd, buffers, offset)
        )
        table = Table.open(tmp_path / "arms")
        assert sum(got) < 1000
        assert repr(table) == f"Table(n_arms=200000, n_features=3, dtype=float64, path='{tmp_path / 'arms'}')"
        assert table.path == tmp_path / "arms"

    def test_each_block_is_verified_once(self, tmp_path, small_blocks, monkeypatch):
        table = on_disk(tmp_path, features())
        seen, real = [], zlib.crc32
        monkeypatch.setattr(zlib, "crc32", lambda data: seen.append(len(data)) or real(data))
        table.rows(0, 512)
        table.take([3, 600])
        table.rows(0, 1300)
        table.rows(3, 1200)
        assert seen == [512 * 24, 512 * 24, 276 * 24]

    def test_a_missing_file_is_missing(self, tmp_path):
        message = refusal(FileNotFoundError, Table.open, tmp_path / "nowhere")
        assert message.startswith(f"{tmp_path / 'nowhere'} does not exist: build")

    def test_what_is_no_path_is_refused(self):
        assert refusal(ValueError, Table.open, None) == "path must be the name of a file, got NoneType"
        assert refusal(ValueError, Table.build, features(), None) == "path must be the name of a file, got NoneType"

    def test_a_file_that_may_not_be_read_is_said_to_be_so(self, tmp_path, monkeypatch):
        def refuse(*_):
            raise PermissionError(errno.EACCES, "Permission denied", "arms")

        monkeypatch.setattr(table_file.os, "open", refuse)
        assert refusal(PermissionError, Table.open, "arms") == "no permission to read arms: ask its owner"

    def test_what_is_no_table_is_refused(self, tmp_path):
        assert "is a folder" in refusal(FileFormatError, Table.open, tmp_path)
        for content in (b"a,b\n1,2\n" * 10, b"x", b"PAR1" * 100):
            (tmp_path / "other").write_bytes(content)
            assert "is not an armful table" in refusal(FileFormatError, Table.open, tmp_path / "other")

    def test_a_later_version_is_refused(self, tmp_path):
        on_disk(tmp_path, features())
        data = bytearray((tmp_path / "arms").read_bytes())
        data[8] = 2
        (tmp_path / "arms").write_bytes(data)
        assert "has layout version 2; this armful reads version 1: upgrade" in refusal(
            FileFormatError, Table.open, tmp_path / "arms"
        )

    def test_a_footer_that_makes_no_sense_is_refused(self, tmp_path):
        on_disk(tmp_path, features())
        data = (tmp_path / "arms").read_bytes()
        length = struct.unpack("<Q", data[-16:-8])[0]
        good = json.loads(data[-16 - length : -16])
        wrong = [
            {},
            [],
            3,
            good | {"n_arms": 7},
            good | {"dtype": "int8"},
            good | {"sections": {}},
            good | {"n_arms": None},
        ]
        wrong.append(good | {"sections": {"features": good["sections"]["features"] | {"crc32": []}}})
        for footer in [json.dumps(other).encode() for other in wrong] + [b"no json", b"\xff"]:
            end = struct.pack("<QI4s", len(footer), zlib.crc32(footer), b"ATBL")
            (tmp_path / "arms").write_bytes(data[: -16 - length] + footer + end)
            assert "has an invalid footer" in refusal(FileFormatError, Table.open, tmp_path / "arms")

    def test_a_file_cut_anywhere_is_refused(self, tmp_path):
        on_disk(tmp_path, features(4), ["a", "b", "c", "d"])
        whole = (tmp_path / "arms").read_bytes()
        for length in range(len(whole)):
            (tmp_path / "cut").write_bytes(whole[:length])
            assert "is incomplete" in refusal(FileFormatError, Table.open, tmp_path / "cut")

    def test_a_file_with_a_tail_is_refused(self, tmp_path):
        on_disk(tmp_path, features(4))
        with (tmp_path / "arms").open("ab") as file:
            file.write(b"more")
        assert "is incomplete" in refusal(FileFormatError, Table.open, tmp_path / "arms")

    @pytest.mark.parametrize("kind", ["none", "numbers", "text"])
    def test_a_changed_byte_anywhere_is_noticed(self, tmp_path, small_blocks, kind):
        make_ids = IDS[kind]
        on_disk(tmp_path, features(), make_ids and make_ids(1300))
        whole = (tmp_path / "arms").read_bytes()
        path = tmp_path / "damaged"

        def read():
            table = Table.open(path)
            return table.rows(0, 1300), table.ids

        def notice(position, change):
            damaged = bytearray(whole)
            damaged[position] ^= change
            path.write_bytes(damaged)
            assert str(path) in refusal(FileFormatError, read)

        length = struct.unpack("<Q", whole[-16:-8])[0]
        for position in [*range(16), *range(len(whole) - 16 - length, len(whole))]:
            notice(position, 0x41)

        @SHORT
        @given(st.integers(0, len(whole) - 1), st.integers(1, 255))
        def anywhere(position, change):
            notice(position, change)

        anywhere()

    def test_a_damaged_block_is_named_whichever_way_it_is_read(self, tmp_path, small_blocks):
        X = features()
        on_disk(tmp_path, X)
        with (tmp_path / "arms").open("r+b") as file:
            file.seek(16 + 600 * 24)
            file.write(b"?")
        for read in (
            lambda t: t.rows(512, 1024),
            lambda t: t.rows(1000, 1001),
            lambda t: t.take([513]),
            lambda t: t.rows(0, 1300),
        ):
            table = Table.open(tmp_path / "arms")
            assert np.array_equal(table.rows(0, 512), X[:512])
            for _ in range(2):
                message = refusal(FileFormatError, read, table)
                assert "is damaged in block 1 of its features: build it again" in message
            assert np.array_equal(table.take([1100, 3]), X[[1100, 3]])


class TestChanges:
    def test_a_change_in_place_is_refused(self, tmp_path):
        table = on_disk(tmp_path, features())
        table.refuse_changed()
        with (tmp_path / "arms").open("r+b") as file:
            file.seek(100)
            file.write(b"?")
        os.utime(tmp_path / "arms", ns=(0, 10**18))
        assert "was changed in place" in refusal(FileFormatError, table.refuse_changed)

    def test_a_longer_file_is_refused_though_its_time_is_the_same(self, tmp_path):
        table = on_disk(tmp_path, features())
        status = os.stat(tmp_path / "arms")
        with (tmp_path / "arms").open("ab") as file:
            file.write(b"?")
        os.utime(tmp_path / "arms", ns=(status.st_atime_ns, status.st_mtime_ns))
        assert "was changed in place" in refusal(FileFormatError, table.refuse_changed)

    def test_a_file_cut_while_it_is_open_is_refused(self, tmp_path):
        table = on_disk(tmp_path, features())
        os.truncate(tmp_path / "arms", 5000)
        assert "was cut off" in refusal(FileFormatError, table.rows, 0, 1300)
        assert "was changed in place" in refusal(FileFormatError, table.refuse_changed)

    def test_a_table_that_was_replaced_or_removed_goes_on(self, tmp_path):
        X = features()
        old = on_disk(tmp_path, X)
        new = on_disk(tmp_path, X + 1)
        Path(tmp_path / "arms").unlink()
        for table, truth in ((old, X), (new, X + 1)):
            table.refuse_changed()
            assert np.array_equal(table.rows(0, 1300), truth)

    def test_a_disk_that_fails_is_named(self, tmp_path, monkeypatch):
        table = on_disk(tmp_path, features())

        def failing(*_):
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(os, "preadv", failing)
        with pytest.raises(OSError, match="arms could not be read: Input/output error; check its disk") as failed:
            table.rows(0, 5)
        assert failed.value.errno == 5

    def test_a_read_that_returns_in_pieces_is_joined(self, tmp_path, monkeypatch):
        X = features()
        table = on_disk(tmp_path, X)
        real = os.preadv
        monkeypatch.setattr(os, "preadv", lambda fd, buffers, offset: real(fd, [buffers[0][:1000]], offset))
        assert np.array_equal(table.rows(0, 1300), X)

    def test_a_system_without_positioned_reads_reads_the_same_in_many_threads(self, tmp_path, monkeypatch):
        """Windows has no preadv: one position in the file is shared by all threads."""
        monkeypatch.delattr(os, "preadv")
        X = features(60_000, 5)
        table = on_disk(tmp_path, X, [f"id {i}" for i in range(len(X))])
        starts = np.random.default_rng(0).integers(0, len(X) - 700, 300).tolist()
        with ThreadPoolExecutor(8) as pool:
            for begin, rows in zip(starts, pool.map(lambda i: table.rows(i, i + 700), starts), strict=True):
                assert np.array_equal(rows, X[begin : begin + 700])
        assert table.ids_of([0, 59_999]).tolist() == ["id 0", "id 59999"]
        os.truncate(tmp_path / "arms", 5000)
        assert "was cut off" in refusal(FileFormatError, table.rows, 0, 1300)


def test_a_table_needs_neither_pyarrow_nor_rich_until_it_is_built():
    code = "import sys, armful.tables.table; print({'pyarrow', 'rich', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=900)
    assert done.stdout.strip() == "set()"
