"""Dropping the arms of a block that cannot be chosen, by the cheapest computation that shows it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful import checks
from armful.arms import Arms
from armful.checks import FloatArray, IntArray, NotFiniteError
from armful.constraints._checks import NO_ARMS
from armful.constraints._ranks import Ranks
from armful.constraints._tops import BoolArray
from armful.model.base import Model
from armful.scan._rounding import Rounding, interval
from armful.scan._scoring import Block, Scoring, float32_products
from armful.scan._table_cache import TableCache, widths_are_accurate
from armful.scan._threads import in_threads
from armful.tables.rows import Rows

LARGEST_KEPT_FRACTION = 0.3
"""A stage that keeps more than this fraction of the arms is switched off for the rest of the round."""

FEW = 1024
"""So few arms of a block that remain by their means are scored later, with those of other blocks."""

LARGEST_FLOAT32_ERROR = 0.05
"""float32 is not used if its error may be larger than this fraction of a width."""

Candidates = tuple[IntArray, FloatArray, FloatArray]
"""The arm indices of arms that could be chosen, with lower and upper bounds on their scores."""


MOST_KEPT = 1.5
"""Features of candidates are kept for the end of the round if there are at most this many for each arm to choose."""


class ScoredArms:
    """Arms that were scored exactly, found by index."""

    def __init__(self, arms: Arms) -> None:
        self.arms, self._order = arms, np.argsort(arms.arm_indices, kind="stable")
        self.indices = arms.arm_indices[self._order]

    def find(self, arm_indices: IntArray) -> tuple[IntArray, IntArray]:
        """Return which of some arms are here, as positions in `arm_indices`, and the position of each in `arms`."""
        at = np.minimum(np.searchsorted(self.indices, arm_indices), self.indices.size - 1)
        here = np.flatnonzero(self.indices[at] == arm_indices)
        return here, self._order[at[here]]


class Pruner:
    """Finds the arms of a block that could be chosen, by the first of three stages that is switched on.

    1. With cached bounds on the widths: compute the means, and from both upper bounds on the scores. The arms that
       remain are scored exactly.
    2. Compute means and widths in float32, and bounds on the scores that allow for every rounding error.
    3. Compute everything in float64.

    An arm whose upper bound is below the threshold is dropped. A stage that keeps too many is switched off.

    thresholds: lower limits for the score of a chosen arm, by group (see `Ranks.reduce`); they rise block by block.
    already_scored: rising indices of arms that were scored before the first block; they are not scored again.
    """

    def __init__(self, scoring: Scoring, rows: Rows, ranks: Ranks, cache: TableCache | None) -> None:
        self.scoring, self.rows, self.ranks = scoring, rows, ranks
        self.thresholds, self.already_scored = ranks.no_thresholds, NO_ARMS
        self._scored: list[ScoredArms] = []
        self._lowest_mean, self._zero_width = np.broadcast_to(-np.inf, rows.n_arms), np.broadcast_to(0.0, rows.n_arms)
        self._float64 = Rounding.of(scoring.state, np.float64)
        self._quick_widths = rows.quick_widths(scoring.state.inverse_root, scoring.state.theta)
        matrix = None if self._quick_widths is None else self._quick_widths.matrix
        self._float32 = Rounding.of(scoring.state, np.float32, matrix)
        self._cache = cache if scoring.bounds_scores and widths_are_accurate(scoring.state) else None
        self._use_means = self._cache is not None
        self._use_float32 = scoring.bounds_scores and self._float32.width < LARGEST_FLOAT32_ERROR

    def prune(self, arms: slice) -> Candidates:
        """Return the arms of a block that could be chosen and are not scored already."""
        block = Block(self.rows, arms)
        try:
            return self._by_means(block) or self._in_float32(block) or self._in_float64(block)
        except ValueError:
            checks.refuse_not_finite("features", block.X, first_row=block.start)  # with the row's index among all
            raise

    def _by_means(self, block: Block) -> Candidates | None:
        cache = self._cache
        if cache is None or not self._use_means or not cache.has_bounds(block.start, block.stop):
            return None
        X32 = block.X32
        rounding = self._float32 if X32.dtype == np.float32 else self._float64
        with np.errstate(over="ignore", invalid="ignore"):
            computed = X32 @ self.scoring.state.theta.astype(X32.dtype)
        if not np.isfinite(computed).all():  # too large for float32
            return None
        widths = cache.width_bounds(block.start, block.stop)
        mean = widths * (rounding.mean + self._float64.mean)
        mean += rounding.tiny + self._float64.tiny
        mean += computed
        low = self.scoring.assume(block, self._lowest_mean[: mean.size], self._zero_width[: mean.size])
        highest = self.scoring.highest(low, self.scoring.assume(block, mean, widths))
        kept = np.flatnonzero(self._could_be_chosen(highest, block))
        if kept.size > LARGEST_KEPT_FRACTION * highest.size:
            self._use_means = False
            return None
        arm_indices = kept + block.start
        if kept.size <= FEW and self.rows.in_memory:
            return arm_indices, np.full(kept.size, -np.inf), highest[kept]
        return self.score_exactly(block.X[kept], arm_indices)

    def _in_float32(self, block: Block) -> Candidates | None:
        if not self._use_float32:
            return None
        quick = self._quick_widths
        mean, width = quick.compute(block.start, block.stop) if quick else _in_float32(block.X32, self.scoring.state)
        if not (np.isfinite(mean).all() and np.isfinite(width).all()):
            return None
        low_mean, high_mean, low_width, high_width = interval(mean, width, self._float32, self._float64)
        self._set_bounds(block.arms, high_width)
        low = self.scoring.assume(block, low_mean, low_width)
        high = self.scoring.assume(block, high_mean, high_width)
        lowest, highest = self.scoring.lowest(low, high), self.scoring.highest(low, high)
        thresholds = self.ranks.thresholds_of(self.thresholds, block.arms)
        kept = self._could_be_chosen(highest, block, thresholds)
        undecided = kept & (lowest < thresholds)
        if np.count_nonzero(undecided) > LARGEST_KEPT_FRACTION * kept.size:
            self._use_float32 = False
            return None
        return np.flatnonzero(kept) + block.start, lowest[kept], highest[kept]

    def _in_float64(self, block: Block) -> Candidates:
        arm_indices, scores, _ = self.score_exactly(block.X, np.arange(block.start, block.stop))
        kept = self._could_be_chosen(scores, block)
        return arm_indices[kept], scores[kept], scores[kept]

    def _could_be_chosen(self, highest: FloatArray, block: Block, thresholds: FloatArray | None = None) -> BoolArray:
        """Return which arms of a block reach the threshold and are not scored already.

        thresholds: those of the block, where they must be the same as in another comparison, since another thread may
        raise them at any time.
        """
        if thresholds is None:
            thresholds = self.ranks.thresholds_of(self.thresholds, block.arms)
        kept: BoolArray = highest >= thresholds
        begin, end = np.searchsorted(self.already_scored, (block.start, block.stop))
        kept[self.already_scored[begin:end] - block.start] = False
        return kept

    def score_exactly(self, X: NDArray[Any], arm_indices: IntArray) -> Candidates:
        """Score the arms at these indices, whose features are X."""
        if not arm_indices.size:
            return arm_indices, np.zeros(0), np.zeros(0)
        scores = self._score(X, arm_indices)[0].value
        return arm_indices, scores, scores

    def score_last_chosen(self, X: NDArray[Any], arm_indices: IntArray) -> Candidates:
        """Score the arms of the last choice before the first block, and keep them for `features_and_scores`."""
        scores, arms = self._score(X, arm_indices)
        scored = ScoredArms(arms)
        self.already_scored = scored.indices
        self._scored.append(scored)
        return arm_indices, scores.value, scores.value

    def score_parts(self, arm_indices: IntArray, parts: list[IntArray], *, keep: bool) -> Iterator[FloatArray]:
        """Yield the exact scores of parts of these arms, given as positions in `arm_indices`.

        keep: whether to keep them for `features_and_scores`, if they are not too many.
        """
        keep = keep and sum(part.size for part in parts) <= MOST_KEPT * max(self.ranks.high, FEW)

        def score(part: IntArray) -> tuple[FloatArray, Arms]:
            scores, arms = self._score(self.rows.take(arm_indices[part]), arm_indices[part])
            return scores.value, arms

        for scores, arms in in_threads(score, parts, len(parts)):
            if keep:
                self._scored.append(ScoredArms(arms))
            yield scores

    def features_and_scores(self, arm_indices: IntArray) -> tuple[FloatArray, Any]:
        """Return the features and scores of these arms, reading only those not kept; None for no scores."""
        if not self._scored or not arm_indices.size:
            X = self.rows.take(arm_indices)
            return X, self.scoring.score(X, arm_indices) if arm_indices.size else None
        n, bounds = arm_indices.size, self.scoring.bounds_scores
        X, mean, width, new = np.empty((n, self.rows.n_features)), np.empty(n), np.empty(n), np.ones(n, dtype=bool)
        while self._scored:
            scored = self._scored.pop()
            here, at = scored.find(arm_indices)
            _put(X, here, scored.arms.X, at)
            new[here] = False
            if bounds:
                mean[here], width[here] = (values[at] for values in scored.arms.mean_and_width)
        if new.any():
            X[new] = self.rows.take(arm_indices[new])
            if bounds:
                mean[new], width[new] = self.scoring.arms(X[new], arm_indices[new]).mean_and_width
        arms = self.scoring.arms(X, arm_indices)
        if bounds:
            arms.mean_and_width = mean, width
        return X, self.scoring.score_arms(arms)

    def _score(self, X: NDArray[Any], arm_indices: IntArray) -> tuple[Any, Arms]:
        arms = self.scoring.arms(X, arm_indices)
        scores = self.scoring.score_arms(arms)
        if self.scoring.bounds_scores:
            self._set_bounds(arm_indices, (1 + self._float64.width) * arms.mean_and_width[1] + self._float64.tiny)
        if not np.isfinite(scores.value).all():
            worst = np.flatnonzero(~np.isfinite(scores.value))[0]
            raise NotFiniteError(f"scores must be finite, got {scores.value[worst]}", int(arm_indices[worst]))
        return scores, arms

    def _set_bounds(self, arms: slice | IntArray, widths: FloatArray) -> None:
        if self._cache is not None:
            self._cache.set_bounds(arms, widths)


def _put(X: FloatArray, rows: IntArray, source: NDArray[Any], at: IntArray) -> None:
    """Copy the rows `at` of `source` to the rising `rows` of X, without a copy in between where these are adjacent."""
    if rows.size and rows[-1] - rows[0] + 1 == rows.size and source.dtype == X.dtype:
        np.take(source, at, axis=0, out=X[rows[0] : rows[-1] + 1], mode="clip")  # "raise" would copy twice
    else:
        X[rows] = source[at]


def _in_float32(X: NDArray[Any], state: Model) -> tuple[FloatArray, FloatArray]:
    """Return means and widths computed in float32, `(n,)` each."""
    mean, width = np.empty(len(X)), np.empty(len(X))
    with np.errstate(over="ignore", invalid="ignore"):
        matrix = np.concatenate([state.inverse_root, state.theta[:, None]], axis=1).astype(np.float32)
        for rows, product in float32_products(X, matrix):
            mean[rows] = product[:, -1]
            root = product[:, :-1]
            np.einsum("nd,nd->n", root, root, out=width[rows], dtype=np.float32, casting="same_kind")
        np.sqrt(width, out=width)
    return mean, width
