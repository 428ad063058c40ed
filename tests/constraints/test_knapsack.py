from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from armful import C2UCB, InfeasibleError, Requiring, Table
from armful.constraints import _knapsack_core as knapsack_core
from armful.constraints.knapsack import Knapsack
from armful.constraints.linear import Linear
from armful.testing import ConstraintContract


class TestWholeCostsContract(ConstraintContract):
    def constraint(self, rng):
        costs = rng.integers(0, 6, int(rng.integers(1, 8)))
        return Knapsack(costs, int(costs.min() + rng.integers(0, 12))), costs.size


class TestRealCostsContract(ConstraintContract):
    def constraint(self, rng):
        costs = rng.random(int(rng.integers(1, 8)))
        return Knapsack(costs, costs.min() + 2 * rng.random()), costs.size


class TestAtMostContract(ConstraintContract):
    def constraint(self, rng):
        costs = rng.random(int(rng.integers(1, 8))) if rng.random() < 0.5 else rng.integers(0, 6, 6)
        return Knapsack(costs, costs.min() + 3 * rng.random(), at_most=int(rng.integers(1, 4))), costs.size


class TestScoresAsTheyAreContract(TestWholeCostsContract):
    """Ties by exchanges, as where there are too many states otherwise."""

    @pytest.fixture(autouse=True)
    def no_states(self, monkeypatch):
        monkeypatch.setattr(knapsack_core, "FEW_ARMS", 0)


class TestTimeLimitContract(ConstraintContract):
    """With time enough it is as without a limit."""

    instances = 5

    def constraint(self, rng):
        costs = rng.integers(1, 6, int(rng.integers(1, 8)))
        return Knapsack(costs, 8, time_limit=60.0), costs.size


SCORES = st.sampled_from([0.0, 1.0, 1.0, -1.0, 0.5, 2.0, 3.0, 1e200, -1e200, 1e-200])
COSTS = st.sampled_from([0.0, 1.0, 2.0, 3.0, 7.0, 0.1, 0.2, 0.3, 1 / 3, np.pi])


@st.composite
def questions(draw):
    costs = draw(st.lists(COSTS, min_size=1, max_size=7))
    scores = draw(st.lists(SCORES, min_size=len(costs), max_size=len(costs)))
    budget = draw(st.sampled_from([min(costs), 0.6, 1.0, 3.0, 6.0, 1e6]))
    at_most = draw(st.sampled_from([None, None, 1, 2, 3]))
    required = draw(st.sets(st.integers(0, len(costs) - 1), max_size=2))
    excluded = draw(st.sets(st.integers(0, len(costs) - 1), max_size=2)) - required
    return np.array(costs), max(budget, min(costs)), at_most, np.array(scores), sorted(required), sorted(excluded)


def compare_with_enumeration(question):
    costs, budget, at_most, scores, required, excluded = question
    constraint = Knapsack(costs, budget, at_most=at_most)
    sets = np.array(list(product([0.0, 1.0], repeat=costs.size)))
    allowed = sets[(sets @ costs <= budget * (1 + 1e-12)) & (sets.sum(axis=1) <= (at_most or costs.size))]
    assert constraint.k == allowed.sum(axis=1).max()
    for members in sets:
        inside = bool((allowed == members).all(axis=1).any())
        assert (constraint.violation(np.flatnonzero(members)) == 0.0) == inside
    for must, must_not in (([], []), (required, excluded)):
        left = allowed[(allowed[:, must] == 1).all(axis=1) & (allowed[:, must_not] == 0).all(axis=1)]
        arguments = {"required": np.array(must, dtype=int), "excluded": np.array(must_not, dtype=int)}
        if len(left) == 0:
            with pytest.raises(InfeasibleError, match=r"^(the required arms cost|\d arms are required)"):
                constraint.best_given(scores, np.random.default_rng(0), **arguments)
            continue
        answer = constraint.best_given(scores, np.random.default_rng(0), **arguments)
        assert (left == np.isin(np.arange(costs.size), answer.indices)).all(axis=1).any()
        assert scores[answer.indices].sum() >= (left @ scores).max() - 1e-11 * np.abs(scores).sum()
        assert answer.ratio == 1.0
        unasked = np.setdiff1d(answer.indices, must)
        assert (scores[unasked] >= 0).all()
        wanted = np.setdiff1d(np.flatnonzero(scores == 0), [*answer.indices, *must_not])
        for arm in wanted:  # no arm of score 0 still fits
            assert constraint.violation(np.append(answer.indices, arm)) > 0


