"""Which sets of customers the settings allow, for each share of people."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from armful.campaigns.holdout import CHOSEN, HOLDOUT, NO_CONTACT, SHARES
from armful.campaigns.holdout._splitting import GroupQuota, Split, split_round
from armful.campaigns.rounds._customers import Customers
from armful.campaigns.settings import Settings
from armful.checks import FloatArray, IntArray
from armful.constraints import Constraint, Knapsack, Linear, NestedQuotas, Quotas
from armful.constraints._groups import Groups
from armful.errors import InfeasibleError

MOST_FOR_PROGRAMS = 100_000
"""Customers of one share up to which a budget, or quotas that cross, are solved as an integer program."""

NOBODY = "(may not be chosen)"
"""The group of those who may not be chosen, of which none may be: so that every constraint is one of quotas."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Allowed:
    """Which sets of one share's people may be picked.

    Attributes
    ----------
    constraint : Constraint or None
        On all customers if `candidates` is None, else on these; None if nobody else is to be picked.
    candidates : ndarray of int or None
        The customers that the constraint is on.
    required : ndarray of int
        Customers who are picked in any case; the constraint leaves room for them and does not allow them again.
    probabilities : ndarray or None
        The probability with which a random draw picks each of the share's people, if the constraint fixes it.
    sizes : Sizes or None
        The constraint as bounds on sizes, if that is all it is: then a set can be picked in parts.
    """

    constraint: Constraint | None
    candidates: IntArray | None
    required: IntArray
    probabilities: FloatArray | None
    sizes: "Sizes | None" = None


def allowed_sets(customers: Customers, settings: Settings, offset: float) -> dict[int, Allowed]:
    """Return for each share that has people which sets may be picked.

    Parameters
    ----------
    customers : Customers
        All customers of the round.
    settings : Settings
        For `k`, quotas and budget.
    offset : float
        For `split_round`, drawn anew in each round.

    Raises
    ------
    InfeasibleError
        If no set keeps the quotas; the message names the group.
    """
    may = np.flatnonzero(~customers.excluded)
    quotas = _quotas(customers, settings, may)
    nested = all(quota.nested for quota in settings.choose.quotas[1:])
    shares = customers.shares[may]
    required = customers.required[may] & (shares != NO_CONTACT)
    _refuse_required(required, quotas, settings.choose.k)
    split = split_round(settings.choose.k, shares, quotas, required=required, offset=offset)
    result = {}
    for share in range(len(SHARES)):
        if split.k[share]:
            rows = may[shares == share]
            result[share] = _allowed(customers, settings, split, share, rows, nested)
    return result


def _quotas(customers: Customers, settings: Settings, may: IntArray) -> list[GroupQuota]:
    result = []
    for quota in settings.choose.quotas:
        groups = customers.groups[quota.column]
        labels = [str(label) for label in groups.labels]
        at_least, at_most = quota.bounds(labels, settings.choose.k)
        most = may.size
        result.append(
            GroupQuota(
                column=quota.column,
                labels=labels,
                groups=groups.of_arm[may],
                at_least=np.array([at_least.get(label, 0) for label in labels], dtype=np.int64),
                at_most=np.array([at_most.get(label, most) for label in labels], dtype=np.int64),
            )
        )
    return result


def _refuse_required(required: NDArray[np.bool_], quotas: list[GroupQuota], k: int) -> None:
    """Raise InfeasibleError if more people are required than a round, or one of its groups, may have."""
    if required.sum() > k:
        raise InfeasibleError(f"{required.sum()} customers are required, and k is {k}")
    for quota in quotas:
        taken = np.bincount(quota.groups[required], minlength=len(quota.labels))
        for i in np.flatnonzero(taken > quota.at_most).tolist():
            group = f"{quota.column} {quota.labels[i]!r}"
            raise InfeasibleError(f"{group} allows {quota.at_most[i]} contacts, and {taken[i]} of it are required")


