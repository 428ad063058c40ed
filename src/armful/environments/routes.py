"""A town to drive through, made up."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from armful import checks
from armful.checks import FloatArray, IntArray
from armful.constraints.paths import Path
from armful.environments.round import Round


class Routes:
    """Drive from one corner of a town to the other, every round anew: streets are arms, rewards minus travel times.

    Crossings stand on a grid of `side` by `side`. Streets lead right and down, each with a chance of one half also
    back, and there is a diagonal short cut from one crossing in four. The town is drawn from `layout`, and stays the
    same in all rounds and repetitions, as does the constraint: one `Path` with `costs=True`.

    Features of a street: its length, then its length times each of `n_features - 1` conditions of the day between 0
    and 1; the first is congestion, worse towards the centre. Conditions are fresh in every round. Mean rewards are
    `-w.x`, w positive of length 1, drawn in each repetition: linear, and always below 0.

    >>> world = Routes(side=3)
    >>> shown = next(world.rounds(10, np.random.default_rng(0)))
    >>> shown.features.shape[1], shown.constraint
    (5, Path((0, 0) to (2, 2), ... edges, up to 8))
    """

    def __init__(self, *, side: int = 6, n_features: int = 5, noise: float = 0.2, layout: int = 0) -> None:
        self.side = checks.count("side", side, minimum=2)
        self.n_features = checks.count("n_features", n_features, minimum=2)
        checks.fits_in_memory(f"side = {side} with n_features = {n_features}", (60 + 4 * n_features) * side**2)
        self.noise = checks.at_least_zero("noise", noise)
        self.layout = checks.count("layout", layout, minimum=0)
        town = np.random.default_rng(layout)
        streets = _streets(side, town)
        crossings = [tuple(pair) for pair in np.stack(np.divmod(np.arange(side * side), side), axis=1).tolist()]
        edges = [(crossings[tail], crossings[head]) for tail, head in streets.tolist()]
        self.constraint = Path(edges, crossings[0], crossings[-1], costs=True)
        self.lengths = _lengths(streets, side) * town.uniform(0.3, 0.6, len(streets))
        self._busy = _nearness_to_the_centre(streets, side)

    def rounds(self, n_rounds: int, rng: Generator) -> Iterator[Round]:
        """The same streets, other conditions."""
        weights = rng.uniform(0.2, 1.0, self.n_features)
        theta = -weights / np.sqrt(weights @ weights)
        for _ in range(n_rounds):
            conditions = rng.random((self.lengths.size, self.n_features - 1))
            conditions[:, 0] *= self._busy
            features = self.lengths[:, None] * np.hstack([np.ones((self.lengths.size, 1)), conditions])
            yield Round(features, self.constraint, features @ theta, self.noise)


def _streets(side: int, rng: Generator) -> IntArray:
    """Pairs of crossings, numbered row by row, `(n_streets, 2)`."""
    crossing = np.arange(side * side).reshape(side, side)
    right = np.stack([crossing[:, :-1].ravel(), crossing[:, 1:].ravel()], axis=1)
    down = np.stack([crossing[:-1].ravel(), crossing[1:].ravel()], axis=1)
    forth = np.concatenate([right, down])
    back = forth[rng.random(len(forth)) < 0.5, ::-1]
    diagonal = np.stack([crossing[:-1, :-1].ravel(), crossing[1:, 1:].ravel()], axis=1)
    short_cuts = diagonal[rng.random(len(diagonal)) < 0.25]
    return np.concatenate([forth, back, short_cuts])


def _lengths(streets: IntArray, side: int) -> FloatArray:
    """As the crow flies: 1, or the root of 2 for a short cut."""
    row, column = np.divmod(streets, side)
    lengths: FloatArray = np.hypot(row[:, 1] - row[:, 0], column[:, 1] - column[:, 0])
    return lengths


def _nearness_to_the_centre(streets: IntArray, side: int) -> FloatArray:
    """From 0.5 at the corners to 1 in the middle."""
    row, column = np.divmod(streets, side)
    middle = (side - 1) / 2
    distance: FloatArray = np.hypot(row.mean(axis=1) - middle, column.mean(axis=1) - middle)
    return 1.0 - 0.5 * distance / math.hypot(middle, middle)