@settings(max_examples=250, deadline=None)
@given(questions())
def test_answers_violations_and_k_are_those_of_enumeration(question):
    compare_with_enumeration(question)


@settings(max_examples=60, deadline=None)
@given(questions())
def test_so_they_are_when_highs_does_all_the_work(question):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knapsack_core, "FEW_ARMS", 0)
        patch.setattr(knapsack_core, "MOST_STATES", 0)
        patch.setattr(knapsack_core, "CORE_SIZES", (1, 2))
        compare_with_enumeration(question)


@settings(max_examples=100, deadline=None)
@given(questions())
def test_so_they_are_when_random_numbers_make_too_many_states(question):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knapsack_core, "FEW_ARMS", 0)
        compare_with_enumeration(question)


@pytest.mark.slow
@settings(max_examples=2500, deadline=None)
@given(questions())
def test_answers_violations_and_k_are_those_of_enumeration_many_times(question):
    compare_with_enumeration(question)


def instance(kind, n_arms, seed):
    """Scores and costs: unrelated, nearly proportional (hard), or few distinct values (ties)."""
    rng = np.random.default_rng(seed)
    whole = rng.integers(1, 100, n_arms).astype(float)
    if kind == "unrelated":
        return rng.standard_normal(n_arms), whole
    if kind == "real costs":
        return rng.random(n_arms), rng.random(n_arms) + 0.01
    if kind == "proportional":
        return whole / 50 + 0.02 * rng.random(n_arms), whole
    return rng.integers(1, 4, n_arms).astype(float), rng.integers(1, 4, n_arms).astype(float)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["unrelated", "real costs", "proportional", "ties"])
@pytest.mark.parametrize("at_most", [None, 40])
@pytest.mark.parametrize("seed", range(3))
def test_what_bounds_decide_never_changes_the_value(kind, at_most, seed, monkeypatch):
    """Bounds and dynamic programming, the same by HiGHS, and HiGHS on the whole problem."""
    scores, costs = instance(kind, 300, seed)
    budget = 0.2 * costs.sum()
    constraint = Knapsack(costs, budget, at_most=at_most)
    rows = [costs, np.ones(300)] if at_most else [costs]
    plain = Linear(np.array(rows), -np.inf, [budget, at_most] if at_most else budget).best(scores).value
    tolerance = 1e-9 * np.abs(scores).sum()
    assert constraint.best(scores).value == pytest.approx(plain, abs=tolerance)
    monkeypatch.setattr(knapsack_core, "FEW_ARMS", 0)
    monkeypatch.setattr(knapsack_core, "MOST_STATES", 0)
    monkeypatch.setattr(knapsack_core, "CORE_SIZES", (5, 20))
    assert constraint.best(scores).value == pytest.approx(plain, abs=tolerance)


def test_a_hundred_thousand_arms_reach_the_relaxation_within_one_arm():
    """The best value lies between the greedy one and Dantzig's bound, which differ by less than an arm's score."""
    rng = np.random.default_rng(0)
    scores, costs = rng.standard_normal(100_000), rng.integers(1, 1000, 100_000).astype(float)
    constraint = Knapsack(costs, 1_000_000)
    answer = constraint.best(scores)
    order = np.argsort(-np.maximum(scores, 0) / costs)
    spent = np.cumsum(costs[order])
    n_fit = int(np.searchsorted(spent, 1_000_000, side="right"))
    greedy = float(scores[order[:n_fit]].sum())
    bound = greedy + (1_000_000 - spent[n_fit - 1]) * scores[order[n_fit]] / costs[order[n_fit]]
    assert greedy <= answer.value <= bound + 1e-9
    assert constraint.violation(answer.indices) == 0.0
    assert answer.ratio == 1.0


