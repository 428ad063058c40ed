"""Inclusion probabilities against enumeration and long simulation, and exploration by slots."""

from itertools import combinations, pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armful import (
    C2UCB,
    ArmwiseThompson,
    AtMost,
    CappedC2UCB,
    CombLinTS,
    CombLinUCB,
    EpsilonGreedy,
    Excluding,
    Knapsack,
    Path,
    Policy,
    Quotas,
    Requiring,
    TopK,
)
from armful.constraints import overlapping_quotas
from armful.policies import choose_with_inclusion
from armful.policies._random_sets import MOST_SETS, Alike, forget_all

D = 3


class ByFirstFeature(Policy):
    """Scores are the first feature, whatever is learned."""

    randomised = False

    def score(self, arms, k):
        return arms.X[:, 0].copy()


def with_scores(scores):
    """Return a policy and arms that have these scores."""
    return ByFirstFeature(n_features=1, ridge=1.0, seed=0), np.asarray(scores, dtype=float)[:, None]


def experienced(kind, seed, **options):
    rng = np.random.default_rng(seed)
    policy = kind(n_features=D, seed=seed, **options)
    X = rng.standard_normal((40, D)) / 2
    policy.learn(X, X[:, 0] + 0.1 * rng.standard_normal(40))
    return policy, rng.standard_normal((9, D)) / 2


def enumerated(scores, k, explore):
    """Return the probability of each arm: over all orders of equal scores, all numbers of slots, all draws."""
    n = len(scores)
    few = int(np.floor(explore * k))
    orders = [o for o in permutations(range(n)) if all(scores[a] >= scores[b] for a, b in pairwise(o))]
    p = np.zeros(n)
    for b, weight in ((few, 1 - (explore * k - few)), (few + 1, explore * k - few)):
        if weight == 0:
            continue
        for order in orders:
            draws = list(combinations(order[k - b :], b))
            for drawn in draws:
                p[[*order[: k - b], *drawn]] += weight / len(orders) / len(draws)
    return p


@settings(max_examples=60, deadline=None)
@given(
    scores=st.lists(st.integers(0, 3), min_size=2, max_size=6),
    data=st.data(),
    explore=st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.7, 1.0]),
    seed=st.integers(0, 99),
)
def test_slots_have_the_probabilities_of_enumeration_with_ties(scores, data, explore, seed):
    k = data.draw(st.integers(1, len(scores)))
    policy, X = with_scores(scores)
    shown = choose_with_inclusion(policy, X, TopK(k), explore=explore, rng=seed)
    assert np.allclose(shown.probabilities, enumerated(scores, k, explore)[shown.indices], atol=1e-12)
    assert len(set(shown.indices.tolist())) == k
    assert shown.draws == 0


def frequencies(policy, X, constraint, explore, rounds, draws=1):
    """Return how often each arm was shown, and the mean probability that was given to it where it was."""
    shown, given_p = np.zeros(len(X)), np.zeros(len(X))
    for seed in range(rounds):
        each = choose_with_inclusion(policy, X, constraint, explore=explore, draws=draws, rng=seed)
        shown[each.indices] += 1
        given_p[each.indices] += each.probabilities
    return shown / rounds, given_p / np.maximum(shown, 1)


def assert_frequencies(found, expected, rounds):
    """Each of about 10 frequencies is off by 5.5 standard errors in 4e-8: false alarms below 1e-6 a test."""
    error = np.sqrt(np.maximum(expected * (1 - expected), 1 / rounds) / rounds)
    assert (np.abs(found - expected) <= 5.5 * error).all(), (found, expected)


def test_arms_are_shown_as_often_as_their_probabilities_say():
    policy, X = with_scores([5, 4, 4, 4, 3, 2, 1])
    rounds = 3000
    found, given_p = frequencies(policy, X, TopK(3), 0.5, rounds)
    expected = enumerated([5, 4, 4, 4, 3, 2, 1], 3, 0.5)
    assert_frequencies(found, expected, rounds)
    assert np.allclose(given_p, expected, atol=1e-12)


def test_excluded_arms_are_never_and_required_arms_always_shown():
    scores = [9, 8, 7, 6, 5, 4, 3]
    policy, X = with_scores(scores)
    constraint = Excluding(Requiring(TopK(3), [5]), [0])
    rounds = 3000
    found, given_p = frequencies(policy, X, constraint, 0.25, rounds)
    free = [1, 2, 3, 4, 6]
    expected = np.zeros(7)
    expected[free] = enumerated([scores[i] for i in free], 2, 0.25)
    expected[5] = 1
    assert_frequencies(found, expected, rounds)
    assert np.allclose(given_p[found > 0], expected[found > 0], atol=1e-12)


