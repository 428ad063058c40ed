"""Paths and trees of networkx graphs, beside what networkx itself finds."""

import pickle

import networkx as nx
import numpy as np
import pytest

from armful import C2UCB, Assignment, InfeasibleError, Path, SpanningTree


def joined(kind, *pairs):
    graph = kind()
    graph.add_edges_from(pairs)
    return graph


KINDS = [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]


def random_graph(kind, seed, n_nodes=12):
    """A connected graph with names for nodes, edges added in random order, and a cost for each of `graph.edges`."""
    rng = np.random.default_rng(seed)
    pairs = [(i, i + 1) for i in range(n_nodes - 1)] + [(i + 1, i) for i in range(n_nodes - 1)]
    pairs += [tuple(pair) for pair in rng.integers(n_nodes, size=(20, 2)).tolist()]
    graph = kind()
    for place in rng.permutation(len(pairs)):
        tail, head = pairs[place]
        graph.add_edge(f"node {tail}", f"node {head}")
    costs = rng.random(graph.number_of_edges())
    for edge, cost in zip(graph.edges, costs, strict=True):
        graph.edges[edge]["cost"] = cost
    return graph, costs


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(10))
def test_a_path_of_a_graph_is_the_shortest_that_networkx_finds(kind, seed):
    graph, costs = random_graph(kind, seed)
    path = Path(graph, "node 0", "node 11", costs=True)
    answer = path.best(-costs)
    assert -answer.value == pytest.approx(nx.shortest_path_length(graph, "node 0", "node 11", weight="cost"))
    assert path.directed == graph.is_directed()
    assert answer.value == pytest.approx(-sum(graph.edges[list(graph.edges)[i]]["cost"] for i in answer.indices))
    assert path.with_(costs=False).best(-costs).value == pytest.approx(answer.value)
    assert pickle.loads(pickle.dumps(path)).arm_names([0, 1]) == path.arm_names([0, 1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(10))
def test_a_tree_of_a_graph_is_the_largest_that_networkx_finds(kind, seed):
    graph, costs = random_graph(kind, seed)
    answer = SpanningTree(graph).best(costs)
    whole = nx.MultiGraph()
    for edge, cost in zip(graph.edges, costs, strict=True):
        whole.add_edge(*edge[:2], cost=cost)
    tree = nx.maximum_spanning_edges(whole, weight="cost", data=True)
    assert answer.value == pytest.approx(sum(data["cost"] for *_, data in tree))


def test_edges_are_called_by_their_nodes_and_keys():
    graph = nx.MultiDiGraph()
    graph.add_edge("home", "park", key="foot")
    graph.add_edge("home", "park", key="bus")
    graph.add_edge("park", 7)
    assert Path(graph, "home", 7).arm_names([1, 2, 0]) == ["home -> park (bus)", "park -> 7", "home -> park (foot)"]
    assert SpanningTree(graph).arm_names([2]) == ["park - 7"]
    assert Path(graph, "home", 7, directed=False).arm_names([0]) == ["home - park (foot)"]
    again = [("a", "b"), ("b", "a"), ("b", "c")]
    assert SpanningTree(again).arm_names([0, 1, 2]) == ["a - b (arm 0)", "b - a (arm 1)", "b - c"]
    assert Path(again, "a", "c").arm_names([0, 1, 2]) == ["a -> b", "b -> a", "b -> c"]


def test_pairs_are_called_by_their_rows_and_columns():
    pairs = Assignment(["ann", "ann", "bob"], ["paint", "paint", 3])
    assert pairs.arm_names([0, 2]) == ["(ann, paint, arm 0)", "(bob, 3)"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Path(joined(nx.Graph, ("a", "b")), "a", "c"), "target 'c' is on no edge; the nodes are 'a', 'b'"),
        (lambda: Path(nx.Graph(), "a", "b"), "edges must be pairs of nodes, got none"),
        (
            lambda: Path(joined(nx.Graph, ("a", "b")), "a", "b", directed=True),
            "directed=True needs a graph with directions, like G.to_directed(), got an undirected one",
        ),
        (lambda: Path(joined(nx.DiGraph, ("a", "b")), "b", "a"), "no path leads from 'b' to 'a'; no edge leaves it"),
        (
            lambda: SpanningTree(nx.disjoint_union(nx.path_graph(2), nx.empty_graph(2))),
            "no edge leads to 2, 3, so no tree connects every node",
        ),
    ],
)
def test_what_a_graph_lacks_is_said(make, message):
    with pytest.raises((ValueError, InfeasibleError)) as refusal:
        make()
    assert str(refusal.value) == message


def test_a_choice_from_a_graph_is_explained_by_its_edges():
    graph = joined(nx.DiGraph, ("home", "park"), ("home", "mill"), ("park", "work"), ("mill", "work"))
    policy = C2UCB(n_features=4, radius=0.0, seed=0)
    policy.learn(np.eye(4), [-1.0, -2.0, -1.0, -2.0], weights=np.full(4, 1e9))
    explained = policy.choose(np.eye(4), Path(graph, "home", "work")).explain()
    assert [record["arm"] for record in explained.arms] == ["home -> park", "park -> work"]
    assert explained.arms[0]["runner_up"] == ["home -> mill", "mill -> work"]
    assert "home -> mill, mill -> work" in str(explained)
