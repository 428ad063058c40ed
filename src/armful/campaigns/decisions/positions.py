"""Examination weights: how likely each place of a slate is looked at, relative to the first."""

import numpy as np

from armful import checks
from armful.checks import FloatArray

PRIOR_SPREAD = 0.5
"""The standard deviation that examination weights are expected to have, relative to their mean: the more noise, the
more rewards it takes to move a weight from 1."""

SMALLEST = 0.02
"""No weight is estimated below this: dividing by it would make one reward count for fifty."""


def estimated_weights(n: FloatArray, total: FloatArray, squares: FloatArray) -> FloatArray:
    """Return the examination weight of each place, `(n_places,)`: 1 for the first, never rising from place to place.

    Under the *position-based model* the mean reward of an arm x at place p is `w_p theta.x`: whether a place is looked
    at depends on the place alone. Arms that exploration puts at random places have the same mean `theta.x` at each, so
    their mean rewards are in the ratio of the weights. The mean of a place is pulled towards that of all places, as if
    `c = s^2 / (m^2 / 4)` more rewards had come (m the mean and s the standard deviation of all rewards), and then means
    that rise are pooled (isotonic regression).

    Parameters
    ----------
    n : ndarray of shape (n_places,)
        The known rewards of explored arms at each place.
    total, squares : ndarray of shape (n_places,)
        Their sums and sums of squares.

    Returns
    -------
    ndarray of shape (n_places,)
        All 1 where the mean reward is not above 0: then nothing can be told.

    References
    ----------
    Craswell et al. (2008), "An experimental comparison of click position-bias models"; the model is that of Richardson
    et al. (2007).

    Examples
    --------
    >>> n, clicks = np.array([10_000.0, 10_000.0, 10_000.0]), np.array([2_000.0, 1_000.0, 1_050.0])
    >>> estimated_weights(n, clicks, clicks).round(3)
    array([1.   , 0.513, 0.513])
    """
    n = checks.floats("n", n)
    if not n.sum() > 0:
        return np.ones(n.size)
    mean = float(total.sum() / n.sum())
    if mean <= 0:
        return np.ones(n.size)
    variance = max(float(squares.sum() / n.sum() - mean**2), 0.0)
    prior = variance / (PRIOR_SPREAD * mean) ** 2
    sizes = np.maximum(n + prior, np.finfo(np.float64).tiny)
    falling = _falling((total + prior * mean) / sizes, sizes)
    if falling[0] <= 0:
        return np.ones(n.size)
    return np.asarray(np.clip(falling / falling[0], SMALLEST, 1.0))


def _falling(values: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return the nearest values that never rise, by pooling neighbours (weighted least squares)."""
    pools: list[list[float]] = []  # mean, size, number of places
    for value, size in zip(values.tolist(), sizes.tolist(), strict=True):
        pools.append([value, size, 1])
        while len(pools) > 1 and pools[-1][0] > pools[-2][0]:
            (mean, weight, count), (last_mean, last_weight, last_count) = pools[-2], pools.pop()
            together = weight + last_weight
            pools[-1] = [(mean * weight + last_mean * last_weight) / together, together, count + last_count]
    return np.concatenate([np.full(int(count), mean) for mean, _, count in pools])
