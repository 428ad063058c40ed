"""Quotas on groups that cross one another, as a 0/1 program."""

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace

import numpy as np

from armful.checks import IntArray
from armful.constraints._groups import Counts, Groups, Level, Total, bounds_by_name, total_range
from armful.constraints._milp_rows import sparse
from armful.constraints.linear import Linear


def overlapping_quotas(
    columns: Mapping[str, Iterable[Hashable]],
    *,
    at_least: Mapping[str, Counts] | None = None,
    at_most: Mapping[str, Counts] | None = None,
    total: Total = None,
    time_limit: float | None = None,
    gap: float = 0.0,
) -> Linear:
    """Return bounds on how many arms come from each group of several columns at once, such as by region and by age.

    For groups within groups (region, city) `NestedQuotas` does the same and is much faster.

    Parameters
    ----------
    columns : mapping of str to iterable of hashable, of length n_arms
        For each name, a label for each arm.
    at_least, at_most : mapping of str to int or mapping, optional
        For each column that is to be bounded, one number for all its groups or a mapping from label to number.
    total : int or pair of int, optional
        How many in all: a number, or a range `(low, high)`.
    time_limit : float, optional
        As in `Linear`.
    gap : float, default 0.0
        As in `Linear`.

    Returns
    -------
    Linear

    Raises
    ------
    ValueError
        If no bound is given, or columns differ in length.
    InfeasibleError
        If a group needs more arms than it has.

    Examples
    --------
    >>> people = {"region": ["north", "north", "south", "south"], "age": ["young", "old", "young", "old"]}
    >>> quotas = overlapping_quotas(people, at_least={"region": 1}, at_most={"age": {"old": 1}}, total=2)
    >>> quotas.best([1.0, 5.0, 2.0, 4.0]).indices
    array([1, 2])
    """
    if not isinstance(columns, Mapping) or not columns:
        raise ValueError(f"columns must be columns of labels by name, like {{'region': [...]}}, got {columns!r}")
    least, most = bounds_by_name("column", columns, at_least, at_most)
    found = {name: _groups(name, labels) for name, labels in columns.items()}
    n_arms = next(iter(found.values())).of_arm.size
    members: list[IntArray] = []
    bounds: list[tuple[float, float]] = []
    names: list[str] = []
    for name, groups in found.items():
        if groups.of_arm.size != n_arms:
            raise ValueError(f"columns must have one length, {name!r} has {groups.of_arm.size} labels, not {n_arms}")
        level = Level.between(groups, least.get(name), most.get(name))
        lower, upper = level.lower > 0, level.upper < groups.sizes
        for i in np.flatnonzero(lower | upper).tolist():
            members.append(np.flatnonzero(groups.of_arm == i))
            bounds.append((level.lower[i] if lower[i] else -math.inf, level.upper[i] if upper[i] else math.inf))
            names.append(f"{name} {groups.labels[i]!r}")
    if total is not None:
        members.append(np.arange(n_arms))
        bounds.append(total_range(total, minimum=0))
        names.append("total")
    if not names:
        raise ValueError("overlapping_quotas needs at_least, at_most or total")
    ends = np.cumsum([0, *(arms.size for arms in members)])
    arms = np.concatenate(members)
    matrix = sparse((np.ones(arms.size), arms, ends), shape=(len(members), n_arms))
    return Linear(matrix, *np.array(bounds, dtype=np.float64).T, time_limit=time_limit, gap=gap, names=names)


def _groups(name: str, labels: Iterable[Hashable]) -> Groups:
    try:
        return replace(Groups.of(labels), kind=name)
    except ValueError as error:
        raise ValueError(f"column {name!r}: {error}") from None
