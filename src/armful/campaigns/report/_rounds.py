"""What a report says of rounds: means, counts, quotas and the certificate."""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from armful.campaigns._intervals import interval, is_yes_or_no, wilson
from armful.campaigns._records import RoundRecord
from armful.campaigns.report._data import Certificate, Mean, Price, Quota, QuotaGroup, RoundLine
from armful.campaigns.settings import QuotaSettings, Settings
from armful.checks import FloatArray
from armful.errors import InfeasibleError
from armful.policies import C2UCB, CappedC2UCB, Policy

GUARANTEED = ("logdet", "theory")
"""Radii with a guarantee."""


def mean_of(rewards: FloatArray, *, yes_or_no: bool = False) -> Mean:
    """Return the mean of rewards with an interval of about 95 %, for people who differ.

    Examples
    --------
    >>> rewards = np.array([0.0, 1.0, 0.0, 1.0])
    >>> mean_of(rewards)
    Mean(value=0.5, low=-0.0658..., high=1.0658..., n=4)
    >>> mean_of(rewards, yes_or_no=True)
    Mean(value=0.5, low=0.1500..., high=0.8499..., n=4)
    """
    if rewards.size < 2:
        return Mean(
            value=float(rewards.mean()) if rewards.size else math.nan, low=math.nan, high=math.nan, n=rewards.size
        )
    value, error = float(rewards.mean()), float(rewards.std(ddof=1)) / math.sqrt(rewards.size)
    low, high = wilson(value, rewards.size) if yes_or_no else interval(value, error)
    return Mean(value=value, low=low, high=high, n=rewards.size)


def round_line(record: RoundRecord, *, yes_or_no: bool) -> RoundLine:
    """Return what a report says of one round; yes_or_no: whether those of all closed rounds are 0 and 1."""
    known, contacted = np.isfinite(record.rewards), record.shares != "no-contact"
    yes_or_no = yes_or_no or is_yes_or_no(record.rewards[known & contacted])
    chosen, holdout = record.is_share("chosen"), record.is_share("holdout")
    waiting = contacted & ~known & (not record.closed)
    return RoundLine(
        number=record.number,
        chosen_at=record.chosen_at,
        closes_at=record.closes_at,
        closed=record.closed,
        chosen=mean_of(record.rewards[known & chosen], yes_or_no=yes_or_no),
        holdout=mean_of(record.rewards[known & holdout], yes_or_no=yes_or_no),
        n_chosen=int(chosen.sum()),
        n_holdout=int(holdout.sum()),
        n_no_contact=int((~contacted).sum()),
        predicted=float(record.predicted[chosen].mean()) if chosen.any() else math.nan,
        exploring=record.exploring,
        came=int((contacted & record.came).sum()),
        assumed=int((contacted & known & ~record.came).sum()),
        outstanding=int(waiting.sum()),
        unknown=int((contacted & ~known & ~waiting).sum()),
    )


def prices_of(record: RoundRecord) -> list[Price]:
    """Return what the limits of a round cost, as far as that was recorded."""
    found = record.details.get("prices", [])
    return [Price(round=record.number, limit=str(each["limit"]), price=float(each["price"])) for each in found]


def lost_at_most(record: RoundRecord, policy: Policy) -> float:
    """Return an upper bound on what a round lost against the best allowed list, from the bonuses that were given.

    That of `armful.theory.regret_certificate`, whose `2 alpha w` is twice the bonus.
    """
    bonus = record.bonus[record.is_share("chosen")]
    cap = getattr(policy, "cap", None)
    if isinstance(policy, CappedC2UCB):
        return float(np.minimum(2 * bonus, math.inf if cap is None else 2 * cap).sum())
    return float(2 * bonus.sum())


def certificate(
    lost: Sequence[float], rounds: Sequence[RoundLine], policy: Policy, settings: Settings
) -> Certificate | None:
    """Return the certificate of all rounds; None if the policy's score has none."""
    if not isinstance(policy, C2UCB) or getattr(policy, "rule", "clip") != "clip" or not rounds:
        return None
    reasons = []
    if policy.radius not in GUARANTEED:
        reasons.append(f"the radius {policy.radius!r} is a heuristic without a guarantee, unlike 'logdet'")
    if isinstance(policy.noise, str) or policy.norm is None:
        reasons.append("noise and norm are estimated or taken by default, and not known bounds")
    if any(later.chosen_at < before.closes_at for before, later in pairwise(rounds)):
        reasons.append("rounds were chosen while outcomes of earlier ones were outstanding")
    if settings.learning.discount < 1:
        reasons.append("old rounds are discounted")
    return Certificate(
        lost=tuple(np.cumsum(lost).tolist()),
        contacts=tuple(np.cumsum([each.n_chosen for each in rounds]).tolist()),
        holds=not reasons,
        reasons=tuple(reasons),
    )


class QuotaCounts:
    """Counts the contacts of each group, round by round."""

    def __init__(self) -> None:
        self.n_rounds = 0
        self.counts: dict[str, dict[str, dict[int, int]]] = {}

    def add(self, record: RoundRecord) -> None:
        """Count the contacts of a round."""
        contacted = record.shares != "no-contact"
        for column, labels in record.groups.items():
            for name, count in _counted(labels[contacted]):
                self.counts.setdefault(column, {}).setdefault(name, {})[self.n_rounds] = count
        self.n_rounds += 1

    def quotas(self, settings: Settings) -> tuple[Quota, ...]:
        """Return the counts with the bounds of the settings."""
        found = []
        for quota in settings.choose.quotas:
            groups = self.counts.get(quota.column, {})
            low, high = _bounds(quota, sorted(groups), settings.choose.k)
            found.append(
                Quota(
                    column=quota.column,
                    groups=tuple(
                        QuotaGroup(
                            name=name,
                            counts=tuple(groups[name].get(t, 0) for t in range(self.n_rounds)),
                            at_least=low.get(name),
                            at_most=high.get(name),
                        )
                        for name in sorted(groups)
                    ),
                )
            )
        return tuple(each for each in found if each.groups)


def _counted(labels: NDArray[np.str_]) -> Iterable[tuple[str, int]]:
    names, counts = np.unique(labels, return_counts=True)
    return zip(names.tolist(), counts.tolist(), strict=True)


def _bounds(quota: QuotaSettings, groups: list[str], k: int) -> tuple[dict[str, int], dict[str, int]]:
    try:
        return quota.bounds(groups, k)
    except InfeasibleError:  # the settings were changed since the last round
        return {}, {}
