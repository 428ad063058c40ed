"""Which choices are made by the scan, and which are refused because there are too many arms."""

from typing import Any

import numpy as np

from armful.constraints.base import Constraint
from armful.constraints.ranked import RankedConstraint, goes_by_rank
from armful.scan._scoring import Scorer
from armful.tables._array_store import ArrayRows
from armful.tables.rows import Rows
from armful.tables.table import Table

SCAN_FROM = 16_000
"""From this number of arms on, pruning is faster than scoring every arm."""

LARGEST_UNRANKED = 200_000
"""The largest table for objectives and for constraints that are not solved by rank."""


def many_arms(policy: Scorer, X: Any, objective: object) -> Rows | None:
    """Return the arms as rows for the scan; None if every arm is to be scored exactly."""
    n_features = policy.state.n_features
    if isinstance(X, Table):
        refuse_unfit(X, n_features)
    elif not isinstance(X, np.ndarray) or X.ndim != 2 or X.shape[1] != n_features:
        return None
    if len(X) < SCAN_FROM or not policy.armwise or objective is not None:
        return None
    if isinstance(X, Table):
        return X
    return ArrayRows(X) if X.dtype.kind in "biuf" and not isinstance(X, np.ma.MaskedArray) else None


def refuse_unfit(table: Table, n_features: int) -> None:
    """Raise ValueError if the policy has another number of features."""
    if table.n_features != n_features:
        raise ValueError(f"the policy is for {n_features} features, the table has {table.n_features}")


def refuse_too_many(table: Table, constraint: Constraint, objective: object) -> None:
    """Raise ValueError for an objective, or a constraint that is not solved by rank, on a large table."""
    if table.n_arms <= LARGEST_UNRANKED or (objective is None and goes_by_rank(constraint)):
        return
    what = type(constraint if objective is None else objective).__name__
    raise ValueError(
        f"{what} does not scale to {table.n_arms} arms: TopK, AtMost, Quotas and NestedQuotas without an objective do; "
        "shortlist with one of these first, and choose from table.take(shortlist.indices)"
    )


def ranked(policy: Scorer, constraint: Constraint, objective: object) -> RankedConstraint:
    """Return the constraint for a choice on a cluster; raise ValueError if partitions do not determine the best set."""
    if objective is not None:
        raise ValueError(
            f"{type(objective).__name__} needs all arms on one machine: "
            "shortlist with TopK first, and choose from shortlist.features"
        )
    if not goes_by_rank(constraint):
        raise ValueError(
            f"{type(constraint).__name__} needs all arms on one machine; TopK, AtMost, Quotas and NestedQuotas do not: "
            "shortlist with one of these first, and choose from shortlist.features"
        )
    if not policy.armwise:
        raise ValueError(
            f"{policy!r} needs all arms on one machine, since the score of an arm may depend on the others: "
            "a policy whose score does not says so by armwise = True"
        )
    return constraint
