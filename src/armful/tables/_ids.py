"""The ids of arms: whole numbers or strings, no two the same."""

from collections.abc import Callable
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armful.tables._table_file import ID_ROWS, TableFile


def id_array(ids: ArrayLike) -> NDArray[Any]:
    """Ids as int64 or as strings, `(n,)`; anything else is refused."""
    array = ids if isinstance(ids, np.ndarray) else np.array(ids, dtype=object)
    if array.ndim != 1:
        raise ValueError(f"ids must be a list, one for each arm, got shape {array.shape}")
    if array.dtype.kind in "OT":  # numpy would turn the numbers among strings into strings
        values = array.tolist()
        if all(isinstance(value, str) for value in values):
            if any("\0" in value for value in values):
                raise ValueError("ids must not contain the character NUL, which numpy does not keep")
            array = np.array(values, dtype=str)
        elif all(isinstance(value, Integral) and not isinstance(value, bool) for value in values):
            array = np.array(values)
        else:
            kinds = sorted({type(value).__name__ for value in values})
            raise ValueError(f"ids must be all whole numbers or all strings, got {' and '.join(kinds)}")
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"ids must be at most {np.iinfo(np.int64).max}, got {array.max()}; make them strings")
    if array.dtype.kind in "iu":
        return array.astype(np.int64, copy=False)
    if array.dtype.kind == "U" or not array.size:
        return array
    raise ValueError(f"ids must be whole numbers or strings, got an array of {array.dtype}")


def refuse_repeated(ids: NDArray[Any]) -> None:
    """Refuse ids that stand twice."""
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    if same.size:
        first, second = order[same[0] : same[0] + 2].tolist()
        again = len(np.unique(ordered[same]))
        raise ValueError(
            f"ids must differ, but {ids[first].item()!r} stands in rows {first} and {second} ({again:,} of the ids "
            "stand more than once)"
        )


def refuse_repeated_in(path: Path, keys: NDArray[np.int64], key: Callable[[Any], int]) -> None:
    """Refuse ids that stand twice: equal keys are suspects, and the ids of the table at `path` decide.

    keys: those of all ids, sorted in place. key: from an id to its key.
    """
    keys.sort()
    suspects = np.unique(keys[1:][keys[1:] == keys[:-1]])
    for begin in range(0, len(suspects), ID_ROWS):
        suspect = set(suspects[begin : begin + ID_ROWS].tolist())
        seen, again = dict[Any, int](), dict[Any, int]()
        file = TableFile(path)
        for first in range(0, file.n_arms, ID_ROWS):
            names = file.ids_at(np.arange(first, min(first + ID_ROWS, file.n_arms))).tolist()
            for row, name in enumerate(names, first):
                if key(name) in suspect and seen.setdefault(name, row) != row:
                    again.setdefault(name, row)
        if again:
            name, row = next(iter(again.items()))
            more = " or more" if begin + ID_ROWS < len(suspects) else ""
            raise ValueError(
                f"every arm needs an id of its own, but {name!r} stands in rows {seen[name]} and {row}: keep one of "
                f"them ({len(again):,}{more} of the ids stand more than once)"
            )
