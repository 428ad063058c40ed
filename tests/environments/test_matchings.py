import numpy as np
import pytest

from armful import C2UCB, CappedC2UCB, simulate
from armful.constraints.assignment import Assignment
from armful.environments.matchings import Matchings
from armful.testing import EnvironmentContract


class TestMatchings(EnvironmentContract):
    def environment(self):
        return Matchings(n_workers=4, n_tasks=5, noise=0.3)


class TestMoreWorkersThanTasks(EnvironmentContract):
    def environment(self):
        return Matchings(n_workers=4, n_tasks=2, noise=0.0)


def test_tasks_are_fresh_workers_stay_and_the_constraint_is_one_object():
    environment = Matchings(n_workers=3, n_tasks=2)
    one, two = environment.rounds(2, np.random.default_rng(0))
    other = next(environment.rounds(1, np.random.default_rng(1)))
    assert not np.array_equal(one.features, two.features)
    assert one.constraint is two.constraint is other.constraint
    assert isinstance(one.constraint, Assignment)
    skills = [shown.features[:, 1].reshape(3, 2) / shown.features[0, 1] for shown in (one, two)]
    np.testing.assert_allclose(skills[0][:, 0], skills[1][:, 0], rtol=1e-12)  # ratios of skills, whatever the task


def test_features_are_the_stated_ones_and_near_unit_scale():
    environment = Matchings(n_workers=50, n_tasks=60)
    shown = next(environment.rounds(1, np.random.default_rng(3)))
    np.testing.assert_allclose(shown.features[:, 0], 1 / np.sqrt(6))
    products = shown.features[:, 1:5] * np.sqrt(6)
    np.testing.assert_allclose(products[:, 0] * products[:, 3], products[:, 1] * products[:, 2], atol=1e-12)
    assert 0.5 < np.mean(np.sum(shown.features**2, axis=1)) < 2.0
    assert (shown.mean < 0).any()


def test_every_policy_runs_in_it(make_policy):
    result = simulate(make_policy(6), Matchings(n_workers=4, n_tasks=4), rounds=6, repetitions=2, seed=0)
    assert (result.regret >= -1e-9).all()


@pytest.mark.slow
@pytest.mark.parametrize("policy", [C2UCB(n_features=6, radius=1.0), CappedC2UCB(n_features=6, cap=2.0)], ids=repr)
def test_regret_per_round_falls(policy):
    """Repetition by repetition, the first five rounds against the last five: 4 standard errors, some 10 are there."""
    result = simulate(policy, Matchings(noise=0.3), rounds=40, repetitions=40, seed=5)
    fallen = result.regret[:, :5].mean(axis=1) - result.regret[:, -5:].mean(axis=1)
    assert fallen.mean() > 4 * fallen.std(ddof=1) / np.sqrt(fallen.size)


@pytest.mark.parametrize("options", [{"n_workers": 0}, {"n_tasks": 1.5}, {"noise": -1.0}])
def test_wrong_options_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Matchings(**options)
