"""Differences within rounds with variances clustered by person: the sums behind a lift."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armful.campaigns.lift._data import LiftData
from armful.checks import FloatArray, IntArray

FEWEST_TO_ADJUST = 20
"""From so many held-out people on the estimate is adjusted for who happened to be drawn."""


@dataclass(frozen=True, kw_only=True)
class Moments:
    """What is known after some rounds; sums over rounds, not yet divided by their number.

    `mean1` and `mean0` are sums of the rounds' means in the two shares. With u_i the sum of a person's weighted
    residuals in the treated share, w_i in the other and z_i that of the control, `uu` is `sum_i u_i^2`, `uw` is
    `sum_i u_i w_i`, and so on.
    """

    last_round: int
    n_rounds: int
    n_treated: int
    n_others: int
    treated_people: int
    other_people: int
    mean1: float
    mean0: float
    control: float
    control_error: float
    uu: float
    ww: float
    zz: float
    uw: float
    uz: float
    wz: float


@dataclass(frozen=True, kw_only=True)
class Means:
    """The means of both shares over the rounds, with their variances and the degrees of freedom."""

    treated: float
    others: float
    variance1: float
    variance0: float
    covariance: float
    degrees: int
    adjusted: bool

    @property
    def variance(self) -> float:
        """The variance of the difference."""
        return self.variance1 + self.variance0 - 2 * self.covariance


def moments_by_round(data: LiftData) -> Iterator[Moments]:
    """Yield the moments after each round in which both shares have at least two known rewards."""
    rows = _Rows.of(data)
    sums, products = np.zeros((3, rows.n_people)), np.zeros((3, 3))  # of u, w and z
    seen, n_seen = np.zeros((2, rows.n_people), dtype=bool), [0, 0]
    counts, totals = [0, 0], np.zeros(4)
    for n_rounds, here in enumerate(rows.by_round(), start=1):
        people, person = np.unique(rows.people[here], return_inverse=True)
        terms = np.zeros((3, people.size))
        for share in (0, 1):
            inside = np.flatnonzero(rows.treated[here] == share)
            each, who = here[inside], person[inside]
            weight = math.sqrt(each.size / (each.size - 1)) / each.size
            residuals = weight * (_centred(rows.rewards[each]) - rows.margins[each])
            np.add.at(terms[1 - share], who, residuals)
            totals[share] += rows.rewards[each].mean()
            counts[share] += each.size
            present = people[np.bincount(who, minlength=people.size) > 0]
            n_seen[share] += int(np.count_nonzero(~seen[share, present]))
            seen[share, present] = True
            if share == 0:
                np.add.at(terms[2], who, weight * _centred(rows.controls[each]))
                totals[2:] += rows.controls[each].mean(), math.sqrt(rows.control_variances[each].mean())
        before = sums[:, people]
        sums[:, people] = after = before + terms
        products += after @ after.T - before @ before.T
        yield Moments(
            last_round=int(rows.rounds[here[0]]),
            n_rounds=n_rounds,
            n_treated=counts[1],
            n_others=counts[0],
            treated_people=n_seen[1],
            other_people=n_seen[0],
            mean1=float(totals[1]),
            mean0=float(totals[0]),
            control=float(totals[2]),
            control_error=float(totals[3]),
            **{"uwz"[a] + "uwz"[b]: float(products[a, b]) for a in range(3) for b in range(a, 3)},
        )


def means(moments: Moments, *, adjust: bool) -> Means | None:
    """Return the means with their variances; None if there are too few people, or their rewards do not vary."""
    people = min(moments.treated_people, moments.other_people)
    if people < 2 or moments.uu == 0 or moments.ww == 0:
        return None
    # All who could be drawn differ from the population too, in the worst case in all rounds alike, so the errors of the
    # rounds are added as standard deviations. Adjusting pays if what is drawn varies more than that.
    error = moments.control_error**2
    adjusted = adjust and moments.zz > error and people >= FEWEST_TO_ADJUST
    degrees = people - 1 - adjusted
    clusters = people / degrees
    slope = moments.wz / moments.zz if adjusted else 0.0  # it makes the residual variance least
    residual = moments.ww - slope * moments.wz
    T = moments.n_rounds
    return Means(
        treated=moments.mean1 / T,
        others=(moments.mean0 - slope * moments.control) / T,
        variance1=clusters * moments.uu / T**2,
        variance0=(clusters * residual + slope**2 * error) / T**2,
        covariance=clusters * (moments.uw - slope * moments.uz) / T**2,
        degrees=degrees,
        adjusted=adjusted,
    )


@dataclass(frozen=True, eq=False)
class _Rows:
    """The known rewards of usable rounds, in order of rounds; people numbered from 0."""

    rounds: IntArray
    people: IntArray
    n_people: int
    treated: NDArray[np.bool_]
    rewards: FloatArray
    controls: FloatArray
    control_variances: FloatArray
    margins: FloatArray

    @classmethod
    def of(cls, data: LiftData) -> "_Rows":
        known = np.flatnonzero(np.isfinite(data.rewards))
        _, rounds = np.unique(data.rounds[known], return_inverse=True)
        sizes = np.bincount(2 * rounds + data.treated[known], minlength=2 * (rounds.max(initial=-1) + 1)).reshape(-1, 2)
        usable = (sizes.min(axis=1) >= 2)[rounds]
        order = known[usable][np.argsort(rounds[usable], kind="stable")]
        labels, people = np.unique(data.people[order], return_inverse=True)
        zeros = np.zeros(data.rewards.size)
        margins = zeros
        if data.ranks is not None:
            margins = np.zeros(data.rewards.size)
            for share in (False, True):
                each = order[(data.treated[order] == share) & np.isfinite(data.ranks[order])]
                margins[each] = _margin(data.rounds[each], data.ranks[each], data.rewards[each])
        return cls(
            rounds=data.rounds[order],
            people=people,
            n_people=labels.size,
            treated=data.treated[order],
            rewards=data.rewards[order],
            controls=(zeros if data.controls is None else data.controls)[order],
            control_variances=(zeros if data.control_variances is None else data.control_variances)[order],
            margins=margins[order],
        )

    def by_round(self) -> Iterator[IntArray]:
        begins = np.flatnonzero(np.diff(self.rounds, prepend=np.nan))
        yield from np.split(np.arange(self.rounds.size), begins[1:]) if begins.size else ()


def _centred(values: FloatArray) -> FloatArray:
    """Return values minus their mean, which is exactly 0 where all are equal."""
    return values - values.mean() if np.ptp(values) > 0 else np.zeros(values.size)


def _margin(rounds: IntArray, ranks: FloatArray, rewards: FloatArray) -> float:
    """Return by how much the mean reward of the last who are picked differs from that of all who are.

    Which people are picked depends on who else is in their share: one more good person pushes out the last. So a person
    adds to the mean what they bring beyond the last, and residuals are taken from there. A line is fitted to
    rewards by rank, within rounds.
    """
    if not rounds.size:
        return 0.0
    _, codes = np.unique(rounds, return_inverse=True)
    x, y = (each - (np.bincount(codes, weights=each) / np.bincount(codes))[codes] for each in (ranks, rewards))
    spread = float(x @ x)
    return float(x @ y) / spread / 2 if spread > 0 else 0.0
