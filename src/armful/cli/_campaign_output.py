"""What the commands of campaigns print: a short summary, or one JSON object.

Sentences are printed as they are, never broken or taken for markup; only tables are drawn by rich.
"""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import singledispatch
from pathlib import Path
from typing import Any

import typer

from armful.campaigns import Coefficient, Forgotten, Learned, Round, RoundStatus, ServiceStatus, Settings, Status
from armful.campaigns._results import Result
from armful.campaigns._results import as_json as jsonable
from armful.campaigns.init import InitResult
from armful.campaigns.lift import Lift
from armful.campaigns.lift._words import ended
from armful.campaigns.planning._records import PlanResult
from armful.campaigns.settings import ServiceSettings
from armful.campaigns.settings._toml_text import without_password
from armful.cli._printing import count, date, draw, number, percent, printable, rounds, window

MOST_GROUPS = 12
MOST_COEFFICIENTS = 10


@dataclass(frozen=True, kw_only=True)
class Reported(Result):
    """A report that was written, and the lift that it begins with."""

    report: Path
    lift: Lift


def tell(result: Any, *, as_json: bool, then: Sequence[str]) -> None:
    """Print what a command did, and the command that usually follows; with `--json` its fields alone."""
    if as_json:
        print_json(fields(result))
        return
    summary(result)
    for note in notes(result):
        typer.echo(f"note: {printable(note)}")
    typer.echo(f"\nnext: {shlex.join(['armful', *map(without_password, then)])}")


def print_json(values: Mapping[str, Any]) -> None:
    """Print one object on standard output; escaped, so that every encoding of it can be read."""
    typer.echo(json.dumps(jsonable(values), allow_nan=False))


@singledispatch
def fields(result: Any) -> dict[str, Any]:
    """Return what `--json` prints of a result."""
    return dict(result.to_dict())


@fields.register
def _(settings: Settings) -> dict[str, Any]:
    return {
        "name": settings.name,
        "store": without_password(settings.store),
        "k": settings.choose.k,
        "rest": settings.choose.rest,
        "quotas": [quota.column for quota in settings.choose.quotas],
        "columns": {column.name: column.kind for column in settings.features.columns},
        "ready": settings.features.ready,
        "left_out": settings.features.leave_out,
        "policy": settings.policy.kind,
        "reward": settings.outcomes.reward,
        "window_days": settings.outcomes.window.total_seconds() / 86400,
        "holdout": settings.holdout.share,
        "service": None if settings.service is None else _service_fields(settings.service),
        "notes": notes(settings),
    }


@singledispatch
def notes(result: Any) -> Sequence[str]:
    """Return what somebody should know besides a result."""
    found: Sequence[str] = getattr(result, "notes", ())
    return found


@notes.register
def _(settings: Settings) -> Sequence[str]:
    if settings.service is None or settings.source is None or (settings.folder / settings.source).exists():
        return []
    return [f"{settings.source} is not there, and its columns are needed when {settings.name} is first served"]


def _service_fields(service: ServiceSettings) -> dict[str, Any]:
    return {
        "update_every_seconds": service.update_every.total_seconds(),
        "explore": service.explore,
        "draws": service.draws,
        "context": service.context,
        "positions": service.positions,
        "largest_body": service.largest_body,
        "most_arms": service.most_arms,
        "rate": service.rate,
        "timeout_seconds": service.timeout.total_seconds(),
    }


@singledispatch
def summary(result: object) -> None:
    """Print the summary of a result."""
    raise TypeError(f"no summary is written for {type(result).__name__}")


@summary.register
def _(made: InitResult) -> None:
    for line in made.explanations:
        typer.echo(printable(line))
    if made.questions:
        typer.echo("\nplease decide:")
    for line in made.questions:
        typer.echo(f"  - {printable(line)}")
    typer.echo(f"\nthe settings, to read and change: {printable(str(made.path))}")


