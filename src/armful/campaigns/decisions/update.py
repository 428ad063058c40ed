"""Updating the model: fold what is new, and publish."""

import json
from datetime import datetime, timedelta

import numpy as np

from armful.campaigns.audit import Finding
from armful.campaigns.audit._finding import not_checked
from armful.campaigns.decisions._audit import audit_decisions
from armful.campaigns.decisions._counts import SHARES
from armful.campaigns.decisions.fold import DecisionFold
from armful.campaigns.decisions.published import PublishedModel
from armful.campaigns.decisions.summary import interval, policy_of, published_interval, summary
from armful.errors import LedgerError
from armful.ledger import ModelInfo

MOST_TRIES = 10
AUDIT_AGAIN = 1.25
"""An audit is made again when the decisions in it have grown by this factor."""


def update_model(fold: DecisionFold, now: datetime, *, update_every: timedelta | None = None) -> ModelInfo | None:
    """Fold what has changed in the ledger, and publish a new model if there is anything new, or another interval.

    Every step is a transaction of its own or can be done again, so it may be killed at any moment. If another updater
    published meanwhile, or somebody was erased, the fold is brought up to date and it is tried again.

    Parameters
    ----------
    fold : DecisionFold
        Kept from one update to the next, so that only what is new is read; a new one resumes from the ledger.
    now : datetime
        With a time zone.
    update_every : timedelta, optional
        How often this is called, if not as the settings say; for the summary.

    Returns
    -------
    ModelInfo or None
        The model that was published; None if the newest one is up to date.

    Raises
    ------
    LedgerError
        If the store cannot be read or written to.
    """
    ledger = fold.ledger
    for _ in range(MOST_TRIES):
        fold.update(now)
        newest = ledger.newest_model(state=False)
        if newest is not None and _is_up_to_date(newest[0], newest[2], fold, update_every):
            ledger.model_checked(newest[0].version, now)
            return None
        version = ledger.model_version() + 1
        state = fold.state
        info = ModelInfo(
            version=version,
            position=fold.position,
            closed_until=fold.closed_until,
            last_round=fold.last_round,
            made_at=now,
            checked_at=now,
            n_observations=float(state.n),
        )
        model = PublishedModel(
            version=version,
            made_at=now,
            state=state,
            pending=fold.pending,
            position_weights=fold.weights,
            n_observations=float(state.n),
            names=fold.names,
        )
        text = json.dumps(summary(fold, info, _findings(fold, now), update_every), allow_nan=False)
        if ledger.publish_model(info, model.to_bytes(), text):
            fold.unpublished = False
            return info
    raise LedgerError(
        f"no model of campaign {fold.settings.name!r} could be published: others publish, or units "
        "are erased, faster; run one updater alone"
    )


def _is_up_to_date(newest: ModelInfo, text: str, fold: DecisionFold, update_every: timedelta | None) -> bool:
    """Return whether a published model holds what the fold holds: rewards, erasures, decisions and closed windows.

    Its summary also has to say how often it is updated, or the dashboard would call the updater late.
    """
    if published_interval(text) != interval(fold, update_every):
        return False
    if fold.unpublished or (newest.position, newest.last_round) != (fold.position, fold.last_round):
        return False
    after, until = sorted((newest.closed_until, fold.closed_until))
    return not fold.ledger.closed_rounds(after, until).size


def _findings(fold: DecisionFold, now: datetime) -> list[Finding]:
    """Return what the audit finds; what it cannot look at does not keep the model from being published."""
    n = sum(segment.counts.total(f"{share}_n") for segment in fold.in_order() for share in SHARES)
    if n >= AUDIT_AGAIN * max(fold.audited, 1.0):
        fold.audited = n
        try:
            fold.findings = audit_decisions(fold, policy_of(fold), now)
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            fold.findings = [not_checked("audit", f"The audit could not be made: {error}.")]
    return fold.findings
