"""What the dashboard shows of a decision service: the newest model's summary, and the last decisions."""

import json
from collections.abc import Hashable
from typing import Any

import msgspec

from armful.campaigns.settings import ServiceSettings, Settings
from armful.errors import LedgerError
from armful.ledger import Ledger, ModelInfo
from armful.service._decisions import stored_arms
from armful.service.dashboard._why import explores_by, share_of, why

N_DECISIONS = 12
"""How many of the last decisions are shown."""


class ServiceSource:
    """The newest published model's summary and the last decisions of a campaign that is served.

    Parameters
    ----------
    ledger : Ledger
        Opened; it is only read.
    settings : Settings
        Those of the campaign.
    """

    kind = "service"

    def __init__(self, ledger: Ledger, settings: Settings) -> None:
        self.ledger, self.settings = ledger, settings
        self._explores_by = explores_by(settings.policy)
        self._read: dict[int, dict[str, Any]] = {}
        self._read_until = 0
        self._summary: tuple[int, dict[str, Any]] = (-1, {})
        self._newest: tuple[ModelInfo, bytes, str] | None = None

    def stamp(self) -> Hashable:
        """Return something that is another when `data` may be."""
        self._newest = self.ledger.newest_model(state=False)
        model = None if self._newest is None else (self._newest[0].version, self._newest[0].checked_at)
        return model, self.ledger.last_number(), self.ledger.position()

    def data(self) -> dict[str, Any]:
        """Return what is shown."""
        self.stamp()
        last = self.ledger.last_number()
        shown = {**_empty(self.settings), **self._newest_summary(), "decisions": last}
        shown["model"] = self._model(shown.get("model") or {})
        if not shown["sentence"]:
            shown["sentence"] = f"{last:,} decisions so far." if last else "No decision has been asked for yet."
        return {**shown, "last_decisions": self._last_decisions(last)}

    def _newest_summary(self) -> dict[str, Any]:
        if self._newest is None:
            return {}
        info, _, text = self._newest
        if self._summary[0] != info.version:
            self._summary = (info.version, json.loads(text or "{}"))
        return self._summary[1]

    def _model(self, summarised: dict[str, Any]) -> dict[str, Any]:
        every = (self.settings.service or ServiceSettings()).update_every.total_seconds()
        if self._newest is None:
            return {"version": 0, "n_observations": 0.0, "update_every_seconds": every}
        info = self._newest[0]
        return {
            "update_every_seconds": every,
            **summarised,
            "version": info.version,
            "made_at": info.made_at.isoformat(),
            "checked_at": info.checked_at.isoformat(),
            "n_observations": info.n_observations,
        }

    def _last_decisions(self, last: int) -> list[dict[str, Any]]:
        """Return the last decisions, the newest first; those without a new reward are not read again."""
        position = self.ledger.position()
        wanted = range(last, max(last - N_DECISIONS, 0), -1)
        changed = set(self.ledger.changed_rounds(self._read_until).tolist()) if self._read else set()
        kept = {number: self._read[number] for number in wanted if number in self._read and number not in changed}
        found = {}
        for number in wanted:
            decision = kept.get(number) or self._decision(number)
            if decision is not None:
                found[number] = decision
        self._read, self._read_until = found, position
        return list(found.values())

    def _decision(self, number: int) -> dict[str, Any] | None:
        try:
            info = self.ledger.round(number)
            arms, outcomes = self.ledger.chosen_and_outcomes(number)
        except LedgerError:  # numbers may have gaps
            return None
        chosen = [msgspec.to_builtins(arm) for arm in stored_arms(arms, outcomes, info.details.get("cap"))]
        decision = {
            "decision_id": str(number),
            "decided_at": info.chosen_at.isoformat(),
            "unit_present": info.unit is not None,
            "share": share_of(info.details.get("share", "chosen"), chosen),
            "model_version": info.model_version,
            "n_candidates": info.details.get("n_candidates"),
            "chosen": chosen,
            "runner_up": info.details.get("runner_up"),
        }
        return {**decision, "why": why(decision, self._explores_by)}


def _empty(settings: Settings) -> dict[str, Any]:
    """Return the summary of a campaign without a model."""
    lists: dict[str, Any] = {name: [] for name in ("series", "coefficients", "quotas", "positions", "audit", "notes")}
    return {
        "campaign": settings.name,
        "kind": "service",
        "made_at": None,
        "sentence": "",
        "rewards": 0,
        "outstanding": 0,
        "reward_name": settings.outcomes.reward,
        "ready_features": bool(settings.features.ready),
        "missing": settings.outcomes.missing,
        "explores_by": explores_by(settings.policy),
        "model": None,
        "lift": None,
        **lists,
    }
