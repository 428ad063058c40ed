"""Quotas: bounds on the contacts of each group, as counts or as shares of k."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

from armful.campaigns.settings._checking import nearest
from armful.errors import InfeasibleError

Bound = int | float | Mapping[str, int | float] | None
"""A number for every group, or one by group: a whole number is a count, a fraction is a share of k."""


@dataclass(frozen=True, kw_only=True)
class QuotaSettings:
    """Bounds on the contacts of each group of a column.

    Attributes
    ----------
    column : str
    at_least, at_most : int, float or mapping of str to int or float, optional
        A number for every group, or one by group: a whole number is a count, a fraction is a share of k.
    nested : bool
        Whether each group lies within a group of the quota before.

    Examples
    --------
    >>> quota = QuotaSettings(column="region", at_least=0.1, at_most={"north": 40})
    >>> quota.bounds(["north", "south"], k=105)
    ({'north': 10, 'south': 10}, {'north': 40})
    """

    column: str
    at_least: Bound = None
    at_most: Bound = None
    nested: bool = False

    def bounds(self, groups: Sequence[str], k: int) -> tuple[dict[str, int], dict[str, int]]:
        """Return how many of k contacts each group gets at least and at most; groups without a bound are left out.

        A share of k that is no whole number is rounded down in `at_least` and up in `at_most`: shares that add up to 1
        can always be met.

        Parameters
        ----------
        groups : sequence of str
            The groups that candidates are in.
        k : int
            The number of contacts.

        Returns
        -------
        at_least, at_most : dict of str to int

        Raises
        ------
        InfeasibleError
            If a group that needs contacts has no candidates, or if the groups need more than k.
        """
        present = dict.fromkeys(groups)
        least = {group: whole_count(bound, k, up=False) for group, bound in _by_group(self.at_least, present)}
        most = {group: whole_count(bound, k, up=True) for group, bound in _by_group(self.at_most, present)}
        for group, needed in least.items():
            if needed > 0 and group not in present:
                meant = nearest(group, present)
                raise InfeasibleError(
                    f"the quota of {self.column!r} asks for at least {needed} of {group!r}, which no candidate is in; "
                    + ("take it out of the quota" if meant is None else f"did you mean {meant!r}?")
                )
        if (needed := sum(least.values())) > k:
            raise InfeasibleError(
                f"the quota of {self.column!r} asks for at least {needed} in {len(least)} groups, and k is "
                f"{k}; lower at_least, or raise k"
            )
        return _only(present, least), _only(present, most)

    def as_requested(self, k: int) -> Self:
        """Return the quota as a request for k arms states it: below 1 a share of k, from 1 on a count.

        In settings 1.0 is all of k, and in JSON it is the same number as 1.

        Examples
        --------
        >>> QuotaSettings(column="region", at_least={"north": 1.0}, at_most=0.4).as_requested(5)
        QuotaSettings(column='region', at_least={'north': 5}, at_most=0.4, nested=False)
        """
        return replace(self, at_least=_requested(self.at_least, k), at_most=_requested(self.at_most, k))

    def absent(self, groups: Sequence[str]) -> list[str]:
        """Return the groups that have a bound of their own and no candidates; their names may be misspelt.

        Parameters
        ----------
        groups : sequence of str
            The groups that candidates are in.

        Returns
        -------
        list of str
        """
        present = set(groups)
        named = [group for bound in (self.at_least, self.at_most) if isinstance(bound, Mapping) for group in bound]
        return [group for group in dict.fromkeys(named) if group not in present]


def whole_count(bound: int | float, k: int, *, up: bool) -> int:
    """Return a count, or a share of k rounded to a whole number; the share is taken as it is written.

    Examples
    --------
    >>> whole_count(0.07, 100, up=True), whole_count(0.5, 5, up=True), whole_count(3, 5, up=True)
    (7, 3, 3)
    """
    if isinstance(bound, int):
        return bound
    share = Fraction(str(bound)) * k
    return math.ceil(share) if up else math.floor(share)


def bound_of(bound: Bound, group: str | None) -> int | float | None:
    """Return the bound of a group; without a group, the one that holds for every group."""
    if isinstance(bound, Mapping):
        return None if group is None else bound.get(group)
    return bound


def _requested(bound: Bound, k: int) -> Bound:
    if isinstance(bound, Mapping):
        return {group: k if isinstance(each, float) and each == 1 else each for group, each in bound.items()}
    return k if isinstance(bound, float) and bound == 1 else bound


def _by_group(bound: Bound, groups: Mapping[str, None]) -> list[tuple[str, int | float]]:
    if bound is None:
        return []
    return list(bound.items()) if isinstance(bound, Mapping) else [(group, bound) for group in groups]


def _only(groups: Mapping[str, None], bounds: dict[str, int]) -> dict[str, int]:
    return {group: bound for group, bound in bounds.items() if group in groups}
