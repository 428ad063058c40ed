"""What `armful demo` prints: each command as it would be typed, what it did, and in the end whether it worked."""

import shlex
from collections.abc import Iterator
from functools import singledispatch
from pathlib import Path
from typing import Any

import typer

from armful.campaigns import Learned, Round
from armful.campaigns.demo import Demo
from armful.campaigns.lift._words import ended
from armful.cli._campaign_output import print_json, summary
from armful.cli._printing import draw, number, percent, printable, rounds


def run_demo(folder: Path, *, seed: int, as_json: bool, **sizes: int) -> None:
    """Run the demo; the first command of each kind is shown with all it prints, later ones with a line."""
    demo = Demo(folder, seed=seed, **sizes)
    seen = set()
    for step in demo.steps():
        typer.echo(f"\n{step.before}" if step.before else "", err=as_json)
        typer.echo(f"$ {shlex.join(['armful', *step.command])}", err=as_json)
        result, kind = step.run(), step.command[0]
        if as_json:
            continue
        (brief if kind in seen else summary)(result)
        seen.add(kind)
    lift = demo.lift()
    if as_json:
        weeks = [week.to_dict() for week in demo.weeks()]
        print_json({"folder": folder, "report": demo.report, "lift": lift.to_dict(), "weeks": weeks})
        return
    _tell_truth(demo)
    typer.echo(f"\nDid it work, against the holdout? {ended(lift.sentence)}")
    typer.echo(f"The report: {printable(str(demo.report))}")


def _tell_truth(demo: Demo) -> None:
    """Print how good the choices were in truth, which a real campaign never sees."""
    typer.echo("\nThese customers are made, so the truth is known: the mean probability of buying after a contact.")
    rows = [
        (str(week.week), *(f"{100 * each:.1f} %" for each in (week.everybody, week.holdout, week.chosen, week.best)))
        for week in demo.weeks()
    ]
    draw(["week", "everybody", "holdout", "chosen", f"best {demo.k:,}"], rows)


@singledispatch
def brief(result: Any) -> None:
    """Print a result in one line, or as always if it has no short form."""
    summary(result)


@brief.register
def _(round_: Round) -> None:
    parts = [
        f"round {round_.number}: {round_.n_chosen + round_.n_holdout:,} to contact",
        f"{number(round_.predicted)} expected of the chosen",
        f"{percent(round_.exploring)} of them to learn more",
    ]
    typer.echo(", ".join(parts))


@brief.register
def _(learned: Learned) -> None:
    typer.echo(
        f"{learned.n_rows:,} rows: {', '.join(_counts(learned))}; the model knows {rounds(learned.rounds_learned)}"
    )


def _counts(learned: Learned) -> Iterator[str]:
    counts = {
        "new": learned.new,
        "known before": learned.repeated,
        "corrected": learned.corrected,
        "of people on no list": learned.never_chosen,
        "outside the window": learned.outside_window,
    }
    return (f"{n:,} {what}" for what, n in counts.items() if n)
