"""Looking at a block of arms only as closely as it takes to tell which of them could be chosen."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful import checks
from armful.arms import Arms
from armful.checks import FloatArray, IntArray
from armful.constraints._checks import NO_ARMS
from armful.constraints._ranks import BoolArray, Ranks
from armful.scan._memory import Memory, reliable
from armful.scan._rounding import Rounding, interval
from armful.scan._scoring import Scoring
from armful.tables.rows import Rows

PAYS = 0.3
"""A look that leaves more than this part of the arms in question was in vain."""

CHUNK = 1024
"""Rows of float32 worked on at a time: they and their product stay in the processor's cache."""

LARGEST_ERROR = 0.05
"""float32 is not tried where it may be wrong by more than this part of a width."""

Candidates = tuple[IntArray, FloatArray, FloatArray]
"""Places of arms that could be chosen, and what their scores are at least and at most."""


class Pruner:
    """Finds the arms of a block that could be chosen, by the cheapest of three looks.

    1. If widths are remembered: the means, and scores from these and the remembered widths, which are too large. Arms
       that remain are scored exactly.
    2. Means and widths in float32, and between what their rounding lets the scores be.
    3. Everything in float64.
    An arm whose score cannot reach the threshold is left out. When a look was in vain the next blocks do without it.

    thresholds: what an arm's score must not be below, by group (see `Ranks.reduce`); they rise as more is known.
    known: places of arms that were scored before, in rising order; they are not scored again.
    """

    def __init__(self, scoring: Scoring, rows: Rows, ranks: Ranks, memory: Memory | None) -> None:
        self.scoring, self.rows, self.ranks = scoring, rows, ranks
        self.thresholds, self.known = ranks.no_thresholds, NO_ARMS
        self._known: Arms | None = None
        self._no_mean, self._no_width = np.broadcast_to(-np.inf, rows.n_arms), np.broadcast_to(0.0, rows.n_arms)
        self._plain = Rounding.of(scoring.state, np.float64)
        self._single = Rounding.of(scoring.state, np.float32)
        self._memory = memory if scoring.has_range and reliable(scoring.state) else None
        self._means_pay = self._memory is not None
        self._screen_pays = scoring.has_range and self._single.width < LARGEST_ERROR

    def at(self, places: IntArray) -> Candidates:
        """These arms, scored."""
        return self.exact(self.rows.take(places), places)

    def block(self, block: slice) -> Candidates:
        """The arms from `block.start` to `block.stop` that could be chosen, but for those that are known."""
        X = self.rows.rows(block.start, block.stop)
        single = self.rows.rows_float32(block.start, block.stop)
        rounded = X if single is None else single
        try:
            return self._by_means(X, rounded, block) or self._by_screen(X, rounded, block) or self._by_all(X, block)
        except ValueError:
            checks.refuse_not_finite("features", X, first_row=block.start)  # by its place among all
            raise

    def _by_means(self, X: NDArray[Any], rounded: NDArray[Any], block: slice) -> Candidates | None:
        memory = self._memory
        if memory is None or not self._means_pay or not memory.knows(block.start, block.stop):
            return None
        own = self._single if rounded.dtype == np.float32 else self._plain
        with np.errstate(over="ignore", invalid="ignore"):
            computed = rounded @ self.scoring.state.theta.astype(rounded.dtype)
        if not np.isfinite(computed).all():  # beyond float32
            return None
        widths = memory.widths(block.start, block.stop)
        mean = widths * (own.mean + self._plain.mean)
        mean += own.tiny + self._plain.tiny
        mean += computed
        low = self.scoring.assumed(X, block, self._no_mean[: mean.size], self._no_width[: mean.size])
        highest = self.scoring.highest(low, self.scoring.assumed(X, block, mean, widths))
        left = np.flatnonzero(self._in_question(highest, block))
        if left.size > PAYS * highest.size:
            self._means_pay = False
            return None
        places = left + block.start
        if left.size <= CHUNK and self.rows.in_memory:  # scored later, with those of other blocks
            return places, np.full(left.size, -np.inf), highest[left]
        return self.exact(X[left], places)

    def _by_screen(self, X: NDArray[Any], rounded: NDArray[Any], block: slice) -> Candidates | None:
        if not self._screen_pays:
            return None
        mean, width = _single_mean_and_width(rounded, self.scoring.state.inverse_root, self.scoring.state.theta)
        if not (np.isfinite(mean).all() and np.isfinite(width).all()):
            return None
        low_mean, high_mean, low_width, high_width = interval(mean, width, self._single, self._plain)
        self._remember(block, high_width)
        low = self.scoring.assumed(X, block, low_mean, low_width)
        high = self.scoring.assumed(X, block, high_mean, high_width)
        lowest, highest = self.scoring.lowest(low, high), self.scoring.highest(low, high)
        left = self._in_question(highest, block)
        unclear = left & (lowest < self.ranks.thresholds_of(self.thresholds, block))
        if np.count_nonzero(unclear) > PAYS * left.size:  # float32 does not tell them apart
            self._screen_pays = False
            return None
        return np.flatnonzero(left) + block.start, lowest[left], highest[left]

    def _by_all(self, X: NDArray[Any], block: slice) -> Candidates:
        places, scores, _ = self.exact(X, np.arange(block.start, block.stop))
        left = self._in_question(scores, block)
        return places[left], scores[left], scores[left]

    def _in_question(self, highest: FloatArray, block: slice) -> BoolArray:
        """Which arms of a block could be chosen and are not known already."""
        left: BoolArray = highest >= self.ranks.thresholds_of(self.thresholds, block)
        begin, end = np.searchsorted(self.known, (block.start, block.stop))
        left[self.known[begin:end] - block.start] = False
        return left

    def exact(self, X: NDArray[Any], places: IntArray) -> Candidates:
        """These arms with these features, scored."""
        if not places.size:
            return places, np.zeros(0), np.zeros(0)
        scores = self._score(X, places)[0].value
        return places, scores, scores

    def know(self, X: NDArray[Any], places: IntArray) -> Candidates:
        """The same, once for the whole round."""
        scores, arms = self._score(X, places)
        self._order = np.argsort(places)
        self.known, self._known = places[self._order], arms
        return places, scores.value, scores.value

    def chosen(self, places: IntArray) -> tuple[FloatArray, Any]:
        """The features of these arms and their scores, None if there are no arms; what is known is not read again."""
        if self._known is None or not places.size:
            X = self.rows.take(places)
            return X, self.scoring.score(X, places) if places.size else None
        at = np.minimum(np.searchsorted(self.known, places), self.known.size - 1)
        new = np.flatnonzero(self.known[at] != places)
        at = self._order[at]
        X = self._known.X[at]
        X[new] = self.rows.take(places[new])
        arms = self.scoring.arms(X, places)
        if self.scoring.has_range:
            mean, width = (values[at] for values in self._known.mean_and_width)
            if new.size:
                mean[new], width[new] = self.scoring.arms(X[new], places[new]).mean_and_width
            arms.mean_and_width = mean, width
        return X, self.scoring.score_arms(arms)

    def _score(self, X: NDArray[Any], places: IntArray) -> tuple[Any, Arms]:
        arms = self.scoring.arms(X, places)
        scores = self.scoring.score_arms(arms)
        if self.scoring.has_range:
            self._remember(places, (1 + self._plain.width) * arms.mean_and_width[1] + self._plain.tiny)
        if not np.isfinite(scores.value).all():
            worst = np.flatnonzero(~np.isfinite(scores.value))[0]
            raise ValueError(f"scores must be finite, got {scores.value[worst]} in row {places[worst]}")
        return scores, arms

    def _remember(self, arms: slice | IntArray, widths: FloatArray) -> None:
        if self._memory is not None:
            self._memory.remember(arms, widths)


def _single_mean_and_width(
    X: NDArray[Any], inverse_root: FloatArray, theta: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Means and widths computed in float32, `(n,)` each."""
    mean, width = np.empty(len(X)), np.empty(len(X))
    with np.errstate(over="ignore", invalid="ignore"):
        matrix = np.concatenate([inverse_root, theta[:, None]], axis=1).astype(np.float32)
        single, product = np.empty((CHUNK, X.shape[1]), np.float32), np.empty((CHUNK, matrix.shape[1]), np.float32)
        for begin in range(0, len(X), CHUNK):
            rows = slice(begin, min(begin + CHUNK, len(X)))
            here = slice(0, rows.stop - begin)
            if X.dtype != np.float32:
                np.copyto(single[here], X[rows], casting="same_kind")
            np.matmul(X[rows] if X.dtype == np.float32 else single[here], matrix, out=product[here])
            mean[rows] = product[here, -1]
            np.einsum(
                "nd,nd->n",
                product[here, :-1],
                product[here, :-1],
                out=width[rows],
                dtype=np.float32,
                casting="same_kind",
            )
        np.sqrt(width, out=width)
    return mean, width
