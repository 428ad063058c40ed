"""Confidence radii as functions, and the bound on log det that they and the regret bounds use."""

import math

import numpy as np

from armful import checks
from armful.model import radius as radii


def beta(
    *, t: int, k: int, n_features: int, noise: float, norm: float, length: float, ridge: float, delta: float
) -> float:
    """Return the paper's radius, which policies use with `radius="theory"` and `length`.

        beta_t(delta) = R sqrt(d log((1 + L^2 k t / lambda) / delta)) + S sqrt(lambda)

    Proved for d >= 2; for d = 1 it can be too small (docs/theory.md).

    Parameters
    ----------
    t : int
        The round, from 1.
    k : int
        The size of a set.
    n_features : int
        d, the number of features.
    noise : float
        R, the sub-Gaussian constant of the noise.
    norm : float
        S, which the length of theta* does not exceed.
    length : float
        L, which no feature vector exceeds in length.
    ridge : float
        lambda, the ridge parameter.
    delta : float
        The probability with which the confidence set may miss theta*.

    Returns
    -------
    float

    References
    ----------
    Takemura et al. (2021), before Theorem 1.

    Examples
    --------
    >>> round(beta(t=10, k=10, n_features=4, noise=1, norm=1, length=2, ridge=4, delta=0.1), 3)
    7.26
    """
    return float(
        radii.theory_radius(
            noise=checks.at_least_zero("noise", noise),
            norm=checks.at_least_zero("norm", norm),
            ridge=checks.positive("ridge", ridge),
            n_features=checks.count("n_features", n_features),
            log_growth=_log_one_plus(length, k=k, rounds=checks.count("t", t), ridge=ridge),
            delta=checks.probability("delta", delta),
        )
    )


def log_det_radius(*, log_det_gain: float, noise: float, norm: float, ridge: float, delta: float) -> float:
    """Return alpha, the radius that policies use with `radius="logdet"`.

        alpha^2 = R^2 [log det(V / lambda) + 2 log(1 / delta)] + lambda S^2

    Parameters
    ----------
    log_det_gain : float
        `log det(V / lambda)`, which a state has as `RidgeState.log_det_gain`.
    noise : float
        R, the sub-Gaussian constant of the noise.
    norm : float
        S, which the length of theta* does not exceed.
    ridge : float
        lambda, the ridge parameter.
    delta : float
        The probability with which the confidence set may miss theta*.

    Returns
    -------
    float

    References
    ----------
    The method of mixtures; derived in docs/theory.md.

    Examples
    --------
    >>> round(log_det_radius(log_det_gain=10, noise=1, norm=1, ridge=4, delta=0.1), 3)
    4.313
    """
    return float(
        radii.log_det_radius(
            log_det_gain=checks.at_least_zero("log_det_gain", log_det_gain),
            noise=checks.at_least_zero("noise", noise),
            norm=checks.at_least_zero("norm", norm),
            ridge=checks.positive("ridge", ridge),
            delta=checks.probability("delta", delta),
        )
    )


def log_det_bound(*, k: int, rounds: int, n_features: int, length: float, ridge: float) -> float:
    """Return G, an upper bound on `log det(V_T / lambda)`.

        G = d log(1 + L^2 k T / (d lambda))

    Parameters
    ----------
    k, rounds, n_features : int
        See `Setting`.
    length, ridge : float
        See `Setting`.

    Returns
    -------
    float

    References
    ----------
    Abbasi-Yadkori et al. (2011), Lemma 10; quoted in the appendix of Takemura et al. (2021).

    Examples
    --------
    >>> round(log_det_bound(k=10, rounds=10, n_features=4, length=2, ridge=4), 3)
    13.032
    """
    d = checks.count("n_features", n_features)
    return d * _log_one_plus(length, k=k, rounds=rounds, ridge=ridge, n_features=d)


def _log_one_plus(length: float, *, k: int, rounds: int, ridge: float, n_features: int = 1) -> float:
    """Return `log(1 + L^2 k T / (d lambda))`, in logs because L^2 may be beyond float64."""
    arms = checks.count("k", k) * checks.count("rounds", rounds)
    if checks.at_least_zero("length", length) == 0:
        return 0.0
    return float(np.logaddexp(0, 2 * math.log(length) + math.log(arms / n_features / checks.positive("ridge", ridge))))
