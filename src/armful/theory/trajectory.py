"""Inequalities that hold for chosen arms, whichever policy chose them; names are explained in `armful.theory`."""

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
from armful.theory.radii import log_det_bound

Rounds = Sequence[ArrayLike]  # one array for each round

_RELATIVE_SLACK, _ABSOLUTE_SLACK = 1e-9, 1e-12
"""What rounding may add to the left side of an inequality; some are equalities when k = 1."""


@dataclass(frozen=True)
class Inequality:
    """`left <= right`, or `left <= middle <= right`, with a slack for rounding.

    Attributes
    ----------
    statement : str
        The inequality in words.
    left, right : float
        Its sides.
    middle : float or None
        What is between them, if anything.
    """

    statement: str
    left: float
    right: float
    middle: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the inequality is true."""
        sides = [self.left, self.right] if self.middle is None else [self.left, self.middle, self.right]
        return all(low <= high * (1 + _RELATIVE_SLACK) + _ABSOLUTE_SLACK for low, high in pairwise(sides))

    def __str__(self) -> str:
        middle = "" if self.middle is None else f" <= {self.middle:.6g}"
        return f"{'holds' if self.holds else 'FAILS'}  {self.statement}: {self.left:.6g}{middle} <= {self.right:.6g}"


@dataclass(frozen=True)
class TrajectoryReport:
    """The four inequalities that hold on every trajectory, whatever was chosen.

    Attributes
    ----------
    squares : Inequality
        (a), on the sum of squared widths.
    widths : Inequality
        (b), on the sum of widths.
    wide_arms : Inequality
        (c), on the number of arms with a width above `1 / sqrt(k)`.
    by_round : Inequality
        (d), on the squared widths of each round together.
    """

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
    """Return the four inequalities for arms that were chosen round by round.

    Parameters
    ----------
    features : sequence of array_like
        For each round the features of the chosen arms, of shape (k_t, n_features).
    ridge : float
        lambda, the ridge parameter.
    k : int, optional
        The size of a set, at least the largest k_t; that, if it is not given.
    length : float, optional
        L, at least the length of the longest row; that, if it is not given.

    Returns
    -------
    TrajectoryReport

    Raises
    ------
    ValueError
        If there are no rounds, or `k` or `length` is smaller than what was seen.

    References
    ----------
    (a) to (c): Takemura et al. (2021), Lemma 2, with constants in the appendix. (d): derived in docs/theory.md,
    unrefereed.

    Examples
    --------
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
    by_round, gain = _widths_by_round(rounds, ridge)
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
    """Return an upper bound on the regret after each round from the widths of the arms that were chosen.

    It is smaller than the bounds that are known before a run, which use G. It holds for exact choices by these two
    scores, with a radius that has a guarantee. For other scores it proves nothing: not for Thompson sampling, nor for
    `rule="paper"`, which gives a wide arm the score B even where `theta.x + alpha_t w` is less.

        C2UCB:                               sum_t min(2 alpha_t sum_i w, 2 B k)
        CappedC2UCB(rule="clip", cap=B):     sum_t sum_i min(2 alpha_t w, 2 B)

    Parameters
    ----------
    features : sequence of array_like
        For each round the features of the chosen arms, of shape (k_t, n_features).
    ridge : float
        lambda, the ridge parameter.
    radius : float or array_like of shape (T,)
        alpha_t: one number, or one for each round.
    k : int
        The size of the largest allowed set.
    bound : float, optional
        B, which no mean reward exceeds in absolute value.
    clip : bool
        Whether the arms were chosen by `CappedC2UCB(rule="clip", cap=bound)`, and not by `C2UCB`.

    Returns
    -------
    ndarray of shape (T,)

    Raises
    ------
    ValueError
        If there are no rounds, `k` is smaller than a set, a radius is negative, or `clip` comes without `bound`.

    References
    ----------
    The inequalities in the proofs of Takemura et al. (2021), Theorems 2 and 4.

    Examples
    --------
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
    excess = [2 * a * w for a, w in zip(alpha, _widths_by_round(rounds, ridge)[0], strict=True)]
    most = math.inf if bound is None else 2 * checks.positive("bound", bound)
    arm, whole = (most, math.inf) if clip else (math.inf, most * k)
    return np.cumsum([min(np.minimum(each, arm).sum(), whole) for each in excess])


def _rounds(features: Rounds) -> list[FloatArray]:
    if len(features) == 0 or any(np.ndim(X) != 2 for X in features):
        raise ValueError("a trajectory needs at least one round, and an array (k, n_features) for each")
    return [checks.features(X, np.shape(features[0])[1]) for X in features]


def _at_least(name: str, given: float | None, seen: float) -> float:
    if given is not None and not given * (1 + _RELATIVE_SLACK) >= seen:
        raise ValueError(f"{name} must be at least {seen}, which the trajectory has, got {given}")
    return seen if given is None else given


def _widths_by_round(rounds: list[FloatArray], ridge: float) -> tuple[list[FloatArray], float]:
    """Return the widths of each round's arms before the round, and `log det(V / ridge)` after the last."""
    widths, state = [], RidgeState(n_features=rounds[0].shape[1], ridge=ridge)
    for X in rounds:
        widths.append(state.width(X))
        state = state.learn(X, np.zeros(len(X)))
    return widths, float(state.log_det_gain)
