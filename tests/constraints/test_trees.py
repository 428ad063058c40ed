import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree

from armful import InfeasibleError
from armful.constraints._graphs import adjacency, rows_of_graph
from armful.constraints._milp_rows import sparse
from armful.constraints.trees import SpanningTree
from armful.testing import ConstraintContract
from armful.testing._expectations import FALSE_ALARM, tail_bound

TRIANGLE = ["ab", "bc", "ac"]


def connects(edges, nodes):
    """Whether the edges lead from the first node to all others, by growing what is reached."""
    reached = {nodes[0]}
    for _ in nodes:
        reached |= {node for edge in edges if reached & set(edge) for node in edge}
    return reached >= set(nodes)


def all_trees(edges):
    """As many edges as it takes that lead everywhere, of all combinations."""
    nodes = list(dict.fromkeys(itertools.chain(*edges)))
    sizes = itertools.combinations(range(len(edges)), len(nodes) - 1)
    return [members for members in sizes if connects([edges[i] for i in members], nodes)]


class TestSpanningTreeContract(ConstraintContract):
    def constraint(self, rng):
        while True:
            edges = rng.integers(0, int(rng.integers(2, 6)), (int(rng.integers(1, 8)), 2))
            if np.unique(edges).size > 1 and all_trees(edges.tolist()):
                return SpanningTree(edges), len(edges)


NUMBERS = {
    "tied": st.integers(-3, 3).map(lambda i: i / 2),
    "zero": st.just(0.0),
    "huge": st.integers(-3, 3).map(lambda i: i * 2.0**1000),
    "tiny": st.integers(-3, 3).map(lambda i: i * 2.0**-1020),
    "of all sizes": st.builds(lambda i, e: i * 2.0**e, st.integers(-3, 3), st.integers(-12, 12)),
}


@st.composite
def questions(draw):
    """A small graph with parallel edges and loops, scores, and arms that must and must not be used."""
    n_nodes = draw(st.integers(2, 6))
    node = st.integers(0, n_nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), min_size=1, max_size=9))
    numbers = NUMBERS[draw(st.sampled_from(list(NUMBERS)))]
    scores = np.array(draw(st.lists(numbers, min_size=len(edges), max_size=len(edges))))
    fate = draw(st.lists(st.sampled_from(["free", "free", "free", "must", "not"]), min_size=len(edges)))[: len(edges)]
    return edges, scores, [[i for i, f in enumerate(fate) if f == kind] for kind in ("must", "not")]


def check_against_enumeration(question):
    edges, scores, (required, excluded) = question
    nodes = list(dict.fromkeys(itertools.chain(*edges)))
    trees = all_trees(edges)
    if len(nodes) == 1:
        with pytest.raises(ValueError, match=r"^SpanningTree needs two nodes or more"):
            SpanningTree(edges)
        return
    if not trees:
        with pytest.raises(InfeasibleError, match=rf"^the edges given do not lead from node {nodes[0]} to"):
            SpanningTree(edges)
        return
    constraint = SpanningTree(edges)
    answer = constraint.best(scores)
    assert tuple(answer.indices.tolist()) in trees
    assert answer.value == max(scores[list(tree)].sum() for tree in trees)  # few bits each: exact
    assert constraint.k == len(nodes) - 1

    allowed = [tree for tree in trees if set(required) <= set(tree) and not set(excluded) & set(tree)]
    if allowed:
        answer = constraint.best_given(scores, None, required=required, excluded=excluded)
        assert tuple(answer.indices.tolist()) in allowed
        assert answer.value == max(scores[list(tree)].sum() for tree in allowed)
    else:
        with pytest.raises(InfeasibleError, match=r"^(the required edges close|the edges that are not excluded)"):
            constraint.best_given(scores, None, required=required, excluded=excluded)


@settings(max_examples=250, deadline=None)
@given(questions())
def test_the_answer_is_the_best_of_all_trees(question):
    check_against_enumeration(question)


