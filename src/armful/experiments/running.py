"""Running the cells of a plan in processes; what is finished is kept, and not run again."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from pathlib import Path

from armful import checks
from armful.experiments.plan import Cell
from armful.experiments.results import Result, summarise
from armful.simulation import simulate, worker_pool

Progress = Callable[[Result | None], None]
"""Called once for each cell: with its result when it was run, with None when it was finished before."""


def run_cell(cell: Cell) -> Result:
    """Make the world and the policy, and simulate."""
    begin = time.perf_counter()
    environment = cell.world.make(k=cell.k)
    policy = cell.learner.make(n_features=environment.n_features)
    try:
        trajectories = simulate(policy, environment, rounds=cell.rounds, repetitions=cell.runs, seed=cell.seed)
    except (ValueError, ArithmeticError) as error:
        raise ValueError(f"{cell.policy} in {cell.environment} with k = {cell.k}: {error}") from None
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
    cells: Sequence[Cell], folder: Path, *, workers: int = 1, progress: Progress | None = None
) -> list[Result]:
    """The result of every cell, in order; each is saved in `folder` as soon as it is there.

    Those that `folder` holds already are taken from it, so an interrupted run goes on where it was.
    """
    checks.count("workers", workers)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{cell.key()}.json" for cell in cells]
    results = {i: result for i, path in enumerate(paths) if (result := Result.load(path))}
    for _ in results:
        if progress:
            progress(None)
    missing = [i for i in range(len(cells)) if i not in results]
    for i, result in _outcomes(cells, missing, workers):
        result.save(paths[i])
        results[i] = result
        if progress:
            progress(result)
    return [results[i] for i in range(len(cells))]


def _outcomes(cells: Sequence[Cell], missing: Sequence[int], workers: int) -> Iterator[tuple[int, Result]]:
    """The missing cells with their results, as they come."""
    if workers == 1 or len(missing) <= 1:
        yield from ((i, run_cell(cells[i])) for i in missing)
        return
    with worker_pool(min(workers, len(missing))) as pool:
        jobs = {pool.submit(run_cell, cells[i]): i for i in missing}
        yield from ((jobs[job], job.result()) for job in as_completed(jobs))
