from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armful import InfeasibleError
from armful.constraints import _matching as matching
from armful.constraints.assignment import Assignment
from armful.testing import ConstraintContract
from armful.testing._expectations import FALSE_ALARM, tail_bound


def some_pairs(rng):
    n_arms = int(rng.integers(1, 8))
    return rng.integers(0, 3, n_arms), rng.integers(0, 3, n_arms), n_arms


class TestOnceContract(ConstraintContract):
    def constraint(self, rng):
        rows, columns, n_arms = some_pairs(rng)
        return Assignment(rows, columns), n_arms


class TestCapacitiesContract(ConstraintContract):
    instances = 8

    def constraint(self, rng):
        rows, columns, n_arms = some_pairs(rng)
        return Assignment(rows, columns, row_capacity=int(rng.integers(1, 3)), column_capacity=2), n_arms


def feasible(make, rng):
    while True:
        try:
            return make(rng)
        except InfeasibleError:
            continue


class TestEveryRowContract(ConstraintContract):
    def constraint(self, rng):
        return feasible(self.attempt, rng)

    def attempt(self, rng):
        rows, columns, n_arms = some_pairs(rng)
        return Assignment(rows, columns, every_row=True, column_capacity=int(rng.integers(1, 3))), n_arms


class TestEveryColumnContract(ConstraintContract):
    instances = 15

    def constraint(self, rng):
        return feasible(self.attempt, rng)

    def attempt(self, rng):
        rows, columns, n_arms = some_pairs(rng)
        capacity = {int(label): int(rng.integers(0, 3)) for label in columns}
        capacity[int(columns[0])] = 1
        return Assignment(rows, columns, every_column=True, row_capacity=2, column_capacity=capacity), n_arms


class TestEveryRowAndColumnContract(ConstraintContract):
    def constraint(self, rng):
        return feasible(self.attempt, rng)

    def attempt(self, rng):
        rows, columns, n_arms = some_pairs(rng)
        return Assignment(rows, columns, every_row=True, every_column=True), n_arms


# -- enumeration ---------------------------------------------------------------------------------------

SCORES = st.sampled_from([0.0, 0.0, 1.0, 1.0, -1.0, 0.5, 2.0, -3.0, 1e200, -1e200, 1e-200])


@st.composite
def questions(draw):
    n_arms = draw(st.integers(1, 7))
    rows = draw(st.lists(st.sampled_from("abc"), min_size=n_arms, max_size=n_arms))
    columns = draw(st.lists(st.sampled_from("xyz"), min_size=n_arms, max_size=n_arms))
    capacities = st.sampled_from([1, 1, 2, 3])
    options = {
        "row_capacity": {label: draw(capacities) for label in set(rows)},
        "column_capacity": draw(st.sampled_from([1, 2])),
        "every_row": draw(st.booleans()),
        "every_column": draw(st.sampled_from([False, False, True])),
    }
    scores = draw(st.lists(SCORES, min_size=n_arms, max_size=n_arms))
    required = draw(st.sets(st.integers(0, n_arms - 1), max_size=2))
    excluded = draw(st.sets(st.integers(0, n_arms - 1), max_size=2)) - required
    return rows, columns, options, np.array(scores), sorted(required), sorted(excluded)


def allowed_sets(rows, columns, row_capacity, column_capacity, every_row, every_column):
    sets = np.array(list(product([0.0, 1.0], repeat=len(rows))))
    for labels, capacity, exactly in ((rows, row_capacity, every_row), (columns, column_capacity, every_column)):
        for label in set(labels):
            most = capacity[label] if isinstance(capacity, dict) else capacity
            used = sets @ (np.array(labels) == label)
            sets = sets[used == most if exactly else used <= most]
    return sets


def compare_with_enumeration(question):
    rows, columns, options, scores, required, excluded = question
    allowed = allowed_sets(rows, columns, **options)
    must_use = options["every_row"] or options["every_column"]
    if len(allowed) == 0:
        with pytest.raises(InfeasibleError, match=r"^(rows? |columns? |every row and every column)"):
            Assignment(rows, columns, **options)
        return
    constraint = Assignment(rows, columns, **options)
    assert constraint.k == allowed.sum(axis=1).max()
    for members in np.array(list(product([0.0, 1.0], repeat=len(rows)))):
        inside = bool((allowed == members).all(axis=1).any())
        assert (constraint.violation(np.flatnonzero(members)) == 0.0) == inside
    for must, must_not in (([], []), (required, excluded)):
        left = allowed[(allowed[:, must] == 1).all(axis=1) & (allowed[:, must_not] == 0).all(axis=1)]
        arguments = {"required": np.array(must, dtype=int), "excluded": np.array(must_not, dtype=int)}
        if len(left) == 0:
            with pytest.raises(InfeasibleError, match=r"^(the required pairs use|no assignment (has|does) )"):
                constraint.best_given(scores, np.random.default_rng(0), **arguments)
            continue
        answer = constraint.best_given(scores, np.random.default_rng(0), **arguments)
        assert answer.ratio == 1.0
        assert (left == np.isin(np.arange(scores.size), answer.indices)).all(axis=1).any()
        assert scores[answer.indices].sum() >= (left @ scores).max() - 1e-9 * np.abs(scores).sum()
        if not must_use:
            assert (scores[np.setdiff1d(answer.indices, must)] >= 0).all()
            for arm in np.setdiff1d(np.flatnonzero(scores == 0), [*answer.indices, *must_not]):
                assert constraint.violation(np.append(answer.indices, arm)) > 0  # no arm of score 0 still fits


