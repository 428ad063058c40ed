"""How a round stands: as it was chosen, and what has come of it so far."""

from pathlib import Path

import numpy as np

from armful.campaigns._records import RoundRecord
from armful.campaigns._results import Round, RoundStatus
from armful.campaigns.features import FeatureRecipe
from armful.campaigns.features._numbers import Ready
from armful.campaigns.holdout import NO_CONTACT, SHARES
from armful.campaigns.rounds._customers import Customers, frozen_kinds
from armful.campaigns.settings import Settings
from armful.checks import FloatArray
from armful.ledger import ChosenArms, RoundInfo


def round_result(
    info: RoundInfo, arms: ChosenArms, path: Path | None, notes: list[str], *, repeated: bool = False
) -> Round:
    """Return a round with what is on its list."""
    n_chosen, n_holdout, n_no_contact = (int((arms.shares == share).sum()) for share in SHARES)
    contacted = arms.shares != "no-contact"
    groups = {}
    for column, labels in arms.groups.items():
        names, sizes = np.unique(labels[contacted], return_counts=True)
        groups[column] = dict(zip(names.tolist(), sizes.tolist(), strict=True))
    return Round(
        number=info.number,
        key=info.key,
        path=path,
        chosen_at=info.chosen_at,
        closes_at=info.closes_at,
        n_customers=info.details.get("n_customers", 0),
        n_excluded=info.details.get("n_excluded", 0),
        n_chosen=n_chosen,
        n_holdout=n_holdout,
        n_no_contact=n_no_contact,
        predicted=_mean(arms.predicted[arms.shares == "chosen"]),
        exploring=float(info.details.get("exploring", float("nan"))),
        groups=groups,
        repeated=repeated,
        notes=notes,
    )


def round_status(record: RoundRecord) -> RoundStatus:
    """Return what has come of a round so far."""
    known = np.isfinite(record.rewards)
    contacted = record.shares != "no-contact"
    counted = known & record.closed  # early outcomes are mostly good ones
    return RoundStatus(
        number=record.number,
        chosen_at=record.chosen_at,
        closes_at=record.closes_at,
        closed=record.closed,
        n=record.ids.size,
        came=int(record.came.sum()),
        outstanding=0 if record.closed else int((contacted & ~record.came).sum()),
        assumed=int((known & ~record.came).sum()),
        mean_chosen=_mean(record.rewards[counted & record.is_share("chosen")]),
        mean_holdout=_mean(record.rewards[counted & record.is_share("holdout")]),
        exploring=record.exploring,
    )


def recipe_notes(recipe: FeatureRecipe) -> list[str]:
    """Return what to say of the features once they are frozen."""
    return [f"column {column!r} is left out: {reason}" for column, reason in recipe.left_out]


def frozen_notes(recipe: FeatureRecipe, settings: Settings) -> list[str]:
    """Return what to say in later rounds if the settings name other columns, or other kinds, than were frozen."""
    frozen = frozen_kinds(recipe)
    now: dict[str, str] = {column.name: column.kind for column in settings.features.columns}
    now |= dict.fromkeys(settings.features.ready, Ready.kind)
    known = {*recipe.columns, *(column for column, _ in recipe.left_out)}
    changed = sorted({*now} ^ known | {column for column, kind in frozen.items() if now.get(column, kind) != kind})
    if not changed:
        return []
    names = ", ".join(map(repr, changed))
    return [f"the features are those of the first round: what campaign.toml now says of {names} has no effect on them"]


def customer_notes(customers: Customers, settings: Settings) -> list[str]:
    """Return what to say of the customers of a round and what the settings name of them."""
    return [*_required_notes(customers), *_stranger_notes(customers, settings), *_quota_notes(customers, settings)]


def _required_notes(customers: Customers) -> list[str]:
    """Return what to say of those who must be chosen and cannot be."""
    n = int((customers.required & (customers.excluded | (customers.shares == NO_CONTACT))).sum())
    who = f"{n} of the required customers are" if n > 1 else "one of the required customers is"
    return [f"{who} not contacted: excluded, resting or in the no-contact share"] if n else []


def _stranger_notes(customers: Customers, settings: Settings) -> list[str]:
    """Return what to say of files of excluded or required ids that name no customer, whose ids may be other ones."""
    return [
        f"no id in {name} is that of a customer of this file; both files must write {settings.id!r} in the same way"
        for name in customers.strangers
    ]


def _quota_notes(customers: Customers, settings: Settings) -> list[str]:
    """Return what to say of quotas on groups that no customer is in, whose names may be misspelt."""
    return [
        f"the quota on {quota.column!r} names {group!r}, and no customer of this file has that"
        for quota in settings.choose.quotas
        for group in quota.absent([str(label) for label in customers.groups[quota.column].labels])
    ]


def learning_notes(settings: Settings) -> list[str]:
    """Return what to say when outcomes are learned."""
    if not settings.outcomes.learn_at_once:
        return []
    return [
        "outcomes are learned at once: if good ones come sooner than bad ones, the model expects too much until the "
        'window closes; learn = "when the window closes" avoids that'
    ]


def status_notes(rounds: list[RoundStatus]) -> list[str]:
    """Return what to say of the rounds so far."""
    silent = [each.number for each in rounds if each.closed and each.came == 0]
    return [f"the window of round {silent[-1]} has closed, and no outcome of it has come"] if silent else []


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if values.size else float("nan")
