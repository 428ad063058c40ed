"""The files armful writes: a zip of .npy arrays (numpy's own .npz) with a JSON header, never pickle.

Anything that reads .npz reads them. The header is the array `header.json`, a string, and says what the
file holds (`kind`) and by which version of the layout it was written (`version`).
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.errors import FileFormatError

VERSION = 1
Arrays = Mapping[str, NDArray[Any]]


def write(path: str | os.PathLike[str], kind: str, header: Mapping[str, Any], arrays: Arrays) -> None:
    """Write the file whole or not at all: an older file at `path` stays until the new one is complete."""
    target = _path(path)
    _refuse_place(target)
    text = json.dumps({"format": "armful", "kind": kind, "version": VERSION, **header}, default=_as_json)
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            np.savez(file, allow_pickle=False, **{"header.json": np.array(text), **arrays})
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


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


def _refuse_place(target: Path) -> None:
    """Refuse a place where no file can be written, by the name that the user gave it."""
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; give the name of a file in it")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent} to write {target.name} to")
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"there is no right to write in {target.parent}")


def _as_json(value: object) -> object:
    """Numbers and arrays of numpy, which json does not know, as lists and numbers."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")
