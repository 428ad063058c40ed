"""Quotas on groups that cross one another, as a 0/1 program."""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from armful import checks
from armful.checks import IntArray
from armful.constraints._groups import Counts, Groups, Total
from armful.constraints._milp_rows import sparse
from armful.constraints.linear import Linear
from armful.errors import InfeasibleError


def overlapping_quotas(
    columns: Mapping[str, Iterable[Hashable]],
    *,
    at_least: Mapping[str, Counts] | None = None,
    at_most: Mapping[str, Counts] | None = None,
    total: Total = None,
    **options: Any,
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
    **options
        Of `Linear`.

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
    for option, given in (("columns", columns), ("at_least", at_least), ("at_most", at_most)):
        if given is not None and not isinstance(given, Mapping):
            raise ValueError(f"{option} must be a mapping by column, like {{'region': ...}}, got {given!r}")
    found = {name: _groups(name, labels) for name, labels in columns.items()}
    if not found:
        raise ValueError("columns must hold at least one column of labels")
    n_arms = next(iter(found.values())).of_arm.size
    for name, groups in found.items():
        if groups.of_arm.size != n_arms:
            raise ValueError(f"columns must have one length, {name!r} has {groups.of_arm.size} labels, not {n_arms}")
    least, most = dict(at_least or {}), dict(at_most or {})
    for name in [*least, *most]:
        if name not in found:
            raise ValueError(f"a quota names column {name!r}; the columns are {', '.join(map(repr, found))}")
    members: list[IntArray] = []
    bounds: list[tuple[float, float]] = []
    names: list[str] = []
    for name, groups in found.items():
        for i, low, high in _group_bounds(name, groups, least.get(name), most.get(name)):
            members.append(np.flatnonzero(groups.of_arm == i))
            bounds.append((low, high))
            names.append(f"{name} {groups.labels[i]!r}")
    if total is not None:
        members.append(np.arange(n_arms))
        bounds.append(_total(total))
        names.append("total")
    if not names:
        raise ValueError("overlapping_quotas needs at_least, at_most or total")
    ends = np.cumsum([0, *(arms.size for arms in members)])
    arms = np.concatenate(members)
    matrix = sparse((np.ones(arms.size), arms, ends), shape=(len(members), n_arms))
    lower, upper = np.array(bounds, dtype=np.float64).T
    return Linear(matrix, lower, upper, names=names, **options)


def _group_bounds(
    column: str, groups: Groups, at_least: Counts | None, at_most: Counts | None
) -> Iterator[tuple[int, float, float]]:
    """Yield the groups that are bounded, by number, with their bounds."""
    known = set(groups.labels)
    for label, number in at_least.items() if isinstance(at_least, Mapping) else ():
        if label not in known and checks.count(f"at_least of {column} {label!r}", number, minimum=0) > 0:
            raise InfeasibleError(f"{column} {label!r} needs at least {number} arms, none are there")
    lower = groups.counts("at_least", at_least, default=np.zeros_like(groups.sizes))
    upper = groups.counts("at_most", at_most, default=groups.sizes)
    for i, (low, high, size) in enumerate(zip(lower.tolist(), upper.tolist(), groups.sizes.tolist(), strict=True)):
        if low > size:
            raise InfeasibleError(f"{column} {groups.labels[i]!r} needs at least {low} arms, {size} are there")
        if low > high:
            raise InfeasibleError(f"{column} {groups.labels[i]!r} needs at least {low} arms and at most {high}")
        if low > 0 or high < size:
            yield i, low if low > 0 else -math.inf, high if high < size else math.inf


def _groups(name: str, labels: Iterable[Hashable]) -> Groups:
    try:
        return replace(Groups.of(labels), kind=name)
    except ValueError as error:
        raise ValueError(f"column {name!r}: {error}") from None


def _total(total: int | tuple[int, int]) -> tuple[float, float]:
    low, high = total if isinstance(total, tuple | list) and len(total) == 2 else (total, total)
    if checks.count("total", low, minimum=0) > checks.count("total", high, minimum=0):
        raise ValueError(f"total must be a pair (low, high) with low <= high, got {total!r}")
    return float(low), float(high)