@settings(max_examples=200, deadline=None)
@given(questions())
def test_answers_violations_and_k_are_those_of_enumeration(question):
    compare_with_enumeration(question)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(questions())
def test_so_they_are_by_the_simplex_alone(question):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "_copied", lambda *pairs: (None, None))
        compare_with_enumeration(question)


@pytest.mark.slow
@settings(max_examples=3000, deadline=None)
@given(questions())
def test_answers_violations_and_k_are_those_of_enumeration_many_times(question):
    compare_with_enumeration(question)


@pytest.mark.parametrize("every_row", [False, True])
@pytest.mark.parametrize("column_capacity", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_paths_and_simplex_give_the_same_value_and_the_simplex_ends_at_a_set(
    every_row, column_capacity, seed, monkeypatch
):
    rng = np.random.default_rng(seed)
    rows, columns = np.repeat(np.arange(20), 25), np.tile(np.arange(25), 20)
    kept = rng.random(500) < 0.5
    options = {"every_row": every_row, "column_capacity": column_capacity}
    constraint = Assignment(rows[kept], columns[kept], **options)
    scores = rng.standard_normal(kept.sum())
    by_paths = constraint.best(scores)
    monkeypatch.setattr(matching, "_copied", lambda *pairs: (None, None))
    monkeypatch.setattr(matching, "maximise", None)  # would be asked if the vertex were no set
    by_simplex = constraint.best(scores)
    assert by_simplex.value == pytest.approx(by_paths.value, rel=1e-9)
    assert constraint.violation(by_simplex.indices) == 0.0


def test_labels_may_be_anything_hashable_and_pairs_may_be_parallel():
    rows = ["ann", "ann", ("bob", 2), ("bob", 2)]
    constraint = Assignment(rows, [None, None, None, 3.5])
    assert constraint.best([1.0, 2.0, 5.0, 4.5]).indices.tolist() == [1, 3]
    shared = Assignment(rows, [None, None, None, 3.5], row_capacity={"ann": 2}, column_capacity=3)
    assert shared.best([1.0, 2.0, 5.0, 4.5]).indices.tolist() == [0, 1, 2]


def test_equal_assignments_are_taken_equally_often():
    """The six ways to pair three with three, whether all scores are 1 or all 0. False alarms: 1e-6 by Chernoff."""
    constraint, draws = Assignment(np.repeat(np.arange(3), 3), np.tile(np.arange(3), 3)), 600
    for score in (1.0, 0.0):
        rng = np.random.default_rng(0)
        seen = [tuple(constraint.best(np.full(9, score), rng=rng).indices) for _ in range(draws)]
        assert len(set(seen)) == 6
        assert 2 * 6 * min(tail_bound(seen.count(one), draws, 1 / 6) for one in set(seen)) >= FALSE_ALARM


def test_parallel_arms_of_equal_score_are_taken_at_random():
    constraint = Assignment([0, 0, 0], [0, 0, 0])
    taken = {int(constraint.best(np.ones(3), rng=np.random.default_rng(i)).indices[0]) for i in range(60)}
    assert taken == {0, 1, 2}  # false alarms: 3 * (2/3)^60 < 1e-10


# -- infeasible ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "columns", "options", "message"),
    [
        ("abc", "xxy", {"every_row": True}, "rows 'a' and 'b' need 2 pairs, their columns ('x') have room for 1"),
        ("xxy", "abc", {"every_column": True}, "columns 'a' and 'b' need 2 pairs, their rows ('x') have room for 1"),
        (
            "ab",
            "xy",
            {"every_row": True, "row_capacity": {"b": 3}},
            "row 'b' needs 3 pairs, its columns ('y') have room for 1",
        ),
        (
            "aabb",
            "xyxy",
            {"every_row": True, "row_capacity": 2, "column_capacity": {"y": 2}},
            "rows 'a' and 'b' need 4 pairs, their columns ('x' and 'y') have room for 3",
        ),
        (
            "aab",
            "xyx",
            {"every_row": True, "every_column": True, "row_capacity": {"a": 2}},
            "every row and every column is to be used, but rows have room for 3, columns for 2",
        ),
    ],
)
def test_what_cannot_be_used_is_named_with_its_numbers(rows, columns, options, message):
    with pytest.raises(InfeasibleError) as refusal:
        Assignment(rows, columns, **options)
    assert str(refusal.value) == message


