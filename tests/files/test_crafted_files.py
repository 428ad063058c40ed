"""Files that somebody made up: refused in one sentence, in no more memory than their own size."""

import io
import json
import os
import subprocess
import sys
import threading
import zipfile
import zlib
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armful
from armful import C2UCB, CappedC2UCB, FileFormatError, RidgeState, Table, TopK
from armful.tables._table_file import END, END_MARK, START
from armful.testing._expectations import expect_close

D = 3
DEEP = "[" * 100_000 + "]" * 100_000
NUMBERS = [-1, 0, 1.5, 2**70, 10**6, float("nan"), float("inf"), True, None, "3", [], {}, [[]]]


def refusal(read, *arguments):
    with pytest.raises(FileFormatError) as refused:
        read(*arguments)
    message = str(refused.value)
    assert "\n" not in message
    assert len(message) < 600
    return message


# -- policies and states ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def policy_bytes(tmp_path_factory):
    path = tmp_path_factory.mktemp("policy") / "policy"
    policy = CappedC2UCB(n_features=D, cap=1.0, seed=0)
    policy.learn(np.eye(D), np.ones(D))
    policy.save(path)
    return path.read_bytes()


def npy(array=None, *, header=None, data=b""):
    """The bytes of an array; or of one whose header says what it likes."""
    file = io.BytesIO()
    if header is None:
        np.lib.format.write_array(file, np.asarray(array), allow_pickle=True)
        return file.getvalue()
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def rewritten(content, path, *, header=None, members=None, raw=None, compression=zipfile.ZIP_STORED):
    """The file with changes: keys of its JSON header, its members (bytes, or None for none), its header as it is."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        inside = {name: archive.read(name) for name in archive.namelist()}
    header_values = json.loads(str(np.load(io.BytesIO(inside["header.json.npy"]))))
    inside["header.json.npy"] = npy(np.array(json.dumps(header_values | (header or {})) if raw is None else raw))
    inside |= members or {}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in inside.items():
            if data is not None:
                archive.writestr(name, data)
    return path


def of_shape(shape, dtype="<f8", data=b""):
    return npy(header=f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}", data=data)


@pytest.mark.parametrize(
    "changes",
    [
        {"raw": DEEP},
        {"raw": '{"format": "armful", "kind": ' + DEEP + "}"},
        {"raw": "1" * 10_000},
        {"raw": ""},
        {"raw": '{"format": "armful"'},
        {"raw": "[]"},
        {"header": {"options": json.loads("[" * 500 + "]" * 500)}},
        {"header": {"class": "x" * 10_000}},
        {"header": {"class": "a\nb"}},
        {"header": {"kind": "a\nb" * 1000}},
        {"header": {"version": [1] * 1000}},
        {"header": {"generator": {"bit_generator": "MT19937", "state": {"key": [0] * 624, "pos": -5}}}},
        {"header": {"generator": {"bit_generator": "MT19937", "state": {"key": [0] * 624, "pos": 10**6}}}},
        {"header": {"generator": {"bit_generator": "Philox", "buffer_pos": -9, "state": {}}}},
        {"header": {"generator": {"bit_generator": "BitGenerator"}}},
        {"header": {"generator": {"bit_generator": "__name__"}}},
        {"members": {"root.npy": None}},
        {"members": {"n.npy": npy(np.array("three"))}},
        {"members": {"n.npy": npy(np.zeros(10**5))}},
        {"members": {"n.npy": npy(np.array(np.nan))}},
        {"members": {"n.npy": npy(np.array(-1.0))}},
        {"members": {"root.npy": npy(np.zeros((4, 4), dtype=np.float32))}},
        {"members": {"root.npy": npy(np.full((4, 4), 1e308))}},
        {"members": {"root.npy": npy(np.full((4, 4), 1e200)), "solved.npy": npy(np.full((4, 4), 1e200))}},
        {"members": {"solved.npy": npy(np.zeros((4, 4)))}},
        {"members": {"root.npy": npy(np.array([object()], dtype=object))}},
        {"members": {"root.npy": of_shape("(1000000, 1000000)")}},
        {"members": {"root.npy": of_shape("(4, 4)", data=b"1234")}},
        {"members": {"root.npy": of_shape("(4, 4)", data=bytes(200))}},
        {"members": {"root.npy": of_shape("(0, 10**9)")}},
        {"members": {"root.npy": of_shape("(0, 1000000000000000000000)")}},
        {
            "members": {
                "root.npy": of_shape("(0, 1000000, 1000000)"),
                "solved.npy": of_shape("(0, 1000000, 1000000)"),
                "rows.npy": of_shape("(0, 0, 1000000)"),
                "n.npy": of_shape("(0,)"),
            }
        },
        {"members": {"root.npy": of_shape("(-4, -4)", data=bytes(128))}},
        {"members": {"root.npy": of_shape("(4.0, 4)", data=bytes(128))}},
        {"members": {"root.npy": of_shape("(4, 4)", dtype="O", data=bytes(128))}},
        {"members": {"root.npy": of_shape("(16,)", dtype="M8[s]", data=bytes(128))}},
        {"members": {"root.npy": of_shape("(), )")}},
        {"members": {"root.npy": npy(header="[" * 5000 + "]" * 5000)}},
        {"members": {"root.npy": b""}},
        {"members": {f"{i}.npy": npy(np.zeros(1)) for i in range(200)}},
        {"compression": zipfile.ZIP_DEFLATED},
    ],
)
def test_a_made_up_policy_is_refused(tmp_path, policy_bytes, changes):
    path = rewritten(policy_bytes, tmp_path / "policy", **changes)
    assert str(path) in refusal(armful.load, path)


@pytest.mark.parametrize("value", NUMBERS, ids=repr)
@pytest.mark.parametrize("name", ["n_features", "ridge"])
def test_a_made_up_number_is_refused(tmp_path, policy_bytes, name, value):
    header = {"ridge": value} if name == "ridge" else {"options": {"n_features": value, "cap": 1.0}}
    path = rewritten(policy_bytes, tmp_path / "policy", header=header)
    if name == "ridge" and value == 1.5:
        assert refusal(armful.load, path) == f"{path} does not hold a consistent ridge state"
    refusal(armful.load, path)


def test_a_member_that_stands_twice_is_refused(tmp_path, policy_bytes):
    path = rewritten(policy_bytes, tmp_path / "policy")
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("n.npy", npy(np.array(7.0)))
    refusal(armful.load, path)


def test_a_small_file_that_unpacks_to_much_is_refused_before_it_is_unpacked(tmp_path, policy_bytes):
    """Compressed zeros, and members that share their bytes."""
    zeros = of_shape("(25000000,)", data=bytes(200_000_000))
    path = rewritten(policy_bytes, tmp_path / "bomb", members={"n.npy": zeros}, compression=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 1_000_000
    refusal(armful.load, path)
    path = tmp_path / "shared"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json.npy", npy(np.array("{}")))
        archive.writestr("root.npy", npy(np.zeros(10_000)))
        for i in range(90):
            again = zipfile.ZipInfo(f"{i}.npy")
            root = archive.getinfo("root.npy")
            again.header_offset, again.CRC = root.header_offset, root.CRC
            again.file_size = again.compress_size = root.file_size
            archive.filelist.append(again)
            archive.NameToInfo[again.filename] = again
    refusal(armful.load, path)


MEMORY = """
import resource, sys, armful
armful.C2UCB(n_features=2).choose([[1.0, 2.0]], armful.TopK(1))
resource.setrlimit(resource.RLIMIT_AS, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + (900 << 20),) * 2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[1:]:
    try:
        armful.load(path) if path.endswith("policy") else armful.Table.open(path)
    except armful.FileFormatError as error:
        print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.slow
