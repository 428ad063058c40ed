"""A frozen policy against `choose_with_inclusion` of the policy itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armful import C2UCB, ArmwiseThompson, CappedC2UCB, CombLinUCB, EpsilonGreedy, TopK
from armful.errors import PrecisionError
from armful.model._blocks import BLOCK, LARGEST_SINGLE
from armful.policies import choose_with_inclusion
from armful.policies._frozen import FrozenUCB


def experienced(kind, d, rng, **options):
    # A given ridge: two random arms may be so short that a default one is warned of.
    policy = kind(n_features=d, seed=0, ridge=1.0, **options)
    X = rng.standard_normal((60, d)) / np.sqrt(d)
    policy.learn(X, X[:, 0] + 0.1 * rng.standard_normal(60))
    return policy


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (C2UCB, {}),
        (C2UCB, {"radius": "logdet", "noise": 0.5}),
        (CappedC2UCB, {"cap": 0.6}),
        (CappedC2UCB, {"cap": 0.0, "radius": 2.0}),
    ],
)
@given(
    n=st.one_of(st.integers(2, 120), st.sampled_from([LARGEST_SINGLE, LARGEST_SINGLE + 1, 2 * BLOCK + 3])),
    d=st.integers(1, 70),
    k=st.integers(1, 20),
    explore=st.sampled_from([0.0, 0.1, 0.25, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(deadline=None, max_examples=40)
def test_it_chooses_as_the_policy_does(kind, options, dtype, n, d, k, explore, seed):
    rng = np.random.default_rng(seed)
    policy = experienced(kind, d, rng, **options)
    X = (rng.standard_normal((n, d)) / np.sqrt(d)).astype(dtype)
    constraint = TopK(min(k, n - 1))
    expected = choose_with_inclusion(policy, X, constraint, explore=explore, rng=seed)
    quick = FrozenUCB.of(policy).choose(X, constraint, explore=explore, rng=np.random.default_rng(seed))
    best = np.sort(expected.all_scores.value)[-constraint.k - 1 :]
    if (np.diff(best) == 0).any():  # rare: float32 has few numbers
        assert quick is None
        return
    for name in ("indices", "probabilities", "explored"):
        np.testing.assert_allclose(getattr(quick, name), getattr(expected, name), rtol=1e-14)
    for name in ("mean", "bonus", "value", "capped", "cap"):
        np.testing.assert_array_equal(getattr(quick.all_scores, name), getattr(expected.all_scores, name))
    assert quick.draws == expected.draws == 0
    np.testing.assert_array_equal(quick.choice.indices, expected.choice.indices)


def test_it_leaves_ties_and_sets_of_all_arms_to_others():
    rng = np.random.default_rng(0)
    frozen = FrozenUCB.of(experienced(C2UCB, 2, rng))
    X = np.array([[0.9, 0.0], [0.5, 0.0], [0.5, 0.0], [0.1, 0.0]])

    def choice(k):
        return frozen.choose(X, TopK(k), explore=0.0, rng=rng)

    assert choice(1).indices.tolist() == [0], "the tie is below the best"
    assert choice(2) is None, "the second ties with the third"
    assert choice(3) is None, "the tie is about the order of the slate"
    assert choice(4) is None
    assert choice(5) is None


def test_the_radius_is_that_of_the_size_of_the_set():
    rng = np.random.default_rng(1)
    policy = experienced(C2UCB, 3, rng, radius="noise")
    frozen, X = FrozenUCB.of(policy), rng.standard_normal((9, 3))
    for k in (1, 5, 1):
        bonus = frozen.choose(X, TopK(k), explore=0.0, rng=rng).all_scores.bonus
        np.testing.assert_array_equal(bonus, choose_with_inclusion(policy, X, TopK(k)).all_scores.bonus)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (CappedC2UCB, {}),
        (CappedC2UCB, {"cap": 1.0, "rule": "paper"}),
        (CappedC2UCB, {"cap": 1.0, "norm": 1.0}),
        (CappedC2UCB, {"cap": 1.0, "spread": 1.0}),
        (CombLinUCB, {}),
        (EpsilonGreedy, {}),
        (ArmwiseThompson, {}),
        (type("Own", (C2UCB,), {}), {}),
    ],
)
def test_other_policies_are_not_frozen(kind, options):
    assert FrozenUCB.of(kind(n_features=2, **options)) is None


def test_features_that_are_not_finite_are_refused():
    rng = np.random.default_rng(0)
    frozen = FrozenUCB.of(experienced(C2UCB, 2, rng))
    with pytest.raises(ValueError, match="features must be finite"):
        frozen.choose(np.array([[1.0, np.nan], [0.0, 1.0]]), TopK(1), explore=0.0, rng=rng)
    with pytest.raises(PrecisionError, match="scale the features down"):
        frozen.choose(np.array([[1e300, 1e300], [0.0, 1.0]]), TopK(1), explore=0.0, rng=rng)
