"""The summary of a service's campaign: what a dashboard shows that does not depend on single decisions."""

import json
from collections import Counter
from datetime import timedelta
from typing import Any

import numpy as np

from armful import theory
from armful.campaigns._believed import coefficients
from armful.campaigns._results import as_json
from armful.campaigns.audit import Finding
from armful.campaigns.audit._finding import number
from armful.campaigns.decisions import _audit, _series
from armful.campaigns.decisions._counts import COLUMNS
from armful.campaigns.decisions._groups import MOST_RECENT
from armful.campaigns.decisions._lift import decision_lift
from armful.campaigns.decisions.fold import DecisionFold
from armful.campaigns.lift import Lift
from armful.campaigns.lift._words import ended, unit_of
from armful.campaigns.rounds._standing import learning_notes
from armful.campaigns.settings import ServiceSettings
from armful.campaigns.settings._quotas import bound_of
from armful.ledger import ModelInfo
from armful.model.radius import estimated_noise
from armful.policies import Policy

RECENT_BUCKETS = 16
"""The rate of decisions is that of the last so many buckets, about a thousand decisions."""

MUCH_TOO_LONG = 2.0
"""The interval between updates is called too long if it is so many times what `theory.cadence` suggests: that is an
order without its constant."""

NOTHING_YET = "Nothing has been decided yet."
UNITS = ((3600, "hour"), (60, "minute"), (1, "second"))


def summary(
    fold: DecisionFold, info: ModelInfo, findings: list[Finding], update_every: timedelta | None = None
) -> dict[str, Any]:
    """Return the summary of a campaign as JSON has it; every number is finite or None.

    Parameters
    ----------
    fold : DecisionFold
        Up to date.
    info : ModelInfo
        The model that is published with it.
    findings : list of Finding
        From the audit.
    update_every : timedelta, optional
        How often the model is updated, if not as the settings say.
    """
    segments, settings = fold.in_order(), fold.settings
    totals, reward = _series.totals_of(segments), settings.outcomes.reward
    lift = decision_lift(segments, unit_of(reward))
    policy = policy_of(fold)
    every, suggested = interval(fold, update_every), suggested_interval(fold, policy)
    return as_json(  # type: ignore[no-any-return]
        {
            "campaign": settings.name,
            "kind": "service",
            "made_at": info.made_at,
            "sentence": headline(totals, lift, reward),
            "decisions": int(totals["decisions"]),
            "rewards": int(totals["came"]),
            "outstanding": int(totals["outstanding"]),
            "reward_name": reward,
            "model": {
                "version": info.version,
                "made_at": info.made_at,
                "checked_at": info.checked_at,
                "n_observations": info.n_observations,
                "update_every_seconds": every.total_seconds(),
                "suggested_seconds": suggested,
            },
            "series": _series.series(segments),
            "lift": None
            if lift is None
            else {
                "value": lift.per_contact,
                "low": lift.low,
                "high": lift.high,
                "certainty": lift.certainty,
                "relative": lift.relative,
                "sentence": ended(lift.sentence),
            },
            "coefficients": [
                each.to_dict() for each in coefficients(policy, fold.names, ready=bool(settings.features.ready))
            ],
            "quotas": _quotas(fold),
            "positions": _positions(fold),
            "audit": _audit.as_json([*_audit.silence(totals), *findings]),
            "notes": [*learning_notes(settings), *cadence_notes(every, suggested)],
        }
    )


def policy_of(fold: DecisionFold, seed: int | None = None) -> Policy:
    """Return the campaign's policy with all that has been learned."""
    policy = fold.settings.policy.make(fold.n_features, fold.settings.seed if seed is None else seed)
    policy.state = fold.state
    return policy