def test_rows_that_are_named_are_few_and_cannot_all_be_used():
    """Thirty rows share ten columns, the others have one each: eleven of them are named."""
    rows = [*np.repeat(np.arange(30), 10).tolist(), *range(100, 200)]
    columns = [*np.tile(np.arange(10), 30).tolist(), *range(100, 200)]
    with pytest.raises(InfeasibleError, match=r"^rows 0, 1, .* and 1 more need 11 pairs, .* have room for 10$"):
        Assignment(rows, columns, every_row=True)


def test_required_pairs_that_share_a_row_are_refused():
    with pytest.raises(InfeasibleError, match=r"^the required pairs use row 'a' more often than it allows$"):
        Assignment("aab", "xyy").best_given(
            np.ones(3), np.random.default_rng(0), required=np.array([0, 1]), excluded=np.array([], dtype=int)
        )


# -- limits and manners --------------------------------------------------------------------------------


def test_limits_are_the_full_rows_and_columns_with_room_for_one_more():
    constraint = Assignment("aabb", "xyxz")
    limits = {limit.name: limit.loosened for limit in constraint.limits([0, 3])}
    assert list(limits) == ["row 'a' at most 1", "row 'b' at most 1", "column 'x' at most 1"]
    assert limits["row 'a' at most 1"].best(np.ones(4)).indices.tolist() == [0, 1, 3]
    exactly = Assignment("aabb", "xyxz", every_row=True)
    assert [limit.name for limit in exactly.limits([0, 3])] == ["column 'x' at most 1"]
    many = Assignment(np.repeat(np.arange(120), 2), np.tile([0, 1], 120), column_capacity=120)
    assert len(list(many.limits(np.arange(0, 240, 2)))) == 100


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("ab", "x"), {}, "rows and columns must be of one length, got 2 and 1"),
        (([], []), {}, "rows must be one label for each arm, got none"),
        (("ab", [["x"], ["y"]]), {}, "columns must be hashable labels, one for each arm"),
        (("ab", "xy"), {"row_capacity": -1}, "row_capacity must be a whole number of at least 0, got -1"),
        (("ab", "xy"), {"column_capacity": {"z": 1}}, "column_capacity names 'z', which is in no pair"),
        (
            ("ab", "xy"),
            {"column_capacity": {"x": 0.5}},
            "column_capacity of column 'x' must be a whole number of at least 0, got 0.5",
        ),
    ],
)
def test_what_is_no_assignment_is_refused(arguments, options, message):
    with pytest.raises(ValueError) as refusal:
        Assignment(*arguments, **options)
    assert str(refusal.value) == message


def test_capacities_of_zero_leave_a_row_out_and_all_of_them_leave_nothing():
    assert Assignment("ab", "xy", row_capacity={"a": 0}).best([9.0, 1.0]).indices.tolist() == [1]
    with pytest.raises(ValueError, match=r"^Assignment allows the empty set only; raise a capacity$"):
        _ = Assignment("ab", "xy", row_capacity=0).k


@pytest.mark.parametrize(
    ("indices", "violation"), [([], 0.0), ([0, 3], 0.0), ([0, 1], 1.0), ([0, 1, 2], 2.0), ([0, 0], 1.0)]
)
def test_a_violation_counts_uses_too_many(indices, violation):
    assert Assignment("aabb", "xyxz").violation(indices) == violation


def test_a_violation_counts_uses_too_few_where_all_must_be_used():
    assert Assignment("aabb", "xyxz", every_row=True).violation([0]) == 1.0


def test_arms_that_are_not_there_are_refused():
    with pytest.raises(ValueError, match=r"^indices must be from 0 to 1, got"):
        Assignment("ab", "xy").violation([2])
    with pytest.raises(ValueError, match=r"^Assignment has 2 pairs, got 3 arms$"):
        Assignment("ab", "xy").best(np.ones(3))


@pytest.mark.slow
def test_of_a_thousand_by_a_thousand_no_two_pairs_are_better_swapped():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((1000, 1000))
    answer = Assignment(np.repeat(np.arange(1000), 1000), np.tile(np.arange(1000), 1000)).best(scores.ravel())
    rows, columns = answer.indices // 1000, answer.indices % 1000
    crossed, own = scores[np.ix_(rows, columns)], scores[rows, columns]
    assert answer.indices.size == 1000
    assert (crossed + crossed.T <= own[:, None] + own[None] + 1e-9).all()
