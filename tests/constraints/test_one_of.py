import numpy as np
import pytest

from armful import InfeasibleError, OneOf
from armful.testing import ConstraintContract
from armful.testing._expectations import FALSE_ALARM, tail_bound


class TestOneOfContract(ConstraintContract):
    def constraint(self, rng):
        n_arms = int(rng.integers(1, 7))
        sizes = rng.integers(1, n_arms + 1, int(rng.integers(1, 6)))
        sets = [rng.permutation(n_arms)[:size] for size in sizes]
        return OneOf([*sets, [n_arms - 1]]), n_arms


class TestOneOfTwoGroupsContract(ConstraintContract):
    """The paper's grouped type."""

    instances = 6

    def constraint(self, rng):
        k = int(rng.integers(1, 5))
        return OneOf(np.arange(2 * k).reshape(2, k)), 2 * k


def test_equal_sets_are_taken_equally_often():
    """False alarms: 1e-6 by Chernoff, any seed."""
    constraint, rng, draws = OneOf([[0, 1], [2], [3, 4], [5]]), np.random.default_rng(0), 600
    firsts = [int(constraint.best([1.0, 1.0, 2.0, 0.0, 2.0, 1.5], rng=rng).indices[0]) for _ in range(draws)]
    times = {i: firsts.count(i) for i in (0, 2, 3, 5)}
    assert times[5] == 0
    assert 2 * 3 * min(tail_bound(times[i], draws, 1 / 3) for i in (0, 2, 3)) >= FALSE_ALARM


def test_sets_may_be_given_by_a_generator_and_by_arrays():
    constraint = OneOf(np.array([i, i + 1], dtype=np.int32) for i in range(3))
    assert constraint.best([0.0, 0.0, 5.0, 1.0]).indices.tolist() == [2, 3]
    assert repr(constraint) == "OneOf(sets=[[0, 1], [1, 2], [2, 3]])"


def test_sets_may_be_sets():
    constraint = OneOf([{0, 1}, frozenset({2, 3}), {np.int64(4)}])
    assert sorted(constraint.best([0.0, 0.0, 5.0, 1.0, 2.0]).indices) == [2, 3]
    assert constraint.violation({2, 3}) == 0.0
    assert constraint.violation({2}) == 1.0


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ([], "OneOf needs at least one set, got none"),
        ([[0], []], "every set of OneOf needs at least one arm, set 1 is empty"),
        ([[0, 0]], "a set of OneOf holds distinct arms counted from 0, set 0 is [0 0]"),
        ([[1], [-1]], "a set of OneOf holds distinct arms counted from 0, set 1 is [-1]"),
        ([[0.5]], "set 0 of OneOf: indices must be whole numbers of shape (k,), got float64 of shape (1,)"),
        ([[[0, 1]]], "set 0 of OneOf: indices must be whole numbers of shape (k,), got int64 of shape (1, 2)"),
    ],
)
def test_sets_that_are_none_are_refused(sets, message):
    with pytest.raises(ValueError) as refusal:
        OneOf(sets)
    assert str(refusal.value) == message


def test_a_set_beyond_the_arms_is_infeasible_and_named():
    with pytest.raises(InfeasibleError, match=r"^OneOf names arm 7, 3 are there, from 0$"):
        OneOf([[0], [7]]).best([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("indices", "violation"), [([0, 1], 0.0), ([1, 0], 0.0), ([0], 1.0), ([4], 3.0), ([0, 1, 1], 1.0)]
)
def test_a_violation_is_the_distance_to_the_nearest_set(indices, violation):
    assert OneOf([[0, 1], [2, 3]]).violation(indices) == violation
