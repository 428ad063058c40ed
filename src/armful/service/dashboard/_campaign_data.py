"""What the dashboard shows of a campaign that is run from the command line."""

from collections.abc import Hashable
from typing import Any

from armful.campaigns._results import as_json
from armful.campaigns._view import CampaignView
from armful.campaigns.decisions._audit import LEVELS
from armful.campaigns.rounds._standing import round_status, status_notes
from armful.service.dashboard._why import explores_by


class CampaignSource:
    """The rounds, the lift, the model and the audit of a campaign, as its report has them.

    Parameters
    ----------
    campaign : Campaign
        Opened; it is only read.
    """

    kind = "campaign"

    def __init__(self, campaign: CampaignView) -> None:
        self.campaign = campaign

    def stamp(self) -> Hashable:
        """Return something that is another when `data` may be."""
        rounds, now = self.campaign.ledger.rounds(), self.campaign.now()
        return self.campaign.ledger.position(), len(rounds), sum(each.closes_at <= now for each in rounds)

    def data(self) -> dict[str, Any]:
        """Return what is shown."""
        campaign = self.campaign
        recipe = campaign.recipe
        if recipe is None:
            return self._summary(sentence="No round has been chosen yet.", notes=["`armful choose` chooses one."])
        from armful.campaigns.report import Rounds, report_data  # noqa: PLC0415 - plotly is slow to import
        from armful.campaigns.report._page import CHECKS, verdict  # noqa: PLC0415

        records, policy = Rounds(campaign.records), campaign.policy()
        data = report_data(records, policy, campaign.settings, recipe.names, now=campaign.now())
        lift, rounds = data.lift, data.rounds
        shown = self._summary(
            sentence=lift.headline("The chosen", "the holdout"),
            decisions=len(rounds),
            rewards=sum(each.came for each in rounds),
            outstanding=sum(each.outstanding for each in rounds),
            model={"version": None, "n_observations": float(policy.state.n)},
            series=[
                {
                    "round": each.number,
                    "from": each.chosen_at,
                    "to": each.closes_at,
                    "decisions": each.n_chosen + each.n_holdout,
                    "open": 0 if each.closed else each.n_chosen + each.n_holdout,
                    "chosen": _mean(each.chosen, each.closed),
                    "holdout": _mean(each.holdout, each.closed),
                    "predicted": each.predicted,
                    "exploring": each.exploring,
                    "capped": None,
                }
                for each in rounds
            ],
            lift={
                "value": lift.per_contact,
                "low": lift.low,
                "high": lift.high,
                "certainty": lift.certainty,
                "relative": lift.relative,
                "sentence": f"{lift.sentence}. {verdict(data)}" if lift.known else verdict(data),
            },
            coefficients=[each.to_dict() for each in data.coefficients],
            quotas=[
                {
                    "column": quota.column,
                    "group": group.name,
                    "n": group.counts[-1],
                    "share": group.counts[-1] / max(sum(each.counts[-1] for each in quota.groups), 1),
                    "at_least": group.at_least,
                    "at_most": group.at_most,
                }
                for quota in data.quotas
                for group in quota.groups
            ],
            audit=[
                {
                    "level": LEVELS[each.level] if each.checked else "open",
                    "title": CHECKS.get(each.name, each.name),
                    "sentence": f"{each.sentence} {each.consequence}".strip(),
                    "remedy": each.repair,
                }
                for each in data.findings
            ],
            notes=[*status_notes([round_status(each) for each in records]), *lift.notes],
        )
        return dict(as_json(shown))

    def _summary(self, **parts: Any) -> dict[str, Any]:
        lists: dict[str, Any] = {name: [] for name in ("series", "coefficients", "quotas", "positions", "audit")}
        counts = dict.fromkeys(("decisions", "rewards", "outstanding"), 0)
        return {
            "campaign": self.campaign.settings.name,
            "kind": self.kind,
            "made_at": self.campaign.now().isoformat(),
            "reward_name": self.campaign.settings.outcomes.reward,
            "ready_features": bool(self.campaign.settings.features.ready),
            "missing": self.campaign.settings.outcomes.missing,
            "explores_by": explores_by(self.campaign.settings.policy),
            "model": None,
            "lift": None,
            **counts,
            **lists,
            **parts,
        }


def _mean(mean: Any, closed: bool) -> dict[str, Any]:
    """Return a mean as the series has it; of an open round only the number, since early outcomes are mostly good."""
    if not closed:
        return {"n": mean.n, "mean": None, "low": None, "high": None}
    return {"n": mean.n, "mean": mean.value, "low": mean.low, "high": mean.high}
