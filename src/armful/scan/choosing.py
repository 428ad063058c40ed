"""The exact choice from many arms."""

from typing import Protocol

import numpy as np
from numpy.random import Generator

from armful.checks import FloatArray, IntArray
from armful.constraints.ranks import Ranks
from armful.constraints.selection import NO_ARMS, Constraint, Selection
from armful.randomness import Keys
from armful.scan.looking import Looking
from armful.scan.memory import Memory
from armful.scan.rows import Rows, blocks_of
from armful.scan.scoring import Scoring
from armful.scan.threads import in_threads

FEW = 4096
"""Candidates are not thinned out before there are more."""


class RankedConstraint(Constraint, Protocol):
    """A constraint under which arms are in or out by their rank: TopK, AtMost, Quotas, NestedQuotas."""

    @property
    def ranks(self) -> Ranks: ...

    def best_among(self, scores: FloatArray, key: Keys, places: IntArray | None = None) -> Selection: ...

    def refuse_misfit(self, n_arms: int) -> None: ...


class Pool:
    """Arms that could be in the best set, of those looked at so far."""

    def __init__(self, ranks: Ranks, key: Keys) -> None:
        self.places, self.scores = NO_ARMS, np.zeros(0)
        self.thresholds = ranks.nothing_known
        self._ranks, self._key = ranks, key
        self._new: list[tuple[IntArray, FloatArray]] = []
        self._size, self._reduce_at = 0, FEW

    def add(self, places: IntArray, scores: FloatArray) -> None:
        """Take in more candidates; when there are many, keep those that still could be chosen."""
        self._new.append((places, scores))
        self._size += places.size
        if self._size > self._reduce_at:
            self._gather()
            kept, raised = self._ranks.reduce(self.places, self.scores, self._key)
            self.places, self.scores = self.places[kept], self.scores[kept]
            self.thresholds = np.maximum(self.thresholds, raised)
            self._size = self.places.size
            self._reduce_at = max(2 * self._size, FEW)

    def best(self, constraint: RankedConstraint) -> Selection:
        """The best set."""
        self._gather()
        order = np.argsort(self.places)
        return constraint.best_among(self.scores[order], self._key, self.places[order])

    def _gather(self) -> None:
        self.places = np.concatenate([self.places, *(places for places, _ in self._new)])
        self.scores = np.concatenate([self.scores, *(scores for _, scores in self._new)])
        self._new = []


def choose_from(
    rows: Rows, scoring: Scoring, constraint: RankedConstraint, rng: Generator, memory: Memory | None
) -> Selection:
    """The best set of all arms: exactly the one that scoring each of them in float64 would give.

    memory: what is known of these arms from earlier rounds, if they are the same ones.
    """
    constraint.refuse_misfit(rows.n_arms)
    key = scoring.key_for_ties(rng, rows.take(np.zeros(1, dtype=np.int64)))
    if memory is not None:
        memory.bring_to(scoring.state)
    ranks = constraint.ranks
    looking, pool = Looking(scoring, rows, ranks, key, memory), Pool(ranks, key)
    if memory is not None and memory.chosen.size:
        looking.thresholds = ranks.reduce(*looking.at(memory.chosen), key)[1]
    blocks = blocks_of(rows)
    for candidates in in_threads(looking.block, blocks, len(blocks)):
        pool.add(*candidates)
        looking.thresholds = np.maximum(looking.thresholds, pool.thresholds)
    selection = pool.best(constraint)
    if memory is not None:
        memory.chosen = selection.indices
    return selection
