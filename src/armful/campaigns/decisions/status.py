"""Where a campaign that is served stands."""

from datetime import datetime, timedelta

from armful.campaigns._believed import coefficients
from armful.campaigns._results import ServiceStatus
from armful.campaigns.decisions._audit import silence
from armful.campaigns.decisions._lift import decision_lift
from armful.campaigns.decisions._series import totals_of
from armful.campaigns.decisions.fold import DecisionFold
from armful.campaigns.decisions.summary import (
    NOTHING_YET,
    cadence_notes,
    headline,
    interval,
    policy_of,
    published_interval,
    suggested_interval,
)
from armful.campaigns.lift._words import ended, unit_of
from armful.campaigns.rounds._standing import learning_notes
from armful.campaigns.settings import ServiceSettings, Settings
from armful.ledger import ModelInfo

STALE = 10
"""A model that was not checked for so many intervals is called old: the service does not run."""

NO_MODEL = "no model has been published yet: `armful serve` does that"


def decision_status(fold: DecisionFold, now: datetime) -> ServiceStatus:
    """Return where a campaign stands, from a fold that is up to date."""
    settings, segments = fold.settings, fold.in_order()
    totals, policy = totals_of(segments), policy_of(fold)
    reward = settings.outcomes.reward
    lift = decision_lift(segments, unit_of(reward))
    published = fold.ledger.newest_model(state=False)
    every = (None if published is None else published_interval(published[2])) or interval(fold)
    suggested = suggested_interval(fold, policy)
    models = fold.ledger.models()
    newest = models[-1] if models else None
    notes = [
        *_model_notes(newest, every, now),
        *(f"{each.consequence} {each.repair}" for each in silence(totals)),
        *learning_notes(settings),
        *cadence_notes(every, suggested),
    ]
    return ServiceStatus(
        name=settings.name,
        rounds=[],
        n_observations=float(policy.state.n),
        outstanding=int(totals["outstanding"]),
        coefficients=coefficients(policy, fold.names, ready=bool(settings.features.ready)),
        notes=notes,
        sentence=headline(totals, lift, reward) if lift is None else ended(lift.sentence),
        decisions=int(totals["decisions"]),
        rewards=int(totals["came"]),
        model_version=0 if newest is None else newest.version,
        model_made_at=None if newest is None else newest.made_at,
        model_checked_at=None if newest is None else newest.checked_at,
        update_every_seconds=every.total_seconds(),
        suggested_seconds=suggested,
    )


def undecided_status(settings: Settings) -> ServiceStatus:
    """Return where a campaign stands whose features are not frozen yet, so that nothing can have been decided."""
    every = (settings.service or ServiceSettings()).update_every
    return ServiceStatus(
        name=settings.name,
        rounds=[],
        n_observations=0.0,
        outstanding=0,
        coefficients=[],
        notes=[NO_MODEL],
        sentence=NOTHING_YET,
        decisions=0,
        rewards=0,
        model_version=0,
        model_made_at=None,
        model_checked_at=None,
        update_every_seconds=every.total_seconds(),
        suggested_seconds=None,
    )


def _model_notes(newest: ModelInfo | None, every: timedelta, now: datetime) -> list[str]:
    if newest is None:
        return [NO_MODEL]
    if now - newest.checked_at > STALE * every:
        at = newest.checked_at.isoformat(sep=" ", timespec="seconds")
        return [f"model {newest.version} was last found to be up to date at {at}: start the service, if it is to run"]
    return []
