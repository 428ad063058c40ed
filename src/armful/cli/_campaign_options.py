"""The arguments and options of the commands of campaigns."""

from pathlib import Path
from typing import Annotated, Any

import typer


def _argument(metavar: str, text: str) -> Any:
    return typer.Argument(metavar=metavar, help=text, show_default=False)


def _option(name: str, metavar: str, text: str) -> Any:
    return typer.Option(name, metavar=metavar, help=text, show_default=False)


Name = Annotated[str, _argument("NAME", "The campaign: its folder, or the address of its store.")]
NewFolder = Annotated[str, _argument("NAME", "The folder to make for the campaign.")]
Customers = Annotated[Path, _argument("FILE", "Your customers as they are now: CSV, Parquet or a folder of Parquet.")]
OutcomesFile = Annotated[Path, _argument("FILE", "Outcomes: a CSV or Parquet file, one row for each.")]

Source = Annotated[Path | None, _option("--from", "FILE", "Your customers: a CSV or Parquet file, one row for each.")]
Kind = Annotated[
    str, typer.Option("--kind", metavar="KIND", help="campaign: rounds of contacts; service: slates on request.")
]
Context = Annotated[
    str | None, _option("--context", "COLUMNS", "For a service: columns that come once with a request, like a,b.")
]
ReadyFeatures = Annotated[
    int | None, _option("--features", "N", "For a service without a file: how many numbers each candidate brings.")
]
IdColumn = Annotated[str | None, _option("--id", "COLUMN", "The column with the customers' ids.")]
Reward = Annotated[str | None, _option("--reward", "COLUMN", "The column with the outcome, like bought.")]
RoundColumn = Annotated[str | None, _option("--round", "COLUMN", "The column with the number of the round.")]
TimeColumn = Annotated[str | None, _option("--time", "COLUMN", "The column that says when it happened.")]
K = Annotated[int | None, _option("--k", "N", "How many customers a round contacts, or items a slate has.")]
Delimiter = Annotated[str | None, _option("--delimiter", "CHARACTER", "What separates the columns of a CSV file.")]
Rounds = Annotated[int, typer.Option("--rounds", metavar="N", help="How many rounds are planned.", min=1)]
Every = Annotated[float, typer.Option("--every", metavar="DAYS", help="Days from one round to the next.", min=0.01)]
BaseRate = Annotated[
    float | None,
    _option("--base-rate", "NUMBER", "The mean outcome of a contact chosen at random, like 0.03, if you know it."),
]
Key = Annotated[
    str | None, _option("--key", "KEY", "A name for the round, like 2026-W10: the same again gives the same round.")
]
ListFile = Annotated[
    Path | None, _option("--out", "FILE", "A further file for the list, besides NAME/rounds/007/chosen.csv.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be chosen, and record nothing.")]
ReportFile = Annotated[Path | None, _option("--out", "FILE", "Where to write it; NAME/report.html by default.")]
Ids = Annotated[list[str], _option("--id", "ID", "The customer to erase; may be repeated.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask. Only at a terminal is it asked, not in a script.")]
DemoFolder = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="A new folder for everything that is made.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same campaign.", min=0)]

Which = Annotated[str | None, _option("--campaign", "TEXT", "Which campaign, where NAME is a store that has several.")]
Now = Annotated[
    str | None,
    _option(
        "--now",
        "DATE",
        "Pretend it is this moment, like 2026-03-01: for trying things out and for catching up on past rounds.",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object, for scripts, and nothing else on standard output.")
]
