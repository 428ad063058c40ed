"""Results of cells, and tables of them."""

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np

from armful.files._atomic_file import write_bytes
from armful.simulation.trajectories import Trajectories


@dataclass(frozen=True)
class Result:
    """The result of a cell.

    Attributes
    ----------
    environment, policy : str
        Their names in the plan.
    k, rounds, runs, seed : int
        As in the cell; `k` is 0 for an environment without the option.
    pulled : float
        Number of arms chosen in a run, on average.
    regret : list of float, (runs,)
        Total regret of each run.
    curve, curve_stderr : list of float, (rounds,)
        Mean cumulative regret after each round, and its standard error.
    seconds : float
        Time that the cell took.
    """

    environment: str
    policy: str
    k: int
    rounds: int
    runs: int
    seed: int
    pulled: float
    regret: list[float]
    curve: list[float]
    curve_stderr: list[float]
    seconds: float

    @property
    def mean(self) -> float:
        """The mean regret."""
        return float(np.mean(self.regret))

    @property
    def stderr(self) -> float:
        """The standard error of the mean regret, NaN for a single run."""
        return float(np.std(self.regret, ddof=1) / math.sqrt(self.runs)) if self.runs > 1 else float("nan")


def summarise(trajectories: Trajectories, seconds: float, **identity: Any) -> Result:
    """Return the result of what `simulate` returned."""
    cumulative = np.cumsum(trajectories.regret, axis=1)
    runs = len(cumulative)
    spread = cumulative.std(axis=0, ddof=1) / math.sqrt(runs) if runs > 1 else np.full(cumulative.shape[1], np.nan)
    return Result(
        runs=runs,
        pulled=float(trajectories.pulled.sum(axis=1).mean()),
        regret=trajectories.total_regret.tolist(),
        curve=cumulative.mean(axis=0).tolist(),
        curve_stderr=spread.tolist(),
        seconds=seconds,
        **identity,
    )


def tidy(results: Iterable[Result], first_column: str) -> list[dict[str, Any]]:
    """Return one row per result; the first column is the environment, and k is None where there is no such option."""
    return [
        {
            first_column: result.environment,
            "policy": result.policy,
            "k": result.k or None,
            "T": result.rounds,
            "pulled": int(result.pulled) if result.pulled == int(result.pulled) else result.pulled,
            "runs": result.runs,
            "mean": result.mean,
            "stderr": result.stderr,
        }
        for result in sorted(results, key=lambda result: (result.environment, result.k, result.rounds, result.policy))
    ]


def write_table(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Write the rows as `path.csv` and `path.parquet`."""
    import pyarrow as pa  # noqa: PLC0415 - an extra, which running a plan can do without
    import pyarrow.parquet as pq  # noqa: PLC0415

    text = StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    write_bytes(path.with_suffix(".csv"), text.getvalue().encode())
    table = pa.Table.from_pylist(list(rows))
    fields = [field.with_type(pa.int64()) if pa.types.is_null(field.type) else field for field in table.schema]  # no k
    parquet = BytesIO()
    pq.write_table(table.cast(pa.schema(fields)), parquet)
    write_bytes(path.with_suffix(".parquet"), parquet.getvalue())


@dataclass(frozen=True)
class GrowthFit:
    """`regret ~ pulled^exponent`, fitted on log-log axes; `stderr` from the standard errors of the means alone."""

    exponent: float
    stderr: float


def fit_growth(results: Sequence[Result]) -> GrowthFit | None:
    """Fit the growth of one policy's regret over its sizes; None for fewer than two, or if a regret is not positive."""
    x = np.log([result.pulled for result in results])
    means = np.array([result.mean for result in results])
    if len(np.unique(x)) < 2 or (means <= 0).any():
        return None
    weights = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    relative = np.array([result.stderr for result in results]) / means
    return GrowthFit(float(weights @ np.log(means)), float(np.sqrt(np.sum((weights * relative) ** 2))))
