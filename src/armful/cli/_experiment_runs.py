"""The work of `armful reproduce` and `armful compare`, which needs the extra `[experiments]`."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import typer
from rich.console import Console

from armful.cli._tables import show
from armful.experiments import _comparison as comparison
from armful.experiments import _report as report
from armful.experiments import _reproduction as reproduction
from armful.experiments._cluster import connect_cluster
from armful.experiments._verdict import too_few_runs, verdict
from armful.experiments.plan import read_plan, size_name
from armful.experiments.results import Result
from armful.experiments.running import Processes, Progress, Runner, run_cells
from armful.tables._progress import progress_bar


def reproduce(sizes: str, runs: int, workers: int | None, seed: int, out: Path, full: bool) -> None:
    """Run the protocol of the paper, write the report and print the verdict."""
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


def compare(plan: Path, workers: int | None, cluster: str | None, out: Path) -> None:
    """Run the cells of a plan, write the report and print the tables."""
    compared = read_plan(plan)
    comparison.check(compared)
    cells = compared.cells()
    with _runner(workers, cluster) as runner:
        out.mkdir(parents=True, exist_ok=True)
        with _progress("comparing", len(cells)) as advance:
            results = run_cells(cells, out / "cells", runner=runner, progress=advance)
    report_path = comparison.write(compared, results, out)
    show(comparison.standings(compared, results), Console(highlight=False))
    typer.echo(f"report: {report_path}")


def _runner(workers: int | None, cluster: str | None) -> AbstractContextManager[Runner]:
    if cluster is None:
        return nullcontext(Processes(workers or os.cpu_count() or 1))
    if workers is not None:
        raise ValueError("--workers is for processes on this machine, --cluster for the workers of a cluster: give one")
    return connect_cluster(cluster)


def _sizes(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--sizes takes whole numbers separated by commas, like 2,4,8, got {text!r}") from None


@contextmanager
def _progress(description: str, total: int) -> Iterator[Progress]:
    """Draw a progress bar, and end with a sentence when the command is interrupted."""
    try:
        with _sigterm_as_interrupt(), progress_bar(description, total) as advance:
            yield lambda result: advance(1, "" if result is None else _cell_name(result))
    except KeyboardInterrupt as interrupt:
        typer.echo("armful: stopped; what is finished is kept, the same command goes on from there", err=True)
        raise typer.Exit(143 if isinstance(interrupt, _Terminated) else 130) from None


def _cell_name(result: Result) -> str:
    return ", ".join([result.environment, result.policy, size_name(result.k, result.rounds)])


class _Terminated(KeyboardInterrupt):
    """SIGTERM was received: stop as after Ctrl-C, so that no worker process is left."""


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    def interrupt(*_: object) -> None:
        raise _Terminated

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
