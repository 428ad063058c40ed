"""Trees that connect every node: graphic matroids."""

from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from armful.checks import FloatArray, IntArray
from armful.constraints import _graphs as graphs
from armful.constraints._checks import check_indices, repeated
from armful.constraints._restrictable import RestrictableConstraint
from armful.constraints.selection import Selection
from armful.errors import InfeasibleError


class SpanningTree(RestrictableConstraint):
    """The edges of a tree that connects every node: the tree with the largest sum of scores, in rising order of index.

    The allowed sets are the bases of a graphic matroid. Exact for scores of any sign and size, by Kruskal's algorithm:
    only the order of the scores matters, so scipy is given their ranks, and no edge is lost because it weighs 0.

    Parameters
    ----------
    edges : iterable of pairs, ndarray of shape (n_arms, 2), or networkx graph
        An undirected edge for each arm, as a pair of nodes; a node is anything hashable. An array of integers is
        fastest. Of a graph, the arms are the edges in the order of `G.edges`, whichever way they lead. Edges may be
        parallel; one from a node to itself is never chosen.

    Raises
    ------
    ValueError
        If these are not pairs of nodes.
    InfeasibleError
        If the graph is not connected.

    Examples
    --------
    >>> SpanningTree([("a", "b"), ("b", "c"), ("a", "c")]).best([0.0, -1.0, -2.0]).indices
    array([0, 1])
    """

    always_exact = True
    _arms_are = "edges"
    k: int

    def __init__(self, edges: graphs.Edges) -> None:
        kept = graphs.keep_edges(edges)
        self.options = {"edges": kept}
        self.labels, self._ends = graphs.number_nodes(kept)
        alone = set(edges.nodes).difference(self.labels) if graphs.is_graph(edges) else set()
        if alone:
            raise InfeasibleError(
                f"no edge leads to {graphs.some_of(sorted(alone, key=repr))}, so no tree connects every node"
            )
        if len(self.labels) == 1:
            raise ValueError(f"SpanningTree needs two nodes or more, {self.labels[0]!r} is the only one")
        self.k, self.n_arms = len(self.labels) - 1, len(self._ends)
        self._refuse_disconnected(np.arange(self.n_arms), "the edges given")

    def _solve(
        self, scores: FloatArray, rng: Generator, required: IntArray, excluded: IntArray, X: FloatArray | None
    ) -> Selection:
        if required.size > self._rank(required):
            edges = graphs.some_of(self.arm_names(required), bare=True)
            raise InfeasibleError(f"the required edges close a cycle: {edges}")
        if excluded.size:
            self._refuse_disconnected(np.delete(np.arange(self.n_arms), excluded), "the edges that are not excluded")
        order = rng.permutation(self.n_arms)
        order = order[np.argsort(-scores[order], kind="stable")]
        if required.size or excluded.size:  # what comes first is taken, and what comes last is never needed
            turn = np.zeros(self.n_arms, dtype=np.int64)
            turn[required], turn[excluded] = -1, 1
            order = order[np.argsort(turn[order], kind="stable")]
        indices = np.sort(self._first_tree(order))
        return Selection(indices, float(scores[indices].sum()))

    def violation(self, indices: ArrayLike) -> float:
        """Return how many arms are repeated or close a cycle, and how many more it takes to connect every node."""
        chosen = check_indices(indices, self.n_arms)
        distinct = np.unique(chosen)
        rank = self._rank(distinct)
        return float(repeated(chosen) + (distinct.size - rank) + (self.k - rank))

    def arm_names(self, indices: ArrayLike) -> list[str]:
        """Return the edges by the names of their nodes, like `home - park`."""
        arms = check_indices(indices, self.n_arms)
        return graphs.edge_names(self.options["edges"], self.labels, self._ends, arms, directed=False)

    def _first_tree(self, order: IntArray) -> IntArray:
        """Return the arms that Kruskal's algorithm takes in this order."""
        by_pair, firsts, begins, high = self._rows
        ranks = np.empty(order.size)
        ranks[order] = np.arange(1, order.size + 1)  # from 1: scipy takes a weight of 0 for no edge
        best = np.minimum.reduceat(ranks[by_pair], firsts)
        return order[minimum_spanning_tree(graphs.rows_of_graph(best, high, begins)).data.astype(np.int64) - 1]

    @cached_property
    def _rows(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        return graphs.simple_rows(self._ends.min(axis=1), self._ends.max(axis=1), len(self.labels))

    def _rank(self, arms: IntArray) -> int:
        """Return the size of the largest part of `arms` without a cycle."""
        return len(self.labels) - int(self._components(arms)[0])

    def _components(self, arms: IntArray) -> tuple[int, IntArray]:
        tail, head = self._ends[arms].T
        number, component = connected_components(graphs.adjacency(tail, head, len(self.labels)), directed=False)
        return int(number), component.astype(np.int64)

    def _refuse_disconnected(self, arms: IntArray, what: str) -> None:
        number, component = self._components(arms)
        if number > 1:
            beyond = [self.labels[node] for node in np.flatnonzero(component != component[0]).tolist()]
            raise InfeasibleError(f"{what} do not lead from node {self.labels[0]!r} to {graphs.some_of(beyond)}")
