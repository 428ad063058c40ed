import pickle

import numpy as np
import pytest

from armful import (
    C2UCB,
    Assignment,
    AtMost,
    Constraint,
    Excluding,
    InfeasibleError,
    Knapsack,
    Linear,
    OneOf,
    Path,
    Quotas,
    Requiring,
    Selection,
    SpanningTree,
    Table,
    TopK,
)
from armful.testing import ConstraintContract
from tests.constraints.test_nested import random_nested


class Neighbours(Constraint):
    """A constraint of a user's own, with nothing but the three things a constraint needs."""

    k = 2

    def __init__(self, n_arms):
        self.n_arms = n_arms

    def best(self, scores, X=None, rng=None):
        scores = np.asarray(scores)
        if scores.shape != (self.n_arms,) or not np.isfinite(scores).all():
            raise ValueError("wrong scores")
        sums = scores[:-1] + scores[1:]
        i = int((rng or np.random.default_rng()).choice(np.flatnonzero(sums == sums.max())))
        return Selection(np.array([i, i + 1]), float(sums[i]))

    def violation(self, indices):
        return float(len(indices) != 2 or abs(indices[0] - indices[1]) != 1)


RING = [(0, 1), (1, 2), (2, 3), (3, 0), (1, 3), (3, 1), (2, 1)]

INNER = [
    lambda rng, n: TopK(int(rng.integers(1, n - 1))),
    lambda rng, n: AtMost(int(rng.integers(1, n))),
    lambda rng, n: Quotas(np.arange(n) % 2, at_least={0: 1}, at_most=2),
    lambda rng, n: OneOf([[0, 1], [2, 3], [1, 2, 3], [0]]),
    lambda rng, n: Neighbours(n),
    lambda rng, n: Assignment(np.arange(n) // 3, np.arange(n) % 3),
    lambda rng, n: Knapsack(rng.integers(1, 4, n), int(rng.integers(3, 8))),
    lambda rng, n: Linear(rng.integers(0, 3, (2, n)), 1, 4),
    lambda rng, n: Path([*RING[: n - 2], (0, 2), (2, 0)], 0, 2, directed=bool(rng.integers(2))),
    lambda rng, n: SpanningTree([*RING[:4], *[(0, 2)] * (n - 4)]),
    random_nested,
]


def inner(rng, n):
    return INNER[rng.integers(len(INNER))](rng, n)


def possible(make, rng):
    """Draw until some set is allowed."""
    while True:
        n_arms = int(rng.integers(5, 9))
        constraint = make(rng, n_arms)
        try:
            constraint.best(np.zeros(n_arms), rng=rng)
        except InfeasibleError:
            continue
        return constraint, n_arms


class TestExcluding(ConstraintContract):
    k_is_exact = False

    def constraint(self, rng):
        return possible(lambda rng, n: Excluding(inner(rng, n), rng.choice(n, size=2, replace=False)), rng)


class TestRequiring(ConstraintContract):
    k_is_exact = False

    def constraint(self, rng):
        return possible(lambda rng, n: Requiring(inner(rng, n), rng.choice(n, size=1)), rng)


class TestBoth(ConstraintContract):
    k_is_exact = False

    def constraint(self, rng):
        def make(rng, n):
            out, must = rng.choice(n, size=2, replace=False)
            return Requiring(Excluding(inner(rng, n), [out]), [must])

        return possible(make, rng)


@pytest.mark.slow
class TestMany(TestBoth):
    """Every kind of constraint inside, many times."""

    instances = 150


def test_a_mask_does_what_indices_do_and_a_set_too():
    scores = [5.0, 4.0, 3.0, 2.0]
    assert Excluding(TopK(2), {0, 3}).best(scores).indices.tolist() == [1, 2]
    assert set(Requiring(TopK(2), frozenset({3})).best(scores).indices.tolist()) == {0, 3}
    assert Excluding(TopK(2), [True, False, False, True]).best(scores).indices.tolist() == [1, 2]
    assert set(Requiring(TopK(2), [False, False, False, True]).best(scores).indices.tolist()) == {0, 3}


def test_the_value_is_that_of_the_scores_as_they_were():
    assert Requiring(TopK(2), [2]).best([1.0, 5.0, -7.0]).value == -2.0
    assert Excluding(AtMost(2), [0]).best([1.0, 5.0, -7.0]).value == 5.0


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (Excluding(TopK(3), [0, 1]), "no allowed set does without the excluded arms"),
        (Requiring(TopK(1), [0, 1]), "no allowed set has all 2 required arms"),
        (Requiring(Excluding(TopK(1), [0]), [0]), "arm 0 is both required and excluded"),
        (Excluding(Quotas("aabb", exactly={"a": 2}), [0]), "group 'a' needs at least 2 arms, 1 are left"),
        (Requiring(Quotas("aabb", at_most={"a": 1}), [0, 1]), "group 'a' allows 1 arms, 2 are required"),
        (Requiring(Quotas("aabb", total=1), [0, 2]), "a total of 1 arms is asked for"),
    ],
)
def test_what_cannot_be_met_is_said(constraint, message):
    with pytest.raises(InfeasibleError, match=message):
        constraint.best([1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Excluding(TopK(1), [0, 0]), "distinct indices"),
        (lambda: Excluding(TopK(1), [-1]), "distinct indices"),
        (lambda: Excluding(TopK(1), [0.5]), "whole numbers"),
        (lambda: Excluding(TopK(1), [7]).best([1.0, 2.0]), "names arm 7, 2 are there"),
    ],
)
def test_wrong_arms_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_huge_score_elsewhere_does_not_drown_the_others():
    for _ in range(20):
        assert Requiring(OneOf([[0, 1], [0, 2], [3]]), [0]).best([0.0, 1.0, 2.0, 1e17]).indices.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Excluding(TopK(1), [True, False]).best([1.0, 2.0, 3.0]), "is for 2 arms, got 3"),
        (lambda: Excluding(TopK(1), [[0], [1, 2]]), "whole numbers, or a mask"),
        (lambda: Excluding(3, [0]), "needs a constraint"),
        (lambda: Requiring(OneOf([[0], [1]]), [0, 1]).best([1.0, 2.0]), "no set of OneOf"),
    ],
)
def test_more_mistakes_get_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_restriction_passes_the_features_on():
    class NeedsFeatures(Neighbours):
        def best(self, scores, X=None, rng=None):
            assert X is not None
            return super().best(scores, X, rng)

    assert Excluding(NeedsFeatures(4), [0]).best([9.0, 1.0, 2.0, 3.0], np.eye(4)).indices.tolist() == [2, 3]


