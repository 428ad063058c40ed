"""What can be proved: regret bounds, inequalities of every trajectory, certificates, cadence. See docs/theory.md.

The same words everywhere: `radius` is alpha_T, the last and largest radius (`beta`, or a value of `log_det_radius`);
`k` the size of a set; `rounds` T; `length` L >= |x|; `bound` B >= |theta*.x|; `ridge` lambda; `noise` R;
`norm` S >= |theta*|. "Paper" is Takemura et al. 2021. G is `log_det_bound`. A bound holds wherever the confidence
set does: with probability at least 1 - delta, for a radius that never falls.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from armful import checks
from armful.blocks import row_norms
from armful.checks import FloatArray
from armful.radius import theory_radius
from armful.ridge import RidgeState

LN2 = math.log(2)
Rounds = Sequence[ArrayLike]  # one array for each round

RELATIVE_SLACK, ABSOLUTE_SLACK = 1e-9, 1e-12
"""What rounding may add to the left side of an inequality; some are equalities when k = 1."""


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
        theory_radius(
            noise=checks.at_least_zero("noise", noise),
            norm=checks.at_least_zero("norm", norm),
            ridge=checks.positive("ridge", ridge),
            n_features=checks.count("n_features", n_features),
            log_growth=_log_one_plus(length, k=k, rounds=t, ridge=ridge),
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
    k, G = setting["k"], log_det_bound(**setting)
    radius, B = checks.at_least_zero("radius", radius), math.inf if bound is None else checks.positive("bound", bound)
    one_wide_arm = min(2 * radius * (float(setting["length"]) / math.sqrt(setting["ridge"])), 2 * B * k)
    return 2 * radius * math.sqrt(2 * k * setting["rounds"] * G) + one_wide_arm * 2 * k * G


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
    k, G = setting["k"], log_det_bound(**setting)
    narrow_arms = 2 * checks.at_least_zero("radius", radius) * math.sqrt(2 * k * setting["rounds"] * G)
    return checks.positive("lipschitz", lipschitz) * (narrow_arms + 4 * checks.positive("bound", bound) * k * G)


def c2ucb_round_counting_bound(*, radius: float, bound: float, delay: int = 0, **setting: Unpack[Setting]) -> float:
    """Regret of C2UCB, any constraint, B unknown to it: `2 alpha sqrt(k T G / ln 2) + 2 B k G / ln 2`.

    Also of `CappedC2UCB(rule="clip")`. With rewards up to `delay` rounds late: `2 alpha sqrt(2 k T G / ln 2)` plus
    `delay_term`. Derived, unrefereed (docs/theory.md).

    >>> round(c2ucb_round_counting_bound(radius=2, bound=0.1, k=10, rounds=10, n_features=4, length=2, ridge=4), 1)
    211.0
    """
    stale, G = (2 if delay else 1), log_det_bound(**setting)
    light = 2 * checks.at_least_zero("radius", radius) * math.sqrt(stale * setting["k"] * setting["rounds"] * G / LN2)
    return light + delay_term(delay=delay, bound=bound, **setting)


def delay_term(*, delay: int, bound: float, **setting: Unpack[Setting]) -> float:
    """What learning costs apart from noise when rewards come up to D rounds late: `2 B k (D + 1) G / ln 2`.

    The paper's order `B d k` times D + 1. Derived, unrefereed (docs/theory.md).

    >>> round(delay_term(delay=3, bound=0.1, k=10, rounds=10, n_features=4, length=2, ridge=4), 1)
    150.4
    """
    heavy_rounds = (checks.count("delay", delay, minimum=0) + 1) * log_det_bound(**setting) / LN2
    return 2 * checks.positive("bound", bound) * setting["k"] * heavy_rounds


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
        return all(low <= high * (1 + RELATIVE_SLACK) + ABSOLUTE_SLACK for low, high in pairwise(sides))

    def __str__(self) -> str:
        middle = "" if self.middle is None else f" <= {self.middle:.6g}"
        return f"{'holds' if self.holds else 'FAILS'}  {self.statement}: {self.left:.6g}{middle} <= {self.right:.6g}"


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
        return self.squares.holds and self.widths.holds and self.wide_arms.holds and self.by_round.holds

    def __str__(self) -> str:
        return f"{self.squares}\n{self.widths}\n{self.wide_arms}\n{self.by_round}"


def check_trajectory(
    features: Rounds, *, ridge: float, k: int | None = None, length: float | None = None
) -> TrajectoryReport:
    """The inequalities for the arms chosen round by round: `features` has one `(k_t, n_features)` for each round.

    `k` is at least the largest k_t and `length` at least the longest row; they are just that if not given.
    (a) to (c): paper, Lemma 2 (in the appendix with constants); (d): derived, unrefereed (docs/theory.md).

    >>> print(check_trajectory([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [2.0, 0.0]]], ridge=1.0))
    holds  (a) sum min(1/k, w^2) <= 2 log det(V/ridge) <= 2G: 2 <= 5.99146 <= 8.7889
    holds  (b) sum min(1/sqrt k, w) <= sqrt(2kTG): 2.82843 <= 5.92922
    holds  (c) arms with w > 1/sqrt k <= 2kG: 4 <= 17.5778
    holds  (d) sum log(1 + sum w^2) <= log det(V/ridge): 2.48491 <= 2.99573
    """
    rounds = _rounds(features)
    k = int(_at_least("k", k, max(1, *map(len, rounds))))
    length = _at_least("length", length, max(float(row_norms(X).max(initial=0.0)) for X in rounds))
    G = log_det_bound(k=k, rounds=len(rounds), n_features=rounds[0].shape[1], length=length, ridge=ridge)
    by_round, gain = _walk(rounds, ridge)
    w, narrow = np.concatenate(by_round), 1 / math.sqrt(k)
    squares, widths = float(np.minimum(1 / k, w**2).sum()), float(np.minimum(narrow, w).sum())
    logs = math.fsum(math.log1p(float(each @ each)) for each in by_round)
    return TrajectoryReport(
        Inequality("(a) sum min(1/k, w^2) <= 2 log det(V/ridge) <= 2G", squares, 2 * G, middle=2 * gain),
        Inequality("(b) sum min(1/sqrt k, w) <= sqrt(2kTG)", widths, math.sqrt(2 * k * len(rounds) * G)),
        Inequality("(c) arms with w > 1/sqrt k <= 2kG", float(np.sum(w > narrow)), 2 * k * G),
        Inequality("(d) sum log(1 + sum w^2) <= log det(V/ridge)", logs, gain),
    )


def regret_certificate(
    features: Rounds, *, ridge: float, radius: ArrayLike, k: int, bound: float | None = None, clip: bool = False
) -> FloatArray:
    """An upper bound on the regret after each round, `(T,)`, from the widths of what was chosen; sharper than G.

    C2UCB: `sum_t min(2 alpha_t sum_i w, 2 B k)`. With `clip`, for `CappedC2UCB(rule="clip", cap=B)`:
    `sum_t sum_i min(2 alpha_t w, 2 B)`. `radius`: alpha_t for each round, or one number. `k`: the largest set allowed.
    From the chain of inequalities in the proofs of the paper's Theorems 2 and 4.

    >>> regret_certificate([[[1.0, 0.0]], [[1.0, 0.0]]], ridge=1.0, radius=1.0, k=1, bound=0.8).round(3)
    array([1.6  , 3.014])
    """
    rounds = _rounds(features)
    alpha = checks.floats("radius", radius)
    if alpha.shape not in ((), (len(rounds),)) or not (np.isfinite(alpha) & (alpha >= 0)).all():
        raise ValueError(f"radius must be a number, or {len(rounds)} of them, zero or more, got {radius!r}")
    alpha = np.broadcast_to(alpha, len(rounds))
    k = int(_at_least("k", k, max(map(len, rounds))))
    excess = [2 * a * w for a, w in zip(alpha, _walk(rounds, ridge)[0], strict=True)]
    most = math.inf if bound is None else 2 * checks.positive("bound", bound)
    arm, whole = (most, math.inf) if clip else (math.inf, most * k)
    return np.cumsum([min(np.minimum(each, arm).sum(), whole) for each in excess])


def estimate_shock(residuals_by_round: Rounds) -> float:
    """`tau^2 / sigma^2`, the `shock` of `learn`: noise shared by a round, against each arm's own; never below 0.

    One-way analysis of variance by moments, `sigma^2 = MSW`, `tau^2 = (MSB - MSW) / n0`, with
    `n0 = (n - sum n_t^2 / n) / (T - 1)`; rounds of any sizes (Searle et al. 1992, Variance Components).

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