@pytest.mark.slow
@settings(max_examples=6000, deadline=None)
@given(questions())
def test_the_answer_is_the_best_of_all_trees_of_thousands_of_graphs(question):
    check_against_enumeration(question)


@settings(max_examples=60, deadline=None)
@given(questions())
def test_only_trees_have_no_violation(question):
    edges, _, _ = question
    edges = edges[:7]
    trees = all_trees(edges)
    if not trees or len(set(itertools.chain(*edges))) == 1:
        return
    constraint = SpanningTree(edges)
    for size in range(len(edges) + 1):
        for members in itertools.combinations(range(len(edges)), size):
            assert (constraint.violation(members) == 0.0) == (members in trees)


@pytest.mark.parametrize(
    ("indices", "violation"),
    [
        ([0, 1], 0.0),
        ([1, 0], 0.0),
        ([0], 1.0),
        ([], 2.0),
        ([0, 1, 2], 1.0),
        ([0, 0, 1], 1.0),
        ([0, 3], 2.0),
        ([3], 3.0),
    ],
)
def test_a_violation_counts_what_is_repeated_closes_a_cycle_or_is_missing(indices, violation):
    assert SpanningTree([*TRIANGLE, "aa"]).violation(indices) == violation


# -- traps ---------------------------------------------------------------------------------------


def test_edges_that_weigh_nothing_are_not_lost():
    edges, weights = np.array([[0, 1], [1, 2], [0, 2]]), np.array([0.0, 1.0, 2.0])
    lost = minimum_spanning_tree(coo_array((weights, edges.T.astype(np.int32)), shape=(3, 3)).toarray())
    assert lost.sum() == 3.0  # what scipy makes of it: the edge of weight 0 is no edge
    answer = SpanningTree(edges).best(-weights)
    assert (answer.indices.tolist(), answer.value) == ([0, 1], -1.0)
    assert SpanningTree(edges).best(np.zeros(3)).indices.size == 2


def test_parallel_edges_are_not_summed_and_loops_never_chosen():
    edges = ["ab", "ba", "ab", "bb", "bc", "cc"]
    answer = SpanningTree(edges).best([1.0, 3.0, 2.0, 99.0, -5.0, 99.0])
    assert (answer.indices.tolist(), answer.value) == ([1, 4], -2.0)


def test_a_graph_in_parts_is_refused_and_not_answered_by_a_forest():
    edges = np.array([[0, 1], [2, 3]])
    assert (
        minimum_spanning_tree(coo_array((np.ones(2), edges.T.astype(np.int32)), shape=(4, 4)).tocsr()).nnz == 2
    )  # a forest
    with pytest.raises(InfeasibleError) as refusal:
        SpanningTree(edges)
    assert str(refusal.value) == "the edges given do not lead from node 0 to 2, 3"


def test_only_the_order_of_scores_matters():
    """1e300 beside 1e-300: sums would lose the small ones, ranks do not."""
    edges = ["ab", "bc", "bc", "cd", "cd"]
    assert SpanningTree(edges).best([1e300, 1e-300, 2e-300, -1e300, -1e-300]).indices.tolist() == [0, 2, 4]