# -- ids -----------------------------------------------------------------------------------------------


def people(**options):
    """Five people whose scores are 5, 4, 3, 2 and 1, and a policy that knows it."""
    policy = C2UCB(n_features=5, radius=0.0, seed=0)
    policy.learn(np.eye(5), [5.0, 4.0, 3.0, 2.0, 1.0], weights=np.full(5, 1e9))
    return policy, Table.wrap(np.eye(5), ids=["ann", "bob", "cy", "dee", "eve"], **options)


@pytest.mark.parametrize(
    ("constraint", "chosen"),
    [
        (Excluding(TopK(2), ids=["ann"]), ["bob", "cy"]),
        (Excluding(TopK(2), ids=np.array(["bob", "ann", "bob"])), ["cy", "dee"]),
        (Requiring(TopK(2), ids={"eve"}), ["ann", "eve"]),
        (Requiring(Excluding(TopK(2), ids=["ann"]), ids=("dee",)), ["bob", "dee"]),
        (Excluding(TopK(2), ids=[]), ["ann", "bob"]),
    ],
)
def test_ids_of_a_table_are_excluded_and_required(constraint, chosen):
    policy, table = people()
    for _ in range(2):
        choice = policy.choose(table, constraint)
        assert sorted(choice.ids.tolist()) == chosen
    other = Table.wrap(np.eye(5)[::-1].copy(), ids=["eve", "dee", "cy", "bob", "ann"])
    assert sorted(policy.choose(other, constraint).ids.tolist()) == chosen  # the same people at other indices
    assert sorted(policy.choose(table, constraint).explain().arms[0]) == sorted(choice.explain().arms[0])
    assert pickle.loads(pickle.dumps(constraint)).ids == constraint.ids


def test_the_ids_of_a_table_are_searched_once(monkeypatch):
    policy, table = people()
    constraint, looks = Excluding(TopK(2), ids=["ann"]), []
    plain = Table.indices_of
    monkeypatch.setattr(Table, "indices_of", lambda self, ids: looks.append(1) or plain(self, ids))
    for _ in range(3):
        policy.choose(table, constraint)
    assert len(looks) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Excluding(TopK(1)),
            "Excluding needs arms, by their indices or a mask, or ids of a Table, and not both",
        ),
        (lambda: Requiring(TopK(1), [0], ids=["ann"]), "Requiring needs arms, by their indices or a mask, or ids"),
        (
            lambda: Excluding(TopK(1), ids="ann"),
            "ids must be a list of ids, got 'ann'; for this one alone, \\['ann'\\]",
        ),
        (lambda: Excluding(TopK(1), ids=["ann"]).best([1.0, 2.0]), "Excluding names ids, which only a Table has"),
        (lambda: people()[0].choose(np.eye(5), Requiring(TopK(1), ids=["ann"])), "Requiring names ids, which only a"),
        (
            lambda: people()[0].choose(people()[1], Excluding(TopK(1), ids=["zed"])),
            "Excluding: id 'zed' is not in the table \\(1 of 1 ids are not\\); its ids are like 'ann'",
        ),
        (
            lambda: people()[0].choose(Table.wrap(np.eye(5)), Excluding(TopK(1), ids=["zed"])),
            "Excluding: this table has no ids: wrap it with ids=..., or build it with id=...",
        ),
        (
            lambda: people()[0].choose(people()[1], Requiring(Excluding(TopK(1), [0]), ids=["ann"])),
            "'ann' is both required and excluded",
        ),
        (
            lambda: people()[0].choose(people()[1], Requiring(Neighbours(5), ids=["ann", "dee"])),
            "no allowed set has all 2 required arms; 'dee' does not fit",
        ),
        (
            lambda: Excluding(Requiring(Path([("a", "b"), ("a", "b")], "a", "b"), [0]), [0]).best([1.0, 2.0]),
            "a -> b \\(arm 0\\) is both required and excluded",
        ),
    ],
)
def test_mistakes_with_ids_get_a_sentence_with_their_names(make, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        make()
