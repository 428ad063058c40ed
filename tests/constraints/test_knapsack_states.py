"""Knapsacks in whole numbers: the dynamic programme against slower ones, on the families of the literature."""

import runpy
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armful import Knapsack
from armful.constraints import _knapsack_core as knapsack_core
from armful.constraints import _knapsack_states as knapsack_states
from armful.constraints._knapsack_states import States

# By its path: other packages install a folder "benchmarks" of their own.
INSTANCES = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "knapsack_instances.py"))
FAMILIES, jooken, pisinger = (INSTANCES[name] for name in ("FAMILIES", "jooken", "pisinger"))

KINDS = {"list": (0, -1), "table": (0, 10**9), "both": (1, 8), "as it comes": (16, 20_000)}


@pytest.fixture(params=KINDS)
def kind(request, monkeypatch):
    """States in a list, in a table, or first in one and then in the other."""
    cells, few = KINDS[request.param]
    monkeypatch.setattr(knapsack_states, "CELLS", cells)
    monkeypatch.setattr(knapsack_states, "FEW_CELLS", few)
    return request.param


def best_value(values, costs, budget):
    """What can be had for the budget, from a list of all sets that no other beats, in Python's whole numbers."""
    sets = [(0, 0)]
    for value, cost in zip(values.tolist(), costs.tolist(), strict=True):
        more = sorted(
            sets + [(c + cost, v + value) for c, v in sets if c + cost <= budget], key=lambda s: (s[0], -s[1])
        )
        sets = []
        for each in more:
            if not sets or each[1] > sets[-1][1]:
                sets.append(each)
    return sets[-1][1]


def check(values, costs, budget):
    fit = costs <= budget
    states = States(values[fit].astype(np.int64), costs[fit].astype(np.int64), int(budget))
    assert states.search(10**7)
    chosen = states.chosen()
    assert int(costs[fit][chosen].sum()) <= budget
    assert int(values[fit][chosen].sum()) == best_value(values, costs, budget)


NUMBERS = st.sampled_from([1, 2, 3, 5, 7, 10**6 + 1, 10**10, 10**10 + 4, 7 * 10**9, 2**49])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=8), st.integers(0, 2**8 - 1), st.integers(-1, 1))
def test_sets_of_any_size_of_numbers_are_those_of_enumeration(arms, members, more):
    """Budgets that some set uses up, or would but for 1."""
    values, costs = np.array(arms).T
    inside = np.array([members >> i & 1 for i in range(costs.size)], dtype=bool)
    budget = max(int(costs[inside].sum()) + more, 1)
    for cells, few in KINDS.values():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(knapsack_states, "CELLS", cells)
            patch.setattr(knapsack_states, "FEW_CELLS", few if budget < 10**6 else -1)
            fit = costs <= budget
            if not fit.any():
                continue
            states = States(values[fit], costs[fit], budget)
            assert states.search(10**6)
            chosen = costs[fit][states.chosen()], values[fit][states.chosen()]
            assert sum(chosen[0].tolist()) <= budget
            sets = [np.array(x, dtype=bool) for x in product([0, 1], repeat=costs.size)]
            worth = [sum(values[x].tolist()) for x in sets if sum(costs[x].tolist()) <= budget]
            assert sum(chosen[1].tolist()) == max(worth)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 9), NUMBERS), min_size=2, max_size=7),
    st.integers(0, 2**7 - 1),
    st.integers(-1, 1),
    st.integers(1, 3),
)
def test_so_they_are_with_a_largest_number_of_arms(arms, members, more, at_most):
    """By HiGHS, where that number binds."""
    values, costs = np.array(arms).T
    inside = np.array([members >> i & 1 for i in range(costs.size)], dtype=bool)
    budget = max(sum(costs[inside].tolist()) + more, int(costs.min()))
    answer = Knapsack(costs, budget, at_most=at_most).best(values)
    assert sum(costs[answer.indices].tolist()) <= budget
    assert answer.indices.size <= at_most
    sets = [np.array(x, dtype=bool) for x in product([0, 1], repeat=costs.size) if sum(x) <= at_most]
    best = max(sum(values[x].tolist()) for x in sets if sum(costs[x].tolist()) <= budget)
    assert (answer.value, answer.ratio) == (best, 1.0)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("part", [1 / 101, 0.3, 0.5])
