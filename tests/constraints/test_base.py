"""What every constraint has from its base class: defaults, equality, hash, repr."""

import pickle

import numpy as np
import pytest
from scipy import sparse

import armful
from armful import (
    C2UCB,
    Assignment,
    AtMost,
    Constraint,
    Coverage,
    Diverse,
    Excluding,
    Knapsack,
    Linear,
    NestedQuotas,
    OneOf,
    Path,
    Quotas,
    Requiring,
    Selection,
    SpanningTree,
    TopK,
    overlapping_quotas,
)

EDGES = [("a", "b"), ("b", "c"), ("a", "c")]
LABELS = ["n", "n", "s"]

ALIKE = {
    "TopK": [lambda: TopK(2), lambda: TopK(np.int64(2))],
    "AtMost": [lambda: AtMost(2), lambda: AtMost(k=2)],
    "Quotas": [
        lambda: Quotas(LABELS, at_most={"n": 1, "s": 1}),
        lambda: Quotas(np.array(LABELS), at_most={"s": 1, "n": 1}),
    ],
    "NestedQuotas": [lambda: NestedQuotas({"region": LABELS}, at_most={"region": 1})] * 2,
    "OneOf": [lambda: OneOf([[0, 1], [2]]), lambda: OneOf([np.array([0, 1]), [2]])],
    "Assignment": [lambda: Assignment([0, 0, 1], LABELS), lambda: Assignment(np.array([0, 0, 1]), tuple(LABELS))],
    "Path": [lambda: Path(EDGES, "a", "c"), lambda: Path([list(edge) for edge in EDGES], "a", "c")],
    "SpanningTree": [lambda: SpanningTree(EDGES), lambda: SpanningTree(tuple(EDGES))],
    "Knapsack": [lambda: Knapsack([1, 2, 3], 4), lambda: Knapsack(np.array([1.0, 2.0, 3.0]), 4.0)],
    "Linear": [lambda: Linear([[1, 1, 0]], 0, 1), lambda: Linear(sparse.csr_array([[1, 1, 0]]), [0], [1.0])],
    "overlapping_quotas": [lambda: overlapping_quotas({"region": LABELS}, at_most={"region": 1})] * 2,
    "Excluding": [lambda: Excluding(TopK(1), [0, 2]), lambda: Excluding(TopK(1), np.array([0, 2]))],
    "Requiring": [lambda: Requiring(TopK(1), ids=["x"]), lambda: Requiring(TopK(1), ids=("x",))],
}

OTHER = {
    "TopK": lambda: TopK(3),
    "AtMost": lambda: TopK(2),
    "Quotas": lambda: Quotas(["n", "s", "s"], at_most={"n": 1, "s": 1}),
    "NestedQuotas": lambda: NestedQuotas({"city": LABELS}, at_most={"city": 1}),
    "OneOf": lambda: OneOf([[0, 1], [1]]),
    "Assignment": lambda: Assignment([0, 0, 1], LABELS, row_capacity=2),
    "Path": lambda: Path(EDGES, "a", "c", costs=True),
    "SpanningTree": lambda: SpanningTree([*EDGES, ("a", "d")]),
    "Knapsack": lambda: Knapsack([1, 2, 3], 5),
    "Linear": lambda: Linear([[1, 1, 1]], 0, 1),
    "overlapping_quotas": lambda: overlapping_quotas({"city": LABELS}, at_most={"city": 1}),
    "Excluding": lambda: Requiring(TopK(1), [0, 2]),
    "Requiring": lambda: Requiring(TopK(2), ids=["x"]),
}


@pytest.mark.parametrize("name", ALIKE)
def test_equal_constraints_are_equal_and_hash_alike(name):
    one, two = (make() for make in ALIKE[name])
    assert one == two
    assert hash(one) == hash(two)
    assert len({one, two, pickle.loads(pickle.dumps(one))}) == 1
    assert one != OTHER[name]()
    assert one != name


def test_equal_objectives_are_equal_and_hash_alike():
    for one, two, other in (
        (Diverse(weight=1), Diverse(weight=1.0, scale=1.0), Diverse(weight=2.0)),
        (Coverage([[1, 0]], weight=1.0), Coverage(np.eye(2)[:1], weight=1), Coverage([[0, 1]], weight=1.0)),
    ):
        assert one == two != other
        assert len({one, two, pickle.loads(pickle.dumps(one))}) == 1
        assert eval(repr(one), vars(armful)) == one
        assert one.with_(weight=2.0).weight == 2.0


@pytest.mark.parametrize("name", ALIKE)
def test_a_repr_says_what_was_put_in(name):
    constraint = ALIKE[name][0]()
    shown = repr(constraint)
    assert shown.startswith(type(constraint).__name__ + "(")
    for option, value in constraint.options.items():
        assert (f"{option}=" in shown) == (value is not None)
    assert len(repr(Quotas(np.arange(100_000) % 7, at_most=3))) < 120


def test_a_repr_can_be_evaluated_where_it_is_short():
    short = (TopK(2), OneOf([[0, 1], [2]]), Knapsack([1, 2, 3], 4), Quotas(LABELS, at_most=1))
    for constraint in short:
        assert eval(repr(constraint), vars(armful)) == constraint


class FirstTwo(Constraint):
    k = 2

    def best(self, scores, X=None, rng=None):
        return Selection(np.array([0, 1]), float(np.asarray(scores)[:2].sum()))

    def violation(self, indices):
        return float(sorted(indices) != [0, 1])


def test_three_things_are_enough_and_the_rest_has_defaults():
    constraint = FirstTwo()
    assert constraint.best_each(np.ones((3, 4)), [np.random.default_rng(0)] * 3)[1].tolist() == [2.0, 2.0, 2.0]
    assert constraint.best_values(np.ones((3, 4))).tolist() == [2.0, 2.0, 2.0]
    assert (constraint.ranks, constraint.only_costs, constraint.always_exact) == (None, False, False)
    assert list(constraint.limits([0, 1])) == []
    assert constraint.arm_names([0]) is None
    assert constraint != FirstTwo()  # it keeps no options to compare
    with pytest.raises(ValueError, match="objectives work with TopK"):
        constraint.growth(4)
    assert C2UCB(n_features=2, seed=0).choose(np.eye(2), constraint).indices.tolist() == [0, 1]


def test_a_subclass_that_writes_best_anew_gets_the_defaults_of_what_must_agree_with_it():
    class Last(TopK):
        def best(self, scores, X=None, rng=None):
            n = len(np.asarray(scores))
            return Selection(np.arange(n - self.k, n), float(np.asarray(scores)[-self.k :].sum()))

    last, X = Last(2), np.eye(4)
    assert last.ranks is None
    assert not last.always_exact
    assert last.best_each(np.ones((1, 4)), [np.random.default_rng(0)])[0][0].tolist() == [2, 3]
    assert last.best_values(np.array([[9.0, 9.0, 1.0, 1.0]])).tolist() == [2.0]
    assert C2UCB(n_features=4, seed=0).choose(X, last).indices.tolist() == [2, 3]

    class Named(TopK):
        """Writes nothing anew, and so keeps everything."""

    assert Named(2).ranks is not None
    assert Named(2) != TopK(2)