def test_equally_good_sets_of_different_size_and_cost_all_come_up():
    """One arm worth 2, or two cheaper ones worth 1 each. False alarms: below 1e-6."""
    constraint, rng = Knapsack([2.0, 1.0, 0.9], 2.0), np.random.default_rng(0)
    assert {tuple(constraint.best([2.0, 1.0, 1.0], rng=rng).indices) for _ in range(60)} == {(0,), (1, 2)}


@pytest.mark.parametrize("at_most", [None, 700])
def test_thousands_of_equal_scores_are_no_trouble(at_most):
    """As many as the cheapest that fit, though not the cheapest themselves."""
    costs = np.random.default_rng(0).integers(50, 1000, 5_000)
    constraint = Knapsack(costs, 100_000, at_most=at_most)
    one, other = (constraint.best(np.ones(5_000), rng=np.random.default_rng(seed)).indices for seed in (1, 2))
    assert one.size == other.size == constraint.k
    assert one.tolist() != other.tolist()


@pytest.mark.parametrize("seconds", [1e-9, 1e-3, 0.02])
@pytest.mark.parametrize("at_most", [None, 60])
def test_under_a_time_limit_the_ratio_is_honest(seconds, at_most, monkeypatch):
    scores, costs = instance("proportional", 400, 0)
    best = Knapsack(costs, 0.3 * costs.sum(), at_most=at_most).best(scores).value
    monkeypatch.setattr(knapsack_core, "FEW_ARMS", 0)
    monkeypatch.setattr(knapsack_core, "MOST_STATES", 0)  # so that time is short
    constraint = Knapsack(costs, 0.3 * costs.sum(), at_most=at_most, time_limit=seconds)
    answer = constraint.best(scores)
    assert constraint.violation(answer.indices) == 0.0
    assert 0.5 < answer.ratio <= 1.0
    assert answer.ratio * best - 1e-9 <= answer.value <= best + 1e-9


def test_with_no_time_at_all_the_ratio_is_below_one_and_honest():
    scores, costs = instance("proportional", 300, 3)
    answer = Knapsack(costs, 0.3 * costs.sum(), time_limit=1e-12).best(scores)
    best = Knapsack(costs, 0.3 * costs.sum()).best(scores).value
    assert 0.5 < answer.ratio < 1.0
    assert answer.value >= answer.ratio * best


def test_costs_in_cents_are_whole_numbers_of_cents():
    constraint = Knapsack([0.57, 0.29, 1.14], 1.14)
    assert constraint.best([1.0, 0.9, 1.8]).indices.tolist() == [0, 1]
    assert constraint.best([1.0, 0.5, 1.8]).indices.tolist() == [2]
    assert Knapsack([0.1, 0.2, 0.3], 0.6).best([1.0, 1.0, 1.0]).indices.size == 3


def test_free_arms_are_taken_and_negative_ones_never():
    assert Knapsack([0.0, 0.0, 1.0], 1.0).best([2.0, -1.0, -1.0]).indices.tolist() == [0]
    assert Knapsack([0.0, 1.0], 1.0).best([-2.0, -1.0]).indices.tolist() == []


def test_before_anything_is_known_as_many_arms_as_fit_are_taken_at_random():
    firsts = {
        tuple(Knapsack([1, 1, 1, 1], 2).best(np.zeros(4), rng=np.random.default_rng(i)).indices) for i in range(99)
    }
    assert len(firsts) == 6  # all pairs; false alarms: 6 * (5/6)^99 < 1e-6