def test_declared_sizes_take_no_memory(tmp_path, policy_bytes, table_bytes):
    paths = [
        rewritten(policy_bytes, tmp_path / "1.policy", members={"root.npy": of_shape("(10000, 10000)")}),
        rewritten(policy_bytes, tmp_path / "2.policy", header={"options": {"n_features": 20_000, "cap": 1.0}}),
        with_footer(table_bytes, tmp_path / "3.table", n_arms=10**9),
        with_footer(table_bytes, tmp_path / "4.table", n_features=10**9),
    ]
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, *map(str, paths)], capture_output=True, text=True, check=True, timeout=120
    )
    *refused, grown = done.stdout.splitlines()
    assert len(refused) == len(paths)
    assert int(grown) < 30


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for read in (armful.load, RidgeState.load, Table.open):
        found = []
        thread = threading.Thread(target=lambda r=read, f=found: f.append(refusal(r, tmp_path / "pipe")), daemon=True)
        thread.start()
        thread.join(60)
        assert found
        assert "is a pipe" in found[0]


# -- tables ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table_bytes(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "table"
    Table.build(Table.wrap(np.arange(40.0).reshape(20, 2), [f"id{i}" for i in range(20)]), path, progress=False)
    return path.read_bytes()


def split(content):
    length, _, _ = END.unpack(content[-END.size :])
    return content[: -END.size - length], json.loads(content[-END.size - length : -END.size])


def with_text(body, text, path):
    path.write_bytes(body + text + END.pack(len(text), zlib.crc32(text), END_MARK))
    return path


def with_footer(content, path, section=None, **changes):
    """The table with a changed footer that has the right checksum, or a changed section of it."""
    body, footer = split(content)
    (footer if section is None else footer["sections"][section]).update(changes)
    return with_text(body, json.dumps(footer).encode(), path)


def read_all(path):
    """Open, and read everything that is there."""
    table = Table.open(path)
    table.take(np.arange(min(table.n_arms, 1000)))
    table.ids_of(np.arange(min(table.n_arms, 1000)))
    return table


