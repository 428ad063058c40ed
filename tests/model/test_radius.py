import math

import numpy as np
import pytest

from armful import RidgeState
from armful.model.radius import (
    estimated_noise,
    log_det_radius,
    make_radius,
    noise_radius,
    pointwise_radius,
    theory_radius,
)

RNG = np.random.default_rng(0)
X, R = RNG.standard_normal((30, 4)), RNG.standard_normal(30)
STATE = RidgeState(n_features=4, ridge=3.0).learn(X, R)
V = 3.0 * np.eye(4) + X.T @ X
RSS = R @ R - (X.T @ R) @ np.linalg.solve(V, X.T @ R)
OPTIONS = {"noise": 0.7, "norm": 1.3, "delta": 0.05, "length": None}


def test_a_constant_is_itself():
    assert make_radius(2.5, **OPTIONS)(STATE, 7) == 2.5
    assert make_radius(0, **OPTIONS)(STATE, 7) == 0.0


def test_log_det_is_its_formula():
    gain = np.linalg.slogdet(V / 3.0)[1]
    expected = math.sqrt(0.7**2 * (gain + 2 * math.log(1 / 0.05)) + 3.0 * 1.3**2)
    assert np.isclose(make_radius("logdet", **OPTIONS)(STATE, 7), expected, rtol=1e-12)


def test_pointwise_is_the_log_det_radius_without_its_log_det():
    expected = math.sqrt(0.7**2 * 2 * math.log(1 / 0.05) + 3.0 * 1.3**2)
    assert np.isclose(make_radius("pointwise", **OPTIONS)(STATE, 7), expected, rtol=1e-12)


def test_noise_is_two_standard_errors_fewer_the_more_arms_a_round_teaches():
    assert np.isclose(make_radius("noise", **OPTIONS)(STATE, 12), 2 * 0.7 / math.sqrt(1 + 12 / 4), rtol=1e-12)


def test_theory_with_a_length_counts_the_arms_of_the_coming_round():
    expected = 0.7 * math.sqrt(4 * math.log((1 + 2.0**2 * (30 + 7) / 3.0) / 0.05)) + 1.3 * math.sqrt(3.0)
    assert np.isclose(make_radius("theory", **OPTIONS | {"length": 2.0})(STATE, 7), expected, rtol=1e-12)


def test_theory_without_a_length_takes_the_squared_norms_that_were_seen():
    expected = 0.7 * math.sqrt(4 * math.log((1 + (X**2).sum() / 3.0) / 0.05)) + 1.3 * math.sqrt(3.0)
    assert np.isclose(make_radius("theory", **OPTIONS)(STATE, 7), expected, rtol=1e-12)


@pytest.mark.parametrize("guess", [0.5, 8.0])
def test_noise_is_estimated_from_the_residuals(guess):
    expected = math.sqrt((20 * guess**2 + RSS) / (20 + 30))
    assert np.isclose(estimated_noise(STATE, guess), expected, rtol=1e-12)
    assert estimated_noise(RidgeState(n_features=4), guess) == guess
    assert estimated_noise(STATE) == estimated_noise(STATE, 0.5)
    auto = OPTIONS | {"noise": "auto", "guess": guess}
    own = {"norm": 1.3, "ridge": 3.0, "delta": 0.05}
    log_growth = math.log(1 + STATE.squared_norms / 3.0)
    for kind, alpha in {
        "logdet": log_det_radius(noise=expected, log_det_gain=STATE.log_det_gain, **own),
        "theory": theory_radius(noise=expected, log_growth=log_growth, n_features=4, **own),
        "pointwise": pointwise_radius(noise=expected, **own),
        "noise": noise_radius(noise=expected, k=7, n_features=4),
    }.items():
        assert np.isclose(make_radius(kind, **auto)(STATE, 7), alpha, rtol=1e-12), kind


@pytest.mark.parametrize("kind", ["pointwise", "noise", "logdet", "theory"])
@pytest.mark.parametrize("noise", [0.7, "auto"])
@pytest.mark.parametrize("length", [None, 2.0])
def test_a_batch_has_a_radius_for_each_learner(kind, noise, length):
    radius = make_radius(kind, **OPTIONS | {"noise": noise, "length": length})
    states = [RidgeState(n_features=4, ridge=3.0).learn(X[i : i + 5], R[i : i + 5]) for i in range(3)]
    batched = RidgeState(n_features=4, ridge=3.0, batch=(3,))
    batched = batched.learn(np.stack([X[i : i + 5] for i in range(3)]), np.stack([R[i : i + 5] for i in range(3)]))
    assert np.allclose(radius(batched, 5), [radius(state, 5) for state in states], rtol=1e-12)


def test_log_det_is_smaller_than_theory_here():
    options = OPTIONS | {"length": float(np.linalg.norm(X, axis=1).max())}
    assert make_radius("logdet", **options)(STATE, 7) < make_radius("theory", **options)(STATE, 7)


@pytest.mark.parametrize(
    ("radius", "message"),
    [
        (
            "theorem",
            "radius must be a number or one of 'pointwise', 'noise', 'sampling', 'logdet', 'theory', got 'theorem'",
        ),
        (-1.0, "radius must not be negative, got -1.0"),
        (math.nan, "radius must be a finite number, got nan"),
        (None, "radius must be a number, got None"),
    ],
)
def test_an_unknown_radius_gets_one_sentence(radius, message):
    with pytest.raises(ValueError) as refusal:
        make_radius(radius, **OPTIONS)
    assert str(refusal.value) == message


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["logdet", "theory"])
def test_the_truth_lies_within_the_radius_at_all_times_as_often_as_promised(kind):
    """delta = 0.2 and 400 runs: with misses at rate 0.2, 400 * 0.2 + 60 are exceeded in under 1e-6 of seeds
    (Hoeffding: exp(-2 * 60^2 / 400) = 1.5e-8). The arms are picked by what was seen before.
    """
    runs, rounds, d, k = 400, 30, 3, 4
    rng = np.random.default_rng(1)
    theta = rng.standard_normal((runs, d))
    theta *= 1.3 / np.linalg.norm(theta, axis=-1, keepdims=True)
    radius = make_radius(kind, noise=0.7, norm=1.3, delta=0.2, length=3.0)
    state = RidgeState(n_features=d, ridge=1.0, batch=(runs,))
    missed = np.zeros(runs, dtype=bool)
    for _ in range(rounds):
        arms = rng.uniform(-1, 1, (runs, 20, d))
        picked = np.argsort(-(state.mean(arms) + state.width(arms)), axis=-1)[:, :k]
        chosen = np.take_along_axis(arms, picked[..., None], axis=1)
        error = theta - state.theta
        missed |= np.sqrt(np.einsum("bi,bij,bj->b", error, state.V, error)) > radius(state, k)
        rewards = np.einsum("bkd,bd->bk", chosen, theta) + 0.7 * rng.standard_normal((runs, k))
        state = state.learn(chosen, rewards)
    assert missed.sum() <= runs * 0.2 + 60
