"""One test for many questions: whether a further column would explain what the model leaves unexplained."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from armful.campaigns.audit._data import ROUNDING, Rows, pseudo_inverse
from armful.checks import FloatArray, IntArray

HELD_ALREADY = 1e-7
"""A column of which X leaves no larger fraction of the squares is one that X holds already: features are float32."""


@dataclass(frozen=True, eq=False, kw_only=True)
class WithinRounds:
    """A linear model of the differences within rounds, which a shock shared by a round does not touch.

    X `(n, d)`, residuals `(n,)`: of each row, minus the mean of its round. explained: the sum of squares that the
    model explains. variance: of what it does not.
    """

    X: FloatArray
    fitted: FloatArray
    residuals: FloatArray
    explained: float
    variance: float
    inverse: FloatArray
    period: IntArray
    by_person: IntArray
    starts: IntArray

    @classmethod
    def fit(cls, rows: Rows) -> "WithinRounds":
        """Return the least-squares fit."""
        X, r = centred(rows.X, rows.period), centred(rows.rewards, rows.period)
        inverse = pseudo_inverse(X.T @ X)
        fitted = X @ (inverse @ (X.T @ r))
        squares = float((r - fitted) @ (r - fitted)) / max(rows.n - X.shape[1] - np.unique(rows.period).size, 1)
        order = np.argsort(rows.person, kind="stable")
        people = rows.person[order]
        return cls(
            X=X,
            fitted=fitted,
            residuals=r - fitted,
            explained=float(fitted @ fitted),
            variance=max(squares, ROUNDING * float(r @ r), rows.rounding**2),
            inverse=inverse,
            period=rows.period,
            by_person=order,
            starts=np.flatnonzero(np.r_[True, people[1:] != people[:-1]]),
        )

    def test(self, Z: FloatArray) -> "Added":
        """Return what each of some further columns, `(n, q)`, would add.

        The score test: s = z'e with z the column less its part that X explains, e the residuals. Its variance is the
        sum of squares of the people's parts of s, since a person's outcomes in several rounds belong together; or
        that of equal noise everywhere if it is larger, since of rare rewards a few rows may show none by chance.
        """
        size = (Z**2).sum(axis=0)
        Z = centred(Z, self.period)
        Z = Z - self.X @ (self.inverse @ (self.X.T @ Z))
        left = (Z**2).sum(axis=0)
        parts = Z * self.residuals[:, None]
        score = parts.sum(axis=0)
        clustered = (np.add.reduceat(parts[self.by_person], self.starts, axis=0) ** 2).sum(axis=0)
        deviation = np.sqrt(np.maximum(clustered, self.variance * left))
        usable = (left > HELD_ALREADY * size) & (deviation > 0)
        z = np.where(usable, score / np.where(usable, deviation, 1.0), 0.0)
        coefficient = np.where(usable, score / np.where(usable, left, 1.0), 0.0)
        return Added(z=z, coefficient=coefficient, gain=score * coefficient, n_usable=int(usable.sum()))


@dataclass(frozen=True, eq=False, kw_only=True)
class Added:
    """What each of q further columns would add: z, its coefficient, and the squares it would explain."""

    z: FloatArray
    coefficient: FloatArray
    gain: FloatArray
    n_usable: int


def centred(values: FloatArray, period: IntArray) -> FloatArray:
    """Return values `(n,)` or `(n, q)` minus their mean in each round."""
    counts = np.maximum(np.bincount(period), 1)
    if values.ndim == 1:
        return values - (np.bincount(period, weights=values) / counts)[period]
    order = np.argsort(period, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(period[order]) != 0])
    present = period[order][starts]
    sums = np.zeros((counts.size, values.shape[1]))
    sums[present] = np.add.reduceat(values[order], starts, axis=0)
    return np.asarray(values - (sums / counts[:, None])[period])


def critical(false_alarms: float, looks: int) -> float:
    """Return how large |z| must be, if so many are looked at and one of them exceeds it by chance so rarely.

    Examples
    --------
    >>> round(critical(0.05, 1), 2), round(critical(0.002, 400), 2)
    (1.96, 4.56)
    """
    return -float(ndtri(false_alarms / 2 / max(looks, 1)))


def chance(z: float, looks: int) -> float:
    """Return the probability that the largest of so many |z| is this large or larger by chance.

    Examples
    --------
    >>> round(chance(1.96, 1), 3), round(chance(3.0, 50), 3)
    (0.05, 0.126)
    """
    return -math.expm1(max(looks, 1) * math.log1p(-min(2 * float(ndtr(-abs(z))), 1 - 1e-12)))
