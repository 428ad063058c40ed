"""The ids of arms: whole numbers or strings, no two the same."""

from collections.abc import Callable, Iterable
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armful.checks import IntArray
from armful.tables._table_file import ID_ROWS, TableFile


def id_array(ids: ArrayLike) -> NDArray[Any]:
    """Return ids as int64 or as strings, `(n,)`; raise ValueError for anything else."""
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


def find_ids(wanted: list[Any], blocks: Iterable[NDArray[Any]], *, unique: bool) -> IntArray:
    """Return the index of each wanted id among those of all blocks; raise ValueError if one is unknown or repeated.

    unique: no id is in the blocks twice, so that reading them ends with the last one that is wanted.
    """
    index_of = dict.fromkeys(wanted, -1)
    missing, index, example = len(index_of), 0, None
    for block in blocks:
        example = block[0].item() if example is None else example
        if not missing and unique:
            break
        for id in block.tolist():
            if id in index_of:
                if index_of[id] >= 0:
                    raise ValueError(
                        f"id {id!r} is in rows {index_of[id]} and {index}, so it does not name one arm: keep one of "
                        "them"
                    )
                index_of[id] = index
                missing -= 1
            index += 1
    if missing:
        unknown = next(id for id in wanted if index_of[id] < 0)
        raise ValueError(
            f"id {unknown!r} is not in the table ({missing:,} of {len(index_of):,} ids are not); its ids are like "
            f"{example!r}"
        )
    return np.array([index_of[id] for id in wanted], dtype=np.int64)


def refuse_repeated(ids: NDArray[Any]) -> None:
    """Raise ValueError if ids are repeated."""
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    equal = np.flatnonzero(ordered[1:] == ordered[:-1])
    if equal.size:
        first, second = order[equal[0] : equal[0] + 2].tolist()
        n_repeated = len(np.unique(ordered[equal]))
        raise ValueError(
            f"ids must differ, but {ids[first].item()!r} is in rows {first} and {second} ({n_repeated:,} of the ids "
            "are there more than once)"
        )


def refuse_repeated_in(path: Path, keys: NDArray[np.int64], key: Callable[[Any], int]) -> None:
    """Raise ValueError if ids of the table at `path` are repeated; only ids with equal keys are compared.

    keys: the key of every id, sorted in place. key: the function from an id to its key.
    """
    keys.sort()
    suspects = np.unique(keys[1:][keys[1:] == keys[:-1]])
    for begin in range(0, len(suspects), ID_ROWS):
        suspect = set(suspects[begin : begin + ID_ROWS].tolist())
        first_row, second_row = dict[Any, int](), dict[Any, int]()
        file = TableFile(path)
        for first in range(0, file.n_arms, ID_ROWS):
            ids = file.ids_at(np.arange(first, min(first + ID_ROWS, file.n_arms))).tolist()
            for row, id in enumerate(ids, first):
                if key(id) in suspect and first_row.setdefault(id, row) != row:
                    second_row.setdefault(id, row)
        if second_row:
            id, row = next(iter(second_row.items()))
            more = " or more" if begin + ID_ROWS < len(suspects) else ""
            raise ValueError(
                f"every arm needs an id of its own, but {id!r} is in rows {first_row[id]} and {row}: keep one of "
                f"them ({len(second_row):,}{more} of the ids are there more than once)"
            )