def test_limits_are_the_budget_when_an_arm_does_not_fit_and_at_most_when_reached():
    constraint = Knapsack([1.0, 2.0, 3.0], 4.0, at_most=2)
    limits = {limit.name: limit.loosened for limit in constraint.limits([0, 1])}
    assert list(limits) == ["budget 4", "at most 2 arms"]
    assert limits["budget 4"].best([0.0, 1.0, 1.0]).indices.tolist() == [1, 2]
    assert limits["at most 2 arms"].at_most == 3
    assert [limit.name for limit in constraint.limits([0])] == []
    assert [limit.name for limit in constraint.limits([2])] == ["budget 4"]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1.0, -2.0], 1), {}, "costs must not be negative, got -2 for arm 1"),
        (([[1.0]], 1), {}, "costs must have shape (n_arms,), got (1, 1)"),
        (([], 1), {}, "costs must have shape (n_arms,), got (0,)"),
        (([np.nan], 1), {}, "costs must be finite, got nan in row 0"),
        (([1.0], -1), {}, "budget must not be negative, got -1"),
        (([1.0], np.inf), {}, "budget must be a finite number, got inf"),
        (([5.0, 6.0], 3), {}, "Knapsack allows the empty set only: the cheapest arm costs 5, the budget is 3"),
        (([1.0], 1), {"at_most": 0}, "at_most must be a whole number of at least 1, got 0"),
        (([1.0], 1), {"time_limit": 0}, "time_limit must be positive, got 0; it is in seconds"),
        (([1.0, 1e300], 2.0), {}, "costs must be 0 or from 1e-100 to 1e+100, got 1e+300"),
        (([1.0, 1e-320], 2.0), {}, "costs must be 0 or from 1e-100 to 1e+100, got 9.99989e-321"),
    ],
)
def test_what_is_no_knapsack_is_refused(arguments, options, message):
    with pytest.raises(ValueError) as refusal:
        Knapsack(*arguments, **options)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("costs", "budget"),
    [([2**53 + 1, 7], 2**53), ([2**53, 1, 1], 2**53 + 1), (np.array([2**62 + 1, 7]), 2**62), ([10**30, 7], 2**62)],
)
def test_integers_that_would_be_rounded_are_refused(costs, budget):
    with pytest.raises(ValueError, match="must be numbers that float64 holds exactly, got the integer"):
        Knapsack(costs, budget)
    for matrix in (np.array([costs]), csr_array(np.array([costs]))) if max(costs) < 2**63 else ([costs],):
        with pytest.raises(ValueError, match="must be numbers that float64 holds exactly, got the integer"):
            Linear(matrix, upper=[budget])


def test_integers_beside_other_numbers_are_not_rounded_either():
    with pytest.raises(ValueError, match=r"upper must be .*, got the integer 4611686018427387905"):
        Linear([[1, 1], [1, 0]], upper=[np.int64(2**62 + 1), np.inf])
    with pytest.raises(ValueError, match=r"costs must be .*, got the integer 9007199254740993"):
        Knapsack([2**53 + 1, 0.5], 1.5)
    Linear([[2.0**60, 1.5]], lower=-np.inf, upper=[2.0**70])


def test_large_integers_that_float64_holds_are_kept():
    assert Knapsack([2**53 + 2, 7], 2**53).best([5.0, 1.0]).indices.tolist() == [1]
    assert Linear([[2**60, 7]], upper=[2**60 - 2**10]).best([5.0, 1.0]).indices.tolist() == [1]


@pytest.mark.parametrize(
    ("indices", "violation"), [([], 0.0), ([0, 1], 0.0), ([1, 2], 1.0), ([0, 1, 2], 3.0), ([0, 0], 1.0)]
)
def test_a_violation_is_the_overspending_and_the_arms_too_many(indices, violation):
    assert Knapsack([1.0, 2.0, 3.0], 4.0, at_most=2).violation(indices) == violation


def test_required_arms_beyond_budget_or_number_are_refused():
    nobody = np.array([], dtype=int)
    for required, message in (([1, 2], "the required arms cost 5, the budget is 4"), ([0, 1], "2 arms are required")):
        with pytest.raises(InfeasibleError, match=f"^{message}"):
            Knapsack([1.0, 2.0, 3.0], 4.0, at_most=1).best_given(
                np.ones(3), np.random.default_rng(0), required=np.array(required), excluded=nobody
            )


def test_the_costliest_required_arm_is_named_by_its_id():
    table = Table.wrap(np.ones((3, 1)), ids=["A", "B", "C"])
    with pytest.raises(InfeasibleError, match=r"the budget is 4; 'C' is the costliest of them$"):
        C2UCB(n_features=1, seed=0).choose(table, Requiring(Knapsack([1.0, 2.0, 3.0], 4.0), ids=["B", "C"]))


def test_a_large_budget_that_is_not_whole_is_kept():
    knapsack = Knapsack([5e11 + 1, 1.0], 5e11 + 0.5)
    assert knapsack.best(np.array([5.0, 1.0])).indices.tolist() == [1]
    assert knapsack.violation([0]) == 0.5
