"""What a run may cost before it has begun; the words are those of `armful.theory`."""

import math
from typing import TypedDict, Unpack

import numpy as np

from armful import checks
from armful.model import radius as radii

LN2 = math.log(2)


class Setting(TypedDict):
    """The five keyword arguments that every bound takes with its own."""

    k: int
    rounds: int
    n_features: int
    length: float
    ridge: float


def beta(
    *, t: int, k: int, n_features: int, noise: float, norm: float, length: float, ridge: float, delta: float
) -> float:
    """`beta_t(delta) = R sqrt(d log((1 + L^2 k t / lambda) / delta)) + S sqrt(lambda)`, as `radius="theory"` has it.

    Paper, before Theorem 1. Proved for d >= 2; for d = 1 it can be too small (docs/theory.md).

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
    """`alpha^2 = R^2 [log det(V / lambda) + 2 log(1 / delta)] + lambda S^2`, as `radius="logdet"` has it.

    `log_det_gain` is `log det(V / lambda)`, as `RidgeState.log_det_gain`. By the method of mixtures (docs/theory.md).

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
    """`G = d log(1 + L^2 k T / (d lambda))`, which `log det(V_T / lambda)` does not exceed.

    Lemma 10 of Abbasi-Yadkori et al. 2011, quoted in the paper's appendix.

    >>> round(log_det_bound(k=10, rounds=10, n_features=4, length=2, ridge=4), 3)
    13.032
    """
    d = checks.count("n_features", n_features)
    return d * _log_one_plus(length, k=k, rounds=rounds, ridge=ridge, n_features=d)


def c2ucb_bound(*, radius: float, bound: float | None = None, **setting: Unpack[Setting]) -> float:
    """Regret of C2UCB, any constraint: `2 alpha sqrt(2 k T G) + min(4 alpha L k / sqrt(lambda), 4 B k^2) G`.

    Paper, Theorem 2, with the constants of its proof. Without `bound` the first of the two counts.

    >>> round(c2ucb_bound(radius=2, bound=0.1, k=10, rounds=10, n_features=4, length=2, ridge=4), 1)
    725.5
    """
    G, (k, kT) = log_det_bound(**setting), _arms(setting)
    alpha, B = checks.at_least_zero("radius", radius), math.inf if bound is None else checks.positive("bound", bound)
    one_wide_arm = min(2 * alpha * (float(setting["length"]) / math.sqrt(setting["ridge"])), 2 * B * k)
    return 2 * alpha * math.sqrt(2 * kT * G) + one_wide_arm * 2 * k * G


def c2ucb_matroid_bound(*, radius: float, bound: float, **setting: Unpack[Setting]) -> float:
    """Regret of C2UCB on a partition matroid (`TopK`, `Quotas(exactly=)`): `2 alpha sqrt(2 k T G) + 4 B k G`.

    Paper, Theorem 3, with the constants of its proof.

    >>> round(c2ucb_matroid_bound(radius=2, bound=0.1, k=10, rounds=10, n_features=4, length=2, ridge=4), 1)
    256.3
    """
    return capped_bound(radius=radius, bound=bound, **setting)


def capped_bound(*, radius: float, bound: float, lipschitz: float = 1.0, **setting: Unpack[Setting]) -> float:
    """a-regret of `CappedC2UCB`, either rule, any constraint: `C (2 alpha sqrt(2 k T G) + 4 B k G)`.

    Paper, Theorem 4 (Algorithm 2), with the constants of its proof; for `rule="clip"` derived, unrefereed. C is
    `lipschitz`: how much the value of a set can change per unit of its arms' rewards, 1 for a sum.

    >>> round(capped_bound(radius=2, bound=0.1, lipschitz=2, k=10, rounds=10, n_features=4, length=2, ridge=4), 1)
    512.7
    """
    G, (k, kT) = log_det_bound(**setting), _arms(setting)
    narrow_arms = 2 * checks.at_least_zero("radius", radius) * math.sqrt(2 * kT * G)
    return checks.positive("lipschitz", lipschitz) * (narrow_arms + 4 * checks.positive("bound", bound) * k * G)