def test_explored_arms_take_random_places_and_the_others_keep_their_order():
    """Each of 4 places has 1,500 of 6,000 explored arms; a deviation of 5.5 standard errors has probability 4e-8."""
    policy, X = with_scores(np.arange(20, 0, -1))
    places = np.zeros(4)
    for seed in range(3000):
        shown = choose_with_inclusion(policy, X, TopK(4), explore=0.5, rng=seed)
        assert shown.explored.sum() == 2
        assert shown.indices[~shown.explored].tolist() == [0, 1]
        assert not set(shown.indices[shown.explored].tolist()) & {0, 1}
        places += shown.explored
    assert (np.abs(places / 3000 - 0.5) < 5.5 * 0.5 / np.sqrt(3000)).all()


def test_without_exploration_the_choice_is_the_policys_own():
    for kind in (C2UCB, CombLinUCB, ArmwiseThompson, CombLinTS, EpsilonGreedy):
        one, X = experienced(kind, 3)
        other, _ = experienced(kind, 3)
        for constraint in (TopK(4), Quotas([0, 1, 2] * 3, exactly=1), AtMost(4)):
            shown = choose_with_inclusion(one, X, constraint, draws=5, rng=0)
            own = other.choose(X, constraint)
            assert shown.indices.tolist() == own.indices.tolist() == shown.choice.indices.tolist()
            assert np.array_equal(shown.scores.value, own.scores)
            assert not shown.explored.any()
        assert one.rng.random() == other.rng.random()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ArmwiseThompson, CombLinTS, EpsilonGreedy])
@pytest.mark.parametrize("constraint", [TopK(3), Excluding(TopK(3), [8]), Quotas([0, 1, 2] * 3, exactly=1)])
@pytest.mark.parametrize("explore", [0.0, 0.4])
def test_the_monte_carlo_probability_is_the_frequency_of_the_policys_choices(kind, constraint, explore):
    """4,000 draws against 4,000 rounds: 5.5 standard errors of the difference, 4e-8 for each of 9 arms."""
    options = {"epsilon": 0.3} if kind is EpsilonGreedy else {"noise": 3.0}
    policy, X = experienced(kind, 1, **options)
    rounds = draws = 4000
    found, _ = frequencies(policy, X, constraint, explore, rounds)
    shown = choose_with_inclusion(policy, X, constraint, explore=explore, draws=draws, rng=1)
    expected = found[shown.indices]
    error = np.sqrt(2 * np.maximum(expected * (1 - expected), 1 / rounds) / rounds)
    assert (np.abs(shown.probabilities - expected) <= 5.5 * error).all()
    exact = kind is EpsilonGreedy and not isinstance(constraint, Quotas)
    assert shown.draws == (0 if exact else draws) or (explore > 0 and 0 < shown.draws < draws)


@settings(max_examples=60, deadline=None)
@given(
    scores=st.lists(st.integers(0, 3), min_size=2, max_size=6),
    data=st.data(),
    explore=st.sampled_from([0.0, 0.1, 0.5]),
    epsilon=st.sampled_from([0.1, 0.5, 1.0]),
    seed=st.integers(0, 99),
)
def test_epsilon_greedy_has_the_probabilities_of_enumeration_with_ties(scores, data, explore, epsilon, seed):
    k = data.draw(st.integers(1, len(scores)))
    policy = EpsilonGreedy(n_features=1, epsilon=epsilon, ridge=1.0, seed=seed)
    policy.learn([[1.0]], [1.0])
    X = np.asarray(scores, dtype=float)[:, None]
    shown = choose_with_inclusion(policy, X, TopK(k), explore=explore, rng=seed)
    expected = (1 - epsilon) * enumerated(scores, k, explore) + epsilon * k / len(scores)
    assert np.allclose(shown.probabilities, expected[shown.indices], atol=1e-12)
    assert shown.draws == 0


def test_a_randomised_arm_has_at_least_the_probability_that_exploration_gives_it():
    policy, X = experienced(ArmwiseThompson, 0, radius=1e-6)
    floor = enumerated(list(range(9)), 3, 0.5)[0]
    seen = 0
    for seed in range(50):
        shown = choose_with_inclusion(policy, X, TopK(3), explore=0.5, draws=20, rng=seed)
        assert (shown.probabilities >= floor - 1e-12).all()
        seen += int((np.abs(shown.probabilities - floor) < 1e-12).sum())
    assert seen > 0


