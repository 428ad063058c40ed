"""The best arms of each group, by partial sorting."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray
from armful.randomness import Keys, TieKeys, tie_keys

BoolArray = NDArray[np.bool_]

SORTED_BELOW = 1000
"""Arms per group, on average, up to which all are sorted: a partial sort of each group would take longer."""


def top(scores: FloatArray, count: int, key: Keys, arm_indices: IntArray) -> tuple[BoolArray, float]:
    """Return which arms are the first `count`, and the last score among them.

    Equal scores are ranked by tie key. The last score is infinity for no arms, minus infinity if there are fewer.
    """
    if count == 0:
        return np.zeros(scores.size, dtype=bool), np.inf
    if scores.size <= count:
        return np.ones(scores.size, dtype=bool), float(scores.min()) if scores.size == count else -np.inf
    last = float(np.partition(scores, scores.size - count)[scores.size - count])
    first = scores > last
    tied = np.flatnonzero(scores == last)
    room = count - int(np.count_nonzero(first))
    if room < tied.size:
        tied = tied[np.argpartition(tie_keys(key, arm_indices[tied]), room - 1)[:room]]
    first[tied] = True
    return first, last


class GroupedScores:
    """The scores of arms `(n,)` in groups: finds the first so many of each group.

    groups: the number of each arm's group, from 0 up to `n_groups`. key: breaks ties, with `arm_indices`.
    """

    def __init__(
        self, scores: FloatArray, groups: NDArray[np.integer], n_groups: int, key: Keys, arm_indices: IntArray
    ) -> None:
        self._scores, self._groups, self._key, self._arm_indices = scores, groups, key, arm_indices
        self._sizes = np.bincount(groups, minlength=n_groups)
        self._begins = np.cumsum(self._sizes) - self._sizes

    def top(self, counts: IntArray) -> tuple[BoolArray, FloatArray]:
        """Return which arms are the first `counts` `(n_groups,)` of their group, and the last score of each group.

        As in the function `top`.
        """
        if self._scores.size < SORTED_BELOW * self._sizes.size:
            return self._top_of_sorted(counts)
        ordered, arm_indices = self._by_group
        first, last = np.empty(ordered.size, dtype=bool), np.empty(self._sizes.size)
        for i, (begin, size) in enumerate(zip(self._begins.tolist(), self._sizes.tolist(), strict=True)):
            here = slice(begin, begin + size)
            first[here], last[i] = top(ordered[here], int(counts[i]), self._key, arm_indices[here])
        return self._as_given(self._order, first), last

    def _top_of_sorted(self, counts: IntArray) -> tuple[BoolArray, FloatArray]:
        order, rank = self._ranking
        last = np.where(counts == 0, np.inf, -np.inf)
        there = (counts > 0) & (counts <= self._sizes)
        last[there] = self._scores[order[self._begins[there] + counts[there] - 1]]
        return self._as_given(order, rank < counts[self._groups[order]]), last

    def _as_given(self, order: IntArray, values: BoolArray) -> BoolArray:
        given = np.empty_like(values)
        given[order] = values
        return given

    @cached_property
    def _order(self) -> IntArray:
        """The positions of the arms, group by group."""
        return _grouped(self._groups, self._sizes.size)

    @cached_property
    def _by_group(self) -> tuple[FloatArray, IntArray]:
        return self._scores[self._order], self._arm_indices[self._order]

    @cached_property
    def _ranking(self) -> tuple[IntArray, IntArray]:
        """The positions of the arms, group by group and by rank, and the rank of each in its group."""
        order = _ranked(self._scores, tie_keys(self._key, self._arm_indices))
        order = order[_grouped(self._groups[order], self._sizes.size)]
        return order, np.arange(order.size) - self._begins[self._groups[order]]


def _ranked(scores: FloatArray, ties: TieKeys) -> IntArray:
    """Return the arms from the largest score to the smallest, equal scores by tie key."""
    order = np.argsort(-scores)
    ordered = scores[order]
    return np.lexsort((ties, -scores)) if (ordered[1:] == ordered[:-1]).any() else order


def _grouped(groups: NDArray[np.integer], n_groups: int) -> IntArray:
    """Return the stable order that brings groups together; 16-bit integers are sorted faster."""
    return np.argsort(groups.astype(np.uint16) if n_groups <= 2**16 else groups, kind="stable")
