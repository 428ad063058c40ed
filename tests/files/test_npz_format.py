import io
import json
import os
import pickle
import warnings
import zipfile

import numpy as np
import pytest

import armful
from armful import FileFormatError
from armful.files import _npz_format as npz_format

ARRAYS = {"root": np.arange(12.0).reshape(3, 4), "n": np.array(3.0)}


def written(path):
    npz_format.write(path, "thing", {"size": 3, "nested": {"name": "x", "none": None}}, ARRAYS)
    return path


def npz(path, **arrays):
    with open(path, "wb") as file:
        np.savez(file, **arrays)
    return path


def header(**changes):
    return np.array(json.dumps({"format": "armful", "kind": "thing", "version": npz_format.VERSION} | changes))


def refusal(path, kind="thing"):
    with pytest.raises(FileFormatError) as refused:
        npz_format.read(path, kind)
    message = str(refused.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message.removeprefix(str(path)).strip()


def test_what_is_written_is_read(tmp_path):
    head, arrays = npz_format.read(written(tmp_path / "file"), "thing")
    assert head == {
        "format": "armful",
        "kind": "thing",
        "version": npz_format.VERSION,
        "size": 3,
        "nested": {"name": "x", "none": None},
    }
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert np.array_equal(arrays[name], array)


def test_the_format_is_open_numpy_and_json_alone_read_it(tmp_path):
    with np.load(written(tmp_path / "file.npz"), allow_pickle=False) as file:
        assert json.loads(str(file["header.json"]))["size"] == 3
        assert np.array_equal(file["root"], ARRAYS["root"])


def test_numbers_and_arrays_of_numpy_may_stand_in_the_header(tmp_path):
    options = {"a": np.int64(3), "b": np.float32(0.5), "c": np.arange(3), "d": np.bool_(True)}
    npz_format.write(tmp_path / "file", "thing", options, {})
    head, _ = npz_format.read(tmp_path / "file", "thing")
    assert [head[name] for name in "abcd"] == [3, 0.5, [0, 1, 2], True]


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path):
    written(tmp_path / "file")
    with pytest.raises(TypeError):
        npz_format.write(tmp_path / "file", "thing", {"bad": object()}, ARRAYS)
    with pytest.raises(ValueError):
        npz_format.write(tmp_path / "file", "thing", {}, {"bad": np.array([object()])})
    assert os.listdir(tmp_path) == ["file"]
    npz_format.read(tmp_path / "file", "thing")


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        npz_format.read(tmp_path / "nowhere", "thing")


def test_a_file_cut_anywhere_is_refused(tmp_path):
    whole = written(tmp_path / "file").read_bytes()
    for length in (*range(0, 200), *range(200, len(whole), 37), len(whole) - 1):
        (tmp_path / "cut").write_bytes(whole[:length])
        assert refusal(tmp_path / "cut") == "is not an armful file, or it is damaged"


def test_a_flipped_byte_is_refused_or_changes_nothing(tmp_path):
    whole = written(tmp_path / "file").read_bytes()
    for position in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[position] ^= 0x55
        (tmp_path / "damaged").write_bytes(damaged)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # zipfile may warn of a name; what is read counts
            try:
                head, arrays = npz_format.read(tmp_path / "damaged", "thing")
            except FileFormatError:
                continue
        assert head["size"] == 3
        for name in arrays.keys() & ARRAYS.keys():
            assert np.array_equal(arrays[name], ARRAYS[name])


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "file"
    damaged = "is not an armful file, or it is damaged"
    path.write_bytes(pickle.dumps({"root": 1}))
    assert refusal(path) == damaged
    path.write_text("a,b\n1,2\n")
    assert refusal(path) == damaged
    path.write_bytes(b"")
    assert refusal(path) == damaged
    with open(path, "wb") as file:
        np.save(file, np.ones(3))
    assert refusal(path) == damaged
    assert refusal(npz(path, root=np.ones(3))) == damaged
    assert refusal(npz(path, **{"header.json": np.array("no json")})) == damaged
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    assert refusal(path) == damaged
    with pytest.raises(IsADirectoryError):
        npz_format.read(tmp_path, "thing")


def test_a_pickle_hidden_in_the_archive_is_not_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "sprung"),))

    inside = io.BytesIO()
    np.save(inside, np.array([Trap()], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(npz(tmp_path / "file", **{"header.json": header()}), "a") as archive:
        archive.writestr("root.npy", inside.getvalue())
    assert refusal(tmp_path / "file") == "is not an armful file, or it is damaged"
    assert not (tmp_path / "sprung").exists()


def test_headers_of_others_are_refused(tmp_path):
    path = tmp_path / "file"
    assert refusal(npz(path, **{"header.json": header(format="other")})) == "is not an armful file"
    assert refusal(npz(path, **{"header.json": np.array("[1, 2]")})) == "is not an armful file"
    assert refusal(npz(path, **{"header.json": header(kind="state")})) == "holds a state, expected a thing"
    assert refusal(npz(path, **{"header.json": header(version=npz_format.VERSION + 1)})) == (
        f"has layout version {npz_format.VERSION + 1}; this armful reads version {npz_format.VERSION}: upgrade armful"
    )


def test_a_path_where_no_file_can_be_is_named_as_given(tmp_path):
    policy = armful.C2UCB(n_features=2)
    with pytest.raises(IsADirectoryError, match=rf"^{tmp_path} is a folder; give the name of a file in it$"):
        policy.save(tmp_path)
    with pytest.raises(FileNotFoundError, match=rf"^there is no folder {tmp_path}/none to write p.npz to$"):
        policy.save(tmp_path / "none" / "p.npz")
    with pytest.raises(FileNotFoundError, match=rf"^{tmp_path}/p.npz does not exist$"):
        armful.load(tmp_path / "p.npz")
    with pytest.raises(IsADirectoryError, match=rf"^{tmp_path} is a folder; a file that armful saved is expected$"):
        armful.load(tmp_path)


@pytest.mark.parametrize("path", [3, None, 1.5, ["policy.npz"]])
def test_what_is_no_path_is_refused(path):
    for attempt in (lambda: written(path), lambda: npz_format.read(path, "thing")):
        with pytest.raises(ValueError, match=r"^expected the path of a file, got "):
            attempt()
