"""Every constraint under every policy: what is chosen is allowed, and together is as alone."""

import inspect
from itertools import combinations

import numpy as np
import pytest

import armful
from armful import (
    Assignment,
    AtMost,
    Excluding,
    Knapsack,
    Linear,
    NestedQuotas,
    OneOf,
    Path,
    Quotas,
    Requiring,
    SpanningTree,
    TopK,
    overlapping_quotas,
    simulate,
)
from armful.environments import Round
from armful.simulation.loop import run_alone

N = 12
GRID = [*combinations(range(5), 2), (0, 4), (1, 3)]
CITY = np.arange(N) % 4

CONSTRAINTS = {
    "TopK": TopK(4),
    "AtMost": AtMost(4),
    "Quotas": Quotas(CITY, at_least={0: 1}, at_most=2, total=5),
    "NestedQuotas": NestedQuotas({"region": CITY % 2, "city": CITY}, at_most={"region": 3, "city": 2}),
    "OneOf": OneOf([[0, 1, 2], [3, 4], [5, 6, 7, 8]]),
    "Assignment": Assignment(np.arange(N) // 4, np.arange(N) % 4),
    "Path": Path(GRID, 0, 4),
    "Path, costs": Path(GRID, 0, 4, directed=False, costs=True),
    "SpanningTree": SpanningTree(GRID),
    "Knapsack": Knapsack(1 + np.arange(N) % 3, 7),
    "Linear": Linear(np.vstack([np.ones(N), np.arange(N)]), [1, -np.inf], [4, 20]),
    "overlapping_quotas": overlapping_quotas({"city": CITY, "age": np.arange(N) // 4}, at_most={"city": 2, "age": 2}),
    "Excluding": Excluding(TopK(3), [0, 5]),
    "Requiring": Requiring(Quotas(CITY, at_most=1), [7]),
}


class OneConstraint:
    """Rewards of any sign, or costs only."""

    n_features = 3

    def __init__(self, constraint, costs):
        self.constraint, self.costs = constraint, costs

    def rounds(self, n_rounds, rng):
        theta = -rng.random(3) if self.costs else rng.standard_normal(3)
        for _ in range(n_rounds):
            X = rng.random((N, 3)) if self.costs else rng.standard_normal((N, 3))
            yield Round(X, self.constraint, X @ theta, noise=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_under_every_policy_sets_are_allowed_and_together_is_as_alone(name, make_policy):
    constraint = CONSTRAINTS[name]
    policy = make_policy(3)
    rng = np.random.default_rng(0)
    learner = make_policy(3)
    for _ in range(5):
        X = rng.standard_normal((N, 3))
        choice = learner.choose(X, constraint)
        assert constraint.violation(choice.indices) == 0.0
        assert choice.ratio == 1.0
        learner.learn(choice.features, rng.standard_normal(len(choice)))
    environment = OneConstraint(constraint, costs="costs" in name)
    together = simulate(policy, environment, rounds=6, repetitions=3, seed=1)
    assert (together.regret >= -1e-7).all()
    for i in range(3):
        alone = run_alone(policy, environment, 6, 1, i)
        np.testing.assert_allclose(together.rewards[i], alone.rewards[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_a_choice_under_every_constraint_can_be_explained(name):
    policy = armful.C2UCB(n_features=3, radius=0.1, seed=0)
    X = np.random.default_rng(2).standard_normal((N, 3))
    policy.learn(X, X[:, 0])
    choice = policy.choose(X, CONSTRAINTS[name])
    explained = choice.explain()
    names = CONSTRAINTS[name].arm_names(choice.indices)
    assert [record["arm"] for record in explained.arms] == (names or choice.indices.tolist())
    assert all(record["loss"] is None or record["loss"] >= -1e-7 for record in explained.arms)
    loosened = [r["price"] for r in explained.prices if not r["limit"].startswith("exactly")]
    assert all(price >= -1e-7 for price in loosened)
    assert str(explained)


POLICIES = [
    armful.EpsilonGreedy,
    armful.C2UCB,
    armful.CappedC2UCB,
    armful.ArmwiseThompson,
    armful.CombLinUCB,
    armful.CombLinTS,
]


@pytest.mark.parametrize("policy", POLICIES)
def test_options_of_a_policy_go_by_name_only(policy):
    kinds = {p.kind for p in inspect.signature(policy).parameters.values()}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_ties_fall_by_a_generator_or_by_its_seed(name):
    scores = -np.ones(N) if "costs" in name else np.ones(N)
    for seed in range(3):
        answers = [CONSTRAINTS[name].best(scores, rng=rng) for rng in (seed, seed, np.random.default_rng(seed))]
        assert len({tuple(answer.indices.tolist()) for answer in answers}) == 1
    with pytest.raises(ValueError, match=r"^rng must be a whole number of at least 0, a Generator or None, got "):
        CONSTRAINTS[name].best(scores, rng="dice")
