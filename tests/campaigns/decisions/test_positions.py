"""Examination weights: estimated from explored arms, and what the model learns with them."""

from datetime import timedelta
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armful.campaigns.decisions import DecisionFold, PublishedModel, update_model
from armful.campaigns.decisions.positions import _falling, estimated_weights
from armful.ledger import NewRewards
from tests.campaigns.decisions.made import NOON, D, assert_close, decision, made_settings, opened

ESTIMATE = 'positions = "estimate"\nexplore = 0.25'
TRUE = np.array([1.0, 0.6, 0.6, 0.3])


@pytest.mark.parametrize("seed", range(5))
def test_the_weights_of_many_clicks_are_found(seed):
    """Each of 3 ratios is within 5.5 standard errors (and 1 % for the prior): false alarms 1e-7 a seed."""
    n, rate = np.full(4, 20_000.0), 0.2
    clicks = np.random.default_rng(seed).binomial(20_000, rate * TRUE).astype(float)
    found = estimated_weights(n, clicks, clicks)
    p = rate * TRUE
    relative = np.sqrt((1 - p) / (p * n) + (1 - p[0]) / (p[0] * n))
    assert (np.abs(found / TRUE - 1) <= 5.5 * relative + 0.01).all()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.floats(0, 1)), min_size=1, max_size=8))
def test_weights_never_rise_and_begin_at_1(counts):
    n = np.array([size for size, _ in counts], dtype=float)
    clicks = np.array([round(size * share) for size, share in counts], dtype=float)
    found = estimated_weights(n, clicks, clicks)
    assert found[0] == 1
    assert (np.diff(found) <= 1e-12).all()
    assert (found > 0).all()


def test_few_clicks_move_a_weight_little():
    n = np.array([5.0, 5.0])
    assert estimated_weights(n, np.array([1.0, 0.0]), np.array([1.0, 0.0]))[1] > 0.7
    assert estimated_weights(100 * n, np.array([100.0, 0.0]), np.array([100.0, 0.0]))[1] < 0.2
    assert estimated_weights(np.zeros(3), np.zeros(3), np.zeros(3)).tolist() == [1, 1, 1]
    assert estimated_weights(n, -n, n).tolist() == [1, 1]


def pooled(values, sizes, cuts):
    ends = [0, *cuts, len(values)]
    pools = [slice(*pair) for pair in pairwise(ends)]
    means = [np.average(values[pool], weights=sizes[pool]) for pool in pools]
    return np.repeat(means, np.diff(ends))


def test_pooling_neighbours_is_least_squares():
    """Against the best of all ways to pool neighbours so that means fall."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        values, sizes = rng.random(5), rng.random(5) + 0.1
        ways = [pooled(values, sizes, cuts) for r in range(5) for cuts in combinations(range(1, 5), r)]
        falling = [way for way in ways if (np.diff(way) <= 0).all()]
        best = min(falling, key=lambda way: (sizes * (way - values) ** 2).sum())
        assert np.allclose(_falling(values, sizes), best)


def served(tmp_path, settings, n, seed=0):
    """A ledger of slates of four, one place explored; the mean reward of an arm is half its first feature."""
    rng = np.random.default_rng(seed)
    ledger = opened(tmp_path, settings)
    for begin in range(0, n, 500):
        made = []
        for _ in range(min(500, n - begin)):
            shares = ["chosen"] * 4
            shares[rng.integers(4)] = "explored"
            made.append(decision(rng, NOON, k=4, shares=shares))
        numbers = [done.number for done in ledger.add_decisions(made)]
        clicks = []
        for number, each in zip(numbers, made, strict=True):
            for place, row in enumerate(each.rows):
                mean = TRUE[place] * np.frombuffer(row[7], "<f4")[0]
                if rng.random() < mean:
                    clicks.append((number, row[0], 1.0))
        ledger.add_reward_requests([NewRewards(rewards=clicks, received_at=NOON, strict=True)])
    return ledger


def at_the_first_place(state):
    """The estimated mean reward of the average arm, whose true mean reward is 0.25."""
    return float(state.mean(np.full((1, D), 0.25))[0])


@pytest.mark.slow
def test_with_estimated_weights_the_model_is_about_the_first_place(tmp_path):
    """3,000 slates: the standard error of the mean is 0.006, that by the weights about 0.012: 5.5 of both is 0.074.

    Without weights the mean is about 0.25 times the mean of the true weights, 0.156.
    """
    with_weights, without = made_settings(service=ESTIMATE), made_settings()
    ledger = served(tmp_path, with_weights, 3000)
    later = NOON + timedelta(hours=1)
    folded = DecisionFold(ledger, with_weights, D)
    update_model(folded, later)
    model = PublishedModel.newest(ledger)
    assert np.abs(model.position_weights / TRUE - 1).max() < 5.5 * 0.09
    assert np.array_equal(model.position_weights, folded.weights)
    assert abs(at_the_first_place(model.state) - 0.25) < 0.074
    resumed = DecisionFold(ledger, with_weights, D)
    resumed.update(later)
    assert np.array_equal(resumed.weights, folded.weights)
    assert_close(resumed.state, folded.state)
    plain = DecisionFold(ledger, without, D)
    plain.update(later)
    assert abs(at_the_first_place(plain.state) - 0.25 * TRUE.mean()) < 0.074 / 2


def test_weights_stay_while_little_is_new(tmp_path):
    with_weights = made_settings(service=ESTIMATE)
    ledger = served(tmp_path, with_weights, 60)
    later = NOON + timedelta(hours=1)
    folded = DecisionFold(ledger, with_weights, D)
    folded.update(later)
    before = folded.weights
    served(tmp_path, with_weights, 5, seed=1)
    folded.update(later)
    assert np.array_equal(folded.weights, before)
    served(tmp_path, with_weights, 60, seed=2)
    folded.update(later)
    assert not np.array_equal(folded.weights, before)
    again = DecisionFold(ledger, with_weights, D)
    again.update(later)
    assert_close(again.state, folded.state)
