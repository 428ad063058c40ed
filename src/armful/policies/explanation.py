"""Why a set was chosen, arm by arm, and what its limits cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from armful.checks import IntArray
from armful.constraints import Excluding, Limit
from armful.errors import InfeasibleError
from armful.policies._problem import SAME, Problem

Record = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a set was chosen; print it for a table. `Choice.explain` returns it.

    Attributes
    ----------
    arms : sequence of mappings
        One for each chosen arm: `arm` (its id, or the edge or pair that it is to the constraint, or its index),
        `mean`, `bonus`, `cap` (None without), `score`, `runner_up` (the arms that come in if this one is excluded,
        several if the set is rearranged) and `loss` (how much lower the value of the set is then).
    prices : sequence of mappings
        One for each limit that binds: `limit`, and `price`, by how much the value of the set would rise if the limit
        were loosened by one (an exact number, by one either way).
    """

    arms: Sequence[Record]
    prices: Sequence[Record]

    def __str__(self) -> str:
        parts = [_table(self.arms)]
        if self.prices:
            parts.append(_table(self.prices))
        return "\n\n".join(parts)


def explain(problem: Problem, indices: IntArray, value: float, *, most: int) -> Explanation:
    """Choose again without each arm, and with each limit loosened by one."""
    rng = np.random.default_rng(0)
    arms = [_arm(problem, indices, value, int(arm), rng) for arm in indices[:most]]
    limits = islice(problem.constraint.limits(indices), most)
    prices = [_price(problem, indices, limit, value, rng) for limit in limits]
    return Explanation(arms, [price for price in prices if price is not None])


def _arm(problem: Problem, indices: IntArray, value: float, arm: int, rng: np.random.Generator) -> Record:
    scores = problem.scores
    cap = float(np.broadcast_to(scores.cap, scores.value.shape)[arm])
    record: dict[str, Any] = {
        "arm": problem.names(np.array([arm]))[0],
        "mean": float(scores.mean[arm]),
        "bonus": float(scores.bonus[arm]),
        "cap": cap if np.isfinite(cap) else None,
        "score": float(scores.value[arm]),
    }
    try:
        without = problem.solve_near(indices, Excluding(problem.constraint, [arm]), rng)
    except (InfeasibleError, TimeoutError):
        return {**record, "runner_up": None, "loss": None}
    return {
        **record,
        "runner_up": problem.names(np.setdiff1d(without.indices, indices)),
        "loss": _difference(value, without.value),
    }


def _price(problem: Problem, indices: IntArray, limit: Limit, value: float, rng: np.random.Generator) -> Record | None:
    try:
        loosened = problem.solve_near(indices, limit.loosened, rng)
    except (InfeasibleError, TimeoutError):
        return None  # no further arm can be added, or the time limit was reached
    return {"limit": limit.name, "price": _difference(loosened.value, value)}


def _difference(value: float, other: float) -> float:
    """Return `value - other`, 0 where the difference is only rounding."""
    return 0.0 if abs(value - other) <= SAME * (abs(value) + abs(other)) else value - other


def _table(records: Sequence[Record]) -> str:
    if not records:
        return "no arm was chosen"
    columns = list(records[0])
    rows = [columns, *([_text(record[column]) for column in columns] for record in records)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(columns))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return (", " if any(isinstance(each, str) for each in value) else " ").join(map(str, value)) or "-"
    return str(value)
