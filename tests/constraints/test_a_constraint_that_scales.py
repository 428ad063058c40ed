"""A constraint written by following the checklist of docs/architecture.md, "a constraint that scales", and no more."""

import copy
from dataclasses import replace

import numpy as np
import pytest

from armful import C2UCB, Arms, AtMost, Diverse, Excluding, OneOf, Table
from armful.constraints import GroupBounds, RankedConstraint, Ranks
from armful.testing import ArmsContract, RankedConstraintContract
from armful.testing.constraint_contract import Instance


class AtMostFlagged(RankedConstraint):
    """At most `k` arms, and at most `m` of them flagged."""

    def __init__(self, flags, k, m):
        self.options = {"flags": flags, "k": k, "m": m}
        self.k = k
        groups = GroupBounds(of_finest=np.arange(2), lower=np.array([0, 0]), upper=np.array([k, m]))
        self.ranks = Ranks([groups], low=0, high=k, of_arm=np.asarray(flags, dtype=np.int64))


class TopPerDecile(RankedConstraint):
    """The best `m` arms of each decile of a column, and at most `half` in the lower and in the upper five."""

    def __init__(self, column, m, half):
        self.options = {"column": column, "m": m, "half": half}
        decile = np.argsort(np.argsort(column)) * 10 // len(column)
        deciles = GroupBounds(np.arange(10), np.zeros(10, dtype=np.int64), np.full(10, m))
        halves = GroupBounds(np.arange(10) // 5, np.zeros(2, dtype=np.int64), np.full(2, half))
        self.k = 2 * half
        self.ranks = Ranks([deciles, halves], low=0, high=self.k, of_arm=decile)


class TestAtMostFlagged(RankedConstraintContract):
    def constraint(self, rng):
        n_arms = int(rng.integers(2, 8))
        k = int(rng.integers(1, n_arms + 1))
        flags = rng.integers(0, 2, n_arms)
        flags[rng.permutation(n_arms)[:k]] = 0  # so that k arms can be chosen
        return AtMostFlagged(flags, k, int(rng.integers(0, k + 1))), n_arms


class TestTopPerDecile(RankedConstraintContract):
    def constraint(self, rng):
        return TopPerDecile(rng.random(10), 1, int(rng.integers(1, 6))), 10

    instances = 5


class TestOnATable(ArmsContract):
    def arms(self, X):
        return Table.wrap(X)

    def constraints(self, rng):
        yield AtMostFlagged(rng.random(self.n_arms) < 0.5, 60, 10)
        yield TopPerDecile(rng.random(self.n_arms), 20, 70)


@pytest.mark.parametrize("wrap", [np.asarray, Table.wrap])
def test_choosing_from_50_000_arms_is_choosing_from_all_their_scores(wrap):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50_000, 5))
    for constraint in (AtMostFlagged(rng.random(50_000) < 0.3, 200, 20), TopPerDecile(X[:, 0], 30, 100)):
        policy = C2UCB(n_features=5, seed=0)
        policy.learn(X[:20], X[:20, 1])
        twin = copy.deepcopy(policy)
        choice = policy.choose(wrap(X), constraint)
        plain = constraint.best(twin.score(Arms(X, twin.state), constraint.k).value, rng=twin.rng)
        assert np.array_equal(choice.indices, plain.indices)
        assert constraint.violation(choice.indices) == 0
        assert len(choice) == constraint.k


def test_everything_else_follows_from_the_bounds():
    scores = np.array([4.0, 3.0, 2.0, 1.0])
    constraint = AtMostFlagged([1, 1, 0, 0], k=2, m=1)
    assert constraint.violation([0, 1]) == 1
    assert constraint.best_values(scores[None]).tolist() == [6.0]
    assert Excluding(constraint, [0]).best(scores).indices.tolist() == [1, 2]
    assert constraint.with_(m=2).best(scores).indices.tolist() == [0, 1]
    assert constraint == AtMostFlagged([1, 1, 0, 0], k=2, m=1)
    policy = C2UCB(n_features=4, seed=0)
    assert constraint.violation(policy.choose(np.eye(4), constraint, objective=Diverse(weight=1.0)).indices) == 0
    with pytest.raises(ValueError, match=r"^AtMostFlagged has groups for 4 arms, got 3$"):
        constraint.best(scores[:3])
    with pytest.raises(ValueError, match=r"^of_arm must be the number of a group for each arm, got bool$"):
        Ranks((), 0, 1, of_arm=np.array([True]))


class Untrue(AtMostFlagged):
    """Its ranks allow fewer flagged arms than it chooses."""

    def best_among(self, scores, key, arm_indices=None):
        return AtMost(self.k).best_among(scores, key, arm_indices)

    def violation(self, indices):
        return AtMost(self.k).violation(indices)


class NoGroups(AtMostFlagged):
    def __init__(self, flags, k, m):
        super().__init__(flags, k, m)
        self.ranks = replace(self.ranks, of_arm=None)


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (Untrue, "test_the_best_set_of_all_arms_is_found_from_partitions"),
        (NoGroups, "test_ranks_are_complete"),
        (lambda flags, k, m: OneOf([[0]]), "test_one_key_breaks_ties_in_best_and_in_best_among"),
    ],
)
def test_the_suite_catches_ranks_that_do_not_say_what_is_chosen(broken, check):
    class Suite(RankedConstraintContract):
        def constraint(self, rng):
            return broken(np.ones(6, dtype=np.int64), 3, 1), 6

        def _instances(self):
            return [Instance(self.constraint(None)[0], 6, [])]

    with pytest.raises(AssertionError):
        getattr(Suite(), check)()
