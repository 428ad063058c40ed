"""The sections of a report on what happened, and the order of all sections."""

import math
from collections.abc import Callable

from armful.campaigns.audit._finding import percent
from armful.campaigns.report import _figures as figures
from armful.campaigns.report._data import ReportData
from armful.campaigns.report._model import calibration, certificate, coefficients, quotas, surprises
from armful.campaigns.report._section import Drawn, Section, Table, counted, ends, known, known_signed
from armful.experiments._page import plain


def sections(data: ReportData) -> list[Section]:
    """Return the sections that have something to show, without the audit."""
    makers: list[Callable[[ReportData], Section | None]] = [
        rewards,
        lift,
        exploration,
        certificate,
        coefficients,
        calibration,
        quotas,
        surprises,
        outstanding,
    ]
    return [section for make in makers if (section := make(data)) is not None]


def rewards(data: ReportData) -> Section | None:
    """Return the section of the rewards by round."""
    closed = [each for each in data.rounds if each.closed]
    if not closed:
        return None
    n_open = len(data.rounds) - len(closed)
    rows = [
        [
            f"{each.number}{'' if each.closed else ' (open)'}",
            f"{each.chosen_at:%Y-%m-%d}",
            f"{each.chosen.n:,}",
            known(each.chosen.value),
            ends(each.chosen),
            f"{each.holdout.n:,}",
            known(each.holdout.value),
            ends(each.holdout),
        ]
        for each in data.rounds
    ]
    columns = ["round", "chosen on", "known, chosen", "mean", "95 %", "known, holdout", "mean", "95 %"]
    later = f" {counted(n_open, 'open round')} will follow; the table has what came so far." if n_open else ""
    return Section(
        key="rewards",
        title=f"Mean {plain(data.reward)} per round",
        text=[
            f"Mean `{plain(data.reward)}` of each contact: people whom the policy chose, and the holdout, whom the "
            f"house rule chose. Bars are 95 % intervals.{later}"
        ],
        drawn=[
            Drawn(
                label="Line chart: mean per contact by round, chosen and holdout, with intervals",
                figure=figures.rewards(data),
                table=Table(title=f"Mean {plain(data.reward)} per round", columns=columns, rows=rows),
            )
        ],
    )


def lift(data: ReportData) -> Section | None:
    """Return the section of the lift after each round."""
    if not data.lifts:
        return None
    rows = [
        [
            str(number),
            f"{each.n_contacts:,}",
            f"{each.n_holdout:,}",
            known_signed(each.per_contact),
            f"{known_signed(each.low)} to {known_signed(each.high)}",
            f"{known_signed(each.anytime_low)} to {known_signed(each.anytime_high)}",
        ]
        for number, each in zip(data.lift_rounds, data.lifts, strict=True)
    ]
    columns = ["after round", "contacts", "in the holdout", "lift per contact", "95 %, one look", "95 %, many looks"]
    adjusted = " It is adjusted for who happened to be drawn into the holdout." if data.lift.adjusted else ""
    return Section(
        key="lift",
        title="Lift so far",
        text=[
            "How much more a contact earned than one of the holdout, over all rounds so far. Shares are compared "
            "within rounds, so that a good or a bad week cancels, and a person who comes back counts as one."
            + adjusted,
            "The inner band is right if you look once, at a time fixed in advance. If you look after every round, and "
            "may stop when you like what you see, the outer band is the one to believe.",
            *map(plain, data.lift.notes),
        ],
        drawn=[
            Drawn(
                label="Line chart: lift per contact after each round, with two bands",
                figure=figures.lift(data),
                table=Table(title="Lift so far", columns=columns, rows=rows),
            )
        ],
    )


def exploration(data: ReportData) -> Section | None:
    """Return the section of the share of exploration."""
    rounds = [each for each in data.rounds if math.isfinite(each.exploring)]
    if not rounds:
        return None
    rows = [[str(each.number), percent(each.exploring), f"{each.n_chosen:,}", known(each.predicted)] for each in rounds]
    columns = ["round", "exploration", "chosen", "mean prediction of the chosen"]
    return Section(
        key="exploration",
        title="Exploration",
        text=[
            "The share of the chosen whom the model alone would not have chosen: they are tried out because too "
            "little is known of people like them. It usually falls as the model learns."
        ],
        drawn=[
            Drawn(
                label="Bar chart: share of exploration by round",
                figure=figures.exploration(data),
                table=Table(title="Exploration", columns=columns, rows=rows),
            )
        ],
    )


def outstanding(data: ReportData) -> Section | None:
    """Return the section of what became of all contacts."""
    if not data.rounds:
        return None
    waiting, assumed, unknown = (
        sum(getattr(each, kind) for each in data.rounds) for kind in ("outstanding", "assumed", "unknown")
    )
    text = [
        f"{counted(waiting, 'outcome')} may still come." if waiting else "No outcome is outstanding.",
        f"{assumed:,} did not come before their window closed and count as the setting `missing` says."
        if assumed
        else "",
        f"{unknown:,} stay unknown, since their window has closed." if unknown else "",
    ]
    rows = [
        [
            str(each.number),
            f"{each.closes_at:%Y-%m-%d}",
            f"{each.n_chosen + each.n_holdout:,}",
            f"{each.came:,}",
            f"{each.assumed:,}",
            f"{each.outstanding:,}",
            f"{each.unknown:,}",
            f"{each.n_no_contact:,}",
        ]
        for each in data.rounds
    ]
    columns = ["round", "window closes", "contacts", "came", "no outcome", "outstanding", "unknown", "not contacted"]
    return Section(
        key="outstanding",
        title="Outstanding outcomes",
        text=[" ".join(filter(None, text))],
        drawn=[
            Drawn(
                label="Stacked bar chart: contacts of each round by what became of their outcome",
                figure=figures.outstanding(data),
                table=Table(title="Outcomes by round", columns=columns, rows=rows),
            )
        ],
    )
