"""Running the cells of a plan in processes or on a cluster; finished cells are saved and not run again."""

import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import as_completed
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from armful import checks
from armful.experiments import _cell_file as cell_file
from armful.experiments._user_errors import explain_user_errors
from armful.experiments.plan import Cell
from armful.experiments.recipe import find
from armful.experiments.results import Result, summarise
from armful.simulation.loop import simulate, worker_pool

Progress = Callable[[Result | None], None]
"""Called once for each cell: with its result when it was run, with None when it was finished before."""

Outcomes = Generator[tuple[int, Result], None, None]
"""Yields the index of each cell and its result as they finish; closing it stops the work."""


class Runner(Protocol):
    """What runs cells: processes on this machine, or the workers of a cluster (`connect_cluster`)."""

    def run(self, cells: Sequence[Cell], /) -> Outcomes:
        """Run all cells.

        Parameters
        ----------
        cells : sequence of Cell
            Different from one another.

        Yields
        ------
        (int, Result)
            The index of a cell and its result, in the order in which they finish.
        """


def run_cell(cell: Cell) -> Result:
    """Make the environment and the policy, and simulate."""
    begin = time.perf_counter()
    environment = cell.environment_recipe.make(k=cell.k)
    classes = [find(recipe.kind) for recipe in cell.recipes]
    with explain_user_errors(str(cell), *classes, expected=(ValueError, ArithmeticError)):
        policy = cell.policy_recipe.make(n_features=environment.n_features)
        trajectories = simulate(policy, environment, rounds=cell.rounds, repetitions=cell.runs, seed=cell.seed)
    return summarise(
        trajectories,
        seconds=time.perf_counter() - begin,
        environment=cell.environment,
        policy=cell.policy,
        k=cell.k,
        rounds=cell.rounds,
        seed=cell.seed,
    )


def run_cells(
    cells: Sequence[Cell],
    folder: Path,
    *,
    workers: int = 1,
    runner: Runner | None = None,
    progress: Progress | None = None,
) -> list[Result]:
    """Run cells, or load those that were run before, and return their results.

    Each result is saved as soon as it is there, so an interrupted run goes on where it stopped. A cell whose file was
    edited or damaged runs again; cells that differ in their names alone run once.

    Parameters
    ----------
    cells : sequence of Cell
        What to run.
    folder : Path
        Where results are saved, one file per cell.
    workers : int
        Number of processes, if there is no `runner`.
    runner : Runner, optional
        What runs the cells, like a cluster of `connect_cluster`.
    progress : callable, optional
        Called once for each cell: with its result if it was run, with None if it was loaded.

    Returns
    -------
    list of Result
        In the order of `cells`.
    """
    runner = runner or Processes(workers)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{cell.key()}.json" for cell in cells]
    results = {i: result for i, path in enumerate(paths) if (result := cell_file.load(cells[i], path))}
    report = progress or (lambda _: None)
    for _ in results:
        report(None)
    missing: dict[Path, list[int]] = {}
    for i, path in enumerate(paths):
        if i not in results:
            missing.setdefault(path, []).append(i)
    with closing(runner.run([cells[same[0]] for same in missing.values()])) as outcomes:
        for index, result in outcomes:
            path, same = list(missing.items())[index]
            cell_file.save(result, cells[same[0]], path)
            for i in same:
                results[i] = replace(result, environment=cells[i].environment, policy=cells[i].policy)
                report(results[i])
    return [results[i] for i in range(len(cells))]


@dataclass(frozen=True)
class Processes:
    """Runs cells in processes on this machine; with one worker, in this process."""

    workers: int

    def __post_init__(self) -> None:
        checks.count("workers", self.workers)

    def run(self, cells: Sequence[Cell], /) -> Outcomes:
        """Run all cells, in no more processes than there are cells."""
        if self.workers == 1 or len(cells) <= 1:
            yield from ((i, run_cell(cell)) for i, cell in enumerate(cells))
            return
        with worker_pool(min(self.workers, len(cells))) as pool:
            jobs = {pool.submit(run_cell, cell): i for i, cell in enumerate(cells)}
            yield from ((jobs[job], job.result()) for job in as_completed(jobs))
