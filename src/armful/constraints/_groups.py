"""Arms in groups with bounds on how many come from each: what `Quotas` and `NestedQuotas` share."""

import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from armful import checks
from armful.checks import FloatArray, IntArray
from armful.constraints._ranks import BoolArray, Bounds, at, by_group, largest_of_one, ranked
from armful.constraints.base import hashable
from armful.errors import InfeasibleError
from armful.randomness import Keys, tie_keys

LARGEST_COUNT = 2**62

MANY_ARMS, SHORTLIST = 20_000, 4
"""From so many arms on, `SHORTLIST` times the total of them is looked at first."""

Counts = int | Mapping[Hashable, int]
Total = int | tuple[int, int] | None


@dataclass(frozen=True, eq=False)
class Groups:
    """A group for each arm.

    labels: the groups, in order of appearance. of_arm: `(n_arms,)`, their numbers. kind: what a group is called in
    errors, such as the name of its level.
    """

    labels: list[Hashable]
    of_arm: IntArray
    kind: str = "group"

    @cached_property
    def sizes(self) -> IntArray:
        """How many arms each group has."""
        return np.bincount(self.of_arm, minlength=len(self.labels))

    @classmethod
    def of(cls, groups: "Iterable[Hashable] | Groups") -> "Groups":
        """From a label for each arm."""
        if isinstance(groups, Groups):
            return groups
        if isinstance(groups, np.ndarray) and groups.ndim != 1:
            raise ValueError(f"groups must be one label for each arm, got an array of shape {groups.shape}")
        if isinstance(groups, np.ndarray) and groups.size == 0:
            raise ValueError("groups must be one label for each arm, got none")
        if isinstance(groups, np.ndarray) and groups.dtype.kind in "iubUS":
            labels, first, codes = np.unique(groups, return_index=True, return_inverse=True)
            appearance = np.argsort(np.argsort(first))
            return cls(labels[np.argsort(first)].tolist(), appearance[codes].astype(np.int64))
        numbers: dict[Hashable, int] = {}
        try:
            coded = [numbers.setdefault(label, len(numbers)) for label in groups]
        except TypeError:
            raise ValueError("groups must be hashable labels, one for each arm") from None
        if not coded:
            raise ValueError("groups must be one label for each arm, got none")
        if any(label != label for label in numbers):  # noqa: PLR0124 - NaN, which equals nothing
            raise ValueError("groups must be labels that equal themselves, got NaN; name the arms without a group")
        return cls(list(numbers), np.array(coded, dtype=np.int64))

    def counts(self, name: str, counts: Counts | None, default: IntArray) -> IntArray:
        """A number for each group: `counts` of those it names, `default` of the rest."""
        if counts is None:
            return default
        if not isinstance(counts, Mapping):
            return np.full(len(self.labels), min(checks.count(name, counts, minimum=0), LARGEST_COUNT))
        result = default.copy()
        place = {label: i for i, label in enumerate(self.labels)}
        for label, number in counts.items():
            checks.count(f"{name} of {self.kind} {label!r}", number, minimum=0)
            if label in place:
                result[place[label]] = min(number, LARGEST_COUNT)
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
        """So many from each group; none from a group that is not named."""
        numbers = groups.counts("exactly", counts, default=np.zeros_like(groups.sizes))
        return cls._checked(groups, numbers, numbers, "exactly")

    @classmethod
    def between(cls, groups: Groups, at_least: Counts | None, at_most: Counts | None) -> "Level":
        """Bounds for each group; 0 and its size for one that is not named."""
        lower = groups.counts("at_least", at_least, default=np.zeros_like(groups.sizes))
        upper = np.minimum(groups.counts("at_most", at_most, default=groups.sizes), groups.sizes)
        return cls._checked(groups, lower, upper, "at_least")

    @classmethod
    def _checked(cls, groups: Groups, lower: IntArray, upper: IntArray, name: str) -> "Level":
        for i in np.flatnonzero((lower > groups.sizes) | (lower > upper)).tolist():
            label, needed = f"{groups.kind} {groups.labels[i]!r}", _phrase(name, lower[i])
            if lower[i] > groups.sizes[i]:
                raise InfeasibleError(f"{label} needs {needed}, {groups.sizes[i]} are there")
            raise InfeasibleError(f"{label} needs {needed} and at most {upper[i]}")
        return cls(groups, lower, upper)

    def among(self, places: IntArray) -> "Level":
        """The same bounds for the arms at `places` alone."""
        return Level(replace(self.groups, of_arm=self.groups.of_arm[places]), self.lower, self.upper)

    def violation(self, chosen: IntArray) -> int:
        """How many arms too few or too many, group by group."""
        taken = self.taken(chosen)
        return int(np.maximum(self.lower - taken, 0).sum() + np.maximum(taken - self.upper, 0).sum())

    def taken(self, chosen: IntArray) -> IntArray:
        """How many of the chosen arms are in each group."""
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
        lower, upper, label = self.bounds("at_least"), self.bounds("at_most"), self.groups.labels[group]
        if name in ("at_least", "exactly"):
            lower[label] = max(lower[label] - 1, 0)
        if name in ("at_most", "exactly"):
            upper[label] += 1
        return {"at_least": lower, "at_most": upper}

    def bounds(self, name: str) -> dict[Hashable, int]:
        """All lower (`"at_least"`) or upper (`"at_most"`) bounds by label."""
        numbers = self.lower if name == "at_least" else self.upper
        return dict(zip(self.groups.labels, numbers.tolist(), strict=True))


