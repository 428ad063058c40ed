import math
import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linear_sum_assignment

from armful import Assignment
from armful.constraints import _bipartite as bipartite
from armful.constraints._bipartite import Bipartite, best_matching, dual_values
from armful.testing._expectations import FALSE_ALARM, tail_bound
from tests.constraints.test_assignment import compare_with_enumeration, questions


def sparse_only(patch):
    patch.setattr(bipartite, "SMALL_MATRIX", 0)
    patch.setattr(bipartite, "DENSE_SHARE", 0)


@settings(max_examples=60, deadline=None)
@given(questions())
def test_sparse_graphs_give_the_answers_of_enumeration(question):
    with pytest.MonkeyPatch.context() as patch:
        sparse_only(patch)
        compare_with_enumeration(question)


@settings(max_examples=60, deadline=None)
@given(questions())
def test_so_they_do_where_rounded_weights_were_not_enough(question):
    with pytest.MonkeyPatch.context() as patch:
        sparse_only(patch)
        patch.setattr(bipartite, "BITS", -3)
        compare_with_enumeration(question)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(questions())
def test_sparse_graphs_give_the_answers_of_enumeration_many_times(question):
    with pytest.MonkeyPatch.context() as patch:
        sparse_only(patch)
        compare_with_enumeration(question)


# -- the proof -----------------------------------------------------------------------------------------


def all_matchings(graph):
    for size in range(min(graph.n_rows, graph.n_columns) + 1):
        if (graph.every_row and size < graph.n_rows) or (graph.every_column and size < graph.n_columns):
            continue
        for edges in combinations(range(graph.row.size), size):
            chosen = np.array(edges, dtype=np.int64)
            if len(set(graph.row[chosen])) == len(set(graph.column[chosen])) == size:
                yield chosen


@pytest.mark.parametrize("every", [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("seed", range(40))
def test_just_the_best_matchings_are_proved_to_be(every, seed):
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(1, 4))
    n_columns = n_rows if every[1] else int(rng.integers(n_rows, 5))
    row, column = np.nonzero(rng.random((n_rows, n_columns)) < 0.7)
    graph = Bipartite(n_rows, n_columns, row, column, *every)
    weights = rng.integers(-3, 6, row.size) / 7 if seed % 2 else rng.standard_normal(row.size)
    matchings = [chosen for chosen in all_matchings(graph) if row.size]
    best = max((weights[chosen].sum() for chosen in matchings), default=0.0)
    for chosen in matchings:
        proved = dual_values(graph, weights, chosen) is not None
        assert proved == (weights[chosen].sum() > best - 1e-9)


# -- larger graphs -------------------------------------------------------------------------------------


def large(rng, n_rows, n_columns, degree, every=(False, False)):
    """A sparse graph, in which every row has a column of its own."""
    key = np.repeat(np.arange(n_rows), degree) * n_columns + rng.integers(n_columns, size=n_rows * degree)
    own = np.arange(n_rows) * n_columns + rng.permutation(n_columns)[:n_rows]
    key = np.unique(np.concatenate([key, own]))
    return Bipartite(n_rows, n_columns, key // n_columns, key % n_columns, *every)


def best_value(graph, weights):
    """By scipy on a dense matrix, in which a pair that is not there is worth 0, or is not allowed."""
    matrix = np.full((graph.n_rows, graph.n_columns), -np.inf if graph.every_row else 0.0)
    matrix[graph.row, graph.column] = weights if graph.every_row else np.maximum(weights, 0.0)
    return matrix[linear_sum_assignment(matrix, maximize=True)].sum()


WEIGHTS = {
    "uniform": lambda rng, n: rng.random(n),
    "normal": lambda rng, n: rng.standard_normal(n),
    "whole": lambda rng, n: rng.integers(-5, 100, n).astype(float),
    "large and whole": lambda rng, n: 1e10 + rng.integers(0, 9, n),
    "all but equal": lambda rng, n: 1 + rng.integers(0, 100, n) * 2.0**-50,
    "of many sizes": lambda rng, n: 10.0 ** rng.integers(-12, 12, n),
    "equal": lambda rng, n: np.ones(n),
    "none": lambda rng, n: np.zeros(n),
}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("every", [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("degree", [3, 20])
def test_sparse_graphs_have_the_value_of_dense_ones(weights, every, degree):
    rng = np.random.default_rng(degree)
    n_columns = 350 if every[1] else 400
    graph = large(rng, 350, n_columns, degree, every)
    values = WEIGHTS[weights](rng, graph.row.size)
    assert not graph.is_dense
    chosen = best_matching(graph, values, rng)
    assert len(set(graph.row[chosen])) == len(set(graph.column[chosen])) == chosen.size
    assert values[chosen].sum() == pytest.approx(best_value(graph, values), rel=1e-14, abs=1e-300)
    assert weights == "of many sizes" or dual_values(graph, values, chosen) is not None


def test_thousands_of_rows_and_columns_need_no_linear_program(monkeypatch):
    def refuse(*what, **more):
        raise AssertionError("a linear program")

    monkeypatch.setattr("scipy.optimize.linprog", refuse)
    monkeypatch.setattr("scipy.optimize.milp", refuse)
    rng = np.random.default_rng(0)
    graph = large(rng, 2500, 2500, 3)
    scores = rng.random(graph.row.size)
    answer = Assignment(graph.row, graph.column).best(scores, rng=rng)
    assert dual_values(graph, scores, answer.indices) is not None


def test_bids_that_are_lost_in_rounding_do_not_go_on_for_ever():
    """On these weights scipy's function never returns; in a process of its own, since nothing could stop it here."""
    program = """if True:
        import numpy as np
        from armful.constraints import _bipartite as bipartite
        bipartite.SMALL_MATRIX = bipartite.DENSE_SHARE = 0
        weights = np.array([1e16 + 2, .5, .2, .2, .2, 3., .3, 1., 1., .5, 1e16, 1e16, 1e16 + 2, .2, .2, .5])
        row, column = np.divmod(np.arange(16), 4)
        graph = bipartite.Bipartite(4, 4, row, column, True, True)
        print(*weights[bipartite.best_matching(graph, weights, np.random.default_rng(0))])
    """
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert math.fsum(map(float, answer.stdout.split())) == pytest.approx(2e16 + 5.5, rel=1e-15)


def test_equal_matchings_of_a_sparse_graph_are_taken_equally_often(monkeypatch):
    """The six ways to pair three with three. False alarms: 1e-6 by Chernoff."""
    sparse_only(monkeypatch)
    rows, columns = np.divmod(np.arange(9), 3)
    for every_row, draws in ((True, 600), (False, 600)):
        constraint, rng = Assignment(rows, columns, every_row=every_row), np.random.default_rng(0)
        seen = [tuple(constraint.best(np.ones(9), rng=rng).indices) for _ in range(draws)]
        assert len(set(seen)) == 6
        assert 2 * 6 * min(tail_bound(seen.count(one), draws, 1 / 6) for one in set(seen)) >= FALSE_ALARM
