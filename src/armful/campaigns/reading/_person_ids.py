"""The ids of people: read as text, hashed, compared and looked up."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.campaigns.holdout import uniforms, uniforms_of
from armful.campaigns.reading import _column_values as column_values
from armful.checks import FloatArray, IntArray
from armful.scan._threads import in_threads
from armful.tables._columns import import_pyarrow

Ids = NDArray[np.str_]

LONGEST_ID = 500
"""In characters: arrays of ids are as wide as the longest one, and the index of a database has its limit."""

BITS = 22
"""Keys are looked up by so many bits first, which leaves few of them."""


COMPARED = 50_000
"""Keys that several ids have whose ids are compared at a time."""


class IdSet:
    """A set of ids that finds which of many ids are in it, by their `uniforms` of a key."""

    def __init__(self, ids: Iterable[Ids], key: str) -> None:
        distinct = np.concatenate([np.zeros(0, dtype="U1"), *ids])
        if not (distinct[1:] > distinct[:-1]).all():  # those of one round are sorted
            distinct = np.unique(distinct)
        keys = uniforms(distinct, key)
        order = np.argsort(keys, kind="stable")
        self._keys, self._ids = keys[order], distinct[order]
        self._begins = np.zeros(1 << BITS, dtype=bool)
        self._begins[_first_bits(keys)] = True

    def __len__(self) -> int:
        return self._ids.size

    def holds(self, texts: Any, keys: FloatArray) -> NDArray[np.bool_]:
        """Return which of some ids, an Arrow array, are in the set, `(n,)`; keys: their `uniforms` of the set's key."""
        held = np.zeros(keys.size, dtype=bool)
        if self._ids.size:
            likely = np.flatnonzero(self._begins[_first_bits(keys)])
            place = np.minimum(np.searchsorted(self._keys, keys[likely]), self._ids.size - 1)
            same = self._keys[place] == keys[likely]
            held[likely[same]] = self._ids[place[same]] == ids_at(texts, likely[same])
        return held


def _first_bits(keys: FloatArray) -> IntArray:
    return (keys * (1 << BITS)).astype(np.int64)


def ids_at(texts: Any, indices: IntArray) -> Ids:
    """Return some ids of an Arrow array, `(m,)`."""
    return as_array(texts.take(import_pyarrow().array(indices)))


def as_array(texts: Any) -> Ids:
    """Return an Arrow array of texts, `(n,)`."""
    return np.asarray(texts.to_numpy(zero_copy_only=False), dtype=np.str_)


def uniforms_of_texts(texts: Any, key: str) -> FloatArray:
    """Return the `uniforms` of an Arrow array of ids, `(n,)`."""
    from pyarrow import compute  # noqa: PLC0415 - an extra

    if not len(texts) or not compute.all(compute.string_is_ascii(texts)).as_py():
        return uniforms(as_array(texts), key)
    width = compute.max(compute.binary_length(texts)).as_py()  # of ASCII, bytes are the code points
    padded = compute.ascii_rpad(texts, width=width, padding="\0")
    begin = np.frombuffer(padded.buffers()[1], dtype=np.int32)[padded.offset]
    codes = np.frombuffer(padded.buffers()[2], dtype=np.uint8, count=len(texts) * width, offset=begin)
    return uniforms_of(codes.reshape(len(texts), width), key)


def as_ids(column: Any, name: str, begin: int = 0, where: str = "") -> Any:
    """Return a column of ids as text.

    begin: the number of the rows before, where: the file, both for messages.

    Raises
    ------
    ValueError
        If an id is missing or too long, or if they are no ids.
    """
    from pyarrow import compute  # noqa: PLC0415 - an extra

    pa = import_pyarrow()
    of_file = f" of {where}" if where else ""
    if pa.types.is_floating(column.type):
        raise ValueError(f"ids must be text or whole numbers, and column {name!r}{of_file} holds decimal numbers")
    texts = as_texts(column, name)
    empty = compute.or_kleene(compute.is_null(texts), compute.equal(texts, ""))
    row = compute.index(empty, True).as_py()
    if row >= 0:
        raise ValueError(f"every customer needs an id, and {name!r} is empty in row {begin + row + 1}{of_file}")
    long = compute.index(compute.greater(compute.utf8_length(texts), LONGEST_ID), True).as_py()
    if long >= 0:
        raise ValueError(f"ids have up to {LONGEST_ID} characters, that of row {begin + long + 1}{of_file} has more")
    return texts


def as_texts(column: Any, name: str) -> Any:
    """Return a column of texts, numbers or the like as plain text."""
    pa = import_pyarrow()
    if pa.types.is_integer(column.type):
        return column.cast(pa.string())
    return column_values.texts(column, name).cast(pa.string())


def short_keys(keys: FloatArray) -> NDArray[np.uint32]:
    """Return `uniforms` of ids in half the memory, for `refuse_repeated`."""
    return (keys * 2.0**32).astype(np.uint32)


def refuse_repeated(ids: Any, keys: NDArray[np.uint32], name: str) -> None:
    """Raise ValueError if an id of an Arrow chunked array occurs twice. keys: their `short_keys`."""
    middle = np.uint32(2**31)

    def repeated(lower: bool) -> NDArray[np.uint32]:
        ordered = np.sort(keys[keys < middle] if lower else keys[keys >= middle])
        return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])

    shared = np.concatenate(list(in_threads(repeated, (True, False), 2)))
    for begin in range(0, shared.size, COMPARED):
        some = shared[begin : begin + COMPARED]
        near = np.zeros(1 << BITS, dtype=bool)
        near[some >> (32 - BITS)] = True
        rows = np.flatnonzero(near[keys >> (32 - BITS)])
        rows = rows[np.isin(keys[rows], some)]
        _refuse_same(ids_at(ids, rows), rows, name)


def _refuse_same(ids: Ids, rows: IntArray, name: str) -> None:
    """Raise ValueError if some ids, which are in these rows, are the same."""
    order = np.argsort(ids, kind="stable")
    same = np.flatnonzero(ids[order[1:]] == ids[order[:-1]])
    if same.size:
        first, second = order[same[0]], order[same[0] + 1]
        raise ValueError(
            f"every customer must be in the file once, and {name} {str(ids[first])!r} is in rows {rows[first] + 1} "
            f"and {rows[second] + 1}"
        )