def test_a_constraint_without_slots_explores_whole_rounds():
    """Arms of a group of 3 of which 1 is shown: e/3 at random; 5.5 standard errors, 4e-8 for each of 9 arms."""
    policy, X = with_scores(np.arange(9))
    constraint = Quotas([0, 1, 2] * 3, exactly=1)
    rounds = 3000
    found, _ = frequencies(policy, X, constraint, 0.3, rounds)
    expected = np.where(np.arange(9) >= 6, 0.7, 0.0) + 0.1
    assert_frequencies(found, expected, rounds)
    shown = choose_with_inclusion(policy, X, constraint, explore=0.3, draws=4000, rng=0)
    assert shown.explored.all() or not shown.explored.any()
    assert np.allclose(shown.probabilities, expected[shown.indices], atol=0.3 * 5.5 * np.sqrt(2 / 9 / 4000))
    assert constraint.violation(shown.indices) == 0


def test_arms_of_a_group_are_counted_together():
    """Groups of 40 and 10 arms, 5 to 8 of the first in 10: the counts of 10 sets are within 10 * 3 of their means."""
    policy, X = with_scores(np.arange(50))
    groups = [0] * 40 + [1] * 10
    constraint = Quotas(groups, at_least={0: 5}, at_most={0: 8}, total=10)
    rounds = 1500
    found, given_p = frequencies(policy, X, constraint, 1.0, rounds, draws=100)
    for group in (0, 1):
        here = np.equal(groups, group)
        assert np.abs(found[here] - found[here].mean()).max() < 5.5 * np.sqrt(0.25 / rounds)
        assert np.ptp(given_p[here]) < 0.01
        assert abs(given_p[here].mean() - found[here].mean()) < 0.02
    forget_all()
    shown = choose_with_inclusion(policy, X, constraint, explore=1.0, draws=100, rng=0)
    assert shown.draws == 10
    assert np.unique(shown.probabilities).size == 2


def test_ties_under_quotas_are_counted():
    """1 of 3 equal arms: 4,000 draws are within 5.5 standard errors of 1/3."""
    policy, X = with_scores(np.zeros(9))
    shown = choose_with_inclusion(policy, X, Quotas([0, 1, 2] * 3, exactly=1), draws=4000, rng=0)
    assert np.abs(shown.probabilities - 1 / 3).max() < 5.5 * np.sqrt(2 / 9 / 4000)
    policy, X = with_scores(np.arange(9))
    assert choose_with_inclusion(policy, X, Quotas([0, 1, 2] * 3, exactly=1)).probabilities.tolist() == [1, 1, 1]


def test_all_arms_at_the_cap_before_anything_is_learned_are_equally_probable():
    policy = CappedC2UCB(n_features=D, cap=1.0, seed=0)
    X = np.random.default_rng(0).standard_normal((10, D))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    shown = choose_with_inclusion(policy, X, TopK(4), rng=0)
    assert np.allclose(shown.probabilities, 0.4)


def test_a_wholly_explored_set_is_random():
    policy, X = with_scores(np.arange(10))
    shown = choose_with_inclusion(policy, X, TopK(4), explore=1.0, rng=0)
    assert shown.explored.all()
    assert np.allclose(shown.probabilities, 0.4)
    everyone = choose_with_inclusion(policy, X, TopK(10), explore=0.3, rng=0)
    assert np.allclose(everyone.probabilities, 1)


def test_the_score_parts_of_explored_arms_are_there():
    policy, X = experienced(C2UCB, 0)
    shown = choose_with_inclusion(policy, X, TopK(3), explore=1.0, rng=5)
    assert np.array_equal(shown.scores.value, policy.scores(X, 3)[shown.indices])


def test_a_policy_of_ones_own_counts_as_randomised():
    class Coin(Policy):
        def score(self, arms, k):
            return self.rng.permutation(np.arange(4.0))

    shown = choose_with_inclusion(Coin(n_features=1, seed=0), np.ones((4, 1)), TopK(1), draws=4000, rng=0)
    assert shown.draws == 4000
    assert abs(shown.probabilities[0] - 0.25) < 5.5 * np.sqrt(3 / 16 / 4000)  # false alarms: 4e-8


def test_draws_of_many_arms_are_made_in_parts(monkeypatch):
    monkeypatch.setattr("armful.policies._monte_carlo.LARGEST", 20)
    policy, X = experienced(ArmwiseThompson, 0, noise=3.0)
    shown = choose_with_inclusion(policy, X, TopK(3), draws=31, rng=0)
    assert np.allclose(shown.probabilities * 32, np.round(shown.probabilities * 32))


