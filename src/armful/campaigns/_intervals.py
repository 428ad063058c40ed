"""Intervals of about 95 % for means."""

import math

from armful.checks import FloatArray

STANDARD_ERRORS = 1.96


def is_yes_or_no(rewards: FloatArray) -> bool:
    """Return whether rewards are 0 and 1; not if all are 0, which amounts may be as well."""
    return bool(rewards.size and rewards.max() == 1 and ((rewards == 0) | (rewards == 1)).all())


def interval(mean: float, error: float) -> tuple[float, float]:
    """Return the mean plus and minus 1.96 standard errors."""
    return mean - STANDARD_ERRORS * error, mean + STANDARD_ERRORS * error


def wilson(mean: float, n: float) -> tuple[float, float]:
    """Return the ends of the interval of the mean of n independent rewards of 0 or 1.

    That of standard errors would go below 0 or above 1 where few rewards came, and have no width where all are the
    same.

    References
    ----------
    Wilson (1927), "Probable inference, the law of succession, and statistical inference".

    Examples
    --------
    >>> [round(end, 3) for end in wilson(0.5, 25)]
    [0.318, 0.682]
    >>> [round(end, 3) for end in wilson(0.0, 25)]
    [0.0, 0.133]
    """
    z2 = STANDARD_ERRORS**2 / n
    middle, half = (mean + z2 / 2) / (1 + z2), math.sqrt(z2 * (mean * (1 - mean) + z2 / 4)) / (1 + z2)
    return max(middle - half, 0.0), min(middle + half, 1.0)  # the ends for rounding errors


def effective_size(mean: float, error: float, n: float, squared_sizes: float) -> float:
    """Return the effective sample size of rewards of 0 or 1 that are alike within a decision or within a person.

    So many independent rewards have this mean and this standard error; `wilson` then has the interval. Where they come
    from fewer than about ten decisions or people, the error itself is uncertain, and the interval too narrow.

    Parameters
    ----------
    mean, error : float
        Of the rewards. An error of 0 is one that cannot be seen, since all decisions or people have the same mean:
        then the rewards of each count as one.
    n : float
        The number of rewards, which is the largest result.
    squared_sizes : float
        The sum of the squared numbers of rewards of each decision or person.

    References
    ----------
    Korn and Graubard (1998), "Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data".
    """
    return min(mean * (1 - mean) / error**2, n) if error > 0 else n**2 / squared_sizes
