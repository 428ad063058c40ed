"""The `armful` command, which reports errors in one sentence."""

import sys
from io import TextIOWrapper
from typing import Annotated

import typer

import armful
from armful.cli import _experiments as experiments

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Contextual combinatorial semi-bandits: choose a set, see how each of its items did, choose better next time.",
    epilog="Example: armful reproduce --sizes 2,4,8 --runs 20",
)
app.command()(experiments.reproduce)
app.command()(experiments.compare)


def _version(show: bool) -> None:
    if show:
        typer.echo(f"armful {armful.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def run() -> None:
    """Run the command; errors that a user can fix are printed as one sentence."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # an encoding without ± must not stop anything
    try:
        app(prog_name="armful")
    except (ValueError, ArithmeticError, OSError, ModuleNotFoundError) as error:
        typer.echo(f"armful: {error}", err=True)
        sys.exit(1)
