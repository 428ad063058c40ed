"""Arms that are in or out by their rank: what `TopK`, `AtMost`, `Quotas` and `NestedQuotas` share.

Among equal scores ranks are drawn at random (`randomness.tie_keys`), as a function of the arm index: so there is one
order of all arms, and the best set is the same however the arms are divided up and looked at.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray
from armful.constraints._checks import NO_ARMS
from armful.randomness import Keys, TieKeys, tie_keys

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Bounds:
    """One level of groups with `lower <= chosen <= upper` in each.

    of_finest: for each group of the finest level, the group it lies in.
    """

    of_finest: IntArray
    lower: IntArray
    upper: IntArray


@dataclass(frozen=True, eq=False)
class Ranks:
    """From `low` to `high` arms, within bounds on groups within groups, the finest level first.

    of_arm: `(n_arms,)`, the group of the finest level that each arm is in, if there are levels.
    begin: the place of the first arm in `of_arm`, where that speaks of a part of all arms only.
    """

    levels: Sequence[Bounds]
    low: int
    high: int
    of_arm: NDArray[Any] | None = None
    begin: int = 0

    def part(self, begin: int, end: int) -> Self:
        """The same for the arms from place `begin` to `end` alone."""
        return replace(self, of_arm=self.groups_of(slice(begin, end)), begin=begin)

    @property
    def nothing_known(self) -> FloatArray:
        """Thresholds that no arm is below."""
        return np.full(self.levels[0].lower.size if self.levels else (), -np.inf)

    def at_arms(self, thresholds: FloatArray, places: IntArray | slice) -> FloatArray:
        """The threshold of each of these arms, or one for all."""
        groups = self.groups_of(places)
        return thresholds if groups is None else thresholds[groups]

    def groups_of(self, places: IntArray | slice) -> NDArray[Any] | None:
        """The finest group of each of these arms; None where there are no groups."""
        if self.of_arm is None:
            return None
        if isinstance(places, slice):
            return self.of_arm[places.start - self.begin : places.stop - self.begin]
        return self.of_arm[places - self.begin]

    def reduce(
        self, places: IntArray, scores: FloatArray, key: Keys, groups: NDArray[Any] | None = None
    ) -> tuple[BoolArray, FloatArray]:
        """Which of these arms could be in the best set of these and any others, and what another must not be below.

        The second is a threshold for each group of the finest level (for all arms, where there are no groups): an arm
        whose score is below it cannot be in the best set of a collection that holds these arms. groups: the finest
        group of each arm, where `of_arm` does not say it.

        Why: let an arm `a` be in the best set S. (1) If `upper` arms of its group rank above it, one of them is not in
        S and can take its place. (2) Say `a` can be spared by its own group: `lower` arms rank above it. If
        `upper` arms of the next larger group rank above it, no more of them from a smaller group than that allows, then
        one of them is not in S and fits in its place: otherwise S would hold as many of each smaller group as those do,
        and `a` as well, which is more than `upper`. (3) In the same way a group whose `lower` best rank above `a` can
        spare it. (4) All arms together are one last group, of `low` to `high`, from which an arm that can be spared and
        counts less than 0 also goes. An arm that its group may need is kept, but beyond `upper` of a larger group it is
        no rival of others. For the thresholds, scores that are only known not to be larger will do.
        """
        finest = self.groups_of(places) if groups is None else groups
        lot = tie_keys(key, places)
        ranking = ranked(scores, lot) if self.levels else NO_ARMS
        rivals, needed = np.ones(places.size, dtype=bool), np.zeros(places.size, dtype=bool)
        threshold, spared_below = self.nothing_known, np.full(self.nothing_known.shape, np.inf)
        for level in self.levels:
            of_arm = level.of_finest[finest]
            arms = ranking[rivals[ranking]]
            arms = arms[by_group(of_arm[arms], level.lower.size)]
            group = of_arm[arms]
            sizes = np.bincount(group, minlength=level.lower.size)
            begins = np.cumsum(sizes) - sizes
            rank = np.arange(arms.size) - begins[group]
            needed[arms[rank < level.lower[group]]] = True
            rivals[arms[rank >= level.upper[group]]] = False
            full_at = _nth(scores[arms], begins, sizes, level.upper)[level.of_finest]
            enough_at = _nth(scores[arms], begins, sizes, level.lower)[level.of_finest]
            threshold = np.maximum(threshold, np.minimum(spared_below, full_at))
            spared_below = np.minimum(spared_below, enough_at)
        arms = np.flatnonzero(rivals)
        in_high, full_at_all = _top(scores[arms], lot[arms], self.high)
        in_low, enough = _top(scores[arms], lot[arms], self.low)
        rivals[arms] = in_high & (in_low | (scores[arms] >= 0))
        at_all = max(full_at_all, min(enough, 0.0))
        return rivals | needed, np.maximum(threshold, np.minimum(spared_below, at_all))


def ranked(scores: FloatArray, lot: TieKeys) -> IntArray:
    """The arms from the largest score to the smallest, equal scores by lot."""
    order = np.argsort(-scores)
    ordered = scores[order]
    return np.lexsort((lot, -scores)) if (ordered[1:] == ordered[:-1]).any() else order


def by_group(groups: IntArray, n_groups: int) -> IntArray:
    """The order that brings groups together and changes nothing within them; small numbers are sorted faster."""
    return np.argsort(groups.astype(np.uint16) if n_groups <= 2**16 else groups, kind="stable")


def _nth(ordered: FloatArray, begins: IntArray, sizes: IntArray, counts: IntArray) -> FloatArray:
    """The `counts`-th score of each group; infinite where that is 0, minus infinity where there are fewer."""
    nth = np.where(counts == 0, np.inf, -np.inf)
    there = (counts > 0) & (counts <= sizes)
    nth[there] = ordered[begins[there] + counts[there] - 1]
    return nth


def _top(scores: FloatArray, lot: TieKeys, count: int) -> tuple[BoolArray, float]:
    """Which arms are the first `count`, and the last score among them (minus infinity if there are fewer)."""
    if count == 0:
        return np.zeros(scores.size, dtype=bool), np.inf
    if scores.size <= count:
        return np.ones(scores.size, dtype=bool), float(scores.min()) if scores.size == count else -np.inf
    last = float(np.partition(scores, scores.size - count)[scores.size - count])
    top = scores > last
    tied = np.flatnonzero(scores == last)
    room = count - int(top.sum())
    top[tied[np.argpartition(lot[tied], room - 1)[:room]] if room < tied.size else tied] = True
    return top, last


def at(places: IntArray | None, indices: IntArray) -> IntArray:
    """Where the arms stand that are given by number among those at `places`."""
    return indices if places is None else places[indices]


def largest_of_one(scores: FloatArray, k: int, key: Keys, places: IntArray | None = None) -> IntArray:
    """The indices of the k largest of `scores` `(n_arms,)`, largest first, equal scores by lot."""
    if k == 0:
        return NO_ARMS
    others = scores.size - min(k + 1, scores.size)  # one more than k is looked at: it may be as good as the last
    top = scores.argpartition(others)[others:]
    falling = scores[top].argsort()[::-1]
    top = top[falling]
    values = scores[top]
    if np.count_nonzero(values[1:] == values[:-1]):
        candidates = np.flatnonzero(scores >= values[k - 1])
        top = candidates[np.lexsort((tie_keys(key, at(places, candidates)), -scores[candidates]))]
    return top[:k]


def largest(scores: FloatArray, k: int, keys: TieKeys, places: IntArray | None = None) -> IntArray:
    """The same for each row of `scores` `(repetitions, n_arms)`, with `keys` `(repetitions,)`: `(repetitions, k)`."""
    n_rows, n_arms = scores.shape
    if k == 0:
        return np.zeros((n_rows, 0), dtype=np.int64)
    others = n_arms - min(k + 1, n_arms)
    rows = np.arange(n_rows)[:, None]
    top = scores.argpartition(others, axis=-1)[:, others:]
    top = top[rows, (-scores[rows, top]).argsort(axis=-1)]
    values = scores[rows, top]
    chosen = top[:, :k]
    for row in np.flatnonzero((values[:, 1:] == values[:, :-1]).any(axis=-1)).tolist():
        chosen[row] = largest_of_one(scores[row], k, int(keys[row]), places)
    return chosen