@summary.register
def _(plan: PlanResult) -> None:
    columns = ["round", "too little known", "to learn more", "lift over random"]
    rounds = [
        (str(each.number), f"{each.at_cap:,}", percent(each.exploring), f"{100 * each.lift:+.0f} %")
        for each in plan.per_round
    ]
    draw(columns, rounds)
    for sentence in plan.sentences:
        typer.echo(f"- {sentence}")


@summary.register
def _(reported: Reported) -> None:
    against = "against the holdout: " if reported.lift.known else ""
    typer.echo(f"{against}{ended(reported.lift.sentence)}")
    summary(reported.report)


@summary.register
def _(report: Path) -> None:
    typer.echo(f"the report: {printable(str(report))}")


@summary.register
def _(settings: Settings) -> None:
    choose, outcomes, holdout = settings.choose, settings.outcomes, settings.holdout
    typer.echo(f"the settings of {printable(settings.name)} are valid")
    features, service = settings.features, settings.service
    kinds = [column.kind for column in features.columns]
    rows = {"contacts in a round": f"{choose.k:,}", "rest after a contact": count(choose.rest, "round")}
    if service is not None:
        rows = {"items in a slate": f"{choose.k:,}"}
    rows["quotas"] = ", ".join(quota.column for quota in choose.quotas) or "none"
    if features.ready:
        more = ", ..." * (len(features.ready) > 3)
        rows["ready features"] = f"{len(features.ready)}: {', '.join(features.ready[:3])}{more}"
    else:
        rows["columns used"] = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    people = "people" if service is None else "units"
    rows |= {
        "columns left out": ", ".join(features.leave_out) or "none",
        "policy": settings.policy.kind,
        "outcome": f"column {outcomes.reward}, within {window(outcomes.window)}",
        "holdout": f"{percent(holdout.share)} of {people}, by the rule {holdout.rule}",
    }
    if service is not None:
        rows |= _service_rows(service)
    draw(["setting", "value"], list(rows.items()), numbers=False)


def _service_rows(service: ServiceSettings) -> dict[str, str]:
    """Return the table `[service]` in words."""
    places = "estimated" if service.positions == "estimate" else "every place the same"
    if isinstance(service.positions, tuple):
        places = "looked at with the weights " + ", ".join(f"{weight:g}" for weight in service.positions)
    return {
        "new model": f"every {window(service.update_every)}",
        "exploration": f"{100 * service.explore:g} % of each slate at random",
        "context": ", ".join(service.context) or "none",
        "places": places,
        "largest request": f"{service.most_arms:,} arms, {service.largest_body:,} bytes",
        "requests": "no limit" if not service.rate else f"{service.rate:g} per second and key",
        "time to arrive": window(service.timeout),
    }


@summary.register
def _(round_: Round) -> None:
    contacts = round_.n_chosen + round_.n_holdout
    again = ", as chosen before with this key" if round_.repeated else ""
    out_of = f"{round_.n_customers:,} customers"
    if round_.n_excluded:
        out_of += f", {round_.n_excluded:,} of whom rest or are excluded"
    typer.echo(f"round {round_.number}{again}: {contacts:,} to contact, out of {out_of}")
    rows = [("chosen by the model", round_.n_chosen), ("holdout, chosen by the house rule", round_.n_holdout)]
    if round_.n_no_contact:
        rows.append(("not to contact, to compare with", round_.n_no_contact))
    draw(["share", "customers"], [(name, f"{n:,}") for name, n in rows])
    for column, counts in round_.groups.items():
        draw([column, "contacts"], _largest(counts))
    typer.echo(f"mean outcome that the model expects of the chosen: {number(round_.predicted)}")
    typer.echo(f"chosen to learn more about them, not for their estimate: {percent(round_.exploring)}")
    typer.echo(f"outcomes count until {date(round_.closes_at)}")
    if round_.path is not None:
        typer.echo(f"the list: {printable(str(round_.path))}")


