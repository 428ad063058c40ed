import numpy as np
import pytest

from armful import Arms, EpsilonGreedy, Path, Quotas, TopK
from armful.policies._choosing import score_under
from armful.policies._repetitions import repeated
from armful.testing import PolicyContract
from armful.testing._expectations import FALSE_ALARM, tail_bound


class TestEpsilonGreedyContract(PolicyContract):
    def policy(self, n_features, seed):
        return EpsilonGreedy(n_features=n_features, epsilon=0.3, seed=seed)


class TestGreedyContract(PolicyContract):
    def policy(self, n_features, seed):
        return EpsilonGreedy(n_features=n_features, epsilon=0.0, seed=seed)


class TestAlwaysExploringContract(PolicyContract):
    def policy(self, n_features, seed):
        return EpsilonGreedy(n_features=n_features, epsilon=1.0, seed=seed)


def learned(**options):
    policy = EpsilonGreedy(n_features=2, **options)
    policy.learn([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0])
    return policy


X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [1.0, 1.0]])
MEAN = X @ [0.5, -0.5]


def test_one_round_in_fifty_explores_by_default():
    assert EpsilonGreedy(n_features=2).options == {"n_features": 2, "epsilon": 0.02, "ridge": 1.0}


def test_one_coin_a_round_decides_for_all_arms():
    policy = learned(epsilon=0.5, seed=0)
    for _ in range(200):
        explored = ~np.isclose(policy.scores(X, k=1), MEAN)
        assert explored.all() or not explored.any()


@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_the_coin_falls_as_often_as_epsilon_says(epsilon):
    """False alarms: 1e-6 by Chernoff, any seed."""
    policy, rounds = learned(epsilon=epsilon, seed=0), 2000
    explored = sum(not np.allclose(policy.scores(X, k=1), MEAN) for _ in range(rounds))
    assert 2 * tail_bound(explored, rounds, epsilon) >= FALSE_ALARM


def test_an_exploring_round_scores_independent_standard_normals():
    """4000 x 4 normals: mean, variance and correlations each within 6 standard errors; false alarms: 1e-6 (a normal
    is beyond 6 in 2e-9 of cases, there are 14 of them, and the sums are near enough to normal).
    """
    policy = learned(epsilon=1.0, seed=0)
    draws = np.stack([policy.scores(X, k=1) for _ in range(4000)])
    second = draws.T @ draws / 4000
    error = np.sqrt((1 + np.eye(4)) / 4000)  # of a product of normals: variance 1, of a square: 2
    assert (np.abs(draws.mean(axis=0)) < 6 / np.sqrt(4000)).all()
    assert (np.abs(second - np.eye(4)) < 6 * error).all()


def test_an_exploring_round_goes_through_the_constraint():
    policy, constraint = learned(epsilon=1.0, seed=0), Quotas("aabb", exactly=1)
    seen = set()
    for _ in range(200):
        choice = policy.choose(X, constraint)
        assert constraint.violation(choice.indices) == 0.0
        assert np.allclose(choice.mean, MEAN[choice.indices])
        seen.add(tuple(choice.indices.tolist()))
    assert len(seen) == 4  # false alarms: 4 * 0.75^200 < 1e-24


def test_without_epsilon_the_best_estimate_is_chosen():
    assert learned(epsilon=0.0).choose(X, TopK(1)).indices.tolist() in ([0], [2])
    assert np.allclose(learned(epsilon=0.0).scores(X, k=2), MEAN)


def test_each_repetition_has_a_coin_of_its_own():
    policy = repeated(learned(epsilon=0.5), [np.random.default_rng(i) for i in range(200)])
    values = policy.score(Arms(X, policy.state), 1).value
    explored = ~np.isclose(values, MEAN).all(axis=-1)
    assert 0 < explored.sum() < 200  # false alarms: 2^-199
    assert np.array_equal(explored, [np.random.default_rng(i).random() < 0.5 for i in range(200)])


@pytest.mark.parametrize("epsilon", [-0.1, 1.1, np.nan, "0.1", None])
def test_an_epsilon_that_is_no_probability_is_refused(epsilon):
    with pytest.raises(ValueError, match=r"^epsilon must be .*, got "):
        EpsilonGreedy(n_features=2, epsilon=epsilon)


def test_under_costs_an_exploring_round_draws_costs():
    """Minus the size of a normal, of mean -0.798 within 6 standard errors; and a round at random is no walk about the
    graph. False alarms: 1e-6.
    """
    rng = np.random.default_rng(0)
    edges = np.stack([np.repeat(np.arange(100), 8), rng.integers(100, size=800)], axis=1)
    X, constraint = rng.standard_normal((800, 2)), Path(edges, 0, 99, costs=True)
    policy = learned(epsilon=1.0, seed=0)
    arms = Arms(X, policy.state)
    draws = score_under(policy, arms, constraint).value
    assert (draws <= 0).all()
    assert abs(draws.mean() + np.sqrt(2 / np.pi)) < 6 * 0.603 / np.sqrt(800)
    assert np.mean([len(policy.choose(X, constraint)) for _ in range(20)]) < 15


def test_under_costs_what_looks_like_a_gain_is_at_the_cap_of_zero():
    constraint = Path([(0, 1), (1, 2), (0, 2), (0, 2)], 0, 2, costs=True)
    choice = learned(epsilon=0.0, seed=0).choose(X, constraint)
    assert (choice.scores <= 0).all()
    assert choice.value == choice.scores.sum()
