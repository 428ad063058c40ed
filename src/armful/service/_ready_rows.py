"""Ready features of candidates, used as they are."""

import struct
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.campaigns.features._numbers import LARGEST_READY
from armful.service._values import RawArm, shown

features_of = attrgetter("features")


def ready_rows(
    arms: Sequence[RawArm], names: Sequence[str], refuse_unknown: Callable[[Sequence[RawArm]], None]
) -> NDArray[np.float32]:
    """Return the features of some candidates, `(n, d)`.

    Parameters
    ----------
    arms : sequence of RawArm
        The candidates: with features, or with a column for each.
    names : sequence of str
        The names of the features.
    refuse_unknown : callable
        Raises ValueError if a candidate has a column that is not known.
    """
    quick = packed_rows(arms, len(names))
    if quick is not None:
        return quick
    refuse_unknown([arm for arm in arms if arm.columns is not None])
    rows = [_row(arm, names) for arm in arms]
    for arm, row in zip(arms, rows, strict=True):
        _refuse_row(arm, row, names)
    return np.array(rows, dtype=np.float64).reshape(len(arms), len(names)).astype(np.float32)


def packed_rows(arms: Sequence[RawArm | str], width: int) -> NDArray[np.float32] | None:
    """Return the features by the quickest way there is, `(n, width)`.

    None if these may not be candidates that all have features and no columns, so many and of usual size.
    """
    pack = struct.Struct(f"{width}f").pack
    try:
        rows = [pack(*arm.features) for arm in arms if arm.columns is None]  # type: ignore[misc, union-attr]
    except (AttributeError, TypeError, OverflowError, struct.error):  # ids, no numbers, not so many, or too large
        return None
    X = np.frombuffer(b"".join(rows), np.float32)
    is_usual = np.vdot(X, X) <= LARGEST_READY**2 or (np.abs(X) <= LARGEST_READY).all()  # false for NaN
    return X.reshape(-1, width) if is_usual and len(rows) == len(arms) else None


def _row(arm: RawArm, names: Sequence[str]) -> Any:
    """Return the features of a candidate that may have columns, perhaps only for quotas."""
    columns = arm.columns or {}
    own = next((name for name in names if name in columns), None)
    if arm.features is None and own is not None:
        return [columns.get(name) for name in names]
    if own is not None:
        raise ValueError(f"candidate {arm.id!r} has {own!r} as a column and in features: leave one out")
    return arm.features


def _refuse_row(arm: RawArm, row: Any, names: Sequence[str]) -> None:
    if row is None:
        raise ValueError(f"candidate {arm.id!r} has no features, and is not registered")
    if len(row) != len(names):
        raise ValueError(f"candidate {arm.id!r} must have {len(names)} features, got {len(row)}")
    for name, value in zip(names, row, strict=True):
        is_number = isinstance(value, bool | int | float)
        if not (is_number and abs(value) <= LARGEST_READY):
            hint = "; scale features to about unit length" if is_number else ""
            raise ValueError(
                f"candidate {arm.id!r}: feature {name!r} must be a finite number of at most {LARGEST_READY:,.0f}, "
                f"got {shown(value)}{hint}"
            )
