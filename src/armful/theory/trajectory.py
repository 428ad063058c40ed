"""What is true of the arms that were chosen, whoever chose them; the words are those of `armful.theory`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from armful import checks
from armful.checks import FloatArray
from armful.model._blocks import row_norms
from armful.model.ridge import RidgeState
from armful.theory.bounds import log_det_bound

Rounds = Sequence[ArrayLike]  # one array for each round

RELATIVE_SLACK, ABSOLUTE_SLACK = 1e-9, 1e-12
"""What rounding may add to the left side of an inequality; some are equalities when k = 1."""


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
    if clip and bound is None:
        raise ValueError("a certificate for clip needs bound, the cap B")
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
