"""Warnings that are given once."""

import copy
import warnings

import numpy as np
import pytest

import armful
from armful import (
    C2UCB,
    ArmwiseThompson,
    CappedC2UCB,
    CombLinTS,
    CombLinUCB,
    EpsilonGreedy,
    Excluding,
    Path,
    Table,
    TopK,
)
from armful.environments.round import Round
from armful.scan import _dispatch as dispatch

D = 3
KINDS = [C2UCB, CappedC2UCB, ArmwiseThompson, CombLinUCB, CombLinTS, EpsilonGreedy]


def arms(squared_length, n=40):
    X = np.random.default_rng(0).standard_normal((n, D))
    return X * np.sqrt(squared_length / np.mean(np.sum(X**2, axis=1)))


def made(kind, **options):
    return kind(n_features=D, seed=0, **({"cap": 1.0} if kind is CappedC2UCB else {}), **options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("squared_length", [0.04, 25.0, 1e9])
@pytest.mark.parametrize("n_are_many", [1, 10**9])
@pytest.mark.parametrize("of", [np.asarray, list, Table.wrap])
def test_arms_far_from_unit_length_are_warned_of_once_where_no_ridge_was_given(
    monkeypatch, kind, squared_length, n_are_many, of
):
    monkeypatch.setattr(dispatch, "SCAN_FROM", n_are_many)
    policy = made(kind)
    with pytest.warns(
        UserWarning, match=r"^the arms have a mean squared length of .*: scale the features, or give ridge="
    ):
        policy.choose(of(arms(squared_length)), TopK(2))
    policy.choose(of(arms(squared_length)), TopK(2))  # a warning would be an error
    copy.deepcopy(policy).choose(arms(squared_length), TopK(2))


def test_no_ridge_of_0_is_proposed_for_arms_of_zeros():
    with pytest.warns(UserWarning, match=r"mean squared length of 0, .* give ridge= in their units$"):
        made(C2UCB).choose(np.zeros((5, D)), TopK(2))


@pytest.mark.parametrize("kind", KINDS)
def test_arms_of_about_unit_length_or_with_a_ridge_are_not_remarked_on(kind):
    for squared_length in (0.06, 1.0, 19.0):
        made(kind).choose(arms(squared_length), TopK(2))
    for squared_length in (1e-9, 1e9):
        made(kind, ridge=1.0).choose(arms(squared_length), TopK(2))


def test_only_the_first_arms_are_checked():
    policy = made(C2UCB)
    policy.choose(arms(1.0), TopK(2))
    policy.choose(arms(1e6), TopK(2))


@pytest.mark.parametrize("batched", [True, False])
def test_a_simulation_says_it_once(batched):
    class Long:
        n_features = D

        def rounds(self, n_rounds, rng):
            for _ in range(n_rounds):
                yield Round(arms(100.0), TopK(2), np.zeros(40), 0.1)

    class Alone(C2UCB):
        pass

    Alone.batched = batched
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        armful.simulate(Alone(n_features=D), Long(), rounds=3, repetitions=60)
    assert len(caught) == 1


# -- rewards -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rewards", [[100.0], [0.5, 0.2, 50.0], [5.0] * 5, [3.0, 4.0] * 10])
@pytest.mark.parametrize("cap", [1.0, 2.0**-10])
def test_rewards_far_above_the_cap_are_warned_of_once(rewards, cap):
    policy, rewards = CappedC2UCB(n_features=D, cap=cap, seed=0), cap * np.array(rewards)
    with pytest.warns(UserWarning, match=r"^rewards up to .* are far above the cap of .*: give a larger cap="):
        policy.learn(arms(1.0, n=len(rewards)), rewards)
    policy.learn(arms(1.0, n=len(rewards)), rewards)
    assert policy.state.n == 2 * len(rewards)


def test_rewards_that_are_moderately_too_large_are_warned_of_when_there_are_many():
    policy = CappedC2UCB(n_features=D, cap=1.0, seed=0)
    policy.learn(arms(1.0, n=2), [2.0, 3.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(30):
            policy.learn(arms(1.0, n=2), [2.0, 3.0])
    assert [str(each.message)[:45] for each in caught] == ["rewards up to 3 are far above the cap of 1, w"]


@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_noise_above_the_cap_is_not_remarked_on(scale):
    """Means at the cap and noise of its size. False alarms: 1e-5 (in the first call the mean is to be 5 standard errors
    above the cap, in 3e-7 of 20 seeds; later, when the noise is known, 10).
    """
    for seed in range(20):
        rng, policy = np.random.default_rng(seed), CappedC2UCB(n_features=D, cap=1.0, seed=0)
        for _ in range(100):
            policy.learn(arms(1.0, n=20), 1.0 + scale * rng.standard_normal(20))


def test_a_noise_that_is_given_is_believed():
    CappedC2UCB(n_features=D, cap=1.0, noise=30.0, seed=0).learn(arms(1.0, n=2), [100.0, 200.0])


@pytest.mark.parametrize("policy", [C2UCB(n_features=D), CappedC2UCB(n_features=D), EpsilonGreedy(n_features=D)])
def test_without_a_cap_every_reward_is_welcome(policy):
    policy.choose(arms(1.0), TopK(2), **({"caps": np.ones(40)} if policy.takes_caps else {}))
    policy.learn(arms(1.0), np.full(40, 1e6))


EDGES = [(0, 1), (1, 2), (0, 2)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("constraint", [Path(EDGES, 0, 2, costs=True), Excluding(Path(EDGES, 0, 2, costs=True), [2])])
def test_positive_rewards_under_costs_are_warned_of_once(kind, constraint):
    policy = made(kind)
    choice = policy.choose(arms(1.0, n=3), constraint)
    with pytest.warns(UserWarning, match=r"^a reward of 3 was learned after a choice under costs=True.*negative"):
        policy.learn(choice.features, np.full(len(choice), 3.0))
    policy.learn(choice.features, np.full(len(choice), 3.0))


def test_a_large_gain_among_costs_is_warned_of():
    policy = made(C2UCB)
    policy.choose(arms(1.0, n=3), Path(EDGES, 0, 2, costs=True))
    policy.learn(arms(1.0, n=3), [-1.0, -1.2, 0.1])
    with pytest.warns(UserWarning, match=r"^a reward of 50 was learned after a choice under costs=True"):
        policy.learn(arms(1.0, n=3), [-1.0, -1.2, 50.0])


def test_costs_with_a_little_noise_and_rewards_under_other_constraints_are_not_remarked_on():
    policy = made(C2UCB)
    policy.choose(arms(1.0, n=3), Path(EDGES, 0, 2, costs=True))
    policy.learn(arms(1.0, n=3), [-1.0, -1.2, 0.1])
    policy.choose(arms(1.0, n=3), TopK(2))
    policy.learn(arms(1.0, n=3), [3.0, 4.0, 5.0])


def test_what_is_learned_is_taken_as_it_was_chosen_not_as_the_last_choice_was():
    policy, path = made(C2UCB), Path(EDGES, 0, 2, costs=True)
    choice, of_costs = policy.choose(arms(1.0, n=3), TopK(2)), policy.choose(arms(1.0, n=3), path)
    policy.learn(choice, [1.0, 2.0])
    policy.choose(arms(1.0, n=3), TopK(2))
    with pytest.warns(UserWarning, match=r"^a reward of 3 was learned after a choice under costs=True"):
        policy.learn(of_costs, np.full(len(of_costs), 3.0))
