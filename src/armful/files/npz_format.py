"""The files armful writes: a zip of .npy arrays (numpy's own .npz) with a JSON header, never pickle.

Anything that reads .npz reads them. The header is the array `header.json`, a string, and says what the
file holds (`kind`) and by which version of the layout it was written (`version`).
"""

import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.errors import FileFormatError
from armful.files.atomic_file import replacing

VERSION = 1
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
    """The header and the arrays of a file of this `kind`; `FileFormatError` says what is wrong with another."""
    path = _path(path)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            contents = {name: archive[name] for name in archive.files}
        header = json.loads(str(contents.pop("header.json")))
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is not there") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"{path} is a folder; a file that armful saved is expected") from None
    except PermissionError:
        raise PermissionError(f"there is no right to read {path}") from None
    except Exception:  # numpy, zipfile and zlib meet damage with a dozen kinds of exception
        raise FileFormatError(f"{path} is not an armful file, or it is damaged") from None
    if not isinstance(header, dict) or header.get("format") != "armful":
        raise FileFormatError(f"{path} is not an armful file")
    if header.get("version") != VERSION:
        raise FileFormatError(
            f"{path} has layout version {header.get('version')}; this armful reads version {VERSION}: upgrade armful"
        )
    if header.get("kind") != kind:
        raise FileFormatError(f"{path} holds a {header.get('kind')}, expected a {kind}")
    return header, contents


def _path(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path)
    except TypeError:
        raise ValueError(f"expected the path of a file, got {path!r}") from None


def _as_json(value: object) -> object:
    """Numbers and arrays of numpy, which json does not know, as lists and numbers."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")