@pytest.mark.parametrize("value", NUMBERS, ids=repr)
@pytest.mark.parametrize("name", ["n_arms", "n_features", "block_rows", "dtype", "columns", "sections"])
def test_a_made_up_footer_is_refused(tmp_path, table_bytes, name, value):
    path = with_footer(table_bytes, tmp_path / "table", **{name: value})
    harmless = (name == "columns" and value is None) or (name == "block_rows" and value == 10**6)
    if harmless and value is not True:
        read_all(path)
    else:
        assert refusal(Table.open, path) == f"{path} has an invalid footer: build it again from its source"


@pytest.mark.parametrize("value", [*NUMBERS, 10**9, [-1], [1.5], ["a"], [DEEP[:9]]], ids=repr)
@pytest.mark.parametrize("name", ["offset", "bytes", "block", "crc32"])
@pytest.mark.parametrize("section", ["features", "id_begins", "id_text"])
def test_a_made_up_section_is_refused(tmp_path, table_bytes, section, name, value):
    path = with_footer(table_bytes, tmp_path / "table", section, **{name: value})
    try:
        table = read_all(path)
    except FileFormatError:
        pass
    else:  # one block may be as large as it likes, and need not be the natural one
        assert name == "block"
        expect_close(table.take([3]), [[6.0, 7.0]], "features")


@pytest.mark.parametrize("text", [DEEP, "", "{", "[]", "null", "1" * 9999, '{"n_arms": ' + DEEP + "}", "\xff\xfe"])
def test_a_footer_that_is_no_footer_is_refused(tmp_path, table_bytes, text):
    body, _ = split(table_bytes)
    refusal(Table.open, with_text(body, text.encode("latin-1"), tmp_path / "table"))


@pytest.mark.parametrize("begins", [[2**63, 5], [5, 3, 9], [0, 2**64 - 1], [10**12, 10**12]])
def test_ids_that_begin_anywhere_are_refused(tmp_path, table_bytes, begins):
    body, footer = split(table_bytes)
    stretch = footer["sections"]["id_begins"]
    values = np.frombuffer(body, "<u8", 21, stretch["offset"]).copy()
    values[4 : 4 + len(begins)] = begins
    body = body[: stretch["offset"]] + values.tobytes() + body[stretch["offset"] + stretch["bytes"] :]
    stretch["crc32"] = [zlib.crc32(values.tobytes())]
    refusal(read_all, with_text(body, json.dumps(footer).encode(), tmp_path / "table"))


def test_ids_that_are_no_text_are_refused(tmp_path, table_bytes):
    body, footer = split(table_bytes)
    stretch = footer["sections"]["id_text"]
    text = b"\xff" * stretch["bytes"]
    body = body[: stretch["offset"]] + text + body[stretch["offset"] + stretch["bytes"] :]
    stretch["crc32"] = [zlib.crc32(text)]
    refusal(read_all, with_text(body, json.dumps(footer).encode(), tmp_path / "table"))


def test_an_end_that_says_anything_is_refused(tmp_path, table_bytes):
    for length in (0, 1, len(table_bytes), 2**40, 2**64 - 1):
        path = tmp_path / "table"
        path.write_bytes(table_bytes[: -END.size] + END.pack(length, zlib.crc32(b""), END_MARK))
        refusal(Table.open, path)
    path.write_bytes(table_bytes[: START.size])
    refusal(Table.open, path)


# -- anything --------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(key=st.sampled_from(["class", "options", "ridge", "generator", "kind", "version", "format"]), value=JSON)
def test_any_value_in_the_header_of_a_policy_is_refused_or_fits(tmp_path_factory, policy_bytes, key, value):
    path = rewritten(policy_bytes, tmp_path_factory.getbasetemp() / "any-policy", header={key: value})
    try:
        policy = armful.load(path)
    except FileFormatError:
        return
    assert len(policy.choose(np.eye(D), TopK(1))) == 1


@settings(max_examples=150, deadline=None)
@given(key=st.sampled_from(["n_arms", "n_features", "dtype", "block_rows", "columns", "sections"]), value=JSON)
def test_any_value_in_the_footer_of_a_table_is_refused_or_fits(tmp_path_factory, table_bytes, key, value):
    path = with_footer(table_bytes, tmp_path_factory.getbasetemp() / "any-table", **{key: value})
    try:
        table = read_all(path)
    except FileFormatError:
        return
    assert len(C2UCB(n_features=2, ridge=1.0).choose(table, TopK(1))) == 1


@pytest.mark.parametrize("kind", ["policy", "table"])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_changed_bytes_are_refused_or_change_nothing_that_is_used(
    tmp_path_factory, policy_bytes, table_bytes, kind, data
):
    content = policy_bytes if kind == "policy" else table_bytes
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.sampled_from([0, 0, 0, 1, 17, 100]))
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(damaged[: len(damaged) - cut])
    with suppress(FileFormatError):
        armful.load(path) if kind == "policy" else read_all(path)
