"""Arrays and a JSON header as bytes: numpy's .npz, never pickle."""

import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.errors import FileFormatError
from armful.files._npz_format import read_arrays


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
        arrays = read_arrays(data)
        header = json.loads(str(arrays.pop("header.json")))
    except (ValueError, KeyError, FileFormatError):
        raise FileFormatError(f"a {kind} is damaged") from None
    if not isinstance(header, dict) or header.get("kind") != kind:
        raise FileFormatError(f"expected a {kind}, got something else")
    return header, arrays
