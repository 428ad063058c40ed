"""The exact choice from many arms."""

from typing import Any

import numpy as np

from armful.checks import FloatArray, IntArray
from armful.constraints._checks import NO_ARMS
from armful.constraints._ranks import Ranks
from armful.constraints.base import Selection
from armful.constraints.ranked import RankedConstraint
from armful.randomness import Keys
from armful.scan._memory import Memory
from armful.scan._pruning import Candidates, Pruner
from armful.scan._scoring import Scoring
from armful.scan._threads import blas_at_one_thread, in_threads
from armful.tables.rows import Rows

FEW = 4096
"""Candidates are not thinned out before there are more."""


class Pool:
    """Arms that could be in the best set, of those looked at so far."""

    def __init__(self, ranks: Ranks, key: Keys) -> None:
        self.thresholds = ranks.no_thresholds
        self._ranks, self._key = ranks, key
        self._parts: list[Candidates] = [(NO_ARMS, np.zeros(0), np.zeros(0))]
        self._size, self._reduce_at = 0, FEW

    def add(self, candidates: Candidates) -> None:
        """Take in more; when there are many, keep those that still could be chosen."""
        self._parts.append(candidates)
        self._size += candidates[0].size
        if self._size > self._reduce_at:
            self.reduce()

    def reduce(self) -> Candidates:
        """Keep those that still could be chosen: by rank, or, where scores are not known exactly, by the thresholds."""
        places, lowest, highest = (np.concatenate(each) for each in zip(*self._parts, strict=True))
        kept, raised = self._ranks.reduce(places, lowest, self._key)
        self.thresholds = np.maximum(self.thresholds, raised)
        kept |= (lowest < highest) & (highest >= self._ranks.thresholds_of(self.thresholds, places))
        left = places[kept], lowest[kept], highest[kept]
        self._parts, self._size = [left], left[0].size
        self._reduce_at = max(2 * self._size, FEW)
        return left


def choose_from(
    rows: Rows, scoring: Scoring, constraint: RankedConstraint, memory: Memory | None
) -> tuple[Selection, FloatArray, Any]:
    """The best set of all arms, exactly the one that scoring each in float64 would give, its features and its scores.

    scoring: with the key for ties. memory: what is known of these arms from earlier rounds, if they are the same ones.
    """
    if memory is not None:
        memory.bring_to(scoring.state)
    with blas_at_one_thread():  # with another number of threads a score may be rounded in another way
        return _choose_from(rows, scoring, constraint, memory)


def _choose_from(
    rows: Rows, scoring: Scoring, constraint: RankedConstraint, memory: Memory | None
) -> tuple[Selection, FloatArray, Any]:
    ranks, key = constraint.ranks, scoring.key
    looking, pool = Pruner(scoring, rows, ranks, memory), Pool(ranks, key)
    if memory is not None and memory.chosen.size:
        chosen, features = memory.drop_chosen()
        pool.add(looking.know(features, chosen))
        pool.reduce()
        looking.thresholds = pool.thresholds
    blocks = rows.blocks
    for candidates in in_threads(looking.block, blocks, len(blocks)):
        pool.add(candidates)
        looking.thresholds = np.maximum(looking.thresholds, pool.thresholds)
    scores, places = settled(pool.reduce(), looking)
    picked = constraint.best_among(scores, key, places)
    return picked, *looking.chosen(picked.indices)


def settled(candidates: Candidates, looking: Pruner) -> tuple[FloatArray, IntArray]:
    """The exact scores and the places, in rising order of place."""
    order = np.argsort(candidates[0])
    places, scores, highest = candidates[0][order], candidates[1][order], candidates[2][order]
    in_question = np.flatnonzero(scores < highest)
    step = looking.rows.block_rows
    parts = [in_question[begin : begin + step] for begin in range(0, in_question.size, step)]
    for part, (_, exact, _) in zip(
        parts, in_threads(lambda part: looking.at(places[part]), parts, len(parts)), strict=True
    ):
        scores[part] = exact
    return scores, places