def _allowed(
    customers: Customers, settings: Settings, split: Split, share: int, rows: IntArray, nested: bool
) -> Allowed:
    """Return the allowed sets of one share; rows: its people who may be picked."""
    required = rows[customers.required[rows]] if share in (CHOSEN, HOLDOUT) else rows[:0]
    k = int(split.k[share]) - required.size
    names = [quota.column for quota in settings.choose.quotas]
    at_least, at_most = [], []
    for name, low, high in zip(names, split.at_least, split.at_most, strict=True):
        groups = customers.groups[name]
        taken = np.bincount(groups.of_arm[required], minlength=len(groups.labels))
        at_least.append(np.maximum(low[:, share] - taken, 0))
        at_most.append(high[:, share] - taken)
    free = rows[~customers.required[rows]] if required.size else rows
    if k == 0:
        return Allowed(constraint=None, candidates=None, required=required, probabilities=None)
    if settings.choose.budget is None and nested:
        columns = {name: customers.groups[name] for name in names}
        if share != HOLDOUT:  # a policy scans the table of all customers
            sizes = Sizes(columns, at_least, at_most, k, free, customers.shares.size)
            constraint = sizes.constraint(k)
            return Allowed(constraint=constraint, candidates=None, required=required, probabilities=None, sizes=sizes)
        columns = {name: replace(groups, of_arm=groups.of_arm[free]) for name, groups in columns.items()}
        constraint = _by_rank(_with_nobody(columns, np.arange(free.size), free.size), at_least, at_most, k)
        known = not required.size and len(names) <= 1
        probabilities = _probabilities(columns, at_least, at_most, k, free.size) if known else None
        return Allowed(constraint=constraint, candidates=free, required=required, probabilities=probabilities)
    if free.size > MOST_FOR_PROGRAMS:
        what = "a budget" if settings.choose.budget else "quotas of columns that cross"
        raise ValueError(
            f"{what} can be kept for up to {MOST_FOR_PROGRAMS:,} customers, {free.size:,} may be chosen: exclude some, "
            "or use quotas that are nested"
        )
    budget = _budget_left(customers, settings, split, share, required)
    constraint = _program(customers, names, at_least, at_most, k, free, budget)
    return Allowed(constraint=constraint, candidates=free, required=required, probabilities=None)


