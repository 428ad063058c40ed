from itertools import product

import numpy as np
import pytest

from armful import simulate
from armful.environments import CombinedLowerBound, LearningLowerBound, NoiseLowerBound
from armful.testing import EnvironmentContract


class TestNoiseLowerBound(EnvironmentContract):
    def environment(self):
        return NoiseLowerBound(n_features=3, k=2, noise=0.5)


class TestLearningLowerBound(EnvironmentContract):
    def environment(self):
        return LearningLowerBound(n_features=6, k=3, bound=2.0)


class TestCombinedLowerBound(EnvironmentContract):
    def environment(self):
        return CombinedLowerBound(n_features=8, k=2, noise=0.3, bound=0.7)


def test_the_first_round_of_each_group_costs_half_b_k_averaged_over_theta_for_every_policy(make_policy):
    d, k, bound, n_rounds, seed = 4, 3, 1.5, 5, 7
    environments = [
        LearningLowerBound(n_features=d, k=k, bound=bound, signs=signs) for signs in product((-1, 1), repeat=d)
    ]
    lengths = environments[0].group_lengths(n_rounds)
    first_rounds = np.cumsum([0, *lengths[:-1]])
    regret = np.array(
        [
            simulate(make_policy(d), environment, rounds=n_rounds, repetitions=2, seed=seed).regret
            for environment in environments
        ]
    )
    averaged = regret.mean(axis=0)[:, first_rounds]  # (repetitions, groups)
    np.testing.assert_allclose(averaged, bound * k / 2, rtol=1e-12)


def test_rounds_are_divided_among_the_groups_as_evenly_as_can_be():
    assert LearningLowerBound(n_features=6, k=1).group_lengths(7) == [3, 2, 2]
    assert LearningLowerBound(n_features=6, k=1).group_lengths(2) == [1, 1]


def test_the_noise_instance_has_every_corner_k_times_and_the_stated_theta():
    environment = NoiseLowerBound(n_features=2, k=3, noise=2.0, signs=(1, -1))
    shown = next(environment.rounds(12, np.random.default_rng(0)))
    corners, counts = np.unique(shown.features, axis=0, return_counts=True)
    assert corners.tolist() == [[-1, -1], [-1, 1], [1, -1], [1, 1]]
    assert counts.tolist() == [3, 3, 3, 3]
    np.testing.assert_allclose(shown.mean, shown.features @ np.array([1, -1]) * 2.0 / np.sqrt(3 * 12))
    assert shown.noise == 2.0


def test_the_combined_instance_keeps_the_halves_in_different_dimensions_and_rounds():
    environment = CombinedLowerBound(n_features=8, k=2)
    rounds = list(environment.rounds(10, np.random.default_rng(0)))
    assert all((shown.features[:, 4:] == 0).all() and shown.noise == 1.0 for shown in rounds[:5])
    assert all((shown.features[:, :4] == 0).all() and shown.noise == 0.0 for shown in rounds[5:])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LearningLowerBound(n_features=3, k=1), "even"),
        (lambda: CombinedLowerBound(n_features=6, k=1), "multiple of 4"),
        (lambda: NoiseLowerBound(n_features=17, k=1), "at most 16"),
        (lambda: NoiseLowerBound(n_features=2, k=1, signs=(1, 0)), "-1 or 1"),
        (lambda: NoiseLowerBound(n_features=2, k=0), "at least 1"),
    ],
)
def test_impossible_instances_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
