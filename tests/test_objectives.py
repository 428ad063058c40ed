import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armful
from armful import (
    C2UCB,
    AtMost,
    CombLinTS,
    Constraint,
    Coverage,
    Diverse,
    EpsilonGreedy,
    Excluding,
    NestedQuotas,
    Objective,
    OneOf,
    Quotas,
    Requiring,
    TopK,
    simulate,
)
from armful.environments import Round
from armful.objectives import best, best_by_enumeration
from armful.simulation.loop import run_alone
from armful.simulation.trajectories import ENVIRONMENT, NOISE, POLICY, generator
from armful.testing import ObjectiveContract


class TestDiverse(ObjectiveContract):
    def objective(self, n_arms, rng):
        return Diverse(weight=rng.exponential(), scale=rng.uniform(0.2, 2))


class TestCoverageOnce(ObjectiveContract):
    def objective(self, n_arms, rng):
        return Coverage(rng.integers(2, size=(n_arms, 4)), weight=rng.exponential())


class TestCoverageLog(ObjectiveContract):
    def objective(self, n_arms, rng):
        return Coverage(rng.exponential(size=(n_arms, 3)), weight=1.5, saturation="log")


class Twice(Objective):
    """An objective of a user's own: the best arm of the set counts twice."""

    lipschitz = 2.0

    def value(self, rewards, X, indices):
        return float(rewards[indices].sum() + rewards[indices].max(initial=0.0))


class TestOwnObjective(ObjectiveContract):
    def objective(self, n_arms, rng):
        return Twice()


class Broken(Twice):
    lipschitz = 1.0


def test_the_contract_catches_a_wrong_constant_and_a_value_that_falls():
    class TestBroken(ObjectiveContract):
        def objective(self, n_arms, rng):
            return Broken()

    with pytest.raises(AssertionError, match="is stated"):
        TestBroken().test_the_value_changes_by_at_most_the_lipschitz_constant()

    class Falling:
        lipschitz, submodular = 1.0, True

        def value(self, rewards, X, indices):
            return -float(rewards[indices].sum()) + float(indices.size) ** 2

    class TestFalling(ObjectiveContract):
        def objective(self, n_arms, rng):
            return Falling()

    with pytest.raises(AssertionError, match="the value fell"):
        TestFalling().test_the_value_does_not_fall_as_rewards_rise()
    with pytest.raises(AssertionError, match="adds"):
        TestFalling().test_a_submodular_objective_gains_less_as_the_set_grows()


def literal_greedy(objective, rewards, X, k):
    """Plain greedy by the difference of values."""
    chosen = []
    for _ in range(k):
        rest = [i for i in range(len(X)) if i not in chosen]
        gains = [objective.value(rewards, X, np.array([*chosen, i])) for i in rest]
        chosen.append(rest[int(np.argmax(gains))])
    return chosen


@pytest.mark.parametrize("seed", range(12))
def test_lazy_greedy_is_plain_greedy(seed):
    rng = np.random.default_rng(seed)
    X, rewards = rng.standard_normal((150, 4)), rng.standard_normal(150) * 0.3
    for objective in (Diverse(weight=2.0, scale=0.7), Coverage(rng.random((150, 6)), weight=1.0, saturation="log")):
        lazy = best(objective, rewards, X, TopK(20), rng).indices.tolist()
        assert lazy == literal_greedy(objective, rewards, X, 20)


