"""Ties at a cap are broken by the estimate; rewards in another unit give the same choices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armful
from armful import C2UCB, Arms, CappedC2UCB, Path, Quotas, Table, TopK
from armful.environments import Matchings, Slates
from armful.environments.round import Round
from armful.policies.scores import ESTIMATE_SHARE, Scores
from armful.scan import _dispatch as dispatch
from armful.scan._scoring import AssumedArms, Block
from armful.tables._array_store import ArrayRows

D = 4


def experienced(seed, **options):
    """All of 60 arms are at the cap, and their estimates differ."""
    rng = np.random.default_rng(seed)
    policy = CappedC2UCB(n_features=D, radius=100.0, seed=seed, **options)
    seen = rng.standard_normal((30, D)) / 2
    policy.learn(seen, np.clip(seen[:, 0], -1, 1) / 4)
    return policy, rng.standard_normal((60, D)) / 2


@pytest.mark.parametrize("cap", [1.0, 0.3, 0.1])
@pytest.mark.parametrize("seed", range(5))
def test_arms_at_the_cap_are_chosen_by_their_estimates(seed, cap):
    policy, X = experienced(seed, cap=cap)
    mean = policy.state.mean(X)
    choice = policy.choose(X, TopK(7))
    assert choice.capped.all()
    assert choice.indices.tolist() == np.argsort(-mean)[:7].tolist()
    groups = np.arange(60) % 3
    chosen = policy.choose(X, Quotas(groups, exactly=2)).indices
    for group in range(3):
        best = np.flatnonzero(groups == group)[np.argsort(-mean[groups == group])[:2]]
        assert set(best) <= set(chosen)


def test_by_the_papers_rule_arms_at_the_cap_are_chosen_at_random():
    """False alarms: 200 draws of 1 from 60 are all the same in 60^-199."""
    policy, X = experienced(0, cap=1.0, rule="paper")
    policy = CappedC2UCB(n_features=D, cap=1.0, rule="paper", radius=1.0, ridge=1e-6, seed=0)
    assert len({int(policy.choose(X, TopK(1)).indices[0]) for _ in range(200)}) > 1


def test_a_cap_set_too_low_does_not_hide_what_was_learned():
    """The estimate that breaks ties is not clipped."""
    policy = CappedC2UCB(n_features=D, cap=0.25, radius=1.0, noise=1.0, seed=0)
    policy.learn(np.repeat(np.eye(D), 50, axis=0), np.repeat([0.9, 0.8, 0.7, 0.6], 50))
    assert policy.choose(np.eye(D), TopK(2)).indices.tolist() == [0, 1]


def test_a_score_at_a_cap_is_a_millionth_of_the_way_from_the_cap_to_the_estimate():
    mean, bonus, cap = np.array([0.4, 0.2, -3.0, 0.2]), np.array([1.0, 1.0, 9.0, 0.1]), np.array([1.0, 1.0, 0.5, 1.0])
    expected = [cap[i] + (mean[i] - cap[i]) / 2**20 for i in range(3)] + [0.2 + 0.1]
    assert np.allclose(Scores.clipped(mean, bonus, cap).value, expected, rtol=0, atol=1e-15)
    costs = Scores.uncapped(np.array([-2.0, -1.0, 0.3]), np.array([3.0, 0.5, 0.1])).of_costs()
    assert np.allclose(costs.value, [-2.0 / 2**20, -0.5, 0.0], rtol=0, atol=1e-15)
    assert costs.capped.tolist() == [True, False, True]


finite = st.floats(-1e3, 1e3)


@settings(max_examples=300, deadline=None)
@given(mean=finite, bonus=st.floats(0, 1e3), cap=st.one_of(finite, st.just(np.inf)), more=st.floats(0, 10))
def test_a_clipped_score_is_one_number_that_grows_with_estimate_and_bonus(mean, bonus, cap, more):
    def score(mean, bonus):
        scores = Scores.clipped(np.array([mean]), np.array([bonus]), np.array([cap]))
        return float(scores.value[0]), bool(scores.capped[0])

    value, capped = score(mean, bonus)
    assert abs(value - min(mean + bonus, cap)) <= ESTIMATE_SHARE * (abs(mean) + bonus + abs(min(cap, 1e3))) * 1.001
    assert capped == (value < mean + bonus)
    assert score(mean + more, bonus)[0] >= value
    assert score(mean, bonus + more)[0] >= value
    if not capped:
        assert value == mean + bonus


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_bounds_of_mean_and_width_bound_the_score(seed):
    rng = np.random.default_rng(seed)
    policy, X = experienced(seed % 100, cap=0.5)
    policy.learn(X[:20], np.zeros(20))
    caps = np.where(rng.random(60) < 0.3, np.inf, rng.uniform(-1, 1, 60))
    mean, width = policy.state.mean_and_width(X)
    block = Block(ArrayRows(X), slice(0, 60))

    def assumed(mean, width):
        return AssumedArms(block, policy.state, caps, mean, width)

    low = assumed(mean - 1e-7 * rng.random(60), width * (1 - 1e-7 * rng.random(60)))
    high = assumed(mean + 1e-7 * rng.random(60), width * (1 + 1e-7 * rng.random(60)))
    value = policy.score(Arms(X, policy.state, caps), 3).value
    assert (policy.lowest_score(low, high, 3) <= value).all()
    assert (policy.highest_score(low, high, 3) >= value).all()


def test_where_most_arms_are_capped_the_scan_still_leaves_most_of_them_out(monkeypatch):
    monkeypatch.setattr(dispatch, "SCAN_FROM", 1)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, D)) / 2
    policy, table = CappedC2UCB(n_features=D, cap=0.01, radius=5.0, noise=1.0, seed=0), Table.wrap(X)
    scored, plain = [], CappedC2UCB.score

    def counted(self, arms, k):
        if not isinstance(arms, AssumedArms):
            scored.append(arms.n_arms)
        return plain(self, arms, k)

    monkeypatch.setattr(CappedC2UCB, "score", counted)
    for t in range(6):
        scored.clear()
        choice = policy.choose(table, TopK(100))
        if t > 2:
            assert sum(scored) < 1000, (t, scored)
        policy.learn(choice.features, choice.features[:, 0] / 4 + 0.1 * rng.standard_normal(100))


# -- units -------------------------------------------------------------------------------------------


class Scaled:
    """An environment with rewards in another unit."""

    def __init__(self, environment, unit):
        self.environment, self.unit, self.n_features = environment, unit, environment.n_features

    def rounds(self, n_rounds, rng):
        for shown in self.environment.rounds(n_rounds, rng):
            yield Round(shown.features, shown.constraint, self.unit * shown.mean, self.unit * 0.5)


@pytest.mark.parametrize("exponent", [10, -10])
@pytest.mark.parametrize("radius", ["pointwise", "noise", "logdet", "theory"])
@pytest.mark.parametrize(
    "environment", [Slates(n_arms=30), Matchings(n_workers=4, n_tasks=5)], ids=["Slates", "Matchings"]
)
def test_rewards_and_cap_in_another_unit_give_the_same_simulation(environment, radius, exponent):
    unit = 2.0**exponent
    one, other = (
        armful.simulate(
            CappedC2UCB(n_features=environment.n_features, cap=scale, radius=radius),
            Scaled(environment, scale),
            rounds=60,
            repetitions=8,
            seed=3,
        )
        for scale in (1.0, unit)
    )
    assert np.array_equal(unit * one.regret, other.regret)
    assert np.array_equal(unit * one.rewards, other.rewards)


@pytest.mark.parametrize("exponent", [10, -10])
@pytest.mark.parametrize("options", [{}, {"radius": "noise"}, {"rule": "paper"}], ids=str)
def test_rewards_and_cap_in_another_unit_give_the_same_choices_from_a_table(monkeypatch, exponent, options):
    monkeypatch.setattr(dispatch, "SCAN_FROM", 1)
    unit, rng = 2.0**exponent, np.random.default_rng(0)
    X = rng.standard_normal((3000, D)) / 2
    table = Table.wrap(X)
    one = CappedC2UCB(n_features=D, cap=1.0, seed=0, **options)
    other = CappedC2UCB(n_features=D, cap=unit, seed=0, **options)
    for _ in range(20):
        here, there = one.choose(table, TopK(40)), other.choose(table, TopK(40))
        assert here.indices.tolist() == there.indices.tolist()
        assert np.array_equal(unit * here.scores, there.scores)
        rewards = here.features[:, 0] / 4 + 0.3 * rng.standard_normal(40)
        one.learn(here.features, rewards)
        other.learn(there.features, unit * rewards)


def test_with_a_cap_of_zero_the_lowest_costs_are_chosen():
    policy = CappedC2UCB(n_features=D, cap=0.0, seed=0)
    policy.learn(np.repeat(np.eye(D), 5, axis=0), -np.repeat([4.0, 1.0, 2.0, 3.0], 5))
    assert (policy.scores(np.eye(D), k=2) <= 0).all()
    assert policy.choose(np.eye(D), TopK(2)).indices.tolist() == [1, 2]


def test_where_no_cap_binds_scores_are_those_of_c2ucb_to_the_last_bit():
    policy, X = experienced(0, cap=1e6)
    plain = C2UCB(n_features=D, radius=100.0, seed=0)
    plain.state = policy.state
    assert np.array_equal(policy.scores(X, k=3), plain.scores(X, k=3))


def test_under_costs_ties_among_free_arms_are_broken_by_the_estimate():
    """Both paths have an optimistic cost of zero, and one has the better estimate."""
    constraint = Path([(0, 1), (0, 1)], 0, 1, costs=True)
    for policy in (C2UCB(n_features=2, radius=100.0, seed=0), CappedC2UCB(n_features=2, cap=0.0, radius=100.0, seed=0)):
        policy.learn([[1.0, 0.0], [0.0, 1.0]], [-0.5, -0.4])
        assert [policy.choose(np.eye(2), constraint).indices.tolist() for _ in range(20)] == [[1]] * 20