def c2ucb_round_counting_bound(*, radius: float, bound: float, delay: int = 0, **setting: Unpack[Setting]) -> float:
    """Regret of C2UCB, any constraint, B unknown to it: `2 alpha sqrt(k T G / ln 2) + 2 B k G / ln 2`.

    Also of `CappedC2UCB(rule="clip")`. With rewards up to `delay` rounds late: `2 alpha sqrt(2 k T G / ln 2)` plus
    `delay_term`. Derived, unrefereed (docs/theory.md).

    >>> round(c2ucb_round_counting_bound(radius=2, bound=0.1, k=10, rounds=10, n_features=4, length=2, ridge=4), 1)
    211.0
    """
    stale, G, (_, kT) = (2 if delay else 1), log_det_bound(**setting), _arms(setting)
    light = 2 * checks.at_least_zero("radius", radius) * math.sqrt(stale * kT * G / LN2)
    return light + delay_term(delay=delay, bound=bound, **setting)


def delay_term(*, delay: int, bound: float, **setting: Unpack[Setting]) -> float:
    """What learning costs apart from noise when rewards come up to D rounds late: `2 B k (D + 1) G / ln 2`.

    The paper's order `B d k` times D + 1. Derived, unrefereed (docs/theory.md).

    >>> round(delay_term(delay=3, bound=0.1, k=10, rounds=10, n_features=4, length=2, ridge=4), 1)
    150.4
    """
    heavy_rounds = (checks.count("delay", delay, minimum=0) + 1) * log_det_bound(**setting) / LN2
    return 2 * checks.positive("bound", bound) * _arms(setting)[0] * heavy_rounds


def lower_bound_order(*, k: int, rounds: int, n_features: int, noise: float, bound: float) -> float:
    """`min(R d sqrt(k T) + B d k, B k T)`: an order. The constant in front of it is not given by the paper.

    Paper, Theorem 7: for every policy some theta* costs at least a constant times this, if `k T` is at least of order
    `(R d / B)^2` and d is even. It compares growth in d, k and T; a regret below the number contradicts nothing.

    >>> lower_bound_order(k=25, rounds=100, n_features=4, noise=1.0, bound=1.0)
    300.0
    """
    k, T, d = checks.count("k", k), checks.count("rounds", rounds), checks.count("n_features", n_features)
    R, B = checks.at_least_zero("noise", noise), checks.positive("bound", bound)
    return min(R * d * math.sqrt(k * T) + B * d * k, B * k * T)


def cadence(*, decisions: int, noise: float, bound: float) -> float:
    """How many decisions may pass between two updates at no cost to the worst-case rate: `(R / B) sqrt(n)`.

    Of `R d sqrt(n) + B d k` with `n = k T` decisions the first term leads as long as k is below it. From the orders of
    the paper's Theorems 3, 4 and 7; constants and logarithms are ignored.

    >>> cadence(decisions=1_000_000, noise=0.5, bound=1.0)
    500.0
    """
    n = checks.count("decisions", decisions)
    return checks.at_least_zero("noise", noise) / checks.positive("bound", bound) * math.sqrt(n)


def _arms(setting: Setting) -> tuple[int, int]:
    """k, and k T."""
    k = checks.count("k", setting["k"])
    return k, k * checks.count("rounds", setting["rounds"])


def _log_one_plus(length: float, *, k: int, rounds: int, ridge: float, n_features: int = 1) -> float:
    """`log(1 + L^2 k T / (d lambda))`, in logs because L^2 may be beyond float64."""
    arms = checks.count("k", k) * checks.count("rounds", rounds)
    if checks.at_least_zero("length", length) == 0:
        return 0.0
    return float(np.logaddexp(0, 2 * math.log(length) + math.log(arms / n_features / checks.positive("ridge", ridge))))
