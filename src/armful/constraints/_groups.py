"""Groups of arms by label, with bounds on how many come from each: what `Quotas` and `NestedQuotas` share."""

import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from armful import checks
from armful.checks import IntArray
from armful.constraints._checks import numbered
from armful.constraints._ranks import GroupBounds, Ranks
from armful.constraints._value import hashable
from armful.errors import InfeasibleError

LARGEST_COUNT = 2**62

Counts = int | Mapping[Hashable, int]
Total = int | tuple[int, int] | None


COUNTED_AT_A_TIME = 1 << 18
"""Codes are counted so many at a time, since numpy makes int64 of them."""


def counted(codes: IntArray, n_groups: int) -> IntArray:
    """Return how often each code occurs, `(n_groups,)`."""
    counts = np.zeros(n_groups, dtype=np.int64)
    for begin in range(0, codes.size, COUNTED_AT_A_TIME):
        counts += np.bincount(codes[begin : begin + COUNTED_AT_A_TIME], minlength=n_groups)
    return counts


@dataclass(frozen=True, eq=False)
class Groups:
    """A group for each arm: `labels` in order of appearance, and the number of each arm's group, `of_arm` `(n_arms,)`.

    `kind` is what a group is called in errors, such as the name of its level.
    """

    labels: list[Hashable]
    of_arm: IntArray
    kind: str = "group"

    @cached_property
    def sizes(self) -> IntArray:
        """The number of arms in each group."""
        return counted(self.of_arm, len(self.labels))

    @classmethod
    def of(cls, groups: "Iterable[Hashable] | Groups") -> "Groups":
        """Return the groups of a label for each arm."""
        if isinstance(groups, Groups):
            return groups
        if isinstance(groups, np.ndarray) and groups.ndim != 1:
            raise ValueError(f"groups must be one label for each arm, got an array of shape {groups.shape}")
        try:
            labels, of_arm = numbered(groups)
        except TypeError:
            raise ValueError("groups must be hashable labels, one for each arm") from None
        if not labels:
            raise ValueError("groups must be one label for each arm, got none")
        if any(label != label for label in labels):  # noqa: PLR0124 - NaN, which equals nothing
            raise ValueError("groups must be labels that equal themselves, got NaN; name the arms without a group")
        return cls(labels, of_arm)

    def name(self, group: int) -> str:
        """Return what a group is called in errors, by its number."""
        return f"{self.kind} {self.labels[group]!r}"

    def counts(self, name: str, counts: Counts | None, default: IntArray) -> IntArray:
        """Return a number for each group: `counts` for those it names, `default` for the rest."""
        if counts is None:
            return default
        if not isinstance(counts, Mapping):
            return np.full(len(self.labels), min(checks.count(name, counts, minimum=0), LARGEST_COUNT))
        result = default.copy()
        number_of = {label: i for i, label in enumerate(self.labels)}
        for label, number in counts.items():
            checks.count(f"{name} of {self.kind} {label!r}", number, minimum=0)
            if label in number_of:
                result[number_of[label]] = min(number, LARGEST_COUNT)
            elif name == "at_most":
                warnings.warn(f"at_most names {self.kind} {label!r}, which no arm is in", stacklevel=2)
            elif number > 0:
                raise InfeasibleError(f"{self.kind} {label!r} needs {_phrase(name, number)}, none are there")
        return result


