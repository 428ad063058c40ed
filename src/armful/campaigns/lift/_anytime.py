"""Intervals that stay valid however often one looks."""

import math

from scipy.special import lambertw

BEST_GROWTH = 10.0
"""The interval is narrowest when the variance of the sum has grown to so many times that of its first look."""


def anytime_multiplier(variance: float, first_variance: float, *, level: float) -> float:
    """Return how many standard errors make an interval that is valid at every look.

    For a sum X whose variance V has grown from V_1 at the first look, Robbins' normal mixture gives

        |X| <= sqrt((V + rho) log((V + rho) / (rho alpha^2)))   at all looks at once

    with probability at least `level` = 1 - alpha. rho is a fixed multiple of V_1, chosen so that the interval is
    narrowest at V = 10 V_1.

    Parameters
    ----------
    variance : float
        V, the variance of the sum now.
    first_variance : float
        V_1, its variance at the first look.
    level : float
        The probability with which all intervals contain what they estimate.

    Returns
    -------
    float

    References
    ----------
    Robbins (1970); Howard et al. (2021), "Time-uniform, nonparametric, nonasymptotic confidence sequences", Section 3;
    Waudby-Smith et al. (2024), "Time-uniform central limit theory and asymptotic confidence sequences".

    Examples
    --------
    >>> round(anytime_multiplier(10.0, 1.0, level=0.95), 2)
    3.04
    """
    alpha = 1 - level
    best_ratio = -float(lambertw(-(alpha**2) / math.e, -1).real) - 1  # V / rho where the interval is narrowest
    rho = BEST_GROWTH * first_variance / best_ratio
    return math.sqrt((variance + rho) / variance * math.log((variance + rho) / (rho * alpha**2)))
