"""The exact choice from arms that are divided up: what each part could give to the best set, and how that is merged."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray
from armful.constraints._ranks import Ranks
from armful.randomness import Keys
from armful.scan._exact_choice import Pool, settled
from armful.scan._pruning import Pruner
from armful.scan._rounding import Rounding, interval
from armful.scan._scoring import Scoring
from armful.scan._threads import blas_at_one_thread
from armful.tables.rows import Rows


@dataclass(frozen=True, eq=False)
class Survivors:
    """Arms that could be in the best set of all, by rising place; each `(m,)`.

    places: among all arms. scores: exact ones. groups: of the finest level, if the constraint has groups.
    """

    places: IntArray
    scores: FloatArray
    groups: NDArray[Any] | None

    def __sizeof__(self) -> int:
        """In bytes: whoever sends it about reckons with that."""
        return self.places.nbytes + self.scores.nbytes + (0 if self.groups is None else self.groups.nbytes)


class Part(Rows):
    """The arms from place `begin` to `end` of all, as `Rows` that are asked for by place.

    rows: holds them; its first row stands at place `first`. The block read last is at hand for `take`, so that a
    closer look at some of its arms reads nothing twice.
    """

    def __init__(self, rows: Rows, begin: int, end: int, first: int) -> None:
        self.begin, self.end = begin, end
        self.n_arms, self.n_features, self.block_rows = end - begin, rows.n_features, rows.block_rows
        self._rows, self._first = rows, first
        self._last = begin, np.empty((0, rows.n_features))

    @property
    def blocks(self) -> list[slice]:
        """The places a block at a time, as `rows` is divided."""
        first = self._first
        blocks = [slice(block.start + first, block.stop + first) for block in self._rows.blocks]
        return [block for block in blocks if self.begin <= block.start and block.stop <= self.end]

    def rows(self, begin: int, end: int) -> NDArray[Any]:
        """The features of the arms at places `begin` to `end`, `(end - begin, n_features)`."""
        block = self._rows.rows(begin - self._first, end - self._first)
        self._last = begin, block
        return block

    def take(self, indices: IntArray) -> FloatArray:
        """The features of the arms at these places, `(k, n_features)`."""
        begin, block = self._last
        if indices.size and begin <= indices.min() and indices.max() < begin + len(block):
            return np.asarray(block[indices - begin], dtype=np.float64)
        return self._rows.take(indices - self._first)

    def ids_of(self, indices: IntArray) -> NDArray[Any] | None:
        """What the arms at these places are called, `(k,)`; None if they have no ids."""
        return self._rows.ids_of(indices - self._first)


@dataclass(frozen=True, eq=False)
class Round:
    """All that every part must know to find what it could give, whatever it is part of.

    scoring: without caps, which come with the part. ranks: the bounds, without the groups of the arms, which come with
    the part. key: for ties. thresholds: what an arm's score must not be below, as far as it is known beforehand.
    """

    scoring: Scoring
    ranks: Ranks
    key: Keys
    thresholds: FloatArray

    @classmethod
    def of(cls, scoring: Scoring, ranks: Ranks, key: Keys, known: tuple[IntArray, FloatArray] | None = None) -> "Round":
        """What a policy's scores and a constraint say of any arm.

        known: the places and the features of some arms, that another must not be below if it is to be chosen. The
        machine that scores the other may round in another way: what counts is the lowest score that these could get.
        """
        thresholds = ranks.no_thresholds
        if known is not None and known[0].size and scoring.has_range:
            places, X = known
            arms, rounding = scoring.arms(X, places), Rounding.of(scoring.state, np.float64)
            low_mean, high_mean, low_width, high_width = interval(*arms.mean_and_width, rounding, rounding)
            low, high = (scoring.arms(X, places), arms)
            low.mean_and_width, high.mean_and_width = (low_mean, low_width), (high_mean, high_width)
            lowest = scoring.lowest(low, high)
            _, thresholds = ranks.reduce(places, lowest, key)
        return cls(scoring.of_part(None, 0), replace(ranks, of_arm=None, begin=0), key, thresholds)

    def look_through(self, part: Part, groups: NDArray[Any] | None, caps: FloatArray | None) -> Survivors:
        """The arms of a part that could be chosen. groups, caps: `(part.n_arms,)`, of its arms."""
        with blas_at_one_thread():  # as on every other machine
            return self._look_through(part, groups, caps)

    def _look_through(self, part: Part, groups: NDArray[Any] | None, caps: FloatArray | None) -> Survivors:
        ranks = replace(self.ranks, of_arm=groups, begin=part.begin)
        looking = Pruner(self.scoring.of_part(caps, part.begin), part, ranks, None)
        pool = Pool(ranks, self.key)
        looking.thresholds = self.thresholds
        for i, block in enumerate(part.blocks):
            scores, places = settled(looking.block(block), looking)
            pool.add((places, scores, scores))
            if i == 0:
                pool.reduce()  # the blocks that follow need not be looked at as if nothing were known
            looking.thresholds = np.maximum(looking.thresholds, pool.thresholds)
        places, scores, _ = pool.reduce()
        order = np.argsort(places)
        return Survivors(places[order], scores[order], ranks.groups_of(places[order]))

    def merge(self, found: Sequence[Survivors]) -> Survivors:
        """What several parts, in rising order, could give together."""
        places = np.concatenate([each.places for each in found])
        scores = np.concatenate([each.scores for each in found])
        groups = [each.groups for each in found if each.groups is not None]
        of_arm = np.concatenate(groups) if groups else None
        kept, _ = self.ranks.reduce(places, scores, self.key, of_arm)
        return Survivors(places[kept], scores[kept], None if of_arm is None else of_arm[kept])