def nested(rng, n):
    city = rng.integers(5, size=n)
    return {"region": city % 2, "city": city}


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6))
def test_under_quotas_the_growing_set_can_always_be_completed(seed):
    """Random nested bounds with lower bounds and a total, rewards of any sign: the greedy set is always allowed."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 14))
    X, rewards, groups = rng.standard_normal((n, 2)), rng.standard_normal(n), nested(rng, n)
    try:
        constraint = NestedQuotas(
            groups,
            at_least={"city": {int(c): int(rng.integers(0, 3)) for c in set(groups["city"].tolist())}, "region": 1},
            at_most={"city": int(rng.integers(1, 4)), "region": int(rng.integers(1, 6))},
            total=(int(rng.integers(0, 3)), int(rng.integers(3, 9))),
        )
    except armful.InfeasibleError:
        return
    answer = best(Diverse(weight=0.5), rewards, X, constraint, rng)
    assert constraint.violation(answer.indices) == 0.0


def test_without_weight_greedy_is_the_constraints_own_answer():
    rng = np.random.default_rng(3)
    X, rewards = rng.standard_normal((40, 3)), rng.standard_normal(40)
    for constraint in (TopK(7), AtMost(9), Quotas(np.arange(40) % 4, at_least=1, at_most=3, total=(5, 9))):
        mine = best(Diverse(weight=0.0), rewards, X, constraint, rng)
        assert mine.value == pytest.approx(constraint.best(rewards).value)


def test_ratios_are_stated_only_where_theory_gives_them():
    X, rewards = np.eye(6), np.arange(6.0)
    rng = np.random.default_rng(0)
    diverse = Diverse(weight=1.0)
    assert best(diverse, rewards, X, TopK(2), rng).ratio == 1 - 1 / math.e
    assert best(diverse, rewards, X, AtMost(2), rng).ratio == 1 - 1 / math.e
    assert best(diverse, rewards, X, Quotas([0, 0, 0, 1, 1, 1], at_most=1), rng).ratio == 0.5
    assert math.isnan(best(diverse, rewards - 1, X, TopK(2), rng).ratio)
    assert math.isnan(best(Twice(), rewards, X, TopK(2), rng).ratio)


def test_variety_makes_a_difference_through_a_policy():
    policy = C2UCB(n_features=3, radius=0.0, seed=0)
    policy.learn(np.eye(3), [1.0, 0.9, 0.0])
    X = np.array([[1, 0, 0], [1, 0.01, 0], [1, 0, 0.01], [0, 1, 0]], dtype=float)
    assert 3 not in policy.choose(X, TopK(2)).indices
    choice = policy.choose(X, TopK(2), objective=Diverse(weight=1.0, scale=0.3))
    assert 3 in choice.indices
    assert choice.value == pytest.approx(Diverse(weight=1.0, scale=0.3).value(policy.scores(X, 2), X, choice.indices))


def test_equally_good_arms_are_added_at_random():
    X, rng = np.ones((40, 2)), np.random.default_rng(0)
    first = {int(best(Diverse(weight=1.0), np.ones(40), X, TopK(1), rng).indices[0]) for _ in range(60)}
    assert len(first) > 10


def test_excluded_arms_stay_out_of_a_diverse_set():
    rng = np.random.default_rng(1)
    X, rewards = rng.standard_normal((8, 2)), np.arange(8.0)
    answer = best(Diverse(weight=1.0), rewards, X, Excluding(TopK(3), [7, 6]), rng)
    assert not {6, 7} & set(answer.indices.tolist())
    assert answer.indices.size == 3


def test_constraints_that_cannot_grow_are_refused_in_a_sentence():
    with pytest.raises(ValueError, match="objectives work with TopK"):
        C2UCB(n_features=2).choose(np.eye(2), OneOf([[0], [1]]), objective=Diverse(weight=1.0))


def test_enumeration_refuses_too_many_sets():
    with pytest.raises(ValueError, match="use fewer arms"):
        best_by_enumeration(Diverse(weight=1.0), np.ones(60), np.ones((60, 2)), TopK(10))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Diverse(weight=-1.0), "weight must not be negative"),
        (lambda: Diverse(weight=1.0, scale=0.0), "scale must be positive"),
        (lambda: Coverage([[1.0]], weight=1.0, saturation="twice"), "saturation must be one of"),
        (lambda: Coverage([[-1.0]], weight=1.0), "at least 0"),
        (lambda: Coverage([1.0], weight=1.0), "n_topics"),
        (lambda: Coverage([[np.nan]], weight=1.0), "finite"),
    ],
)
def test_bad_options_get_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_topics_for_another_number_of_arms_are_refused():
    with pytest.raises(ValueError, match="topics for 1 arms, got 2"):
        C2UCB(n_features=2).choose(np.eye(2), TopK(1), objective=Coverage([[1.0]], weight=1.0))


def test_a_thompson_policy_warns_of_an_approximate_choice_and_an_optimistic_one_does_not():
    X = np.eye(3)
    with pytest.warns(UserWarning, match="may lose linearly"):
        CombLinTS(n_features=3, seed=0).choose(X, TopK(2), objective=Diverse(weight=1.0))
    C2UCB(n_features=3, seed=0).choose(X, TopK(2), objective=Diverse(weight=1.0))
    CombLinTS(n_features=3, seed=0).choose(X, TopK(2))


class Varied:
    """An environment in which variety counts."""

    n_features = 3

    def rounds(self, n_rounds, rng):
        theta = rng.uniform(0.2, 1, 3)
        for _ in range(n_rounds):
            X = rng.uniform(0, 1, (8, 3))
            yield Round(X, TopK(3), X @ theta, noise=0.1, objective=Diverse(weight=1.0, scale=0.5))


def test_regret_under_an_objective_is_the_ratios_share_of_the_best_less_what_was_had():
    environment, T, seed = Varied(), 6, 4
    policy = EpsilonGreedy(n_features=3, epsilon=1.0)
    result = simulate(policy, environment, rounds=T, repetitions=3, seed=seed)
    for i in range(3):
        alone = run_alone(policy, environment, T, seed, i)
        np.testing.assert_allclose(result.regret[i], alone.regret[0], rtol=1e-9)
        learner = EpsilonGreedy(n_features=3, epsilon=1.0, seed=generator(seed, i, POLICY))
        noise = generator(seed, i, NOISE)
        for t, shown in enumerate(environment.rounds(T, generator(seed, i, ENVIRONMENT))):
            choice = learner.choose(shown.features, shown.constraint, objective=shown.objective)
            learner.learn(choice.features, shown.rewards(noise)[choice.indices])
            most = best_by_enumeration(shown.objective, shown.mean, shown.features, shown.constraint).value
            had = shown.objective.value(shown.mean, shown.features, choice.indices)
            assert result.regret[i, t] == pytest.approx((1 - 1 / math.e) * most - had)


def test_where_the_ratio_is_unknown_regret_counts_from_the_best():
    X, mean, diverse = np.eye(4), np.array([-0.4, -0.3, -0.2, -0.1]), Diverse(weight=1.0)
    most = best_by_enumeration(diverse, mean, X, TopK(2)).value
    assert Round(X, TopK(2), mean, objective=diverse).best_value() == pytest.approx(most)


@pytest.mark.parametrize("seed", range(10))
def test_harmful_arms_are_left_out_where_the_size_is_free(seed):
    """Against plain greedy that stops when the best gain is negative."""
    rng = np.random.default_rng(seed)
    X, rewards = rng.standard_normal((40, 3)), rng.standard_normal(40) - 1.0
    objective = Diverse(weight=0.6)
    expected = []
    while len(expected) < 15:
        rest = [i for i in range(40) if i not in expected]
        now = objective.value(rewards, X, np.array(expected, dtype=np.int64))
        gains = [objective.value(rewards, X, np.array([*expected, i])) - now for i in rest]
        if max(gains) < 0:
            break
        expected.append(rest[int(np.argmax(gains))])
    assert best(objective, rewards, X, AtMost(15), rng).indices.tolist() == expected


def test_where_every_arm_harms_the_empty_set_is_best():
    answer = best(Diverse(weight=0.1), np.full(6, -5.0), np.eye(6), AtMost(3), np.random.default_rng(0))
    assert answer.indices.size == 0
    assert answer.value == 0.0


class Pairs(Objective):
    """Not submodular: arms 38 and 39 add much together and nothing alone."""

    lipschitz = 1.0

    def value(self, rewards, X, indices):
        return float(rewards[indices].sum() + (10.0 if {38, 39} <= set(indices.tolist()) else 0.0))


def test_an_objective_that_is_not_submodular_is_evaluated_for_all_arms():
    rewards = np.concatenate([np.full(37, 0.5), [0.6, 1.0, 0.1]])
    answer = best(Pairs(), rewards, np.ones((40, 1)), TopK(2), np.random.default_rng(0))
    assert set(answer.indices.tolist()) == {38, 39}


class NotMonotone(Objective):
    """Submodular, but arm 0 spoils the others."""

    lipschitz, submodular = 1.0, True

    def value(self, rewards, X, indices):
        return float(rewards[indices].sum() - (0.99 * (indices.size - 1) if 0 in indices else 0.0))


def test_no_ratio_is_stated_for_an_objective_that_is_not_monotone():
    answer = best(NotMonotone(), np.array([1.01, *[1.0] * 11]), np.ones((12, 1)), AtMost(10), np.random.default_rng(0))
    assert math.isnan(answer.ratio)

    class Claims(NotMonotone):
        monotone = True

    class TestClaims(ObjectiveContract):
        def objective(self, n_arms, rng):
            return Claims()

    with pytest.raises(AssertionError, match="the value fell"):
        TestClaims().test_a_monotone_objective_never_falls_as_the_set_grows()


@pytest.mark.parametrize(
    ("constraint", "error"),
    [
        (Excluding(TopK(3), [0, 1, 2, 3]), armful.InfeasibleError),
        (Excluding(Quotas("aabbcc", exactly=1), [0, 1]), armful.InfeasibleError),
        (Excluding(Quotas("aabbcc", at_most=2, total=5), [0, 1]), armful.InfeasibleError),
        (Requiring(Quotas("aabbcc", at_most=1), [0, 1]), armful.InfeasibleError),
        (Excluding(TopK(1), [17]), ValueError),
        (Excluding(OneOf([[0]]), [1]), ValueError),
    ],
)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_what_cannot_be_met_is_said_under_an_objective_too(constraint, error, sign):
    with pytest.raises(error):
        best(Diverse(weight=1.0), sign * np.ones(6), np.eye(6), constraint, np.random.default_rng(0))


def test_required_arms_are_in_a_diverse_set():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9, 2))
    answer = best(Diverse(weight=1.0), np.arange(9.0), X, Requiring(Excluding(TopK(3), [8]), [0]), rng)
    assert 0 in answer.indices
    assert 8 not in answer.indices
    assert answer.indices.size == 3
    assert math.isnan(answer.ratio)


@pytest.mark.parametrize("wrong", [3, "diverse", Diverse])
def test_what_is_no_objective_is_refused(wrong):
    with pytest.raises(ValueError, match="objective must be"):
        C2UCB(n_features=2).choose(np.eye(2), TopK(1), objective=wrong)


class Changing:
    """Sets of unequal size, and an objective that changes while the means stay the same."""

    n_features = 2

    def rounds(self, n_rounds, rng):
        X = rng.uniform(-1, 1, (7, 2))
        mean = X @ np.array([1.5, -1.5])
        for t in range(n_rounds):
            yield Round(X, AtMost(4), mean, noise=0.1, objective=Diverse(weight=0.1 + 0.1 * t))


def test_sets_of_unequal_size_under_a_changing_objective_are_simulated_as_alone():
    policy = C2UCB(n_features=2, radius=0.01)
    together = simulate(policy, Changing(), rounds=6, repetitions=5, seed=2)
    assert len(np.unique(together.pulled)) > 1
    for i in range(5):
        alone = run_alone(policy, Changing(), 6, 2, i)
        np.testing.assert_allclose(together.regret[i], alone.regret[0], rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(together.pulled[i], alone.pulled[0])


class Sloppy(Constraint):
    """A constraint of a user's own that is only half right, and says so."""

    k = 1

    def best(self, scores, X=None, rng=None):
        assert X is not None
        return armful.Selection(np.array([0]), float(np.asarray(scores)[0]), 0.5)

    def violation(self, indices):
        return float(len(indices) != 1)


class ApproximateEnvironment:
    n_features = 2

    def rounds(self, n_rounds, rng):
        for _ in range(n_rounds):
            X = rng.random((3, 2))
            yield Round(X, sloppy, X.sum(axis=1))


sloppy = Sloppy()


def test_thompson_warns_of_an_approximate_choice_in_a_simulation_too():
    with pytest.warns(UserWarning, match="may lose linearly"):
        simulate(CombLinTS(n_features=2), ApproximateEnvironment(), rounds=2, repetitions=2)
    simulate(C2UCB(n_features=2), ApproximateEnvironment(), rounds=2, repetitions=2)


def test_a_restriction_of_an_approximate_constraint_claims_no_proof():
    with pytest.raises(armful.InfeasibleError, match="no set that was found has all 1 required arms"):
        Requiring(sloppy, [1]).best([1.0, 2.0], np.eye(2))
    assert math.isnan(Requiring(sloppy, [0]).best([1.0, 2.0], np.eye(2)).ratio)