def _largest(counts: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield the largest groups with their counts, and the rest in one row."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    yield from ((group, f"{n:,}") for group, n in ordered[:MOST_GROUPS])
    if rest := ordered[MOST_GROUPS:]:
        yield f"{len(rest)} more", f"{sum(n for _, n in rest):,}"


@summary.register
def _(learned: Learned) -> None:
    typer.echo(f"{learned.n_rows:,} rows, {learned.matched:,} outcomes that belong to a round")
    rows = {
        "new": learned.new,
        "known before": learned.repeated,
        "corrected": learned.corrected,
        "further rows of the same contact": learned.duplicates,
        "of people on no list": learned.never_chosen,
        "outside the window": learned.outside_window,
        "without a value": learned.empty,
    }
    draw(["outcomes", "rows"], [(what, f"{n:,}") for what, n in rows.items() if n or what == "new"])
    typer.echo(f"outstanding: {learned.outstanding:,}")
    if learned.rounds_learned:
        typer.echo(f"the model has learned {rounds(learned.rounds_learned)}")
    else:
        typer.echo("the model learns a round when the window of its outcomes closes: none has closed yet")


@summary.register
def _(status: Status) -> None:
    typer.echo(
        f"{printable(status.name)}: {count(len(status.rounds), 'round')}, "
        f"{status.n_observations:,.0f} outcomes learned, {status.outstanding:,} outstanding"
    )
    if status.rounds:
        columns = ["round", "chosen", "closes", "came", "open", "assumed", "model", "holdout", "explore"]
        draw(columns, [_round_row(round_) for round_ in status.rounds])
        typer.echo("outcomes that came, that may still come, and that are assumed since the window has closed;")
        typer.echo("mean outcome of those chosen by the model, and of the holdout; share chosen to learn more")
    _effects(status)


@summary.register
def _(status: ServiceStatus) -> None:
    typer.echo(
        f"{printable(status.name)}: {count(status.decisions, 'decision')}, {count(status.rewards, 'reward')}, "
        f"{status.outstanding:,} outstanding, {status.n_observations:,.0f} learned"
    )
    typer.echo(printable(status.sentence))
    if status.model_made_at is not None:
        typer.echo(
            f"model {status.model_version} of {date(status.model_made_at)}, "
            f"updated every {window(timedelta(seconds=status.update_every_seconds))}"
        )
    _effects(status)


def _effects(status: Status) -> None:
    if (status.rounds or isinstance(status, ServiceStatus)) and not status.n_observations:
        typer.echo("the model has learned nothing yet")
    elif status.coefficients:
        draw(
            ["feature", "effect", "from", "to"],
            [_coefficient_row(coefficient) for coefficient in status.coefficients[:MOST_COEFFICIENTS]],
        )
        typer.echo("effect on the outcome from the lowest to the highest value of the feature, with its 95 % interval")


def _round_row(round_: RoundStatus) -> Sequence[str]:
    is_complete = round_.closed or not round_.outstanding  # before, good outcomes may come sooner than bad ones
    means = (round_.mean_chosen, round_.mean_holdout)
    return [
        str(round_.number),
        date(round_.chosen_at),
        "closed" if round_.closed else date(round_.closes_at),
        f"{round_.came:,}",
        f"{round_.outstanding:,}",
        f"{round_.assumed:,}",
        *(number(mean) if is_complete else "-" for mean in means),
        percent(round_.exploring),
    ]


def _coefficient_row(coefficient: Coefficient) -> Sequence[str]:
    return [coefficient.name, *(f"{value:+.3f}" for value in (coefficient.value, coefficient.low, coefficient.high))]


@summary.register
def _(forgotten: Forgotten) -> None:
    if forgotten.n_people:
        where = f" from {rounds(forgotten.rounds)}" if forgotten.rounds else ""
        typer.echo(f"erased {count(forgotten.n_people, 'customer')}{where}")
    else:
        typer.echo("nobody with such an id is in this campaign, nothing was erased")
