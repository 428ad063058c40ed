"""Bounds on the regret of a run, known before it starts; names are explained in `armful.theory`."""

import math
from typing import TypedDict, Unpack

from armful import checks
from armful.theory.radii import log_det_bound

_LN2 = math.log(2)


class Setting(TypedDict):
    """The five keyword arguments that every regret bound takes.

    Attributes
    ----------
    k : int
        The size of a set, at most.
    rounds : int
        T, the number of rounds.
    n_features : int
        d, the number of features.
    length : float
        L, which no feature vector exceeds in length.
    ridge : float
        lambda, the ridge parameter.
    """

    k: int
    rounds: int
    n_features: int
    length: float
    ridge: float


def c2ucb_bound(*, radius: float, bound: float | None = None, **setting: Unpack[Setting]) -> float:
    """Return a bound on the regret of `C2UCB` under any constraint.

        2 alpha sqrt(2 k T G) + min(4 alpha L k / sqrt(lambda), 4 B k^2) G

    Parameters
    ----------
    radius : float
        alpha_T, the last and largest radius: `beta`, or a value of `log_det_radius`.
    bound : float, optional
        B, which no mean reward exceeds in absolute value; without it the minimum is its first part.
    **setting
        `k`, `rounds`, `n_features`, `length` and `ridge`: see `Setting`.

    Returns
    -------
    float

    References
    ----------
    Takemura et al. (2021), Theorem 2, with the constants of its proof.

    Examples
    --------
    >>> round(c2ucb_bound(radius=2, bound=0.1, k=10, rounds=10, n_features=4, length=2, ridge=4), 1)
    725.5
    """
    G, (k, kT) = log_det_bound(**setting), _arms(setting)
    alpha, B = checks.at_least_zero("radius", radius), math.inf if bound is None else checks.positive("bound", bound)
    one_wide_arm = min(2 * alpha * (float(setting["length"]) / math.sqrt(setting["ridge"])), 2 * B * k)
    return 2 * alpha * math.sqrt(2 * kT * G) + one_wide_arm * 2 * k * G


def c2ucb_matroid_bound(*, radius: float, bound: float, **setting: Unpack[Setting]) -> float:
    """Return a bound on the regret of `C2UCB` under a partition matroid: `TopK` or `Quotas(exactly=...)`.

        2 alpha sqrt(2 k T G) + 4 B k G

    Parameters
    ----------
    radius : float
        alpha_T, the last and largest radius: `beta`, or a value of `log_det_radius`.
    bound : float
        B, which no mean reward exceeds in absolute value.
    **setting
        `k`, `rounds`, `n_features`, `length` and `ridge`: see `Setting`.

    Returns
    -------
    float

    References
    ----------
    Takemura et al. (2021), Theorem 3, with the constants of its proof.

    Examples
    --------
    >>> round(c2ucb_matroid_bound(radius=2, bound=0.1, k=10, rounds=10, n_features=4, length=2, ridge=4), 1)
    256.3
    """
    return capped_bound(radius=radius, bound=bound, **setting)


def capped_bound(*, radius: float, bound: float, lipschitz: float = 1.0, **setting: Unpack[Setting]) -> float:
    """Return a bound on the a-regret of `CappedC2UCB` with either rule under any constraint.

        C (2 alpha sqrt(2 k T G) + 4 B k G)

    The a-regret is measured against the best value times the approximation ratio a.

    Parameters
    ----------
    radius : float
        alpha_T, the last and largest radius: `beta`, or a value of `log_det_radius`.
    bound : float
        B, which no mean reward exceeds in absolute value, and the cap.
    lipschitz : float
        C: how much the value of a set can change per unit of its arms' rewards; 1 for a sum.
    **setting
        `k`, `rounds`, `n_features`, `length` and `ridge`: see `Setting`.

    Returns
    -------
    float

    References
    ----------
    Takemura et al. (2021), Theorem 4 (Algorithm 2), with the constants of its proof. For `rule="clip"`: derived,
    unrefereed (docs/theory.md).

    Examples
    --------
    >>> round(capped_bound(radius=2, bound=0.1, lipschitz=2, k=10, rounds=10, n_features=4, length=2, ridge=4), 1)
    512.7
    """
    G, (k, kT) = log_det_bound(**setting), _arms(setting)
    narrow_arms = 2 * checks.at_least_zero("radius", radius) * math.sqrt(2 * kT * G)
    return checks.positive("lipschitz", lipschitz) * (narrow_arms + 4 * checks.positive("bound", bound) * k * G)


def c2ucb_round_counting_bound(*, radius: float, bound: float, delay: int = 0, **setting: Unpack[Setting]) -> float:
    """Return a bound on the regret of `C2UCB`, which need not know B, under any constraint.

        2 alpha sqrt(k T G / ln 2) + 2 B k G / ln 2

    It holds for `CappedC2UCB(rule="clip")` too. With a delay it is `2 alpha sqrt(2 k T G / ln 2)` plus `delay_term`.

    Parameters
    ----------
    radius : float
        alpha_T, the last and largest radius: `beta`, or a value of `log_det_radius`.
    bound : float
        B, which no mean reward exceeds in absolute value.
    delay : int
        By how many rounds rewards come late, at most.
    **setting
        `k`, `rounds`, `n_features`, `length` and `ridge`: see `Setting`.

    Returns
    -------
    float

    References
    ----------
    Derived in docs/theory.md, unrefereed.

    Examples
    --------
    >>> round(c2ucb_round_counting_bound(radius=2, bound=0.1, k=10, rounds=10, n_features=4, length=2, ridge=4), 1)
    211.0
    """
    stale, G, (_, kT) = (2 if delay else 1), log_det_bound(**setting), _arms(setting)
    light = 2 * checks.at_least_zero("radius", radius) * math.sqrt(stale * kT * G / _LN2)
    return light + delay_term(delay=delay, bound=bound, **setting)


def delay_term(*, delay: int, bound: float, **setting: Unpack[Setting]) -> float:
    """Return the part of a regret bound that does not depend on noise, for rewards that come up to D rounds late.

        2 B k (D + 1) G / ln 2

    This is the paper's order `B d k` times D + 1.

    Parameters
    ----------
    delay : int
        D, by how many rounds rewards come late, at most.
    bound : float
        B, which no mean reward exceeds in absolute value.
    **setting
        `k`, `rounds`, `n_features`, `length` and `ridge`: see `Setting`.

    Returns
    -------
    float

    References
    ----------
    Derived in docs/theory.md, unrefereed.

    Examples
    --------
    >>> round(delay_term(delay=3, bound=0.1, k=10, rounds=10, n_features=4, length=2, ridge=4), 1)
    150.4
    """
    heavy_rounds = (checks.count("delay", delay, minimum=0) + 1) * log_det_bound(**setting) / _LN2
    return 2 * checks.positive("bound", bound) * _arms(setting)[0] * heavy_rounds


def _arms(setting: Setting) -> tuple[int, int]:
    """Return k and k T."""
    k = checks.count("k", setting["k"])
    return k, k * checks.count("rounds", setting["rounds"])