def _log_one_plus(length: float, *, k: int, rounds: int, ridge: float, n_features: int = 1) -> float:
    """`log(1 + L^2 k T / (d lambda))`, in logs because L^2 may be beyond float64."""
    arms = checks.count("k", k) * checks.count("rounds", rounds)
    if checks.at_least_zero("length", length) == 0:
        return 0.0
    return float(np.logaddexp(0, 2 * math.log(length) + math.log(arms / n_features / checks.positive("ridge", ridge))))


def _rounds(features: Rounds) -> list[FloatArray]:
    if len(features) == 0 or any(np.ndim(X) != 2 for X in features):
        raise ValueError("a trajectory needs at least one round, and an array (k, n_features) for each")
    return [checks.features(X, np.shape(features[0])[1]) for X in features]


def _at_least(name: str, given: float | None, seen: float) -> float:
    if given is not None and not given * (1 + RELATIVE_SLACK) >= seen:
        raise ValueError(f"{name} must be at least {seen}, which the trajectory has, got {given}")
    return seen if given is None else given


def _walk(rounds: list[FloatArray], ridge: float) -> tuple[list[FloatArray], float]:
    """The widths of each round's arms before the round, and `log det(V / ridge)` after the last."""
    widths, state = [], RidgeState(n_features=rounds[0].shape[1], ridge=ridge)
    for X in rounds:
        widths.append(state.width(X))
        state = state.learn(X, np.zeros(len(X)))
    return widths, float(state.log_det_gain)
