"""A made-up town to drive through."""

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.random import Generator

from armful import checks
from armful.checks import IntArray
from armful.constraints.paths import Path
from armful.environments._shared import ShowsOptions
from armful.environments.round import Round


class Routes(ShowsOptions):
    """Routes from one corner of a town to the other: streets are arms, and rewards are minus the travel times.

    Crossings are on a grid. Streets lead right and down, each with probability one half also back, and from one
    crossing in four there is a diagonal short cut. The town and the constraint, one `Path` with `costs=True`, are the
    same in all rounds and repetitions.

    The first feature of a street is its length. The others are its length times a condition of the day from 0 to 1, of
    which the first is congestion, worse towards the centre. Conditions are new in every round. Mean rewards are
    `-w.x`, w positive of length 1, drawn in each repetition: linear, and below 0.

    Parameters
    ----------
    side : int
        The number of crossings on a side of the grid, at least 2.
    n_features : int
        The length and the conditions of a street, at least 2.
    noise : float
        The standard deviation of the noise on a reward.
    layout : int
        The seed of the town.

    Examples
    --------
    >>> environment = Routes(side=3)
    >>> shown = next(environment.rounds(10, np.random.default_rng(0)))
    >>> shown.features.shape[1], shown.constraint.k
    (5, 8)
    """

    def __init__(self, *, side: int = 6, n_features: int = 5, noise: float = 0.2, layout: int = 0) -> None:
        self.side = checks.count("side", side, minimum=2)
        self.n_features = checks.count("n_features", n_features, minimum=2)
        checks.fits_in_memory(f"side = {side} with n_features = {n_features}", (60 + 4 * n_features) * side**2)
        self.noise = checks.at_least_zero("noise", noise)
        self.layout = checks.count("layout", layout, minimum=0)
        town = np.random.default_rng(layout)
        streets = _streets(side, town)
        crossings = list(product(range(side), repeat=2))
        edges = [(crossings[tail], crossings[head]) for tail, head in streets.tolist()]
        self.constraint = Path(edges, crossings[0], crossings[-1], costs=True)
        row, column = np.divmod(streets, side)
        on_grid = np.hypot(row[:, 1] - row[:, 0], column[:, 1] - column[:, 0])  # 1, or the root of 2 for a short cut
        self.lengths = on_grid * town.uniform(0.3, 0.6, len(streets))
        middle = (side - 1) / 2
        from_middle = np.hypot(row.mean(axis=1) - middle, column.mean(axis=1) - middle)
        self._busy = 1.0 - 0.5 * from_middle / math.hypot(middle, middle)  # from 0.5 at the corners to 1 in the middle

    def rounds(self, n_rounds: int, rng: Generator) -> Iterator[Round]:
        """Yield rounds with the same streets under new conditions."""
        weights = rng.uniform(0.2, 1.0, self.n_features)
        theta = -weights / np.sqrt(weights @ weights)
        for _ in range(n_rounds):
            conditions = rng.random((self.lengths.size, self.n_features - 1))
            conditions[:, 0] *= self._busy
            features = self.lengths[:, None] * np.hstack([np.ones((self.lengths.size, 1)), conditions])
            yield Round(features, self.constraint, features @ theta, self.noise)


def _streets(side: int, rng: Generator) -> IntArray:
    """Return pairs of crossings, numbered row by row, `(n_streets, 2)`."""
    crossing = np.arange(side * side).reshape(side, side)
    right = np.stack([crossing[:, :-1].ravel(), crossing[:, 1:].ravel()], axis=1)
    down = np.stack([crossing[:-1].ravel(), crossing[1:].ravel()], axis=1)
    forth = np.concatenate([right, down])
    back = forth[rng.random(len(forth)) < 0.5, ::-1]
    diagonal = np.stack([crossing[:-1, :-1].ravel(), crossing[1:, 1:].ravel()], axis=1)
    short_cuts = diagonal[rng.random(len(diagonal)) < 0.25]
    return np.concatenate([forth, back, short_cuts])