@dataclass(frozen=True, eq=False)
class Level:
    """Groups with bounds: `lower <= chosen <= upper` in each."""

    groups: Groups
    lower: IntArray
    upper: IntArray

    @classmethod
    def exactly(cls, groups: Groups, counts: Counts) -> "Level":
        """Return exact counts for each group, 0 for one that is not named."""
        numbers = groups.counts("exactly", counts, default=np.zeros_like(groups.sizes))
        return cls._checked(groups, numbers, numbers, "exactly")

    @classmethod
    def between(cls, groups: Groups, at_least: Counts | None, at_most: Counts | None) -> "Level":
        """Return bounds for each group, 0 and its size for one that is not named."""
        lower = groups.counts("at_least", at_least, default=np.zeros_like(groups.sizes))
        upper = np.minimum(groups.counts("at_most", at_most, default=groups.sizes), groups.sizes)
        return cls._checked(groups, lower, upper, "at_least")

    @classmethod
    def _checked(cls, groups: Groups, lower: IntArray, upper: IntArray, name: str) -> "Level":
        for i in np.flatnonzero((lower > groups.sizes) | (lower > upper)).tolist():
            needs = f"{groups.name(i)} needs {_phrase(name, lower[i])}"
            if lower[i] > groups.sizes[i]:
                raise InfeasibleError(f"{needs}, {groups.sizes[i]} are there")
            raise InfeasibleError(f"{needs} and at most {upper[i]}")
        return cls(groups, lower, upper)

    def taken(self, chosen: IntArray) -> IntArray:
        """Return how many of the chosen arms are in each group."""
        return np.bincount(self.groups.of_arm[chosen], minlength=len(self.groups.labels))

    def binding(self, chosen: IntArray) -> Iterator[tuple[int, str, int]]:
        """Yield the groups that reached a bound: number, `"at_least"`, `"at_most"` or `"exactly"`, and the bound."""
        taken = self.taken(chosen)
        full, least = (taken == self.upper) & (self.upper < self.groups.sizes), (taken == self.lower) & (self.lower > 0)
        for i in np.flatnonzero(full | least).tolist():
            name = "exactly" if full[i] and least[i] else "at_most" if full[i] else "at_least"
            yield i, name, int(taken[i])

    def loosened(self, group: int, name: str) -> dict[str, dict[Hashable, int]]:
        """Return the options `at_least` and `at_most` with this bound of a group loosened by one."""
        lower, upper = (
            dict(zip(self.groups.labels, bounds.tolist(), strict=True)) for bounds in (self.lower, self.upper)
        )
        label = self.groups.labels[group]
        if name in ("at_least", "exactly"):
            lower[label] = max(lower[label] - 1, 0)
        if name in ("at_most", "exactly"):
            upper[label] += 1
        return {"at_least": lower, "at_most": upper}


def as_ranks(levels: Sequence[Level], low: int, high: int) -> Ranks:
    """Return bounds on groups, the finest level first, and on the total as rank-based selection takes them."""
    finest = levels[0].groups
    bounds = [GroupBounds(parents_of(finest, level.groups), level.lower, level.upper) for level in levels]
    return Ranks(bounds, low, high, finest.of_arm)


def total_bounds(total: Total, least: int, most: int) -> tuple[int, int]:
    """Return how many arms are chosen in all, at least and at most, if the groups need `least` and allow `most`."""
    if total is None:
        return least, most
    low, high = total_range(total)
    if low > most:
        raise InfeasibleError(f"a total of {low} arms is asked for, the groups allow at most {most}")
    if high < least:
        raise InfeasibleError(f"a total of {high} arms is asked for, the groups need at least {least}")
    return max(low, least), min(high, most)


def total_range(total: int | tuple[int, int], minimum: int = 1) -> tuple[int, int]:
    """Return the ends of a pair, or a number of at least `minimum` twice."""
    if not isinstance(total, tuple | list):
        number = checks.count("total", total, minimum)
        return number, number
    if len(total) != 2:
        raise ValueError(f"total must be a number or a pair (low, high), got {total!r}")
    low, high = (checks.count("total", end, minimum=0) for end in total)
    if low > high:
        raise ValueError(f"total must be a pair (low, high) with low <= high, got {total!r}")
    return low, high


def bounds_by_name(
    kind: str, names: Iterable[str], at_least: Mapping[str, Counts] | None, at_most: Mapping[str, Counts] | None
) -> tuple[Mapping[str, Counts], Mapping[str, Counts]]:
    """Return both options by the name of a level or column, empty if not given."""
    for option, bounds in (("at_least", at_least), ("at_most", at_most)):
        if bounds is not None and not isinstance(bounds, Mapping):
            raise ValueError(f"{option} must be a mapping by {kind}, like {{'region': 40}}, got {bounds!r}")
        for name in bounds or ():
            if name not in names:
                raise ValueError(f"{option} names a {kind} {name!r}; there are {', '.join(map(repr, names))}")
    return at_least or {}, at_most or {}


def _phrase(name: str, number: int) -> str:
    arms = "arm" if number == 1 else "arms"
    return f"{'exactly' if name == 'exactly' else 'at least'} {number} {arms}"


def parents_of(finer: Groups, coarser: Groups) -> IntArray:
    """Return the group of the coarser level that each group of the finer level lies in."""
    if finer is coarser:
        return np.arange(len(finer.labels))
    parents = np.zeros(len(finer.labels), dtype=np.int64)
    parents[finer.of_arm] = coarser.of_arm
    return parents


@hashable.register(Groups)
def _(groups: Groups) -> Hashable:
    return groups.kind, tuple(groups.labels), groups.of_arm.tobytes()
