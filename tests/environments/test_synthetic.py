import numpy as np
import pytest

from armful import CappedC2UCB, simulate
from armful.environments import Campaign, Slates
from armful.testing import EnvironmentContract


class TestCampaign(EnvironmentContract):
    def environment(self):
        return Campaign(n_arms=200, n_features=6, k=20)


class TestSlates(EnvironmentContract):
    def environment(self):
        return Slates(n_arms=30, n_features=5, k=4)


class TestVariedSlates(EnvironmentContract):
    n_rounds = 5

    def environment(self):
        return Slates(n_arms=9, n_features=4, k=3, variety=0.5)


def test_a_campaign_keeps_its_customers_and_its_bound():
    rounds = list(Campaign(n_arms=500, bound=0.3).rounds(3, np.random.default_rng(0)))
    assert all(shown.features is rounds[0].features for shown in rounds)
    assert np.abs(rounds[0].mean).max() <= 0.3 + 1e-12


def test_slates_have_an_intercept_and_clicks_between_a_tenth_and_nine_tenths():
    one, two = Slates().rounds(2, np.random.default_rng(0))
    assert (one.features[:, 0] == 1).all()
    assert not np.array_equal(one.features, two.features)
    assert one.mean.min() >= 0.1
    assert one.mean.max() <= 0.9


@pytest.mark.slow
def test_with_k_much_larger_than_t_the_papers_rule_fails_and_clip_does_not():
    """The ratio of mean regrets is about 10; 5 is asked for, many standard errors below."""
    environment = Campaign()
    regret = {
        rule: simulate(
            CappedC2UCB(n_features=20, cap=1.0, rule=rule, ridge=20.0, radius=20**0.5),
            environment,
            rounds=20,
            repetitions=10,
        ).mean
        for rule in ("paper", "clip")
    }
    assert regret["paper"] > 5 * regret["clip"]
