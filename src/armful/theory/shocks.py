"""Noise that the arms of a round share."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from armful import checks


def estimate_shock(residuals_by_round: Sequence[ArrayLike]) -> float:
    """Estimate `tau^2 / sigma^2`, the option `shock` of `learn`: shared noise of a round against each arm's own noise.

    One-way analysis of variance by moments, for rounds of any sizes:

        sigma^2 = MSW, tau^2 = (MSB - MSW) / n0, n0 = (n - sum n_t^2 / n) / (T - 1)

    Parameters
    ----------
    residuals_by_round : sequence of array_like
        For each round the residuals of its arms: reward minus estimated mean.

    Returns
    -------
    float
        At least 0.

    Raises
    ------
    ValueError
        If there are fewer than two rounds, no round with two arms, or no noise within rounds.

    References
    ----------
    Searle et al. (1992), Variance Components.

    Examples
    --------
    >>> round(estimate_shock([[1.0, 2.0, 3.0], [4.0, 6.0], [0.0, 1.0]]), 4)
    3.6875
    """
    groups = [np.asarray(each, dtype=np.float64).ravel() for each in residuals_by_round if np.size(each)]
    sizes = np.array([each.size for each in groups], dtype=np.float64)
    T, n = sizes.size, sizes.sum()
    if T < 2 or n == T:
        raise ValueError(f"a shock needs two rounds and more arms than rounds, got {T} rounds and {n:.0f} arms")
    checks.refuse_not_finite("residuals", np.concatenate(groups))
    means = np.array([each.mean() for each in groups])
    within = sum(each.var() * each.size for each in groups) / (n - T)
    between = sizes @ (means - sizes @ means / n) ** 2 / (T - 1)
    if between <= within:
        return 0.0
    if within == 0:
        raise ValueError("all arms of each round have the same residual: their own noise, and so the ratio, is unknown")
    return float((between / within - 1) * (T - 1) / (n - sizes @ sizes / n))
