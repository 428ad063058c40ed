"""The file format of armful: a zip of .npy arrays (numpy's .npz) with a JSON header, never pickle.

Any program that reads .npz reads them. The header is the array `header.json`, a string; its `kind` is the type of what
the file holds, its `version` that of the layout.
"""

import io
import json
import math
import os
import re
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from armful.errors import FileFormatError
from armful.files._atomic_file import kind_of, replacing

VERSION = 1
MOST_MEMBERS = 100
MOST_ENTRIES = 1 << 40
"""Along an axis: an empty array may declare long axes without taking room in the file."""
ARRAY_HEADER = re.compile(
    r"\{'descr': '([^']+)', 'fortran_order': (True|False), 'shape': \(((?:[0-9]{1,18}(?:, ?|(?=\))))*)\), \} *\n"
)
LONGEST_ARRAY_HEADER = 10_000
LONGEST_QUOTE = 200
"""Characters of a value from a file that an error message repeats."""
Arrays = Mapping[str, NDArray[Any]]


def write(path: str | os.PathLike[str], kind: str, header: Mapping[str, Any], arrays: Arrays) -> None:
    """Write the file, replacing an older one at `path` atomically."""
    target = _path(path)
    text = json.dumps({"format": "armful", "kind": kind, "version": VERSION, **header}, default=_as_json)
    members = {"header.json": np.array(text), **arrays}
    with replacing(target) as part:
        part.needs = sum(array.nbytes for array in members.values())
        with os.fdopen(part.descriptor, "wb", closefd=False) as file, zipfile.ZipFile(file, "w") as archive:
            for name, array in members.items():
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a file of this `kind`; raise FileFormatError for any other file.

    Declared sizes are compared with that of the file before anything is read, and the header is checked before the
    arrays: so no file takes more memory than its own size.
    """
    path = _path(path)
    try:
        _refuse_special(path)
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            members = _members(archive, os.fstat(file.fileno()).st_size)
            header = json.loads(str(_array(archive, members.pop("header.json"))))
            _refuse_header(path, header, kind)
            return header, {name: _array(archive, member) for name, member in members.items()}
    except FileFormatError:
        raise
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"{path} is a folder; a file that armful saved is expected") from None
    except PermissionError:
        raise PermissionError(f"no permission to read {path}") from None
    except Exception:  # numpy, zipfile and zlib meet damage with a dozen kinds of exception
        raise FileFormatError(f"{path} is not an armful file, or it is damaged") from None


def read_arrays(data: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of an .npz in memory, numbers and strings; raise FileFormatError if it is damaged."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {name: _array(archive, member) for name, member in _members(archive, len(data)).items()}
    except Exception:  # as in `read`
        raise FileFormatError("the arrays are damaged") from None


def short(value: object) -> str:
    """Return a value from a file for an error message: on one line, and cut if it is long."""
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}..."


def _refuse_special(path: Path) -> None:
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(path)
    if not stat.S_ISREG(mode):  # opening a pipe may wait for ever
        raise FileFormatError(f"{path} is a {kind_of(mode)}; a file that armful saved is expected")


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name; raise ValueError if they cannot all be in a file of this size."""
    members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
    stored = all(member.compress_type == zipfile.ZIP_STORED for member in members.values())
    if not stored or len(members) != len(archive.infolist()) or len(members) > MOST_MEMBERS:
        raise ValueError("compressed, twice the same name, or too many")
    if sum(member.file_size for member in members.values()) > size:
        raise ValueError("larger than the file")
    return members


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """Return an array of numbers or a string; raise ValueError if its declared size is not that of the member."""
    with archive.open(member) as file:
        shape, by_columns, dtype = _array_header(file)
        n_bytes = member.file_size - file.tell()
        if dtype.hasobject or dtype.kind not in "biufU" or min(shape, default=0) < 0:
            raise ValueError("not numbers")
        if math.prod(shape) * dtype.itemsize != n_bytes or max(shape, default=0) > MOST_ENTRIES:
            raise ValueError("of another size")
        data = file.read(n_bytes)
        if file.read(1) or len(data) != n_bytes:  # reading to the end also checks the checksum
            raise ValueError("cut off")
    array = np.frombuffer(bytearray(data), dtype=dtype)
    return array.reshape(shape, order="F" if by_columns else "C")


def _array_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return the shape of an array, whether it is stored by columns, and its dtype; raise if there is no such header.

    numpy's own reader uses `ast`, which fails now and then where several threads use it in Python 3.11.
    """
    n_bytes_of_size = {(1, 0): 2, (2, 0): 4}[np.lib.format.read_magic(file)]
    size = int.from_bytes(file.read(n_bytes_of_size), "little")
    found = ARRAY_HEADER.fullmatch(file.read(min(size, LONGEST_ARRAY_HEADER)).decode("latin1"))
    if found is None:
        raise ValueError("not the header of an array")
    dtype, by_columns, shape = found.groups()
    return tuple(int(length) for length in shape.split(",") if length.strip()), by_columns == "True", np.dtype(dtype)


def _refuse_header(path: Path, header: Any, kind: str) -> None:
    if not isinstance(header, dict) or header.get("format") != "armful":
        raise FileFormatError(f"{path} is not an armful file")
    version = header.get("version")
    if version != VERSION:
        raise FileFormatError(
            f"{path} has layout version {short(version)}; this armful reads version {VERSION}: upgrade armful"
        )
    if header.get("kind") != kind:
        raise FileFormatError(f"{path} holds a {short(header.get('kind'))}, expected a {kind}")


def _path(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path)
    except TypeError:
        raise ValueError(f"expected the path of a file, got {path!r}") from None


def _as_json(value: object) -> object:
    """Return numbers and arrays of numpy, which json does not know, as numbers and lists."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")
