"""The `armful` command, which reports errors in one sentence."""

import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Annotated

import typer

import armful
from armful.cli import _campaigns as campaigns
from armful.cli import _experiments as experiments
from armful.cli import _service as service
from armful.cli._failing import describe, fail, stopped
from armful.errors import SettingsError

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Contextual combinatorial semi-bandits: choose a set, see how each of its items did, choose better next time.",
    epilog="Begin with: armful demo",
)
for command in campaigns.COMMANDS:
    app.command(rich_help_panel="Campaigns, in the order in which they are used")(command)
SERVICE = "The decision service"
app.command(rich_help_panel=SERVICE)(service.serve)
app.command(rich_help_panel=SERVICE)(service.dashboard)
app.command(rich_help_panel=SERVICE)(service.compact)
app.add_typer(service.key, name="key", rich_help_panel=SERVICE)
for command in (experiments.reproduce, experiments.compare):
    app.command(rich_help_panel="Experiments")(command)


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


def run(arguments: Sequence[str]) -> None:
    """Run the command; errors that a user can fix are printed as one sentence, and the exit code is 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # an encoding without ± must not stop anything
    try:
        code = app(arguments or ["--help"], prog_name="armful", standalone_mode=False)
    except typer.Abort:  # an end of input, or an interrupt, where a question was asked
        stopped()
    except SettingsError as error:
        fail(str(error).partition("\n")[0], error.problems)
    except (ValueError, ArithmeticError, OSError, MemoryError, ModuleNotFoundError) as error:
        fail(describe(error))
    except Exception as error:
        # Mistakes in the arguments: typer has its own copy of their class, or click's, depending on its version.
        if not hasattr(error, "format_message"):
            raise
        path = getattr(getattr(error, "ctx", None), "command_path", "armful")
        fail(f"{error.format_message().rstrip('.')}; try {path} --help")
    sys.exit(code)
