"""The footer of a table on disk: every value is checked before anything is read or allocated by it."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from armful.model._blocks import BLOCK

DTYPES: dict[str, np.dtype[Any]] = {"float32": np.dtype("<f4"), "float64": np.dtype("<f8")}

LARGEST_BLOCK = 1 << 30
"""In bytes, unless `BLOCK` rows are larger: a block must fit into memory."""


@dataclass(frozen=True)
class SectionInfo:
    """A section: its offset in the file, its length in bytes, and the CRC-32 of each block of `block` bytes."""

    offset: int
    length: int
    block: int
    checksums: list[int]


@dataclass(frozen=True)
class Footer:
    """The values of a footer."""

    n_arms: int
    n_features: int
    dtype: np.dtype[Any]
    block_rows: int
    columns: list[str] | None
    sections: dict[str, SectionInfo]


def parse_footer(text: bytes, room: int) -> Footer:
    """Return the values of a footer in JSON; raise ValueError, KeyError, TypeError or RecursionError if one is wrong.

    room: the offset of the footer in the file, which no section may exceed.
    """
    values = json.loads(text)
    n_arms, n_features = _count(values["n_arms"], 1), _count(values["n_features"], 1)
    dtype, columns = DTYPES[values["dtype"]], values["columns"]
    sections = {name: _section(values["sections"][name], room) for name in _names(values["sections"])}
    _expect(columns is None or (isinstance(columns, list) and len(columns) == n_features))
    _expect(columns is None or all(isinstance(name, str) for name in columns))
    _expect(sections["features"].length == n_arms * n_features * dtype.itemsize)
    _expect("ids" not in sections or sections["ids"].length == 8 * n_arms)
    _expect("id_begins" not in sections or sections["id_begins"].length == 8 * (n_arms + 1))
    _expect(("id_begins" in sections) == ("id_text" in sections))
    row_bytes, block_rows = n_features * dtype.itemsize, _count(values["block_rows"], 1)
    largest = max(LARGEST_BLOCK, BLOCK * row_bytes)
    _expect(block_rows * row_bytes <= largest and all(each.block <= largest for each in sections.values()))
    return Footer(n_arms, n_features, dtype, block_rows, columns, sections)


def _names(sections: Any) -> list[str]:
    _expect(isinstance(sections, dict))
    return [name for name in ("features", "ids", "id_begins", "id_text") if name in sections]


def _section(values: Any, room: int) -> SectionInfo:
    checksums = values["crc32"]
    section = SectionInfo(
        _count(values["offset"], 0), _count(values["bytes"], 0), _count(values["block"], 1), checksums
    )
    _expect(section.offset + section.length <= room)
    _expect(isinstance(checksums, list) and len(checksums) == -(-section.length // section.block))
    for checksum in checksums:
        _count(checksum, 0)
    return section


def _count(value: Any, least: int) -> int:
    _expect(isinstance(value, int) and not isinstance(value, bool) and value >= least)
    return int(value)


def _expect(holds: bool) -> None:
    if not holds:
        raise ValueError("the footer is inconsistent")