def suggested_interval(fold: DecisionFold, policy: Policy) -> float | None:
    """Return the seconds between updates below which there is little to gain, at the present rate; None if not known.

    It is what `theory.cadence` says, where n is the number of arms that were chosen so far, R the noise of the rewards
    and B the cap, or the largest reward where there is no cap. Where rewards are learned when their window closes, it
    is a tenth of the window at least: they are late by all of it anyway.
    """
    segments = fold.in_order()
    if not segments:
        return None
    recent = np.concatenate([segment.counts.buckets for segment in segments[-MOST_RECENT:]])
    recent = recent[-RECENT_BUCKETS:]
    arms, first, last, largest = (COLUMNS.index(name) for name in ("arms", "first_at", "last_at", "largest"))
    seconds = float(recent[:, last].max() - recent[:, first].min())
    n = sum(segment.counts.total("arms") for segment in segments)
    bound = getattr(policy, "cap", None) or max(float(s.counts.buckets[:, largest].max()) for s in segments)
    if seconds <= 0 or not bound or n < 1:
        return None
    guess = {"guess": bound / 2}
    allowed = theory.cadence(decisions=int(n), noise=float(estimated_noise(policy.state, **guess)), bound=float(bound))
    outcomes = fold.settings.outcomes
    least = 1.0 if outcomes.learn_at_once else max(outcomes.window.total_seconds() / 10, 1.0)
    return max(allowed / (float(recent[:, arms].sum()) / seconds), least)


def cadence_notes(every: timedelta, suggested: float | None) -> list[str]:
    """Return what to say of the interval between updates."""
    seconds = every.total_seconds()
    if suggested is None or seconds <= MUCH_TOO_LONG * suggested:
        return []
    return [
        f"the model is updated every {_duration(seconds)}, and at the present rate every {_duration(suggested)} would "
        "lose less: set `update_every` under `[service]`"
    ]


def interval(fold: DecisionFold, update_every: timedelta | None = None) -> timedelta:
    """Return the time between updates: the one that is given, or that of the settings."""
    return update_every or (fold.settings.service or ServiceSettings()).update_every


def published_interval(text: str) -> timedelta | None:
    """Return the time between updates in a published summary; None if it has none."""
    seconds = (json.loads(text or "{}").get("model") or {}).get("update_every_seconds")
    return None if seconds is None else timedelta(seconds=seconds)


def headline(totals: dict[str, float], lift: Lift | None, reward: str) -> str:
    """Return the state of the campaign in one sentence: how it compares with the holdout, if that is known."""
    if not totals["decisions"]:
        return NOTHING_YET
    closed = int(totals["decisions"] - totals["open"])
    if not closed:
        return "No window for rewards has closed yet."
    if not totals["came"]:
        return _audit.none_came(closed)
    if lift is not None:
        return ended(lift.headline("Chosen sets", "random ones"))
    mean = _series.mean_of(totals, "chosen")
    if mean is None or mean["mean"] is None:
        return "No reward of an arm that the policy chose is known yet."
    held = "" if totals["holdout_n"] else "; there is no holdout to compare with"
    return f"Each chosen arm earned {number(mean['mean'])} {unit_of(reward)} on average{held}."


def _quotas(fold: DecisionFold) -> list[dict[str, Any]]:
    """Return how many arms of each group were chosen, and its bounds for a decision: below 1 a share, else a count."""
    counted: dict[str, Counter[str]] = {}
    for segment in fold.in_order():
        for column, groups in segment.counts.groups.items():
            counted.setdefault(column, Counter()).update(groups)
    choose = fold.settings.choose
    bounds = {quota.column: quota.as_requested(choose.k) for quota in choose.quotas}
    return [
        {
            "column": column,
            "group": group,
            "n": n,
            "share": n / groups.total(),
            "at_least": bound_of(bounds[column].at_least, group) if column in bounds else None,
            "at_most": bound_of(bounds[column].at_most, group) if column in bounds else None,
        }
        for column, groups in sorted(counted.items())
        for group, n in groups.most_common()
    ]


def _positions(fold: DecisionFold) -> list[dict[str, Any]]:
    """Return how often each place is looked at; nothing if that is neither set nor estimated yet."""
    if not fold.weights.size:
        return []
    places = fold.places
    weights = fold.weights_at(np.arange(len(places)))
    rows = zip(weights.tolist(), places[:, 0].tolist(), places[:, 1].tolist(), strict=True)
    return [
        {"position": place + 1, "weight": weight, "mean": total / n if n else None}
        for place, (weight, n, total) in enumerate(rows)
    ]


def _duration(seconds: float) -> str:
    """Return a time in words.

    >>> _duration(42), _duration(90), _duration(1), _duration(7200)
    ('42 seconds', '90 seconds', 'second', '2 hours')
    """
    size, name = next((size, name) for size, name in UNITS if seconds >= 2 * size or size == 1)
    n = round(seconds / size)
    return name if n <= 1 else f"{n} {name}s"
