"""The footer of a table on disk: everything that it says is checked before anything is read or reserved for it."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from armful.model._blocks import BLOCK

DTYPES: dict[str, np.dtype[Any]] = {"float32": np.dtype("<f4"), "float64": np.dtype("<f8")}

LARGEST_BLOCK = 1 << 30
"""In bytes, unless rows are so wide that `BLOCK` of them are more: what is read at a time must fit into memory."""


@dataclass(frozen=True)
class Stretch:
    """A section: where it begins in the file, its length in bytes, and a CRC-32 for each `block` of so many bytes."""

    offset: int
    length: int
    block: int
    checksums: list[int]


@dataclass(frozen=True)
class Footer:
    """What the footer says of the table."""

    n_arms: int
    n_features: int
    dtype: np.dtype[Any]
    block_rows: int
    columns: list[str] | None
    sections: dict[str, Stretch]


def parsed(text: bytes, room: int) -> Footer:
    """Return what a footer says.

    Parameters
    ----------
    text : bytes
        JSON.
    room : int
        Where the footer begins in the file; no section may reach further.

    Raises
    ------
    ValueError, KeyError, TypeError, RecursionError
        It does not fit together. Whoever calls says it in a sentence.
    """
    told = json.loads(text)
    n_arms, n_features = _count(told["n_arms"], 1), _count(told["n_features"], 1)
    dtype, columns = DTYPES[told["dtype"]], told["columns"]
    sections = {name: _stretch(told["sections"][name], room) for name in _names(told["sections"])}
    _expect(columns is None or (isinstance(columns, list) and len(columns) == n_features))
    _expect(columns is None or all(isinstance(name, str) for name in columns))
    _expect(sections["features"].length == n_arms * n_features * dtype.itemsize)
    _expect("ids" not in sections or sections["ids"].length == 8 * n_arms)
    _expect("id_begins" not in sections or sections["id_begins"].length == 8 * (n_arms + 1))
    _expect(("id_begins" in sections) == ("id_text" in sections))
    row_bytes, block_rows = n_features * dtype.itemsize, _count(told["block_rows"], 1)
    largest = max(LARGEST_BLOCK, BLOCK * row_bytes)
    _expect(block_rows * row_bytes <= largest and all(each.block <= largest for each in sections.values()))
    return Footer(n_arms, n_features, dtype, block_rows, columns, sections)


def _names(sections: Any) -> list[str]:
    _expect(isinstance(sections, dict))
    return [name for name in ("features", "ids", "id_begins", "id_text") if name in sections]


def _stretch(told: Any, room: int) -> Stretch:
    checksums = told["crc32"]
    stretch = Stretch(_count(told["offset"], 0), _count(told["bytes"], 0), _count(told["block"], 1), checksums)
    _expect(stretch.offset + stretch.length <= room)
    _expect(isinstance(checksums, list) and len(checksums) == -(-stretch.length // stretch.block))
    for checksum in checksums:
        _count(checksum, 0)
    return stretch


def _count(value: Any, least: int) -> int:
    _expect(isinstance(value, int) and not isinstance(value, bool) and value >= least)
    return int(value)


def _expect(holds: bool) -> None:
    if not holds:
        raise ValueError("the footer does not fit together")
