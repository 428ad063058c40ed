"""Intervals of means: those of rewards of 0 and 1 stay between them."""

import numpy as np
import pytest
from scipy.stats import binomtest

from armful.campaigns._intervals import effective_size, interval, is_yes_or_no, wilson


@pytest.mark.parametrize(("successes", "n"), [(0, 1), (0, 40), (1, 40), (20, 40), (40, 40), (3, 5000)])
def test_independent_rewards_of_0_and_1_have_the_interval_of_wilson(successes, n):
    expected = binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert wilson(successes / n, n) == pytest.approx((expected.low, expected.high), abs=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_rewards_that_are_alike_count_as_fewer(seed):
    clusters = np.random.default_rng(seed).random(200) < 0.3
    mean, error = clusters.mean(), clusters.std() / np.sqrt(200)
    assert effective_size(mean, error, 1000, 200 * 5**2) == pytest.approx(200)


def test_a_standard_error_that_is_too_small_by_chance_does_not_make_rewards_many():
    assert effective_size(0.5, 1e-9, 10, 10) == 10


def test_where_no_error_can_be_seen_each_cluster_counts_once():
    assert effective_size(0.0, 0.0, 1000, 200 * 5**2) == 200


def test_amounts_have_an_interval_of_standard_errors():
    assert interval(0.1, 0.2) == pytest.approx((0.1 - 0.392, 0.1 + 0.392))


@pytest.mark.parametrize(
    ("rewards", "expected"), [([0, 1, 1], True), ([1], True), ([0, 0], False), ([], False), ([0, 0.5, 1], False)]
)
def test_rewards_are_yes_or_no_if_nothing_else_came(rewards, expected):
    assert is_yes_or_no(np.array(rewards, dtype=float)) == expected
