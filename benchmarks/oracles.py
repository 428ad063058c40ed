"""The time of choosing beside that of scoring, for each constraint at a realistic size and at an eighth of it.

`share` is the time of the constraint's answer as a part of the whole round (scoring all arms with 50 features, then
choosing); `growth` how many times longer the answer takes for 8 times the arms. Medians of interleaved runs.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import knapsacks
import numpy as np

import armful
from armful import objectives

D = 50
Ask = Callable[[np.ndarray, np.ndarray], object]


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def asking(constraint: Any) -> Ask:
    return lambda scores, X: constraint.best(scores, X, np.random.default_rng(0))


def top(n: int) -> tuple[int, Ask]:
    return n, asking(armful.TopK(n // 100))


def quotas(n: int) -> tuple[int, Ask]:
    groups = np.random.default_rng(1).integers(n // 100, size=n)
    return n, asking(armful.Quotas(groups, at_most=3, total=n // 50))


def nested(n: int) -> tuple[int, Ask]:
    city = np.random.default_rng(1).integers(n // 100, size=n)
    constraint = armful.NestedQuotas(
        {"region": city % 20, "city": city}, at_most={"region": n // 600, "city": 3}, total=(0, n // 50)
    )
    return n, asking(constraint)


def assignment(n: int) -> tuple[int, Ask]:
    side = int(n**0.5)
    rows, columns = np.divmod(np.arange(side * side), side)
    return side * side, asking(armful.Assignment(rows, columns))


def random_graph(n: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    nodes = n // 5
    chain = np.column_stack([np.arange(nodes - 1), np.arange(1, nodes)])
    tails = rng.integers(nodes, size=n - len(chain))
    reach = np.minimum(tails + rng.integers(1, 200, size=tails.size), nodes - 1)
    return np.vstack([chain, np.column_stack([tails, reach])])


def dag_path(n: int) -> tuple[int, Ask]:
    edges = random_graph(n)
    return len(edges), asking(armful.Path(edges, 0, int(edges.max())))


def cost_path(n: int) -> tuple[int, Ask]:
    edges = random_graph(n)
    edges[-n // 4 :] = edges[-n // 4 :, ::-1]  # some go back: cycles
    ask = asking(armful.Path(edges, 0, int(edges.max()), costs=True))
    return len(edges), lambda scores, X: ask(-np.abs(scores), X)


def tree(n: int) -> tuple[int, Ask]:
    edges = random_graph(n)
    return len(edges), asking(armful.SpanningTree(edges))


def knapsack(n: int, whole: bool) -> tuple[int, Ask]:
    costs = np.random.default_rng(1).integers(1, 100, size=n).astype(float)
    if not whole:
        costs += np.random.default_rng(2).random(n)
    return n, asking(armful.Knapsack(costs, float(costs.sum() // 50)))


def linear(n: int) -> tuple[int, Ask]:
    rng = np.random.default_rng(1)
    columns = {"region": rng.integers(40, size=n), "age": rng.integers(40, size=n), "kind": rng.integers(20, size=n)}
    most = {"region": n // 1000 + 1, "age": n // 800 + 1, "kind": n // 400 + 1}
    return n, asking(armful.overlapping_quotas(columns, at_most=most, total=(0, n // 50)))


def diverse(n: int) -> tuple[int, Ask]:
    objective, constraint = armful.Diverse(weight=1.0), armful.TopK(100)
    return n, lambda scores, X: objectives.best(objective, scores, X, constraint, np.random.default_rng(0))


ORACLES: dict[str, tuple[Callable[[int], tuple[int, Ask]], int]] = {
    "TopK, k = N/100": (top, 1_000_000),
    "Quotas, N/100 groups": (quotas, 1_000_000),
    "NestedQuotas, N/100 cities in 20 regions": (nested, 1_000_000),
    "Assignment, dense square": (assignment, 1_000_000),
    "Path, no cycles": (dag_path, 100_000),
    "Path, costs": (cost_path, 100_000),
    "SpanningTree": (tree, 100_000),
    "Knapsack, whole costs": (partial(knapsack, whole=True), 100_000),
    "Knapsack, any costs": (partial(knapsack, whole=False), 100_000),
    "Linear, 100 overlapping quotas": (linear, 10_000),
    "Diverse, k = 100": (diverse, 100_000),
}


def measure(make: Callable[[int], tuple[int, Ask]], size: int, runs: int) -> tuple[int, float, float]:
    """Number of arms, seconds to score them and seconds to choose."""
    n_arms, ask = make(size)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_arms, D)) / np.sqrt(D)
    policy = armful.C2UCB(n_features=D, radius=0.5, seed=0)
    policy.learn(X[:500], rng.standard_normal(min(500, n_arms)))
    scores = policy.scores(X, k=100)
    scoring, choosing = [], []
    for _ in range(runs):
        scoring.append(seconds(lambda: policy.scores(X, k=100)))
        choosing.append(seconds(lambda: ask(scores, X)))
    return n_arms, statistics.median(scoring), statistics.median(choosing)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="fraction of the sizes, for a quick look")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--limit", type=float, default=10.0, help="seconds for milp on one knapsack")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'constraint':42} {'arms':>10} {'choosing/scoring':>17} {'share':>6} {'growth x8':>10}")
    for name, (make, size) in ORACLES.items():
        large = max(int(size * options.scale), 800)
        n_arms, scoring, choosing = measure(make, large, options.runs)
        _, _, before = measure(make, large // 8, options.runs)
        share = choosing / (choosing + scoring)
        print(
            f"{name:42} {n_arms:>10,} {choosing / scoring:>17.2f} {share:>6.0%} {choosing / before:>10.1f}", flush=True
        )
    print()
    knapsacks.main(options.scale, options.limit)


if __name__ == "__main__":
    main()
