import numpy as np
import pytest

from armful import C2UCB, CombLinTS, simulate
from armful.constraints import Knapsack, Linear, NestedQuotas, OneOf, SpanningTree
from armful.environments import Budgets, Bundles, Campaign, Matchings, Networks, Panels, Regions, Routes, Slates
from armful.testing import EnvironmentContract

ENVIRONMENTS = {Networks: SpanningTree, Budgets: Knapsack, Regions: NestedQuotas, Panels: Linear, Bundles: OneOf}


class TestNetworks(EnvironmentContract):
    def environment(self):
        return Networks(n_sites=6)


class TestBudgets(EnvironmentContract):
    def environment(self):
        return Budgets(n_arms=15, budget=20)


class TestRegions(EnvironmentContract):
    def environment(self):
        return Regions(n_arms=40, k=9)


class TestPanels(EnvironmentContract):
    n_rounds = 6

    def environment(self):
        return Panels(n_arms=24, k=6)


class TestBundles(EnvironmentContract):
    def environment(self):
        return Bundles(n_arms=12, n_bundles=5, k=3)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_one_constraint_of_the_stated_kind_serves_all_rounds_and_repetitions(environment):
    example = environment()
    one, two = example.rounds(2, np.random.default_rng(0))
    other = next(example.rounds(1, np.random.default_rng(1)))
    assert one.constraint is two.constraint is other.constraint
    assert isinstance(one.constraint, ENVIRONMENTS[environment])
    assert not np.array_equal(one.features, two.features)
    assert 0.7 < np.mean(np.sum(one.features**2, axis=1)) < 1.4


@pytest.mark.parametrize("environment", [*ENVIRONMENTS, Campaign, Slates, Routes, Matchings])
def test_the_repr_makes_the_same_environment_again(environment):
    example = environment(n_features=6) if environment is not Matchings else environment(n_tasks=3)
    again = eval(repr(example), {environment.__name__: environment})
    assert "n_features=6" in repr(example) or "n_tasks=3" in repr(example)
    assert repr(again) == repr(example)
    first, second = (next(each.rounds(1, np.random.default_rng(0))) for each in (example, again))
    np.testing.assert_array_equal(first.features, second.features)
    assert first.constraint == second.constraint


@pytest.mark.slow
@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("make", [lambda: C2UCB(n_features=5, radius=0.5), lambda: CombLinTS(n_features=5, noise=0.5)])
def test_policies_learn_in_it(environment, make):
    """Regret a round falls to less than half, in pairs by more than 4 standard errors; 7 to 24 were seen."""
    example = environment(n_arms=24, k=6) if environment is Panels else environment()
    result = simulate(make(), example, rounds=40, repetitions=30, seed=0)
    early, late = result.regret[:, :4].mean(axis=1), result.regret[:, -10:].mean(axis=1)
    fallen = 0.5 * early - late
    assert fallen.mean() > 4 * fallen.std(ddof=1) / np.sqrt(30)