def test_every_family_is_solved_exactly(family, part, kind):
    for seed in range(3):
        check(*pisinger(family, 40, seed, largest=50, part=part))


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("part", [1 / 101, 0.5])
def test_larger_ones_too(family, part):
    largest = 1000 if part < 0.1 else 100
    check(*pisinger(family, 200, 7, largest=largest, part=part))


@pytest.mark.parametrize("groups", [2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.0, 1e-4, 0.1])
def test_groups_of_nearly_equal_arms_are_solved_exactly(groups, epsilon, kind):
    budget = 10**4 if kind == "table" else 10**10
    check(*jooken(24, budget, groups, 0.3, epsilon, 20, 0))


@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_two_arms_beyond_half_of_ten_billion_are_never_taken_together(epsilon, seed):
    """The best is the most valuable of the large arms, any two of which cost too much, and all the small ones."""
    values, costs, budget = jooken(600, 10**10, 2, 0.2, epsilon, 200, seed)
    large = costs > budget // 2
    best = int(values[large].max()) + int(values[~large].sum())
    answer = Knapsack(costs, budget).best(values, rng=np.random.default_rng(0))
    assert int(costs[answer.indices].sum()) <= budget
    assert (int(answer.value), answer.ratio) == (best, 1.0)


def test_whole_costs_are_kept_exactly():
    constraint = Knapsack([1e10 + 4, 7e9], 1e10)
    assert constraint.best([2.0, 1.0]).indices.tolist() == [1]
    assert constraint.violation([0]) == 4.0
    assert Knapsack([2.0**53, 2.0], 2.0**53).violation([0, 1]) == 2.0
    assert Knapsack([4e15, 4e15, 1.0], 8e15).best([1.0, 1.0, 1.0]).indices.tolist() in ([0, 1], [0, 2], [1, 2])
    assert Knapsack([3.0, 4.0], 6.9999).best([1.0, 1.0]).indices.size == 1
    assert Knapsack([1.0, 1.0, 1.0], 0.3 * 10).k == 3  # 3 up to rounding


def test_costs_beyond_all_whole_numbers_never_pass_the_budget():
    costs = np.array([3e30, 2e30, 1e30, 7e29])
    constraint = Knapsack(costs, 4e30)
    answer = constraint.best([2.0, 2.0, 3.0, 1.0])
    assert constraint.violation(answer.indices) == 0.0
    assert answer.value == 6.0


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(0.01, 10.0), min_size=1, max_size=8),
    st.lists(st.integers(1, 20), min_size=8, max_size=8),
    st.integers(1, 60),
)
def test_scores_that_are_not_whole_are_not_rounded_visibly(scores, costs, budget):
    """As good as enumeration to within one rounding of the sum."""
    scores, costs = np.array(scores), np.array(costs[: len(scores)])
    budget = max(budget, int(costs.min()))
    answer = Knapsack(costs, budget).best(scores)
    sets = np.array(list(product([0.0, 1.0], repeat=scores.size)))
    best = (sets[sets @ costs <= budget] @ scores).max()
    assert answer.value >= best * (1 - 4e-16 * scores.size)
    assert answer.ratio == 1.0


def test_a_difference_in_the_last_bit_decides():
    scores = np.array([1.0, np.nextafter(1.0, 2.0), 1.0])
    for seed in range(10):
        assert Knapsack([1, 1, 1], 1).best(scores, rng=np.random.default_rng(seed)).indices.tolist() == [1]


def test_what_is_given_up_is_not_called_the_best(monkeypatch):
    """Groups of nearly equal arms near 10^10: far beyond a few states, and beyond what HiGHS can tell apart."""
    values, costs, budget = jooken(60, 10**10, 5, 0.2, 1e-3, 200, 0)
    best = Knapsack(costs, budget).best(values)
    assert best.ratio == 1.0
    monkeypatch.setattr(knapsack_core, "MOST_STATES", 100)
    constraint = Knapsack(costs, budget, time_limit=2.0)
    answer = constraint.best(values)
    assert constraint.violation(answer.indices) == 0.0
    assert answer.value <= best.value
    assert answer.ratio < 1.0
    assert answer.value >= answer.ratio * best.value


def test_answers_do_not_depend_on_time():
    """The work is limited by counting states, so that the same question has the same answer on every machine."""
    values, costs, budget = pisinger("inverse strongly correlated", 200, 0, part=0.5)
    one, other = (Knapsack(costs, budget).best(values, rng=np.random.default_rng(3)).indices for _ in range(2))
    assert one.tolist() == other.tolist()
