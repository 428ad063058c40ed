"""How the contacts and the quotas of a round are split between the shares of people, pro rata."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful import checks
from armful.campaigns.holdout import CHOSEN, HOLDOUT, NO_CONTACT, SHARES
from armful.campaigns.holdout._crossing_quotas import contacts_by_cell
from armful.checks import IntArray
from armful.constraints._groups import counted
from armful.errors import InfeasibleError


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupQuota:
    """Bounds on how many people of each group of a column are contacted in a round.

    Attributes
    ----------
    column : str
        What the groups are called in errors.
    labels : sequence of str
        The names of the groups.
    groups : ndarray of int, shape (n_people,)
        The number of each person's group.
    at_least, at_most : ndarray of int, shape (n_groups,)
        The bounds, for chosen and holdout together.
    """

    column: str
    labels: Sequence[str]
    groups: IntArray
    at_least: IntArray
    at_most: IntArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Split:
    """What each share contributes to a round; columns are the shares chosen, holdout and no-contact.

    Attributes
    ----------
    k : ndarray of int, shape (3,)
        How many people of each share are picked. The first two add up to the round's k.
    at_least, at_most : tuple of ndarray of int, each of shape (n_groups, 3)
        The bounds of each share, in the order of the quotas. The first two columns add up to the bounds of the whole,
        tightened to what their people and the finer quotas allow.
    """

    k: IntArray
    at_least: tuple[IntArray, ...]
    at_most: tuple[IntArray, ...]


def split_round(
    k: int,
    shares: NDArray[np.uint8],
    quotas: Sequence[GroupQuota] = (),
    *,
    required: NDArray[np.bool_] | None = None,
    offset: float = 0.5,
) -> Split:
    """Return how a round's contacts and quotas are split between the shares.

    Each share gets its part in the ratio of its people, group by group, in whole numbers. The parts of chosen and
    holdout add up to the whole, and each share can meet its own part. The no-contact share is over and above k: as many
    of it are picked, pro rata, as would have been contacted.

    Parameters
    ----------
    k : int
        The contacts of the round: chosen and holdout together.
    shares : ndarray of uint8, shape (n_people,)
        The share of each person who may be picked, from `share_of`.
    quotas : sequence of GroupQuota
        If each group of a column lies within one group of the column before, the split takes one pass. Columns that
        cross need an integer program over the combinations of their groups.
    required : ndarray of bool, shape (n_people,), optional
        Who must be contacted: the part of a share has room for its required people, also where pro rata has less.
        None of the no-contact share.
    offset : float, default 0.5
        Which parts are rounded up: 0.5 rounds the parts of one column so that their sums are nearest to pro rata. A
        number drawn anew from 0 to 1 in each round gives every group its exact part in the long run, so small groups
        are not always rounded the same way.

    Returns
    -------
    Split

    Raises
    ------
    InfeasibleError
        If k or a quota asks for more people than there are, or quotas contradict each other.

    Examples
    --------
    >>> shares = np.array([0, 0, 0, 1, 0, 0, 0, 1], dtype=np.uint8)
    >>> region = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> quota = GroupQuota(column="region", labels=["north", "south"], groups=region,
    ...                    at_least=np.array([2, 0]), at_most=np.array([4, 2]))
    >>> split = split_round(4, shares, [quota])
    >>> split.k
    array([3, 1, 0])
    >>> split.at_least[0].tolist(), split.at_most[0].tolist()
    ([[1, 1, 0], [0, 0, 0]], [[3, 1, 0], [1, 1, 0]])
    """
    checks.count("k", k)
    needed = np.zeros(shares.size, dtype=bool) if required is None else required
    if not _nest(quotas):
        return _split_crossing(k, shares, quotas, needed, offset)
    groups, n_groups = (quotas[-1].groups, len(quotas[-1].labels)) if quotas else (np.zeros(shares.size, np.uint8), 1)
    sizes = _sizes(groups, n_groups, shares)
    low, high = _sizes(groups[needed], n_groups, shares[needed]), sizes
    bounds = []
    for quota in reversed(quotas):  # from the finest groups to the coarsest
        parents = _parents(groups, n_groups, quota)
        groups, n_groups = quota.groups, len(quota.labels)
        sizes, low, high = (_summed(counts, parents, n_groups) for counts in (sizes, low, high))
        least, most = _whole(quota, low, high)
        low = _parts(least, sizes, low, high, offset)
        high = _parts(most, sizes, low, high, offset)
        bounds.append((low, high))
    sizes, low, high = (counts.sum(axis=0, keepdims=True) for counts in (sizes, low, high))
    if not _contacts(low)[0] <= k <= _contacts(high)[0]:
        raise InfeasibleError(_impossible_total(k, int(_contacts(low)[0]), int(_contacts(high)[0]), quotas))
    picked = _parts(np.array([k]), sizes, low, high, offset)
    at_least, at_most = zip(*reversed(bounds), strict=True) if bounds else ((), ())
    return Split(k=picked[0], at_least=at_least, at_most=at_most)


def _split_crossing(
    k: int, shares: NDArray[np.uint8], quotas: Sequence[GroupQuota], required: NDArray[np.bool_], offset: float
) -> Split:
    """Return the split if groups cross.

    Contacts of each combination of groups that keep all quotas are found first and split; then bounds around them.
    """
    for quota in quotas:
        split_round(k, shares, [quota], required=required, offset=offset)  # a quota that alone cannot be met is named
    key = np.zeros(shares.size, dtype=np.int64)
    for quota in quotas:
        key = np.unique(key * len(quota.labels) + quota.groups, return_inverse=True)[1]
    n_cells = int(key.max(initial=-1)) + 1
    sizes, low = _sizes(key, n_cells, shares), _sizes(key[required], n_cells, shares[required])
    group_of_cell = [_parents(key, n_cells, quota) for quota in quotas]
    bounds = [(groups, quota.at_least, quota.at_most) for groups, quota in zip(group_of_cell, quotas, strict=True)]
    contacts = contacts_by_cell(k, _contacts(low), _contacts(sizes), bounds)
    if contacts is None:
        columns = " and ".join(quota.column for quota in quotas)
        raise InfeasibleError(f"no {k} people keep the quotas of {columns} together, though each can be kept alone")
    picked = _parts(contacts, sizes, low, sizes, offset)
    at_least, at_most = [], []
    for quota, groups in zip(quotas, group_of_cell, strict=True):
        people, taken = (_summed(counts, groups, len(quota.labels)) for counts in (sizes, picked))
        at_least.append(_parts(quota.at_least, people, np.zeros_like(people), taken, offset))
        at_most.append(_parts(np.minimum(quota.at_most, _contacts(people)), people, taken, people, offset))
    return Split(k=picked.sum(axis=0), at_least=tuple(at_least), at_most=tuple(at_most))


def _sizes(groups: NDArray[Any], n_groups: int, shares: NDArray[np.uint8]) -> IntArray:
    """Return the people of each group in each share, `(n_groups, 3)`."""
    kind = np.min_scalar_type(n_groups * len(SHARES))
    codes = np.multiply(groups, len(SHARES), dtype=kind, casting="unsafe")
    codes += shares
    return counted(codes, n_groups * len(SHARES)).reshape(n_groups, len(SHARES))


def _nest(quotas: Sequence[GroupQuota]) -> bool:
    """Return whether each group of a column lies within one group of the column before."""
    for coarse, fine in pairwise(quotas):
        parents = _parents(fine.groups, len(fine.labels), coarse)
        if not np.array_equal(parents[fine.groups], coarse.groups):
            return False
    return True


def _whole(quota: GroupQuota, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
    """Return the bounds of all contacts, `(n_groups,)`, within those that the finer groups and the people allow."""
    least, most = np.maximum(quota.at_least, _contacts(low)), np.minimum(quota.at_most, _contacts(high))
    for i in np.flatnonzero(least > most).tolist():
        group = f"{quota.column} {quota.labels[i]!r}"
        if least[i] > quota.at_most[i]:
            raise InfeasibleError(f"{group} needs at least {least[i]} people and at most {quota.at_most[i]}")
        raise InfeasibleError(f"{group} needs at least {least[i]} people, {most[i]} can be contacted")
    return least, most


def _parts(amount: IntArray, sizes: IntArray, low: IntArray, high: IntArray, offset: float) -> IntArray:
    """Return the part of each share, `(n_groups, 3)`, of an amount of contacts, `(n_groups,)`.

    The parts are in the ratio of the sizes as far as `low` and `high` allow, which bound the part of each share. They
    exist if the amount is between the contacts of `low` and those of `high`.
    """
    parts = np.zeros_like(sizes)
    for share in (HOLDOUT, NO_CONTACT):
        parts[:, share] = _rounded(amount * sizes[:, share], np.maximum(_contacts(sizes), 1), offset)
    lowest = np.maximum(low[:, HOLDOUT], amount - high[:, CHOSEN])
    highest = np.minimum(high[:, HOLDOUT], amount - low[:, CHOSEN])
    parts[:, HOLDOUT] = np.clip(parts[:, HOLDOUT], lowest, highest)
    parts[:, NO_CONTACT] = np.clip(parts[:, NO_CONTACT], low[:, NO_CONTACT], high[:, NO_CONTACT])
    parts[:, CHOSEN] = amount - parts[:, HOLDOUT]
    return parts


def _rounded(numerators: IntArray, denominators: IntArray, offset: float) -> IntArray:
    """Return fractions rounded down or up, so that every sum over the first of them is its own value, rounded.

    This is systematic sampling: the cumulative sums are rounded, and their differences taken.
    """
    down, remainders = np.divmod(numerators, denominators)
    sums = np.floor(np.concatenate([[0.0], np.cumsum(remainders / denominators)]) + offset)
    return down + np.diff(sums).astype(np.int64)


def _contacts(counts: IntArray) -> IntArray:
    """Return the people of each group in the shares that are contacted, `(n_groups,)`."""
    return counts[:, CHOSEN] + counts[:, HOLDOUT]


def _parents(groups: NDArray[Any], n_groups: int, quota: GroupQuota) -> IntArray:
    """Return the group of the quota in which each of the finer groups lies, `(n_groups,)`."""
    if groups is quota.groups:
        return np.arange(n_groups)
    parents = np.zeros(n_groups, dtype=np.int64)
    parents[groups] = quota.groups
    return parents


def _summed(counts: IntArray, parents: IntArray, n_groups: int) -> IntArray:
    sums = np.zeros((n_groups, counts.shape[1]), dtype=np.int64)
    np.add.at(sums, parents, counts)
    return sums


def _impossible_total(k: int, least: int, most: int, quotas: Sequence[GroupQuota]) -> str:
    if k < least:
        return f"k = {k} is less than the {least} people whom the quotas need"
    return f"k = {k} is more than the {most} people {'whom the quotas allow' if quotas else 'who may be contacted'}"
