"""`Knapsack` beside `scipy.optimize.milp` and a plain dynamic program, on the families of the literature.

One line for each family and size: how many times as long `Knapsack` takes as the others, the worst of four instances.
The table is left out where it would need too much memory, and instances that none finishes in time are only counted.
The sets of all that finish are compared.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from knapsack_instances import FAMILIES, Instance, jooken, pisinger
from scipy.optimize import Bounds, LinearConstraint, milp

import armful

MOST_CELLS = 2_000_000_000
"""The size limit of the plain dynamic program: a bit for each arm and unit of budget, 250 MB."""


def by_armful(instance: Instance, constraint: armful.Knapsack) -> int | None:
    answer = constraint.best(instance.values.astype(float), rng=np.random.default_rng(0))
    return worth(instance, answer.indices) if answer.ratio == 1.0 else None


def by_milp(instance: Instance, limit: float) -> int | None:
    values, costs, budget = instance
    answer = milp(
        -values.astype(float),
        integrality=np.ones(values.size),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(costs[None, :].astype(float), -np.inf, float(budget)),
        options={"mip_rel_gap": 0.0, "time_limit": limit},
    )
    return worth(instance, np.flatnonzero(answer.x > 0.5)) if answer.status == 0 else None


def by_table(instance: Instance) -> int | None:
    """Return the best set by the textbook: the best value for every budget, arm by arm, and which arms raised it."""
    values, costs, budget = instance
    if values.size * budget > MOST_CELLS:
        return None
    best, raised = np.zeros(budget + 1, dtype=np.int64), []
    for value, cost in zip(values.tolist(), costs.tolist(), strict=True):
        more = best[: max(budget + 1 - cost, 0)] + value
        raised.append(np.packbits(more > best[cost:]))
        np.maximum(best[cost:], more, out=best[cost:])
    chosen, left = [], budget
    for arm in range(values.size - 1, -1, -1):
        place = left - int(costs[arm])
        if place >= 0 and raised[arm][place // 8] >> (7 - place % 8) & 1:
            chosen.append(arm)
            left = place
    return worth(instance, np.array(chosen, dtype=int))


def worth(instance: Instance, chosen: np.ndarray) -> int:
    """Return the value of a set, or -1 if it costs too much."""
    return int(instance.values[chosen].sum()) if int(instance.costs[chosen].sum()) <= instance.budget else -1


def timed(*works: Callable[[], int | None]) -> list[tuple[float, int | None]]:
    """Return the shortest time of each in seconds, called in turn up to 9 times or for a second each; and the value."""
    shortest, spent, values = [np.inf] * len(works), [0.0] * len(works), [None] * len(works)
    for _ in range(9):
        for i, work in enumerate(works):
            if spent[i] < 1.0:
                start = time.perf_counter()
                values[i] = work()
                seconds = time.perf_counter() - start
                shortest[i], spent[i] = min(shortest[i], seconds), spent[i] + seconds
    return list(zip(shortest, values, strict=True))


def instances(scale: float) -> Iterator[tuple[str, list[Instance]]]:
    for family in FAMILIES:
        for n in (100, 1_000, 10_000):
            if n <= max(10_000 * scale, 100):
                parts = [(part, seed) for part in (1 / 101, 0.5) for seed in range(2)]
                yield f"{family}, {n:,}", [pisinger(family, n, seed, part=part) for part, seed in parts]
    for budget in (10**6, 10**8, 10**10):
        for groups in (2, 6, 10, 14):
            if scale == 1 or groups == 2:
                made = [jooken(600, budget, groups, 0.2, epsilon, 200, 0) for epsilon in (0.0, 1e-4, 0.01, 0.1)]
                yield f"Jooken, budget {budget:.0e}, {groups} groups", made


def main(scale: float, limit: float) -> None:
    print(f"{'family, arms':38} {'ms':>8} {'/ milp':>8} {'/ table':>8} {'/ better':>8}  remarks")
    for name, several in instances(scale):
        lines, remarks = [np.zeros(4)], []
        for instance in several:
            constraint = armful.Knapsack(instance.costs, instance.budget, time_limit=limit)  # made once for all rounds
            works = (
                partial(by_armful, instance, constraint),
                partial(by_milp, instance, limit),
                partial(by_table, instance),
            )
            (mine, value), (milp_seconds, milp_value), (table_seconds, table_value) = timed(*works)
            if value is None and milp_value is None and table_value is None:
                remarks.append("none finishes")
                continue
            table_seconds = np.inf if table_value is None else table_seconds
            better = min(milp_seconds, table_seconds)
            lines.append(np.array([1e3 * mine, mine / milp_seconds, mine / table_seconds, mine / better]))
            if value is None:
                remarks.append("armful stopped")
            if table_value is not None and table_value != value:
                remarks.append("table differs")
            if milp_value is None:
                remarks.append("milp stopped")
            elif value is not None and milp_value != value:
                remarks.append("milp is short" if milp_value >= 0 else "milp passes the budget")
        cells = [f"{number:>8.2f}" if number > 0 else f"{'-':>8}" for number in np.max(lines, axis=0)]
        counted = ", ".join(f"{remark} {remarks.count(remark)}" for remark in sorted(set(remarks)))
        print(f"{name:38} {' '.join(cells)}  {counted}", flush=True)