def as_bounds(levels: Sequence[Level]) -> list[Bounds]:
    """The levels as `Ranks` wants them."""
    finest = levels[0].groups
    result = []
    for level in levels:
        of_finest = np.zeros(len(finest.labels), dtype=np.int64)
        of_finest[finest.of_arm] = level.groups.of_arm
        result.append(Bounds(of_finest, level.lower, level.upper))
    return result


def total_bounds(total: Total, least: int, most: int) -> tuple[int, int]:
    """How many arms in all, at least and at most, when the groups need `least` and allow `most`."""
    if total is None:
        return least, most
    if isinstance(total, tuple | list):
        if len(total) != 2:
            raise ValueError(f"total must be a number or a pair (low, high), got {total!r}")
        low, high = (checks.count("total", end, minimum=0) for end in total)
        if low > high:
            raise ValueError(f"total must be a pair (low, high) with low <= high, got {total!r}")
    else:
        low = high = checks.count("total", total)
    if low > most:
        raise InfeasibleError(f"a total of {low} arms is asked for, the groups allow at most {most}")
    if high < least:
        raise InfeasibleError(f"a total of {high} arms is asked for, the groups need at least {least}")
    return max(low, least), min(high, most)


def best_in_levels(
    levels: Sequence[Level],
    total: tuple[int, int],
    scores: FloatArray,
    key: Keys,
    *,
    required: IntArray,
    excluded: IntArray,
    places: IntArray | None = None,
) -> IntArray:
    """The best set under bounds on groups, the finest level first, each group within one group of the next level.

    Exact for scores of any sign. By induction from the finest groups: what a group may give is, for every number m
    within its bounds, its needed arms and then the best m - (needed) of its spare ones, and this gain is concave in
    m. The best division of a number among concave gains takes the largest next gains, whichever group they are in:
    so the spare arms of all groups within a larger one are ranked together, its lower bound turns the best of them
    into needed ones, and its upper bound drops the worst. Required arms are needed from the start.

    Where the total is a small part of many arms, a shortlist of the best is tried first: when it fills the total, no
    arm below it could have come in. places: where the arms stand, if `scores` are of some of many arms only;
    the answer is in numbers among these.
    """
    if places is not None:
        levels = [level.among(places) for level in levels]
    spare = np.ones(scores.size, dtype=bool)
    spare[required], spare[excluded] = False, False
    high = total[1]
    if scores.size >= MANY_ARMS and SHORTLIST * high < scores.size:
        least = float(np.partition(scores, -SHORTLIST * high)[-SHORTLIST * high])
        shortlist = spare & _worth_a_look(levels, scores >= least)
        chosen, last = _best_of(shortlist, levels, total, scores, key, required, places)
        filled = chosen.size == high and last >= least
        if filled and not any(level.violation(chosen) for level in levels):
            return chosen
    return _best_of(spare, levels, total, scores, key, required, places)[0]


def _worth_a_look(levels: Sequence[Level], good: BoolArray) -> BoolArray:
    """Good arms, and all arms of groups that need more than they have of them."""
    wanted = good.copy()
    for level in levels:
        of_arm = level.groups.of_arm
        lacking = np.bincount(of_arm[good], minlength=len(level.groups.labels)) < level.lower
        if lacking.any():
            wanted |= lacking[of_arm]
    return wanted


def _best_of(
    spare: BoolArray,
    levels: Sequence[Level],
    total: tuple[int, int],
    scores: FloatArray,
    key: Keys,
    required: IntArray,
    places: IntArray | None,
) -> tuple[IntArray, float]:
    """The best set of required and spare arms, and the least score whose place an arm not looked at could want.

    Not counted are arms that the finest groups need: of such a group all arms are looked at.
    """
    spare, needed = spare.copy(), np.zeros(scores.size, dtype=bool)
    needed[required] = True
    least = np.inf
    for level in levels:
        of_arm = level.groups.of_arm
        taken = np.bincount(of_arm[needed], minlength=len(level.groups.labels))
        arms = np.flatnonzero(spare)
        arms = arms[ranked(scores[arms], tie_keys(key, at(places, arms)))]
        arms = arms[by_group(of_arm[arms], len(level.groups.labels))]
        sizes = np.bincount(of_arm[arms], minlength=len(level.groups.labels))
        place = np.arange(arms.size) - (np.cumsum(sizes) - sizes)[of_arm[arms]]
        becomes_needed = place < (level.lower - taken)[of_arm[arms]]
        spare[arms[place >= (level.upper - taken)[of_arm[arms]]]] = False
        needed[arms[becomes_needed]], spare[arms[becomes_needed]] = True, False
        if level is not levels[0]:
            least = scores[arms[becomes_needed]].min(initial=least)
    kept = np.flatnonzero(needed)
    candidates = np.flatnonzero(spare)
    low, high = total
    size = min(max(high - kept.size, 0), candidates.size)
    candidates = candidates[largest_of_one(scores[candidates], size, key, at(places, candidates))]
    forced = max(low - kept.size, 0)
    wanted = candidates[forced:][scores[candidates[forced:]] >= 0]
    taken = np.concatenate([candidates[:forced], wanted])
    return np.sort(np.concatenate([kept, taken])), float(scores[taken].min(initial=least))


def _phrase(name: str, number: int) -> str:
    arms = "arm" if number == 1 else "arms"
    return f"{'exactly' if name == 'exactly' else 'at least'} {number} {arms}"


def parents_of(finer: Level, coarser: Level) -> IntArray:
    parents = np.zeros(len(finer.groups.labels), dtype=np.int64)
    parents[finer.groups.of_arm] = coarser.groups.of_arm
    return parents


@hashable.register(Groups)
def _(groups: Groups) -> Hashable:
    return groups.kind, tuple(groups.labels), groups.of_arm.tobytes()
