"""The sections of a report on the model: what it lost, believes and got wrong, and what limits cost."""

import math
from collections.abc import Sequence

from armful.campaigns.audit._finding import number, percent, signed
from armful.campaigns.report import _figures as figures
from armful.campaigns.report._data import ReportData, Surprise
from armful.campaigns.report._section import NONE, Drawn, Rows, Section, Table, counted, ends
from armful.experiments._page import plain


def certificate(data: ReportData) -> Section | None:
    """Return the section of the upper bound on what was lost, `armful.theory.regret_certificate`."""
    found = data.certificate
    if found is None:
        return None
    lost, contacts = found.lost[-1], max(found.contacts[-1], 1)
    meaning = (
        "This is proved, except with the probability `delta`, if rewards are linear in the features."
        if found.holds
        else f"It is an indication, not a proof, because {'; '.join(map(plain, found.reasons))}."
    )
    rows = [
        [str(each.number), f"{n:,}", number(bound), number(bound / max(n, 1))]
        for each, n, bound in zip(data.rounds, found.contacts, found.lost, strict=True)
    ]
    columns = ["after round", "contacts", "lost at most", "per contact"]
    return Section(
        key="certificate",
        title="What was lost by not knowing, at most",
        text=[
            f"Over {contacts:,} contacts the policy lost at most {number(lost)} against the best allowed lists, which "
            f"only somebody who knows every effect could have chosen: {number(lost / contacts)} per contact. {meaning}",
            "This upper limit is cautious: it takes every doubt about a person as if it had been wrong. It falls as "
            "doubts shrink; where it is above what a contact earns, it says nothing yet.",
        ],
        drawn=[
            Drawn(
                label="Line chart: upper bound on the loss per contact after each round, beside what a contact earned",
                figure=figures.certificate(data),
                table=Table(title="Lost at most", columns=columns, rows=rows),
            )
        ],
    )


def coefficients(data: ReportData) -> Section | None:
    """Return the section of what the model believes of each feature."""
    if not data.coefficients:
        return None
    rows = [[plain(each.name), signed(each.value), signed(each.low), signed(each.high)] for each in data.coefficients]
    shown = figures.MOST_COEFFICIENTS
    which = f" The {shown} largest of {len(rows)} are drawn, the table has all." if shown < len(rows) else ""
    columns = ["feature", f"change of {plain(data.reward)}", "from", "to"]
    return Section(
        key="coefficients",
        title="What the model believes",
        text=[
            f"How much the expected `{plain(data.reward)}` changes between the lowest and the highest value of a "
            "feature, all others being equal, with 95 % intervals. Features that go together share their effect, so "
            "that each may look unsure alone." + which
        ],
        drawn=[
            Drawn(
                label="Dot chart: the largest coefficients with their intervals",
                figure=figures.coefficients(data),
                table=Table(title="Coefficients", columns=columns, rows=rows),
            )
        ],
    )


def calibration(data: ReportData) -> Section | None:
    """Return the section of predictions against outcomes."""
    if not data.calibration:
        return None
    rows = [
        [number(each.predicted), number(each.observed.value), ends(each.observed), f"{each.observed.n:,}"]
        for each in data.calibration
    ]
    columns = ["predicted", "observed", "95 %", "outcomes"]
    return Section(
        key="calibration",
        title="Did the predictions come true?",
        text=[
            "People with similar predictions, made before their round, and what they earned on average. On the dashed "
            "line predictions come true. The best predictions are often a little too good, because people are chosen "
            "for them."
        ],
        drawn=[
            Drawn(
                label="Scatter chart: observed outcomes against predicted ones in groups",
                figure=figures.calibration(data),
                table=Table(title="Predicted and observed", columns=columns, rows=rows),
            )
        ],
    )


def quotas(data: ReportData) -> Section | None:
    """Return the section of quotas and prices."""
    if not data.quotas and not data.prices:
        return None
    drawn, text = [], []
    for i, quota in enumerate(data.quotas):
        rows: Rows = [
            [plain(each.name), _count(each.at_least), _count(each.at_most), *(f"{count:,}" for count in each.counts)]
            for each in quota.groups
        ]
        columns = [plain(quota.column), "at least", "at most", *(f"round {each.number}" for each in data.rounds)]
        drawn.append(
            Drawn(
                label=f"Bar chart: contacts of each group of {quota.column} in the last round, with the bounds",
                figure=figures.quota(data, i),
                table=Table(title=f"Contacts by {quota.column}", columns=columns, rows=rows),
            )
        )
    if drawn:
        text.append("Contacts of each group in the last round, holdout included, with the bounds that were set.")
    if data.prices:
        text.append(
            "The price of a limit is how much more the list would have been worth, by the model, if the limit were "
            "looser by one: a high price is a limit to think about."
        )
    rows = [[str(each.round), plain(each.limit), number(each.price)] for each in reversed(data.prices)]
    prices = Table(title="Prices of the limits", columns=["round", "limit", "price"], rows=rows)
    return Section(
        key="quotas",
        title="Quotas and what they cost",
        text=[" ".join(text)],
        drawn=drawn,
        tables=[prices] if data.prices else [],
    )


def surprises(data: ReportData) -> Section | None:
    """Return the section of groups and people that are far from their predictions."""
    if not data.groups and not data.people:
        return None
    rare = sum(each.chance < figures.RARE for each in data.groups)
    more = "At least " if rare == len(data.groups) < data.n_groups else ""
    verdict = (
        f"{more}{rare} of {data.n_groups} groups differ from the predictions by more than chance explains."
        if rare
        else f"None of {data.n_groups} groups differs from the predictions by more than chance explains."
    )
    columns = ["outcomes", "predicted", "observed", "standard errors", "chance"]
    people = Table(
        title=f"The furthest of {counted(data.n_people, 'person')}".replace("persons", "people"),
        columns=["id", *columns],
        rows=_surprise_rows(data.people),
    )
    drawn = Drawn(
        label="Dot chart: groups by how far their outcomes are from the predictions",
        figure=figures.surprises(data),
        table=Table(
            title=f"The furthest of {counted(data.n_groups, 'group')}",
            columns=["group", *columns],
            rows=_surprise_rows(data.groups),
        ),
    )
    return Section(
        key="surprises",
        title="Surprises",
        text=[
            f"{verdict} Among so many some are far off by luck: the chance in the table is that of finding one so far "
            "off among all that were looked at. Groups are compared with the rest of their round; filled dots are "
            "those that chance does not explain."
        ],
        drawn=[drawn] if data.groups else [],
        tables=[people] if data.people else [],
    )


def _surprise_rows(found: Sequence[Surprise]) -> Rows:
    return [
        [
            plain(each.name),
            f"{each.n:,}",
            number(each.predicted),
            number(each.observed),
            f"{each.distance:+.1f}",
            percent(each.chance) if math.isfinite(each.chance) else NONE,
        ]
        for each in found
    ]


def _count(value: int | None) -> str:
    return NONE if value is None else f"{value:,}"
