"""What can be proved: regret bounds, inequalities of every trajectory, certificates, cadence. See docs/theory.md.

The same words everywhere: `radius` is alpha_T, the last and largest radius (`beta`, or a value of `log_det_radius`);
`k` the size of a set; `rounds` T; `length` L >= |x|; `bound` B >= |theta*.x|; `ridge` lambda; `noise` R;
`norm` S >= |theta*|. "Paper" is Takemura et al. 2021. G is `log_det_bound`. A bound holds wherever the confidence
set does: with probability at least 1 - delta, for a radius that never falls.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from armful import checks
from armful.checks import FloatArray
from armful.radius import log_det_radius, theory_radius
from armful.ridge import RidgeState

__all__ = [
    "Inequality",
    "TrajectoryReport",
    "beta",
    "c2ucb_bound",
    "c2ucb_matroid_bound",
    "c2ucb_round_counting_bound",
    "cadence",
    "capped_bound",
    "check_trajectory",
    "delay_term",
    "estimate_shock",
    "log_det_bound",
    "log_det_radius",
    "lower_bound_order",
    "regret_certificate",
    "theory_radius",
]

RELATIVE_SLACK, ABSOLUTE_SLACK = 1e-9, 1e-12
"""What rounding may add to the left side of an inequality; some are equalities when k = 1."""


def beta(
    *, t: int, k: int, n_features: int, noise: float, norm: float, length: float, ridge: float, delta: float
) -> float:
    """`beta_t(delta) = R sqrt(d log((1 + L^2 k t / lambda) / delta)) + S sqrt(lambda)`: `theory_radius`, in logs.

    Paper, before Theorem 1. Proved for d >= 2; for d = 1 it can be too small (docs/theory.md).

    >>> round(beta(t=10, k=10, n_features=4, noise=1, norm=1, length=2, ridge=4, delta=0.1), 3)
    7.26
    """
    log_ratio = _log_one_plus(length, k=k, rounds=t, ridge=ridge) - math.log(checks.probability("delta", delta))
    spread = math.sqrt(checks.count("n_features", n_features) * log_ratio)
    return checks.at_least_zero("noise", noise) * spread + checks.at_least_zero("norm", norm) * math.sqrt(ridge)


def log_det_bound(*, k: int, rounds: int, n_features: int, length: float, ridge: float) -> float:
    """`G = d log(1 + L^2 k T / (d lambda))`, which `log det(V_T / lambda)` does not exceed.

    Lemma 10 of Abbasi-Yadkori et al. 2011, quoted in the paper's appendix.

    >>> round(log_det_bound(k=10, rounds=10, n_features=4, length=2, ridge=4), 3)
    13.032
    """
    d = checks.count("n_features", n_features)
    return d * _log_one_plus(length, k=k, rounds=rounds, ridge=ridge, n_features=d)


def c2ucb_bound(
    *, radius: float, k: int, rounds: int, n_features: int, length: float, ridge: float, bound: float = math.inf
) -> float:
    """Regret of C2UCB, any constraint: `2 alpha sqrt(2 k T G) + min(4 alpha L k / sqrt(lambda), 4 B k^2) G`.

    Paper, Theorem 2, with the constants of its proof. Without `bound` the first of the two counts.

    >>> round(c2ucb_bound(radius=2, k=10, rounds=10, n_features=4, length=2, ridge=4, bound=0.1), 1)
    725.5
    """
    G = log_det_bound(k=k, rounds=rounds, n_features=n_features, length=length, ridge=ridge)
    per_wide_arm = min(2 * radius * (float(length) / math.sqrt(ridge)), 2 * bound * k)
    return _narrow_arms(radius, k, rounds, G) + per_wide_arm * 2 * k * G


def c2ucb_matroid_bound(
    *, radius: float, k: int, rounds: int, n_features: int, length: float, ridge: float, bound: float
) -> float:
    """Regret of C2UCB under a partition matroid (`TopK`, `Quotas(exactly=)`): `2 alpha sqrt(2 k T G) + 4 B k G`.

    Paper, Theorem 3, with the constants of its proof.

    >>> round(c2ucb_matroid_bound(radius=2, k=10, rounds=10, n_features=4, length=2, ridge=4, bound=0.1), 1)
    256.3
    """
    G = log_det_bound(k=k, rounds=rounds, n_features=n_features, length=length, ridge=ridge)
    return _narrow_arms(radius, k, rounds, G) + 2 * bound * 2 * k * G


def capped_bound(
    *,
    radius: float,
    k: int,
    rounds: int,
    n_features: int,
    length: float,
    ridge: float,
    bound: float,
    lipschitz: float = 1.0,
) -> float:
    """a-regret of `CappedC2UCB`, either rule, any constraint: `C (2 alpha sqrt(2 k T G) + 4 B k G)`.

    Paper, Theorem 4 (Algorithm 2), with the constants of its proof; for `rule="clip"` derived, unrefereed. C is
    `lipschitz`: how much the value of a set can change per unit of its arms' rewards, 1 for a sum.

    >>> round(capped_bound(radius=2, k=10, rounds=10, n_features=4, length=2, ridge=4, bound=0.1, lipschitz=2), 1)
    512.7
    """
    return checks.positive("lipschitz", lipschitz) * c2ucb_matroid_bound(
        radius=radius, k=k, rounds=rounds, n_features=n_features, length=length, ridge=ridge, bound=bound
    )


def c2ucb_round_counting_bound(
    *,
    radius: float,
    k: int,
    rounds: int,
    n_features: int,
    length: float,
    ridge: float,
    bound: float,
    delay: int = 0,
) -> float:
    """Regret of C2UCB, any constraint, B unknown to it: `2 alpha sqrt(k T G / ln 2) + 2 B k G / ln 2`.

    Derived, unrefereed (docs/theory.md). It also holds for `CappedC2UCB(rule="clip")`. With rewards up to `delay`
    rounds late: `2 alpha sqrt(2 k T G / ln 2)` plus `delay_term`.

    >>> setting = dict(k=10, rounds=10, n_features=4, length=2, ridge=4, bound=0.1)
    >>> round(c2ucb_round_counting_bound(radius=2, **setting), 1)
    211.0
    """
    G = log_det_bound(k=k, rounds=rounds, n_features=n_features, length=length, ridge=ridge)
    stale = 2 if checks.count("delay", delay, minimum=0) else 1
    light = 2 * checks.at_least_zero("radius", radius) * math.sqrt(stale * k * rounds * G / math.log(2))
    return light + delay_term(
        delay=delay, k=k, rounds=rounds, n_features=n_features, length=length, ridge=ridge, bound=bound
    )


def delay_term(
    *, delay: int, k: int, rounds: int, n_features: int, length: float, ridge: float, bound: float
) -> float:
    """What learning costs apart from noise when rewards come up to D rounds late: `2 B k (D + 1) G / ln 2`.

    The paper's order `B d k` times D + 1. Derived, unrefereed (docs/theory.md).

    >>> round(delay_term(delay=3, k=10, rounds=10, n_features=4, length=2, ridge=4, bound=0.1), 1)
    150.4
    """
    G = log_det_bound(k=k, rounds=rounds, n_features=n_features, length=length, ridge=ridge)
    heavy_rounds = (checks.count("delay", delay, minimum=0) + 1) * G / math.log(2)
    return 2 * bound * k * heavy_rounds


def lower_bound_order(*, k: int, rounds: int, n_features: int, noise: float, bound: float) -> float:
    """`min(R d sqrt(k T) + B d k, B k T)`: an order. The constant in front of it is not given by the paper.

    Paper, Theorem 7: for every policy some theta* costs at least a constant times this, if `k T` is at least of order
    `(R d / B)^2` and d is even. It compares growth in d, k and T; a regret below the number contradicts nothing.

    >>> lower_bound_order(k=25, rounds=100, n_features=4, noise=1.0, bound=1.0)
    300.0
    """
    learning = bound * n_features * k
    return min(noise * n_features * math.sqrt(k * rounds) + learning, bound * k * rounds)


def cadence(*, decisions: int, noise: float, bound: float) -> float:
    """How many decisions may pass between two updates at no cost to the worst-case rate: `(R / B) sqrt(n)`.

    Of `R d sqrt(n) + B d k` with `n = k T` decisions the first term leads as long as k is below it. From the orders of
    the paper's Theorems 3, 4 and 7; constants and logarithms are ignored.

    >>> cadence(decisions=1_000_000, noise=0.5, bound=1.0)
    500.0
    """
    n = checks.count("decisions", decisions)
    return checks.at_least_zero("noise", noise) / checks.positive("bound", bound) * math.sqrt(n)


@dataclass(frozen=True)
class Inequality:
    """`left <= right`, or `left <= middle <= right`, with a slack for rounding."""

    statement: str
    left: float
    right: float
    middle: float | None = None

    @property
    def holds(self) -> bool:
        """Whether it is true."""
        sides = [self.left, self.right] if self.middle is None else [self.left, self.middle, self.right]
        pairs = zip(sides[:-1], sides[1:], strict=True)
        return all(low <= high * (1 + RELATIVE_SLACK) + ABSOLUTE_SLACK for low, high in pairs)

    def __str__(self) -> str:
        middle = "" if self.middle is None else f" <= {self.middle:.6g}"
        verdict = "holds" if self.holds else "FAILS"
        return f"{verdict}  {self.statement}: {self.left:.6g}{middle} <= {self.right:.6g}"


@dataclass(frozen=True)
class TrajectoryReport:
    """The four inequalities that hold on every trajectory, whatever was chosen."""

    squares: Inequality
    widths: Inequality
    wide_arms: Inequality
    by_round: Inequality

    @property
    def holds(self) -> bool:
        """Whether all four are true."""
        return all(inequality.holds for inequality in (self.squares, self.widths, self.wide_arms, self.by_round))

    def __str__(self) -> str:
        return "\n".join(str(inequality) for inequality in (self.squares, self.widths, self.wide_arms, self.by_round))


def check_trajectory(
    features: Sequence[ArrayLike], *, ridge: float, k: int | None = None, length: float | None = None
) -> TrajectoryReport:
    """The inequalities for the arms chosen round by round: `features` has one `(k_t, n_features)` for each round.

    `k` is at least the largest k_t and `length` at least the longest row; they are just that if not given.
    (a) to (c): paper, Lemma 2 (in the appendix with constants); (d): derived, unrefereed (docs/theory.md).

    >>> print(check_trajectory([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [2.0, 0.0]]], ridge=1.0))
    holds  (a) sum min(1/k, w^2) <= 2 log det(V/ridge) <= 2G: 2 <= 5.88888 <= 7.167...
    holds  (b) sum min(1/sqrt k, w) <= sqrt(2kTG): 2.82843 <= 5.35...
    holds  (c) arms with w > 1/sqrt k <= 2kG: 4 <= 14.33...
    holds  (d) sum log(1 + sum w^2) <= log det(V/ridge): 2.48491 <= 2.94444
    """
    rounds = _rounds(features)
    T, d = len(rounds), rounds[0].shape[1]
    k = _at_least("k", k, max(1, *(len(X) for X in rounds)))
    length = _at_least("length", length, max(_longest(X) for X in rounds))
    by_round, state = [], RidgeState(n_features=d, ridge=ridge)
    for X in rounds:
        by_round.append(state.width(X))
        state = state.learn(X, np.zeros(len(X)))
    w, gain = np.concatenate(by_round), float(state.log_det_gain)
    G = log_det_bound(k=k, rounds=T, n_features=d, length=length, ridge=ridge)
    narrow = 1 / math.sqrt(k)
    squares = float(np.minimum(1 / k, w**2).sum())
    logs = sum(math.log1p(float(np.sum(each**2))) for each in by_round)
    return TrajectoryReport(
        Inequality("(a) sum min(1/k, w^2) <= 2 log det(V/ridge) <= 2G", squares, 2 * G, middle=2 * gain),
        Inequality("(b) sum min(1/sqrt k, w) <= sqrt(2kTG)", float(np.minimum(narrow, w).sum()), _root(2 * k * T * G)),
        Inequality("(c) arms with w > 1/sqrt k <= 2kG", float(np.sum(w > narrow)), 2 * k * G),
        Inequality("(d) sum log(1 + sum w^2) <= log det(V/ridge)", logs, gain),
    )
