"""When there are so many arms that the scan takes over, and when there are too many."""

from typing import Any

import numpy as np

from armful.scan.choosing import RankedConstraint
from armful.scan.rows import ArrayRows, Rows
from armful.scan.table import Table

MANY, MANY_WIDE, WIDE = 16_000, 4_000, 50
"""From `MANY` arms on a close look at each is worth avoiding; from `MANY_WIDE` on if they have `WIDE` features."""

TOO_MANY = 200_000
"""Constraints that do not go by rank, and objectives, are not asked to look at more arms of a table."""


def many_arms(X: Any, n_features: int, constraint: Any, policy: Any) -> Rows | None:
    """The arms as the scan takes them; None where it does not, and all of them are looked at."""
    if not _promised(type(policy), "score", ("armwise", "lowest_score", "highest_score")) or not policy.armwise:
        return None
    if not _promised(type(constraint), "best", ("ranks",)):
        return None
    if isinstance(X, Table):
        refuse_unfit(X, n_features)
        return X if _are_many(X.n_arms, n_features) else None
    if not isinstance(X, np.ndarray) or isinstance(X, np.ma.MaskedArray) or X.dtype.kind not in "biuf":
        return None
    if X.ndim != 2 or X.shape[1] != n_features or not _are_many(len(X), n_features):
        return None
    return ArrayRows(X)


def refuse_unfit(table: Table, n_features: int) -> None:
    """Raise if the policy is for other features."""
    if table.n_features != n_features:
        raise ValueError(f"the policy is for {n_features} features, the table has {table.n_features}")


def refuse_too_many(table: Table, constraint: Any, objective: Any) -> None:
    """Raise where looking at all sets of so many arms would not end."""
    if table.n_arms <= TOO_MANY or (objective is None and hasattr(type(constraint), "ranks")):
        return
    what = type(constraint if objective is None else objective).__name__
    raise ValueError(
        f"{what} is not for {table.n_arms} arms: TopK, AtMost, Quotas and NestedQuotas without an objective are; "
        "shortlist with one of these first, and choose from table.take(shortlist.indices)"
    )


def _are_many(n_arms: int, n_features: int) -> bool:
    return n_arms >= (MANY_WIDE if n_features >= WIDE else MANY)


def _promised(kind: type, method: str, promises: tuple[str, ...]) -> bool:
    """Whether what is promised of a method was promised where it was written, not of one that it replaced."""
    order = list(kind.__mro__)
    written = next((i for i, each in enumerate(order) if method in vars(each)), len(order))
    made = [next((i for i, each in enumerate(order) if promise in vars(each)), None) for promise in promises]
    return all(i is None or i <= written for i in made) and made[0] is not None


__all__ = ["RankedConstraint", "many_arms", "refuse_too_many", "refuse_unfit"]
