"""What the commands of campaigns print: a short summary, or one JSON object.

Sentences are printed as they are, never broken or taken for markup; only tables are drawn by rich.
"""

import json
import math
import shlex
from collections.abc import Iterable, Iterator, Sequence
from functools import singledispatch
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from armful.campaigns._results import Coefficient, Forgotten, Learned, Result, Round, RoundStatus, Status, as_json

MOST_GROUPS = 12
MOST_COEFFICIENTS = 10


def print_json(value: Any) -> None:
    """Print one object on standard output."""
    typer.echo(json.dumps(as_json(value), ensure_ascii=False, allow_nan=False))


def tell(result: Result, *, as_json: bool, then: Sequence[str]) -> None:
    """Print what a command did, and the command that usually follows; with `--json` its fields alone."""
    if as_json:
        print_json(result.to_dict())
        return
    summary(result)
    for note in getattr(result, "notes", ()):
        typer.echo(f"note: {printable(note)}")
    next_step(then)


def next_step(command: Sequence[str]) -> None:
    """Print a command that can be copied, on a line of its own."""
    typer.echo(f"\nnext: {shlex.join(command)}")


@singledispatch
def summary(result: object) -> None:
    """Print the summary of a result."""
    raise TypeError(f"no summary is written for {type(result).__name__}")


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


def _largest(counts: Any) -> Iterator[tuple[str, str]]:
    """Yield the largest groups with their counts, and the rest in one row."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    yield from ((group, f"{n:,}") for group, n in ordered[:MOST_GROUPS])
    if rest := ordered[MOST_GROUPS:]:
        yield f"{len(rest)} more", f"{sum(n for _, n in rest):,}"


@summary.register
def _(learned: Learned) -> None:
    typer.echo(f"{learned.n_rows:,} rows, {learned.matched:,} outcomes of people on a list")
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
        columns = [
            "round",
            "chosen",
            "closes",
            "people",
            "came",
            "assumed",
            "outstanding",
            "model",
            "holdout",
            "exploring",
        ]
        draw(columns, [_round_row(round_) for round_ in status.rounds])
        typer.echo("model and holdout: mean outcome so far; exploring: chosen to learn more, not for the estimate")
    if status.coefficients:
        draw(
            ["feature", "effect", "from", "to"],
            [_coefficient_row(coefficient) for coefficient in status.coefficients[:MOST_COEFFICIENTS]],
        )
        typer.echo("effect on the outcome from the lowest to the highest value of the feature, with its 95 % interval")


def _round_row(round_: RoundStatus) -> Sequence[str]:
    return [
        str(round_.number),
        date(round_.chosen_at),
        "closed" if round_.closed else date(round_.closes_at),
        f"{round_.n:,}",
        f"{round_.came:,}",
        f"{round_.assumed:,}",
        f"{round_.outstanding:,}",
        number(round_.mean_chosen),
        number(round_.mean_holdout),
        percent(round_.exploring),
    ]


def _coefficient_row(coefficient: Coefficient) -> Sequence[str]:
    return [coefficient.name, *(f"{value:+.3f}" for value in (coefficient.value, coefficient.low, coefficient.high))]


@summary.register
def _(forgotten: Forgotten) -> None:
    if forgotten.n_people:
        typer.echo(f"erased {count(forgotten.n_people, 'customer')}, who were in {rounds(forgotten.rounds)}")
    else:
        typer.echo("nobody with such an id is in this campaign, nothing was erased")


def draw(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; all but its first column are numbers. Where it is too wide, the first column is folded."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=1000)  # a file or a pipe has no width that a table must fit
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for index, column in enumerate(columns):
        text = Text(printable(column))
        table.add_column(text, justify="right" if index else "left", no_wrap=index > 0, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console.print(table)


def printable(text: str) -> str:
    r"""Return text from a file of the user's without what would move the cursor or colour the screen.

    Examples
    --------
    >>> printable("north [bold] \x1b[31m")
    'north [bold] �[31m'
    """
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def number(value: float) -> str:
    """Return a mean to three digits; nothing for what is not a number.

    Examples
    --------
    >>> number(0.12345), number(1234.5), number(0.0), number(float("nan"))
    ('0.123', '1,234', '0', '-')
    """
    if math.isnan(value):
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def percent(value: float) -> str:
    """Return a fraction in percent; nothing for what is not a number."""
    return "-" if math.isnan(value) else f"{100 * value:.0f} %"


def count(n: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> count(1, "round"), count(2000, "round")
    ('1 round', '2,000 rounds')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def rounds(numbers: Sequence[int]) -> str:
    """Return the numbers of rounds as words, runs of them shortened.

    Examples
    --------
    >>> rounds([1]), rounds([1, 2, 3, 5])
    ('round 1', 'rounds 1 to 3, 5')
    """
    runs: list[list[int]] = []
    for each in sorted(numbers):
        if runs and each == runs[-1][-1] + 1:
            runs[-1].append(each)
        else:
            runs.append([each])
    parts = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return f"round{'' if len(numbers) == 1 else 's'} {', '.join(parts)}"


def date(moment: Any) -> str:
    """Return a moment to the minute, or the day alone if it is midnight."""
    text: str = moment.strftime("%Y-%m-%d %H:%M")
    return text.removesuffix(" 00:00")