# -- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([], "edges must be pairs of nodes, got none"),
        (["ab", "abc"], "edges must be pairs of nodes, edge 1 is 'abc'"),
        (np.zeros(4, dtype=int), "edges must be pairs of nodes, (n_arms, 2), got an array of shape (4,)"),
        (["aa"], "SpanningTree needs two nodes or more, 'a' is the only one"),
        (["ab", "cd"], "the edges given do not lead from node 'a' to 'c', 'd'"),
        (
            ["ab", "cd", "ef", "gh", "hi"],
            "the edges given do not lead from node 'a' to 'c', 'd', 'e', 'f', 'g' and 2 more",
        ),
    ],
)
def test_every_wrong_graph_gets_one_sentence(edges, message):
    with pytest.raises(ValueError) as refusal:
        SpanningTree(edges)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("given_arms", "message"),
    [
        ({"required": [0, 1, 2]}, "the required edges close a cycle: a - b, b - c, a - c"),
        ({"required": [3]}, "the required edges close a cycle: a - a"),
        ({"excluded": [0, 2]}, "the edges that are not excluded do not lead from node 'a' to 'b', 'c'"),
        ({"required": [1, 2], "excluded": [2]}, "a - c is both required and excluded"),
    ],
)
def test_what_cannot_be_required_or_excluded_is_said(given_arms, message):
    with pytest.raises(InfeasibleError) as refusal:
        SpanningTree([*TRIANGLE, "aa"]).best_given(np.ones(4), **given_arms)
    assert str(refusal.value) == message


def test_arms_and_scores_must_be_there():
    constraint = SpanningTree(TRIANGLE)
    with pytest.raises(ValueError, match=r"^SpanningTree has 3 edges, got 2 arms$"):
        constraint.best(np.ones(2))
    with pytest.raises(ValueError, match=r"^indices must be from 0 to 2, got"):
        constraint.violation([0, 3])
    with pytest.raises(ValueError, match=r"^required arms must be from 0 to 2, got"):
        constraint.best_given(np.ones(3), required=[3])


# -- the rest ------------------------------------------------------------------------------------


def test_equal_edges_are_taken_equally_often():
    """A triangle leaves out each edge a third of the time. False alarms: 1e-6 by Chernoff, any seed."""
    constraint, rng = SpanningTree(TRIANGLE), np.random.default_rng(0)
    taken = sum(np.bincount(constraint.best(np.full(3, -7.0), rng=rng).indices, minlength=3) for _ in range(600))
    assert 2 * 3 * min(tail_bound(int(n), 600, 2 / 3) for n in taken) >= FALSE_ALARM


def test_a_copy_with_a_change_and_through_pickle():
    constraint = SpanningTree(TRIANGLE)
    assert constraint.with_(edges=["ab", "bc"]).best([1.0, 1.0]).indices.tolist() == [0, 1]
    assert pickle.loads(pickle.dumps(constraint)).best([3.0, 1.0, 2.0]).indices.tolist() == [0, 2]
    assert not list(constraint.limits([0, 1]))
    assert repr(constraint) == "SpanningTree(edges=[('a', 'b'), ('b', 'c'), ('a', 'c')])"


def test_a_large_graph_is_solved_as_by_scipy():
    rng = np.random.default_rng(0)
    edges = np.concatenate(
        [rng.integers(0, 2000, (20_000, 2)), np.stack([np.arange(1999), np.arange(1, 2000)], axis=1)]
    )
    edges = np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0)
    weights = rng.random(len(edges)) + 0.1  # positive and not parallel: nothing for scipy to trip over
    expected = minimum_spanning_tree(coo_array((weights, edges.T.astype(np.int32)), shape=(2000, 2000)).tocsr()).sum()
    answer = SpanningTree(edges).best(-weights)
    assert answer.value == pytest.approx(-expected)
    assert SpanningTree(edges).violation(answer.indices) == 0.0


def test_scipy_is_given_indices_of_32_bits():
    """Not every version of its graph algorithms and solvers converts others by itself."""
    ends = np.array([0, 1, 2])
    begins = np.array([0, 1, 2, 3])
    graphs = [
        adjacency(ends, ends[::-1], 3),
        rows_of_graph(np.ones(3), ends, begins),
        sparse((np.ones(3), (ends, ends))),
    ]
    graphs.append(sparse((np.ones(3), ends, begins), shape=(3, 3)))
    for graph in graphs:
        assert (graph.indices.dtype, graph.indptr.dtype) == (np.int32, np.int32)
        assert graph.nnz == 3
