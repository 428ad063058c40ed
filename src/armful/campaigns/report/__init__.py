"""The report of a campaign: first everything that it shows as plain records, then one HTML file."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from plotly.offline import get_plotlyjs

from armful import __version__
from armful.campaigns._believed import coefficients
from armful.campaigns._intervals import is_yes_or_no
from armful.campaigns._records import RoundRecord
from armful.campaigns.audit import findings
from armful.campaigns.audit._data import gather
from armful.campaigns.lift import estimate_lift, lift_data, lift_path
from armful.campaigns.lift._words import unit_of
from armful.campaigns.report._data import ReportData
from armful.campaigns.report._page import document
from armful.campaigns.report._rounds import QuotaCounts, certificate, lost_at_most, prices_of, round_line
from armful.campaigns.report._surprises import calibration, surprising_groups, surprising_people
from armful.campaigns.settings import Settings
from armful.files._atomic_file import write_bytes
from armful.policies import Policy

if TYPE_CHECKING:
    from armful.campaigns._view import CampaignView

MOST_BYTES = 1 << 28
"""Rounds that take no more memory are kept while a report is made; larger ones are read again each time."""


class Rounds:
    """The rounds of a campaign, to be read several times.

    Parameters
    ----------
    read : callable
        Returns all rounds anew, one after the other.
    """

    def __init__(self, read: Callable[[], Iterable[RoundRecord]]) -> None:
        self._read = read
        self._kept: list[RoundRecord] | None = None

    def __iter__(self) -> Iterator[RoundRecord]:
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[RoundRecord] | None = []
        n_bytes = 0
        for record in self._read():
            n_bytes += record.features.nbytes + 2 * record.ids.nbytes
            kept = None if kept is None or n_bytes > MOST_BYTES else [*kept, record]
            yield record
        self._kept = kept


def write_campaign_report(campaign: "CampaignView", path: Path) -> None:
    """Write the report of a campaign, as things are now."""
    recipe = campaign.recipe
    assert recipe is not None
    now = campaign.now()
    rounds = Rounds(campaign.records)
    write_report(report_data(rounds, campaign.policy(), campaign.settings, recipe.names, now=now), path)


def report_data(
    records: Iterable[RoundRecord], policy: Policy, settings: Settings, names: list[str], *, now: datetime
) -> ReportData:
    """Return everything that a report shows.

    Parameters
    ----------
    records : iterable of RoundRecord
        All rounds; they are read several times, so an iterator will not do.
    policy : Policy
        With all that it has learned.
    settings : Settings
        Those of the campaign.
    names : list of str
        The names of the features.
    now : datetime
        When the report is made.
    """
    evidence = gather(records, len(names))
    data = lift_data(records)
    yes_or_no = is_yes_or_no(evidence.rows.rewards)  # of all closed rounds: one of them may have zeros alone
    rounds, lost, prices, counts = [], [], [], QuotaCounts()
    for record in records:
        rounds.append(round_line(record, yes_or_no=yes_or_no))
        lost.append(lost_at_most(record, policy))
        prices += prices_of(record)
        counts.add(record)
    comparable = [each.number for each in rounds if each.closed and min(each.chosen.n, each.holdout.n) >= 2]
    unit = unit_of(settings.outcomes.reward)
    lifts = lift_path(data, unit=unit)
    groups, n_groups = surprising_groups(evidence.rows, names)
    people, n_people = surprising_people(evidence.rows)
    return ReportData(
        name=settings.name,
        made_at=now,
        version=__version__,
        reward=settings.outcomes.reward,
        policy=repr(policy),
        rounds=tuple(rounds),
        lift=estimate_lift(data, unit=unit),
        lifts=tuple(lifts),
        lift_rounds=tuple(comparable[each.n_rounds - 1] for each in lifts),
        certificate=certificate(lost, rounds, policy, settings),
        coefficients=tuple(coefficients(policy, names)),
        calibration=calibration(evidence.rows),
        quotas=counts.quotas(settings),
        prices=tuple(prices),
        groups=groups,
        people=people,
        n_groups=n_groups,
        n_people=n_people,
        findings=tuple(findings(evidence, policy, settings, names)),
    )


def write_report(data: ReportData, path: Path) -> None:
    """Write a report as one HTML file, which replaces another atomically.

    Parameters
    ----------
    data : ReportData
        What it shows.
    path : Path
        Where it is written.
    """
    write_bytes(path, document(data, get_plotlyjs()).encode())
