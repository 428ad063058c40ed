"""Orders without their constants: the lower bound on the regret of every policy, and how often to update."""

import math

from armful import checks


def lower_bound_order(*, k: int, rounds: int, n_features: int, noise: float, bound: float) -> float:
    """Return the order of the lower bound on the regret of every policy.

        min(R d sqrt(k T) + B d k, B k T)

    For every policy there is a theta* with a regret of at least a constant times this, if `k T` is at least of order
    `(R d / B)^2` and d is even. The paper does not give the constant: the number shows the growth in d, k and T, and a
    smaller regret is no contradiction.

    Parameters
    ----------
    k, rounds, n_features
        See `Setting`.
    noise : float
        R, the standard deviation of the noise.
    bound : float
        B, which no mean reward exceeds in absolute value.

    Returns
    -------
    float

    References
    ----------
    Takemura et al. (2021), Theorem 7.

    Examples
    --------
    >>> lower_bound_order(k=25, rounds=100, n_features=4, noise=1.0, bound=1.0)
    300.0
    """
    k, T, d = checks.count("k", k), checks.count("rounds", rounds), checks.count("n_features", n_features)
    R, B = checks.at_least_zero("noise", noise), checks.positive("bound", bound)
    return min(R * d * math.sqrt(k * T) + B * d * k, B * k * T)


def cadence(*, decisions: int, noise: float, bound: float) -> float:
    """Return how many decisions may be made between two updates without a worse rate of regret.

        (R / B) sqrt(n)

    In `R d sqrt(n) + B d k` with `n = k T` decisions the first term is the larger one as long as k is below this
    number. Constants and logarithms are ignored.

    Parameters
    ----------
    decisions : int
        n, the number of decisions (chosen arms) in all.
    noise : float
        R, the standard deviation of the noise.
    bound : float
        B, which no mean reward exceeds in absolute value.

    Returns
    -------
    float

    References
    ----------
    Takemura et al. (2021), Theorems 3, 4 and 7.

    Examples
    --------
    >>> cadence(decisions=1_000_000, noise=0.5, bound=1.0)
    500.0
    """
    n = checks.count("decisions", decisions)
    return checks.at_least_zero("noise", noise) / checks.positive("bound", bound) * math.sqrt(n)
