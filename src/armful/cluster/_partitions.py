"""Exact choice from partitioned arms: each partition keeps the arms that could be chosen, and these are merged."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray
from armful.constraints._ranks import Ranks
from armful.randomness import Keys
from armful.scan._exact_choice import CandidatePool, with_exact_scores
from armful.scan._pruning import Pruner
from armful.scan._rounding import Rounding, interval
from armful.scan._scoring import Scoring
from armful.scan._threads import blas_at_one_thread
from armful.tables.rows import Rows


@dataclass(frozen=True, eq=False)
class Survivors:
    """Arms of some partitions that could be in the best set of all, by rising index; each `(m,)`.

    indices: among all arms. scores: exact ones. groups: of the finest level, if the constraint has groups.
    """

    indices: IntArray
    scores: FloatArray
    groups: NDArray[Any] | None

    def __sizeof__(self) -> int:
        """Return the size in bytes, by which dask decides where to send it."""
        return self.indices.nbytes + self.scores.nbytes + (0 if self.groups is None else self.groups.nbytes)


class Partition(Rows):
    """The arms from index `begin` to `end` of all, as `Rows` addressed by these indices.

    rows: holds them; its first row is the arm `first`. The block read last is cached for `take`, so that scoring some
    of its arms again reads nothing twice.
    """

    def __init__(self, rows: Rows, begin: int, end: int, first: int) -> None:
        self.begin, self.end = begin, end
        self.n_arms, self.n_features, self.block_rows = end - begin, rows.n_features, rows.block_rows
        self._rows, self._first = rows, first
        self._last = begin, np.empty((0, rows.n_features))

    @property
    def blocks(self) -> list[slice]:
        """The blocks of `rows`, as slices of arm indices."""
        first = self._first
        blocks = [slice(block.start + first, block.stop + first) for block in self._rows.blocks]
        return [block for block in blocks if self.begin <= block.start and block.stop <= self.end]

    def rows(self, begin: int, end: int) -> NDArray[Any]:
        """Return the features of the arms `begin` to `end`, `(end - begin, n_features)`."""
        block = self._rows.rows(begin - self._first, end - self._first)
        self._last = begin, block
        return block

    def take(self, indices: IntArray) -> FloatArray:
        """Return the features of these arms, `(k, n_features)`."""
        begin, block = self._last
        if indices.size and begin <= indices.min() and indices.max() < begin + len(block):
            return np.asarray(block[indices - begin], dtype=np.float64)
        return self._rows.take(indices - self._first)

    def ids_of(self, indices: IntArray) -> NDArray[Any] | None:
        """Return the ids of these arms, `(k,)`; None if they have no ids."""
        return self._rows.ids_of(indices - self._first)


@dataclass(frozen=True, eq=False)
class RoundInfo:
    """What every partition needs to know of a round; its size does not depend on the number of arms.

    scoring: without caps, which are sent with the partition. ranks: without the groups of the arms, which are sent with
    the partition. key: for ties. thresholds: lower bounds, known beforehand, on the scores of arms that are chosen.
    """

    scoring: Scoring
    ranks: Ranks
    key: Keys
    thresholds: FloatArray

    @classmethod
    def of(
        cls, scoring: Scoring, ranks: Ranks, key: Keys, known: tuple[IntArray, FloatArray] | None = None
    ) -> "RoundInfo":
        """Return the round of a policy's scores and a constraint's ranks.

        known: the indices and the features of some arms, whose scores give thresholds. Another machine may round
        differently, so the lowest scores that these arms could get on any machine count.
        """
        thresholds = ranks.no_thresholds
        if known is not None and known[0].size and scoring.bounds_scores:
            indices, X = known
            arms, rounding = scoring.arms(X, indices), Rounding.of(scoring.state, np.float64)
            low_mean, high_mean, low_width, high_width = interval(*arms.mean_and_width, rounding, rounding)
            low, high = (scoring.arms(X, indices), arms)
            low.mean_and_width, high.mean_and_width = (low_mean, low_width), (high_mean, high_width)
            lowest = scoring.lowest(low, high)
            _, thresholds = ranks.reduce(indices, lowest, key)
        return cls(scoring.for_partition(None, 0), replace(ranks, of_arm=None, begin=0), key, thresholds)

    @blas_at_one_thread()  # as on every other machine
    def prune(self, partition: Partition, groups: NDArray[Any] | None, caps: FloatArray | None) -> Survivors:
        """Return the arms of a partition that could be chosen. groups, caps: of its arms, `(partition.n_arms,)`."""
        ranks = replace(self.ranks, of_arm=groups, begin=partition.begin)
        pruner = Pruner(self.scoring.for_partition(caps, partition.begin), partition, ranks, None)
        pool = CandidatePool(ranks, self.key)
        pruner.thresholds = self.thresholds
        for i, block in enumerate(partition.blocks):
            scores, indices = with_exact_scores(pruner.prune(block), pruner)
            pool.add((indices, scores, scores))
            if i == 0:
                pool.reduce()  # so that the next blocks begin with thresholds
            pruner.thresholds = np.maximum(pruner.thresholds, pool.thresholds)
        indices, scores, _ = pool.reduce()
        order = np.argsort(indices)
        return Survivors(indices[order], scores[order], ranks.groups_of(indices[order]))

    def merge(self, survivors: Sequence[Survivors]) -> Survivors:
        """Merge the survivors of several partitions, in rising order."""
        indices = np.concatenate([each.indices for each in survivors])
        scores = np.concatenate([each.scores for each in survivors])
        groups = [each.groups for each in survivors if each.groups is not None]
        of_arm = np.concatenate(groups) if groups else None
        kept, _ = self.ranks.reduce(indices, scores, self.key, of_arm)
        return Survivors(indices[kept], scores[kept], None if of_arm is None else of_arm[kept])
