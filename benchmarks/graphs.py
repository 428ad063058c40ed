"""The time of `Assignment` and `Path` divided by that of scipy or networkx, called directly for the same answer.

Medians of interleaved runs on one core, in processor time, which others on the machine disturb less. The direct calls
get their matrix or graph ready made, and break no ties; armful gets scores, and checks them. Both answers are worth
the same, which is checked too.

Sparse pairs have other scores in each call, as the rounds of a policy do: a processor that meets the same small matrix
again foresees all branches. Scores have 30 bits: with 53, scipy's function does not return on one in a few hundred.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import statistics
import time
from collections.abc import Callable
from itertools import cycle
from typing import Any

import networkx as nx
import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

import armful

Work = Callable[[], float]

ROUNDS = 30
"""So many different scores for the same sparse pairs."""


def worth(matrix: Any, indices: Any) -> float:
    return float(matrix[indices].sum())


def seconds(work: Work, times: int = 1) -> float:
    begin = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - begin) / times


def side_by_side(works: list[Work], runs: int) -> list[float]:
    values = [work() for work in works]
    assert np.allclose(values, values[0], rtol=1e-9), values
    repeat = max(1, int(0.02 / max(seconds(works[0]), 1e-5)))  # what takes less than a millisecond is done many times
    times = [[seconds(work, repeat) for work in works] for _ in range(runs)]
    return [statistics.median(each) for each in zip(*times, strict=True)]


def dense(n_rows: int, n_columns: int) -> list[Work]:
    rng = np.random.default_rng(0)
    matrix = rng.random((n_rows, n_columns))
    rows, columns = np.divmod(np.arange(matrix.size), n_columns)
    constraint, scores = armful.Assignment(rows, columns), matrix.ravel()
    return [
        lambda: worth(matrix, linear_sum_assignment(matrix, maximize=True)),
        lambda: constraint.best(scores, rng=rng).value,
    ]


def pairs(n: int, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Each row with some columns, so that all can be matched."""
    rng = np.random.default_rng(0)
    key = np.repeat(np.arange(n), degree) * n + rng.integers(n, size=n * degree)
    key = np.unique(np.concatenate([key, np.arange(n) * n + rng.permutation(n)]))
    return key // n, key % n


def sparse(n: int, degree: int, *, every: bool, whole: bool = False) -> list[Work]:
    row, column = pairs(n, degree)
    constraint, rng = armful.Assignment(row, column, every_row=every), np.random.default_rng(0)
    shape, values_of_rounds = (n, n), []
    for _ in range(ROUNDS):
        scores = rng.integers(1, 100, row.size) if whole else rng.integers(2**24, 2**30, row.size) / 2**30
        values_of_rounds.append(scores.astype(float))
    own = np.zeros(0, dtype=np.int32)
    if not every:  # a further column for each row that is left out, worth next to nothing
        own, shape = np.arange(n, dtype=np.int32), (n, 2 * n)
    place = np.append(row, own).astype(np.int32), np.append(column, n + own).astype(np.int32)
    matrices = [
        csr_array((np.append(values, np.full(own.size, 1e-300)), place), shape=shape) for values in values_of_rounds
    ]
    next_matrix, next_scores = cycle(matrices), cycle(values_of_rounds)

    def direct() -> float:
        matrix = next(next_matrix)
        return worth(matrix, min_weight_full_bipartite_matching(matrix, maximize=True))

    return [direct, lambda: constraint.best(next(next_scores), rng=rng).value]


def path(n_nodes: int, *, directed: bool) -> list[Work]:
    rng = np.random.default_rng(0)
    graph = nx.gnm_random_graph(n_nodes, 4 * n_nodes, seed=1, directed=directed)
    nx.add_path(graph, range(n_nodes))
    costs = rng.random(graph.number_of_edges()) + 0.05
    nx.set_edge_attributes(graph, dict(zip(graph.edges, costs.tolist(), strict=True)), "cost")
    constraint = armful.Path(graph, 0, n_nodes - 1, costs=True)
    return [
        lambda: -nx.bidirectional_dijkstra(graph, 0, n_nodes - 1, weight="cost")[0],
        lambda: constraint.best(-costs, rng=rng).value,
    ]


CASES: dict[str, Callable[[], list[Work]]] = {
    "Assignment, dense 200 x 200": lambda: dense(200, 200),
    "Assignment, dense 800 x 800": lambda: dense(800, 800),
    "Assignment, dense 500 x 2,000": lambda: dense(500, 2000),
    "Assignment, 200 rows x 3, every row": lambda: sparse(200, 3, every=True),
    "Assignment, 200 rows x 5, every row": lambda: sparse(200, 5, every=True),
    "Assignment, 200 rows x 20, every row": lambda: sparse(200, 20, every=True),
    "Assignment, 300 rows x 3, every row": lambda: sparse(300, 3, every=True),
    "Assignment, 300 rows x 5, every row": lambda: sparse(300, 5, every=True),
    "Assignment, 300 rows x 20, every row": lambda: sparse(300, 20, every=True),
    "Assignment, 1,000 rows x 20, every row": lambda: sparse(1000, 20, every=True),
    "Assignment, 3,000 rows x 5, every row": lambda: sparse(3000, 5, every=True),
    "Assignment, 3,000 rows x 20, every row": lambda: sparse(3000, 20, every=True),
    "Assignment, 5,000 rows x 10, every row": lambda: sparse(5000, 10, every=True),
    "Assignment, 5,000 rows x 10, every row, whole": lambda: sparse(5000, 10, every=True, whole=True),
    "Assignment, 3,000 rows x 5": lambda: sparse(3000, 5, every=False),
    "Assignment, 5,000 rows x 10": lambda: sparse(5000, 10, every=False),
    "Path, 60 nodes": lambda: path(60, directed=True),
    "Path, 60 nodes, both ways": lambda: path(60, directed=False),
    "Path, 1,000 nodes": lambda: path(1000, directed=True),
    "Path, 10,000 nodes": lambda: path(10_000, directed=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    print(f"{'instance':50} {'direct':>10} {'armful':>10} {'ratio':>6}")
    for name, make in CASES.items():
        direct, ours = side_by_side(make(), options.runs)
        print(f"{name:50} {1e3 * direct:>7.2f} ms {1e3 * ours:>7.2f} ms {ours / direct:>6.2f}", flush=True)


if __name__ == "__main__":
    main()