@dataclass(frozen=True, eq=False)
class Sizes:
    """Bounds on how many of the `free` of n customers are picked: `k` in all, and in each group of nested columns."""

    columns: dict[str, Groups]
    at_least: list[IntArray]
    at_most: list[IntArray]
    k: int
    free: IntArray
    n: int

    def constraint(self, k: int, picked: IntArray | None = None) -> Constraint:
        """Return the bounds for picking `k` more; the first ones must meet all lower bounds."""
        if picked is None:
            return _by_rank(self._levels, self.at_least, self.at_most, k)
        taken = [np.bincount(each.of_arm[picked], minlength=len(each.labels)) for each in self.columns.values()]
        at_most = [high - counts for high, counts in zip(self.at_most, taken, strict=True)]
        levels = {}
        for name, groups in self._levels.items():
            of_arm = groups.of_arm.copy()
            of_arm[picked] = len(groups.labels) - 1
            levels[name] = replace(groups, of_arm=of_arm)
        return _by_rank(levels, [np.zeros_like(high) for high in at_most], at_most, k)

    @cached_property
    def _levels(self) -> dict[str, Groups]:
        return _with_nobody(self.columns, self.free, self.n)

    def parts(self, n_parts: int) -> list[int]:
        """Return the sizes of at most so many parts, of which the first can meet all lower bounds."""
        first = max(-(-self.k // n_parts), int(self.at_least[0].sum()) if self.at_least else 0)
        later = np.diff(np.linspace(first, self.k, n_parts).round().astype(int)).tolist()
        return [first, *(size for size in later if size)]


def _with_nobody(columns: dict[str, Groups], free: IntArray, n: int) -> dict[str, Groups]:
    """Return the groups of all n customers, of whom those who are not free are in a last group of their own."""
    levels = {}
    for name, groups in (columns or {"customers": Groups(["all"], np.zeros(n, dtype=np.uint8))}).items():
        of_arm = np.full(n, len(groups.labels), dtype=np.min_scalar_type(len(groups.labels)))
        of_arm[free] = groups.of_arm[free]
        levels[name] = Groups([*groups.labels, NOBODY], of_arm, kind=name)
    return levels


def _by_rank(levels: dict[str, Groups], at_least: list[IntArray], at_most: list[IntArray], k: int) -> Constraint:
    """Return the quotas on all customers; levels: those of `_with_nobody`, without bounds if there are no columns."""
    if not at_least:
        (groups,) = levels.values()
        at_least, at_most = [np.zeros(1, dtype=np.int64)], [np.array([groups.of_arm.size])]
    lows, highs = {}, {}
    for (name, groups), low, high in zip(levels.items(), at_least, at_most, strict=True):
        lows[name] = dict(zip(groups.labels[:-1], low.tolist(), strict=True))
        highs[name] = {**dict(zip(groups.labels[:-1], high.tolist(), strict=True)), NOBODY: 0}
    if len(levels) == 1:
        (name,) = levels
        return Quotas(levels[name], at_least=lows[name], at_most=highs[name], total=k)
    return NestedQuotas(levels, at_least=lows, at_most=highs, total=k)


def _probabilities(
    columns: dict[str, Groups], at_least: list[IntArray], at_most: list[IntArray], k: int, n: int
) -> FloatArray | None:
    """Return the probability with which a random set has each of n customers, if the quotas fix each group's number."""
    if not columns:
        return np.full(n, k / n)
    (groups,) = columns.values()
    if not np.array_equal(at_least[0], at_most[0]):
        return None
    fractions = at_least[0] / np.maximum(groups.sizes, 1)
    return np.asarray(fractions[groups.of_arm])


def _budget_left(
    customers: Customers, settings: Settings, split: Split, share: int, required: IntArray
) -> tuple[FloatArray, float] | None:
    """Return the costs of all customers and the share's part of the budget, less what required customers cost."""
    budget = settings.choose.budget
    if budget is None or customers.costs is None:
        return None
    contacts = int(split.k[CHOSEN] + split.k[HOLDOUT])
    left = budget.limit * int(split.k[share]) / contacts - float(customers.costs[required].sum())
    if left < 0:
        raise InfeasibleError(
            f"the required customers of the {SHARES[share]} share cost {-left:g} more than its budget"
        )
    return customers.costs, left


def _program(
    customers: Customers,
    names: list[str],
    at_least: list[IntArray],
    at_most: list[IntArray],
    k: int,
    free: IntArray,
    budget: tuple[FloatArray, float] | None,
) -> Constraint:
    """Return quotas that cross, or with a budget, as an integer program on the free customers."""
    if budget is not None and not names:
        return Knapsack(budget[0][free], budget[1], at_most=k)
    n = free.size
    rows = [csr_array(np.ones((1, n)))]
    lower, upper = [np.array([k if budget is None else 0])], [np.array([k])]
    for name, low, high in zip(names, at_least, at_most, strict=True):
        codes, n_groups = customers.groups[name].of_arm[free], low.size
        rows.append(csr_array((np.ones(n), (codes, np.arange(n))), shape=(n_groups, n)))
        lower.append(low)
        upper.append(high)
    if budget is not None:
        rows.append(csr_array(budget[0][free][None]))
        lower.append(np.array([0.0]))
        upper.append(np.array([budget[1]]))
    from scipy.sparse import vstack  # noqa: PLC0415 - seldom needed

    return Linear(vstack(rows, format="csr"), np.concatenate(lower), np.concatenate(upper))
