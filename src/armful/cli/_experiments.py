"""`armful reproduce` and `armful compare`: their options; the work is in `_experiment_runs`."""

from pathlib import Path
from typing import Annotated

import typer

from armful.cli._failing import needs

Workers = Annotated[
    int | None, typer.Option(help="Number of processes; all cores by default. Results do not depend on it.", min=1)
]
Out = Annotated[Path, typer.Option(help="Folder for the results, created if it does not exist.")]


def reproduce(
    sizes: Annotated[
        str, typer.Option(help="Numbers k of arms chosen in a round, separated by commas; T = 20 k rounds.")
    ] = "",
    runs: Annotated[int, typer.Option(help="Repetitions of every policy at every size.", min=1)] = 100,
    workers: Workers = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.", min=0)] = 0,
    out: Out = Path("armful-reproduction"),
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="The whole protocol: k = 32 too (unless --sizes is given), and the worst of 16 theta*."
        ),
    ] = False,
) -> None:
    """Reproduce the experiments of Takemura et al. (AAAI 2021), and two beyond them.

    Writes figures (PNG, SVG), tables (CSV, Parquet) and report.html.
    After an interrupt the same command goes on where it stopped.

    Example: armful reproduce --sizes 2,4,8 --runs 20 --out quick
    """
    with needs("experiments"):
        from armful.cli import _experiment_runs  # noqa: PLC0415 - only this command needs matplotlib
    _experiment_runs.reproduce(sizes, runs, workers, seed, out, full)


def compare(
    plan: Annotated[Path | None, typer.Argument(help="A plan in TOML; --example prints one.")] = None,
    example: Annotated[bool, typer.Option("--example", help="Print a commented plan to start from.")] = False,
    workers: Workers = None,
    cluster: Annotated[
        str | None, typer.Option(help="Address of a dask scheduler whose workers to use, like tcp://10.0.0.1:8786.")
    ] = None,
    out: Out = Path("armful-comparison"),
) -> None:
    """Compare policies, yours or armful's.

    Runs every policy of a plan in every environment at every size.
    Writes results.csv and .parquet, a figure for each environment, and report.html.
    After an interrupt the same command goes on where it stopped.

    Example: armful compare --example > plan.toml && armful compare plan.toml
    """
    if example:
        from armful.experiments._example import EXAMPLE  # noqa: PLC0415

        typer.echo(EXAMPLE, nl=False)
        return
    if plan is None:
        raise ValueError("which plan? Give a TOML file, or --example to print one to start from")
    with needs("experiments"):
        from armful.cli import _experiment_runs  # noqa: PLC0415 - only this command needs matplotlib
    _experiment_runs.compare(plan, workers, cluster, out)
