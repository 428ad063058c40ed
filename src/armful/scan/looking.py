"""Looking at a block of arms only as closely as it takes to tell which of them could be chosen."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful import checks
from armful.checks import FloatArray, IntArray
from armful.constraints.ranks import Ranks
from armful.scan.memory import Memory, reliable
from armful.scan.rounding import Rounding, interval
from armful.scan.rows import Rows
from armful.scan.scoring import Scoring
from armful.scan.table import Table

PAYS = 0.3
"""A look that leaves more than this part of the arms in question was in vain."""

CHUNK = 1024
"""Rows of float32 worked on at a time: they and their product stay in the processor's cache."""

LARGEST_ERROR = 0.05
"""float32 is not tried where it may be wrong by more than this part of a width."""

Candidates = tuple[IntArray, FloatArray, FloatArray]
"""Places of arms that could be chosen, and what their scores are at least and at most."""


class Looking:
    """Finds the arms of a block that could be chosen, by the cheapest of three looks.

    1. If widths are remembered: the means, and scores from these and the remembered widths, which are too large. Arms
       that remain are scored exactly.
    2. Means and widths in float32, and between what their rounding lets the scores be.
    3. Everything in float64.
    An arm whose score cannot reach the threshold is left out. When a look was in vain the next blocks do without it.

    thresholds: what an arm's score must not be below, by group (see `Ranks.reduce`); they rise as more is known.
    """

    def __init__(self, scoring: Scoring, rows: Rows, ranks: Ranks, memory: Memory | None) -> None:
        self.scoring, self.rows, self.ranks = scoring, rows, ranks
        self.thresholds = ranks.nothing_known
        self._plain = Rounding.of(scoring.state, np.float64)
        self._single = Rounding.of(scoring.state, np.float32)
        self._memory = memory if scoring.has_range and reliable(scoring.state) else None
        self._means_pay = self._memory is not None
        self._screen_pays = scoring.has_range and self._single.width < LARGEST_ERROR

    def at(self, places: IntArray) -> Candidates:
        """These arms, scored."""
        return self.exact(self.rows.take(places), places)

    def block(self, block: slice) -> Candidates:
        """The arms from `block.start` to `block.stop` that could be chosen."""
        X, places = self.rows.rows(block.start, block.stop), np.arange(block.start, block.stop)
        try:
            return self._by_means(X, places) or self._by_screen(X, places) or self._by_everything(X, places)
        except ValueError:
            checks.refuse_not_finite("features", X, first_row=block.start)  # by its place among all
            raise

    def _by_means(self, X: NDArray[Any], places: IntArray) -> Candidates | None:
        memory, begin, end = self._memory, int(places[0]), int(places[-1]) + 1
        if memory is None or not self._means_pay or not memory.knows(begin, end):
            return None
        rounded = self.rows.rounded(begin, end) if isinstance(self.rows, Table) else None
        rounded = X if rounded is None else rounded
        with np.errstate(over="ignore", invalid="ignore"):
            mean = (rounded @ self.scoring.state.theta.astype(rounded.dtype)).astype(np.float64, copy=False)
        if not np.isfinite(mean).all():  # beyond float32
            return None
        widths = memory.widths(begin, end)
        own = self._single if rounded.dtype == np.float32 else self._plain
        mean += (own.mean + self._plain.mean) * widths
        mean += own.tiny + self._plain.tiny
        low = self.scoring.assumed(X, places, np.broadcast_to(-np.inf, mean.shape), np.broadcast_to(0.0, mean.shape))
        highest = self.scoring.highest(low, self.scoring.assumed(X, places, mean, widths))
        left = np.flatnonzero(highest >= self.ranks.at_arms(self.thresholds, slice(begin, end)))
        if left.size > PAYS * places.size:
            self._means_pay = False
            return None
        return self.exact(X[left], places[left])

    def _by_screen(self, X: NDArray[Any], places: IntArray) -> Candidates | None:
        if not self._screen_pays:
            return None
        mean, width = _single_mean_and_width(X, self.scoring.state.inverse_root, self.scoring.state.theta)
        if not (np.isfinite(mean).all() and np.isfinite(width).all()):
            return None
        low_mean, high_mean, low_width, high_width = interval(mean, width, self._single, self._plain)
        self._remember(slice(places[0], places[-1] + 1), high_width)
        low = self.scoring.assumed(X, places, low_mean, low_width)
        high = self.scoring.assumed(X, places, high_mean, high_width)
        lowest, highest = self.scoring.lowest(low, high), self.scoring.highest(low, high)
        threshold = self.ranks.at_arms(self.thresholds, slice(int(places[0]), int(places[-1]) + 1))
        left = highest >= threshold
        if np.count_nonzero(left & (lowest < threshold)) > PAYS * places.size:  # float32 does not tell them apart
            self._screen_pays = False
            return None
        return places[left], lowest[left], highest[left]

    def _by_everything(self, X: NDArray[Any], places: IntArray) -> Candidates:
        _, scores, _ = self.exact(X, places)
        threshold = self.ranks.at_arms(self.thresholds, slice(int(places[0]), int(places[-1]) + 1))
        left = np.flatnonzero(scores >= threshold)
        return places[left], scores[left], scores[left]

    def exact(self, X: NDArray[Any], places: IntArray) -> Candidates:
        """These arms with these features, scored."""
        if not places.size:
            return places, np.zeros(0), np.zeros(0)
        scores, arms = self.scoring.score(X, places)
        if self.scoring.has_range:
            self._remember(places, (1 + self._plain.width) * arms.mean_and_width[1] + self._plain.tiny)
        if not np.isfinite(scores.value).all():
            worst = np.flatnonzero(~np.isfinite(scores.value))[0]
            raise ValueError(f"scores must be finite, got {scores.value[worst]} in row {places[worst]}")
        return places, scores.value, scores.value

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
            np.copyto(single[here], X[rows], casting="same_kind")
            np.matmul(single[here], matrix, out=product[here])
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
