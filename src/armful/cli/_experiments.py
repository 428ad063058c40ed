"""`armful reproduce` and `armful compare`."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from armful.cli._tables import show
from armful.experiments import _comparison as comparison
from armful.experiments import _report as report
from armful.experiments import _reproduction as reproduction
from armful.experiments._cluster import connect_cluster
from armful.experiments._verdict import too_few_runs, verdict
from armful.experiments.plan import EXAMPLE, read_plan, size_name
from armful.experiments.results import Result
from armful.experiments.running import Processes, Runner, run_cells

Workers = Annotated[
    int | None, typer.Option(help="Processes to use; all cores if not given. Results do not depend on it.", min=1)
]
Out = Annotated[Path, typer.Option(help="Folder for the results; it is made if it is not there.")]


def reproduce(
    sizes: Annotated[str, typer.Option(help="Values of k, separated by commas; T is 20 k.")] = "",
    runs: Annotated[int, typer.Option(help="Repetitions of each.", min=1)] = 100,
    workers: Workers = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.", min=0)] = 0,
    out: Out = Path("armful-reproduction"),
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="The whole protocol: size 32 too (if --sizes is not given), and the worst of 16 theta*."
        ),
    ] = False,
) -> None:
    """Reproduce the experiments of Takemura et al. (AAAI 2021), and two beyond them.

    Writes figures (PNG, SVG), tables (CSV, Parquet) and report.html. Interrupted, it goes on where it was.

    Example: armful reproduce --sizes 2,4,8 --runs 20 --out quick
    """
    chosen = _sizes(sizes) if sizes else [2, 4, 8, 16] + ([32] if full else [])
    protocol = reproduction.Protocol(sizes=chosen, runs=runs, seed=seed, worst_signs=full)
    out.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    with _progress("reproducing", protocol.n_cells) as advance:
        done = reproduction.run(protocol, out / "cells", workers=workers or os.cpu_count() or 1, progress=advance)
    path = report.write(done, out, seconds=time.perf_counter() - begin)
    for sentence in (*verdict(done), *too_few_runs(done)):
        typer.echo(sentence.replace("`", "") + "\n")
    typer.echo(f"report: {path}")


def compare(
    plan: Annotated[Path | None, typer.Argument(help="A plan in TOML; --example prints one.")] = None,
    example: Annotated[bool, typer.Option("--example", help="Print a commented plan to start from.")] = False,
    workers: Workers = None,
    cluster: Annotated[
        str | None,
        typer.Option(help="Address of a dask scheduler whose workers to use, like tcp://10.0.0.1:8786."),
    ] = None,
    out: Out = Path("armful-comparison"),
) -> None:
    """Compare policies, yours or armful's, in environments and sizes of your choice.

    Writes results.csv and .parquet, a figure for each environment, and report.html. Interrupted, it goes on where it
    was.

    Example: armful compare --example > plan.toml && armful compare plan.toml
    """
    if example:
        typer.echo(EXAMPLE, nl=False)
        return
    if plan is None:
        raise ValueError("which plan? Give a file, or --example to print one to start from")
    wanted = read_plan(plan)
    comparison.check(wanted)
    cells = wanted.cells()
    with _runner(workers, cluster) as runner:
        out.mkdir(parents=True, exist_ok=True)
        with _progress("comparing", len(cells)) as advance:
            results = run_cells(cells, out / "cells", runner=runner, progress=advance)
    report_path = comparison.write(wanted, results, out)
    show(comparison.standings(wanted, results), Console(highlight=False))
    typer.echo(f"report: {report_path}")


def _runner(workers: int | None, cluster: str | None) -> AbstractContextManager[Runner]:
    if cluster is None:
        return nullcontext(Processes(workers or os.cpu_count() or 1))
    if workers is not None:
        raise ValueError("--workers is for processes on this machine, and a cluster has its own; leave one of them out")
    return connect_cluster(cluster)


def _sizes(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--sizes takes whole numbers separated by commas, like 2,4,8, got {text!r}") from None


@contextmanager
def _progress(what: str, total: int) -> Iterator[Callable[[Result | None], None]]:
    """A progress bar, and a word of comfort when it is interrupted."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[last]}", markup=False),
        console=Console(stderr=True),
    )
    task = bar.add_task(what, total=total, last="")

    def advance(result: Result | None) -> None:
        done = () if result is None else (result.environment, result.policy, size_name(result.k, result.rounds))
        bar.update(task, advance=1, last=", ".join(done))

    try:
        with _terminated_like_interrupted(), bar:
            yield advance
    except KeyboardInterrupt as stop:
        typer.echo("armful: stopped; what is finished is kept, the same command goes on from there", err=True)
        raise typer.Exit(143 if isinstance(stop, Terminated) else 130) from None


class Terminated(KeyboardInterrupt):
    """SIGTERM came: stop as after an interrupt, so that no worker is left behind."""


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
