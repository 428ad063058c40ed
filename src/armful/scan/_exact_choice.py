"""The exact choice from many arms: prune block by block, collect candidates, score the rest exactly."""

from typing import Any

import numpy as np

from armful.checks import FloatArray, IntArray
from armful.constraints._checks import NO_ARMS
from armful.constraints._ranks import Ranks
from armful.constraints.ranked import RankedConstraint
from armful.constraints.selection import Selection
from armful.randomness import Keys
from armful.scan._pruning import Candidates, Pruner
from armful.scan._scoring import Scoring
from armful.scan._table_cache import TableCache
from armful.scan._threads import blas_at_one_thread, in_threads
from armful.tables.rows import Rows

REDUCE_FROM = 4096
"""Candidates are reduced by rank when there are more than this, and than twice as many as can be chosen."""


class CandidatePool:
    """The arms of the blocks so far that could be in the best set, and the thresholds that follow from them."""

    def __init__(self, ranks: Ranks, key: Keys) -> None:
        self.thresholds = ranks.no_thresholds
        self._ranks, self._key = ranks, key
        self._parts: list[Candidates] = [(NO_ARMS, np.zeros(0), np.zeros(0))]
        self._fewest = max(REDUCE_FROM, 2 * ranks.high)
        self._size, self._reduce_at = 0, self._fewest

    def add(self, candidates: Candidates) -> None:
        """Add the candidates of a block, and reduce all when there are many."""
        self._parts.append(candidates)
        self._size += candidates[0].size
        if self._size > self._reduce_at:
            self.reduce()

    def reduce(self) -> Candidates:
        """Keep and return those that could still be chosen: by rank, or by the thresholds if scores are not exact."""
        arm_indices, lowest, highest = (np.concatenate(each) for each in zip(*self._parts, strict=True))
        kept, raised = self._ranks.reduce(arm_indices, lowest, self._key)
        self.thresholds = np.maximum(self.thresholds, raised)
        kept |= (lowest < highest) & (highest >= self._ranks.thresholds_of(self.thresholds, arm_indices))
        left = arm_indices[kept], lowest[kept], highest[kept]
        self._parts, self._size = [left], left[0].size
        self._reduce_at = max(2 * self._size, self._fewest)
        return left


@blas_at_one_thread()  # another number of threads may round a score differently
def choose_from(
    rows: Rows, scoring: Scoring, constraint: RankedConstraint, cache: TableCache | None
) -> tuple[Selection, FloatArray, Any]:
    """Return the best set of all arms, with its features and scores: the set that scoring every arm in float64 gives.

    scoring: with the key for ties. cache: what earlier rounds on the same table left.
    """
    if cache is not None:
        cache.update_to(scoring.state)
    ranks, key = constraint.ranks, scoring.key
    pruner, pool = Pruner(scoring, rows, ranks, cache), CandidatePool(ranks, key)
    if cache is not None and cache.chosen.size:
        chosen, features = cache.pop_chosen()
        pool.add(pruner.score_last_chosen(features, chosen))
        pool.reduce()
        pruner.thresholds = pool.thresholds
    blocks = rows.blocks
    for candidates in in_threads(pruner.prune, blocks, len(blocks)):
        pool.add(candidates)
        pruner.thresholds = np.maximum(pruner.thresholds, pool.thresholds)
    scores, arm_indices = with_exact_scores(pool.reduce(), pruner, keep=True)
    picked = constraint.best_among(scores, key, arm_indices)
    return picked, *pruner.features_and_scores(picked.indices)


def with_exact_scores(candidates: Candidates, pruner: Pruner, *, keep: bool = False) -> tuple[FloatArray, IntArray]:
    """Return the exact scores of the candidates and their arm indices, by rising index; keep: as in `score_parts`."""
    order = np.argsort(candidates[0])
    arm_indices, scores, highest = candidates[0][order], candidates[1][order], candidates[2][order]
    inexact = np.flatnonzero(scores < highest)
    step = pruner.rows.block_rows
    parts = [inexact[begin : begin + step] for begin in range(0, inexact.size, step)]
    for part, values in zip(parts, pruner.score_parts(arm_indices, parts, keep=keep), strict=True):
        scores[part] = values
    return scores, arm_indices
