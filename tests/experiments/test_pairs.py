import math

import numpy as np
import pytest
from scipy import stats

from armful.experiments._pairs import behind_the_lowest, difference, rough
from tests.experiments.test_results import result


def test_the_interval_is_that_of_a_paired_t_test():
    rng = np.random.default_rng(0)
    one, other = rng.normal(3, 1, 12), rng.normal(2, 1, 12)
    found = difference(result(1, one.tolist()), result(1, other.tolist()))
    expected = stats.ttest_rel(one, other).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.mean == pytest.approx((one - other).mean())


@pytest.mark.slow
def test_all_pairs_are_covered_at_once():
    """Of 2,000 tables of four equal policies at most 5 % may have a wrong interval: above 130 has a chance of 0.1 %."""
    rng = np.random.default_rng()
    wrong = 0
    for _ in range(2000):
        shared = rng.normal(size=10)
        results = [result(1, (shared + rng.normal(size=10)).tolist()) for _ in range(4)]
        wrong += any(d is not None and d.is_clear for d in behind_the_lowest(results))
    assert wrong <= 130


def test_luck_that_both_share_does_not_hide_a_difference():
    luck = 100 * np.random.default_rng(1).normal(size=20)
    small = [0.5, 1.5] * 10
    found = difference(result(1, (luck + small).tolist()), result(1, luck.tolist()))
    assert found.is_clear
    assert found.runs_needed <= 20
    assert result(1, luck.tolist()).stderr > 10


def test_so_many_runs_as_are_needed_tell_two_policies_apart():
    each = [0.0, 3.0, -1.0, 2.5, 0.0, 1.0]
    few = difference(result(1, each), result(1, [0.0] * 6), n_pairs=3)
    assert not few.is_clear
    assert few.runs_needed > 6
    again = math.ceil(few.runs_needed / 6)
    assert difference(result(1, each * again), result(1, [0.0] * 6 * again), n_pairs=3).is_clear
    assert not difference(result(1, each * (again // 2)), result(1, [0.0] * 6 * (again // 2)), n_pairs=3).is_clear


def test_two_differences_that_agree_are_no_proof():
    assert not difference(result(1, [3.0, 5.0]), result(1, [1.0, 3.0])).is_clear


@pytest.mark.parametrize("regret", [[1.0], [2.0, 2.0], [2.0] * 9])
def test_a_single_run_and_equal_policies_show_no_clear_difference(regret):
    found = difference(result(1, regret), result(1, regret))
    assert not found.is_clear
    assert found.runs_needed == math.inf
    assert rough(found.runs_needed) == "more than a million"


def test_one_policy_alone_is_the_lowest():
    assert behind_the_lowest([result(1, [1.0, 2.0])]) == [None]
