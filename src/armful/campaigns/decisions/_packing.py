"""Arrays and a JSON header as bytes: numpy's .npz, never pickle."""

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.errors import FileFormatError


def pack(kind: str, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return arrays of numbers or strings and a header of this kind as bytes."""
    buffer = io.BytesIO()
    text = np.array(json.dumps({"kind": kind, **header}))
    named: dict[str, Any] = {"header.json": text, **arrays}
    np.savez(buffer, **named)
    return buffer.getvalue()


def unpack(kind: str, data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays; raise FileFormatError if the bytes are damaged or of another kind."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = dict(file)
        header = json.loads(str(arrays.pop("header.json")))
    except (ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile):
        raise FileFormatError(f"a {kind} is damaged") from None
    if not isinstance(header, dict) or header.get("kind") != kind:
        raise FileFormatError(f"expected a {kind}, got something else")
    return header, arrays