def test_costs_are_explored_under_a_path():
    edges = [("a", "b"), ("b", "d"), ("a", "c"), ("c", "d")]
    policy = C2UCB(n_features=1, seed=0)
    shown = choose_with_inclusion(policy, -np.ones((4, 1)), Path(edges, "a", "d", costs=True), explore=0.5, rng=3)
    assert np.abs(shown.probabilities - 0.5).max() < 5.5 * np.sqrt(1 / 4 / 100) * 2


def crossing(rows, total=4):
    """Return quotas by region and by kind for arms with these (region, kind)."""
    columns = {"region": [row[0] for row in rows], "kind": [row[1] for row in rows]}
    return overlapping_quotas(columns, at_least={"region": 1}, at_most={"kind": 3}, total=total)


ROWS = [(region, kind) for region in "nsw" for kind in "ab" for _ in range(2)]


@pytest.mark.slow
def test_arms_under_crossing_quotas_are_explored_as_often_as_their_probabilities_say():
    """600 rounds against at least 600 sets of 2 alike arms: 5.5 standard errors, 4e-8 for each of 12 arms."""
    policy, X = with_scores(np.arange(12))
    rounds = 600
    found, _ = frequencies(policy, X, crossing(ROWS), 1.0, rounds)
    shown = choose_with_inclusion(policy, X, crossing(ROWS), explore=1.0, rng=0)
    assert shown.draws >= rounds
    expected = found[shown.indices]
    error = np.sqrt(2 * np.maximum(expected * (1 - expected), 1 / rounds) / rounds)
    assert (np.abs(shown.probabilities - expected) <= 5.5 * error).all()


def restricted(constraint):
    return Requiring(Excluding(constraint, [0]), [11])


@pytest.mark.parametrize(
    "of",
    [lambda rows: Quotas([row[0] for row in rows], at_least=1, at_most={"n": 2, "s": 3, "w": 3}, total=5), crossing],
)
def test_sets_of_the_same_structure_are_remembered(of):
    policy, X = with_scores(np.arange(12))
    forget_all()
    first = choose_with_inclusion(policy, X, of(ROWS), explore=1.0, draws=40, rng=0)
    again = choose_with_inclusion(policy, X, of(ROWS), explore=1.0, draws=40, rng=0)
    assert again.draws == first.draws + 1
    assert again.indices.tolist() == first.indices.tolist(), "what was drawn before changed the choice"
    order = np.random.default_rng(0).permutation(12)
    in_other_order = [ROWS[i] for i in order]
    one, other = Alike.of(of(ROWS), 12), Alike.of(of(in_other_order), 12)
    assert one.key == other.key
    moved = one.kinds[order]
    assert ((moved[:, None] == moved) == (other.kinds[:, None] == other.kinds)).all()
    assert Alike.of(of([*ROWS[:-1], ROWS[0]]), 12).key != one.key
    required = Alike.of(restricted(of(ROWS)), 12)
    assert required.key != one.key
    assert required.kinds.max() == one.kinds.max() + 2
    assert Alike.of(restricted(of(ROWS)).with_(arms=[10]), 12).key == required.key
    assert Alike.of(Knapsack(np.arange(1, 13), 10), 12) is None


def test_no_more_sets_are_drawn_when_there_are_enough(monkeypatch):
    monkeypatch.setattr("armful.policies._monte_carlo.MOST_SETS", 12)
    policy, X = with_scores(np.arange(12))
    forget_all()
    constraint = Quotas([row[0] for row in ROWS], at_least=1, total=5)
    draws = [choose_with_inclusion(policy, X, constraint, explore=1.0, draws=10, rng=i).draws for i in range(4)]
    assert draws == [10, 11, 12, 12]
    assert MOST_SETS == 10_000


def test_draws_end_with_the_time_for_them():
    policy, X = with_scores(np.zeros(12))
    forget_all()
    shown = choose_with_inclusion(policy, X, crossing(ROWS), explore=0.5, seconds=1e-9, rng=1)
    assert shown.draws == 1
    assert (shown.probabilities > 0).all()
    assert choose_with_inclusion(policy, X, crossing(ROWS), explore=0.5, draws=3, rng=1).draws == 3
    with pytest.raises(ValueError, match="seconds must be positive"):
        choose_with_inclusion(policy, X, crossing(ROWS), seconds=0)


def test_bad_arguments_are_refused():
    policy, X = with_scores([1, 2])
    with pytest.raises(ValueError, match="explore must be from 0 to 1"):
        choose_with_inclusion(policy, X, TopK(1), explore=1.5)
    with pytest.raises(ValueError, match="draws must be a whole number"):
        choose_with_inclusion(policy, X, TopK(1), draws=0)
