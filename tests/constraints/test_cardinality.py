import numpy as np
import pytest

from armful import AtMost, InfeasibleError, TopK
from armful.constraints.cardinality import largest
from armful.testing import RankedConstraintContract
from armful.testing._expectations import FALSE_ALARM, tail_bound


class TestTopKContract(RankedConstraintContract):
    def constraint(self, rng):
        n_arms = int(rng.integers(1, 8))
        return TopK(int(rng.integers(1, n_arms + 1))), n_arms


class TestAtMostContract(RankedConstraintContract):
    def constraint(self, rng):
        n_arms = int(rng.integers(1, 8))
        return AtMost(int(rng.integers(1, n_arms + 1))), n_arms


@pytest.mark.parametrize("k", [1, 7, 100, 999, 1000])
def test_the_largest_are_those_of_a_full_sort_in_falling_order(k):
    scores = np.random.default_rng(0).standard_normal((4, 1000))
    rngs = [np.random.default_rng(i) for i in range(4)]
    assert np.array_equal(largest(scores, k, rngs), np.argsort(-scores, axis=-1)[:, :k])


def test_ties_above_the_edge_are_in_random_order_too():
    orders = {tuple(TopK(2).best([1.0, 1.0, 0.0], rng=np.random.default_rng(i)).indices.tolist()) for i in range(100)}
    assert orders == {(0, 1), (1, 0)}  # false alarms: 2^-99 each


@pytest.mark.parametrize("constraint", [TopK(3), AtMost(3)])
@pytest.mark.parametrize("tied", [0.0, 1.5])
def test_equal_scores_at_the_edge_are_taken_equally_often(constraint, tied):
    """One clear winner, two of seven equal arms, one clear loser. False alarms: 1e-6 by Chernoff, any seed."""
    scores = [tied] * 4 + [9.0] + [tied] * 3 + [-9.0]
    rng, draws = np.random.default_rng(0), 700
    taken = np.zeros(9, dtype=int)
    for _ in range(draws):
        taken[constraint.best(scores, rng=rng).indices] += 1
    assert (taken[4], taken[8]) == (draws, 0)
    chances = [tail_bound(int(taken[i]), draws, 2 / 7) for i in (0, 1, 2, 3, 5, 6, 7)]
    assert 2 * 7 * min(chances) >= FALSE_ALARM


def test_at_most_takes_a_zero_but_nothing_negative():
    answer = AtMost(3).best([-1.0, 0.0, 2.0, -1e-300])
    assert (answer.indices.tolist(), answer.value) == ([2, 1], 2.0)


def test_at_most_answers_with_nobody_when_all_scores_are_negative():
    answer = AtMost(3).best([-1.0, -2.0])
    assert (answer.indices.tolist(), answer.value, answer.ratio) == ([], 0.0, 1.0)


def test_at_most_more_than_there_are_takes_all():
    assert sorted(AtMost(9).best([1.0, 2.0]).indices.tolist()) == [0, 1]


def test_too_few_arms_for_top_k_is_infeasible_and_says_so():
    with pytest.raises(InfeasibleError, match=r"^TopK\(3\) needs 3 arms, 2 are there$"):
        TopK(3).best([1.0, 2.0])


@pytest.mark.parametrize("kind", [TopK, AtMost])
@pytest.mark.parametrize("k", [0, -1, 1.5, 2.0, "2", None, True])
def test_k_that_is_no_positive_whole_number_is_refused(kind, k):
    with pytest.raises(ValueError, match=r"^k must be a whole number of at least 1, got "):
        kind(k)


@pytest.mark.parametrize(
    ("constraint", "indices", "violation"),
    [
        (TopK(2), [0, 5], 0.0),
        (TopK(2), [0], 1.0),
        (TopK(2), [0, 1, 2, 3], 2.0),
        (TopK(2), [1, 1], 2.0),
        (TopK(2), [], 2.0),
        (AtMost(2), [], 0.0),
        (AtMost(2), [3], 0.0),
        (AtMost(2), [1, 2, 3], 1.0),
        (AtMost(2), [3, 3], 1.0),
    ],
)
def test_a_violation_counts_arms(constraint, indices, violation):
    assert constraint.violation(indices) == violation


def test_a_constraint_without_a_way_for_many_rows_is_asked_row_by_row():
    rows = np.array([[1.0, -1.0, 3.0], [-1.0, -2.0, -3.0]])
    indices, values = AtMost(2).best_each(rows, [np.random.default_rng(0), np.random.default_rng(1)])
    assert [i.tolist() for i in indices] == [[2, 0], []]
    assert values.tolist() == [4.0, 0.0]


def test_indices_that_are_no_whole_numbers_are_refused():
    with pytest.raises(ValueError, match=r"^indices must be whole numbers"):
        TopK(2).violation([0.5, 1.5])


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.uint64])
@pytest.mark.parametrize("constraint", [TopK, AtMost])
def test_whole_numbers_of_numpy_do_not_overflow(constraint, kind):
    small, plain = constraint(kind(3)), constraint(3)
    assert small == plain
    assert type(small.k) is int
    for chosen in ([], [1], [1, 2, 3, 4]):
        assert small.violation(chosen) == plain.violation(chosen)
    assert small.best(np.arange(300.0)).indices.tolist() == [299, 298, 297]


def test_an_answer_unpacks():
    indices, value, ratio = TopK(2).best([1.0, 3.0, 2.0])
    assert indices.tolist() == [1, 2]
    assert (value, ratio) == (5.0, 1.0)


def test_an_arm_is_in_an_answer_if_it_was_chosen():
    one, two = TopK(1).best([1.0, 2.0, 3.0]), TopK(2).best([1.0, 2.0, 3.0])  # the ratio of both is 1, and no arm
    assert [arm in one for arm in range(3)] == [False, False, True]
    assert [arm in two for arm in range(3)] == [False, True, True]
