"""Rank-based selection, per partition and then merged: what `TopK`, `AtMost`, `Quotas` and `NestedQuotas` share.

Equal scores are ranked by tie keys (`randomness.tie_keys`), random numbers that depend on the arm index alone: so all
arms have one order, and the best set is the same however they are partitioned.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray
from armful.constraints._checks import NO_ARMS
from armful.constraints._tops import BoolArray, GroupedScores, top
from armful.randomness import Keys, TieKeys, tie_keys

MANY_ARMS, SHORTLISTS = 20_000, (2, 8)
"""From so many arms on, these multiples of the number that can be chosen are ranked, and all only if both fail."""


@dataclass(frozen=True, eq=False)
class GroupBounds:
    """A partition of the arms into groups, with `lower <= chosen <= upper` in each.

    Attributes
    ----------
    of_finest : ndarray of shape (n_finest,)
        The group that each group of the finest level lies in; for the finest level itself, 0, 1, 2, ...
    lower, upper : ndarray of shape (n_groups,)
        How many arms of each group may be chosen.
    """

    of_finest: IntArray
    lower: IntArray
    upper: IntArray


@dataclass(frozen=True, eq=False)
class Ranks:
    """From `low` to `high` arms, within bounds on groups: a family of sets in which an arm's rank decides.

    Attributes
    ----------
    levels : sequence of GroupBounds
        Bounds on groups, on groups of these groups, and so on, the finest first; empty where only the size is bounded.
    low, high : int
        How many arms are chosen in all, at least and at most.
    of_arm : ndarray of shape (n_arms,), optional
        The group of the finest level that each arm is in; needed if there are levels.
    begin : int
        The index of the first arm in `of_arm`, where that is of one partition only.
    """

    levels: Sequence[GroupBounds]
    low: int
    high: int
    of_arm: NDArray[Any] | None = None
    begin: int = 0

    def __post_init__(self) -> None:
        if self.of_arm is not None and self.of_arm.dtype.kind not in "iu":
            raise ValueError(f"of_arm must be the number of a group for each arm, got {self.of_arm.dtype}")

    def part(self, begin: int, end: int) -> Self:
        """Return the same for the arms from index `begin` to `end` alone."""
        return replace(self, of_arm=self.groups_of(slice(begin, end)), begin=begin)

    @property
    def no_thresholds(self) -> FloatArray:
        """Thresholds that no arm is below."""
        return np.full(self.levels[0].lower.size if self.levels else (), -np.inf)

    def thresholds_of(self, thresholds: FloatArray, arm_indices: IntArray | slice) -> FloatArray:
        """Return the threshold of each of these arms, or one for all."""
        groups = self.groups_of(arm_indices)
        return thresholds if groups is None else thresholds[groups]

    def groups_of(self, arm_indices: IntArray | slice) -> NDArray[Any] | None:
        """Return the finest group of each of these arms; None where there are no groups."""
        if self.of_arm is None:
            return None
        if isinstance(arm_indices, slice):
            return self.of_arm[arm_indices.start - self.begin : arm_indices.stop - self.begin]
        return self.of_arm[arm_indices - self.begin]

    def violation(self, chosen: IntArray) -> int:
        """Return by how many of these distinct arms the bounds are missed, group by group and in all."""
        missed = max(self.low - chosen.size, 0) + max(chosen.size - self.high, 0)
        groups = self.groups_of(chosen)
        for level in self.levels:
            taken = np.bincount(level.of_finest[groups], minlength=level.lower.size)
            missed += int(np.maximum(level.lower - taken, 0).sum() + np.maximum(taken - level.upper, 0).sum())
        return missed

    def reduce(
        self, arm_indices: IntArray, scores: FloatArray, key: Keys, groups: NDArray[Any] | None = None
    ) -> tuple[BoolArray, FloatArray]:
        """Return which of these arms could be in the best set of these and any others, and thresholds for the others.

        There is a threshold for each group of the finest level (one for all arms, where there are no groups): an arm
        that scores below it cannot be in the best set of a collection that holds these arms. `groups` is the finest
        group of each arm, where `of_arm` is not known. For the thresholds, lower bounds on the scores suffice.

        Proof. Let an arm `a` be in the best set S. (1) If `upper` arms of its group rank above it, one of them is not
        in S and can replace it. (2) Say that its group can spare `a`: `lower` arms rank above it. If `upper` arms of
        the next larger group rank above it, no more of them from a smaller group than that allows, then one of them is
        not in S and can replace it: otherwise S would hold as many of each smaller group as those do, and `a` as well,
        which is more than `upper`. (3) In the same way a group whose `lower` best rank above `a` can spare it. (4) All
        arms are one last group, of `low` to `high`, which also drops an arm that can be spared and scores below 0. An
        arm that its group may need is kept, but beyond `upper` of a larger group it does not compete with others.
        """
        finest: Any = self.groups_of(arm_indices) if groups is None else groups
        rivals, needed = np.ones(arm_indices.size, dtype=bool), np.zeros(arm_indices.size, dtype=bool)
        threshold, spared_below = self.no_thresholds, np.full(self.no_thresholds.shape, np.inf)
        for level in self.levels:
            arms = np.flatnonzero(rivals)
            grouped = GroupedScores(
                scores[arms], level.of_finest[finest[arms]], level.lower.size, key, arm_indices[arms]
            )
            in_lower, enough_at = grouped.top(level.lower)
            in_upper, full_at = grouped.top(level.upper)
            needed[arms[in_lower]] = True
            rivals[arms[~in_upper]] = False
            threshold = np.maximum(threshold, np.minimum(spared_below, full_at[level.of_finest]))
            spared_below = np.minimum(spared_below, enough_at[level.of_finest])
        arms = np.flatnonzero(rivals)
        in_high, full_at_all = top(scores[arms], self.high, key, arm_indices[arms])
        in_low, enough = top(scores[arms], self.low, key, arm_indices[arms])
        rivals[arms] = in_high & (in_low | (scores[arms] >= 0))
        at_all = max(full_at_all, min(enough, 0.0))
        return rivals | needed, np.maximum(threshold, np.minimum(spared_below, at_all))

    def best(
        self,
        scores: FloatArray,
        key: Keys,
        arm_indices: IntArray | None = None,
        *,
        required: IntArray = NO_ARMS,
        excluded: IntArray = NO_ARMS,
    ) -> IntArray:
        """Return the best set, as positions in `scores` in rising order.

        Exact for scores of any sign. By induction from the finest groups: what a group may give is, for every number m
        within its bounds, its needed arms and then the best m - (needed) of its spare ones, and this gain is concave in
        m. The best division of a number among concave gains takes the largest next gains, whichever group they are in:
        so the spare arms of all groups within a larger one are ranked together, its lower bound turns the best of them
        into needed ones, and its upper bound drops the worst. Required arms are needed from the start.

        Where few of many arms can be chosen, a shortlist of the best is tried first: when it fills the total, no arm
        below it could have come in. `arm_indices` says which arms the scores are of, if not of all; `required` and
        `excluded` are positions in `scores`. Where these make a bound impossible, the answer breaks it.
        """
        finest: Any = self.of_arm if arm_indices is None else self.groups_of(arm_indices)
        groups = [finest, *(level.of_finest[finest] for level in self.levels[1:])]
        spare = np.ones(scores.size, dtype=bool)
        spare[required], spare[excluded] = False, False
        greedy = partial(self._greedy, groups, scores, key, arm_indices, required)
        for multiple in SHORTLISTS if scores.size >= MANY_ARMS else ():
            if multiple * self.high >= scores.size:
                break
            least = float(np.partition(scores, -multiple * self.high)[-multiple * self.high])
            chosen, last = greedy(spare & self._shortlist(groups, scores >= least))
            if chosen.size == self.high and last >= least and not self.violation(at(arm_indices, chosen)):
                return chosen
        return greedy(spare)[0]

    def _shortlist(self, groups: Sequence[IntArray], good: BoolArray) -> BoolArray:
        """Return the good arms, and all arms of groups that have fewer good ones than they need."""
        listed = good.copy()
        for level, of_arm in zip(self.levels, groups, strict=False):
            lacking = np.bincount(of_arm[good], minlength=level.lower.size) < level.lower
            if lacking.any():
                listed |= lacking[of_arm]
        return listed

    def _greedy(
        self,
        groups: Sequence[IntArray],
        scores: FloatArray,
        key: Keys,
        arm_indices: IntArray | None,
        required: IntArray,
        spare: BoolArray,
    ) -> tuple[IntArray, float]:
        """Return the best set of required and spare arms, and the least score that any other arm would have to beat.

        Not counted are arms that the finest groups need: of such a group all arms are spare.
        """
        spare, needed = spare.copy(), np.zeros(scores.size, dtype=bool)
        needed[required] = True
        least = np.inf
        for level, of_arm in zip(self.levels, groups, strict=False):
            taken = np.bincount(of_arm[needed], minlength=level.lower.size)
            arms = np.flatnonzero(spare)
            grouped = GroupedScores(scores[arms], of_arm[arms], level.lower.size, key, at(arm_indices, arms))
            becomes_needed = grouped.top(np.maximum(level.lower - taken, 0))[0]
            spare[arms[~grouped.top(np.maximum(level.upper - taken, 0))[0]]] = False
            needed[arms[becomes_needed]], spare[arms[becomes_needed]] = True, False
            if level is not self.levels[0]:
                least = scores[arms[becomes_needed]].min(initial=least)
        kept, candidates = np.flatnonzero(needed), np.flatnonzero(spare)
        size = min(max(self.high - kept.size, 0), candidates.size)
        candidates = candidates[largest_of_one(scores[candidates], size, key, at(arm_indices, candidates))]
        forced = max(self.low - kept.size, 0)
        gainful = candidates[forced:][scores[candidates[forced:]] >= 0]
        taken = np.concatenate([candidates[:forced], gainful])
        return np.sort(np.concatenate([kept, taken])), float(scores[taken].min(initial=least))


def at(arm_indices: IntArray | None, positions: IntArray) -> IntArray:
    """Return the arm indices at these positions; the positions themselves where all arms are meant."""
    return positions if arm_indices is None else arm_indices[positions]


def largest_of_one(scores: FloatArray, k: int, key: Keys, arm_indices: IntArray | None = None) -> IntArray:
    """Return the positions of the k largest of `scores` `(n_arms,)`, largest first, equal scores by tie key."""
    if k == 0:
        return NO_ARMS
    others = scores.size - min(k + 1, scores.size)  # one more than k: it may tie with the last
    top = scores.argpartition(others)[others:]
    falling = scores[top].argsort()[::-1]
    top = top[falling]
    values = scores[top]
    if np.count_nonzero(values[1:] == values[:-1]):
        candidates = np.flatnonzero(scores >= values[k - 1])
        top = candidates[np.lexsort((tie_keys(key, at(arm_indices, candidates)), -scores[candidates]))]
    return top[:k]


def largest(scores: FloatArray, k: int, keys: TieKeys) -> IntArray:
    """Return the same for each row of `scores` `(repetitions, n_arms)`, with `keys` `(repetitions,)`."""
    n_rows, n_arms = scores.shape
    others = n_arms - min(k + 1, n_arms)
    rows = np.arange(n_rows)[:, None]
    top = scores.argpartition(others, axis=-1)[:, others:]
    top = top[rows, (-scores[rows, top]).argsort(axis=-1)]
    values = scores[rows, top]
    chosen = top[:, :k]
    for row in np.flatnonzero((values[:, 1:] == values[:, :-1]).any(axis=-1)).tolist():
        chosen[row] = largest_of_one(scores[row], k, int(keys[row]))
    return chosen
