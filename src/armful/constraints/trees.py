"""Trees that connect every node: graphic matroids."""

from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from armful.checks import FloatArray, IntArray
from armful.constraints._checks import check_indices, check_scores, repeated
from armful.constraints._graphs import (
    Edges,
    adjacency,
    check_given,
    edge_names,
    is_graph,
    keep_edges,
    number_nodes,
    rows_of_graph,
    some_of,
)
from armful.constraints.base import Constraint, Selection
from armful.errors import InfeasibleError
from armful.randomness import as_generator


class SpanningTree(Constraint):
    """The edges of a tree that connects every node, with the largest sum of scores: bases of a graphic matroid.

    edges: an undirected edge for each arm, as pairs of nodes; a node is anything hashable. An `(n_arms, 2)` array of
        whole numbers is read fastest. Or a networkx graph, whose edges are the arms, in the order of `G.edges`,
        whichever way they lead. Edges may be parallel; one that leads from a node to itself is never chosen.

    Exact for scores of any sign and size, by Kruskal's algorithm: only the order of the scores matters, so scipy is
    given their ranks, and no edge is lost because it weighs 0. The answer is in rising order of index.

    >>> SpanningTree([("a", "b"), ("b", "c"), ("a", "c")]).best([0.0, -1.0, -2.0]).indices
    array([0, 1])
    """

    always_exact = True
    looks_at_features = False
    k: int

    def __init__(self, edges: Edges) -> None:
        kept = keep_edges(edges)
        self.options = {"edges": kept}
        self.labels, self._ends = number_nodes(kept)
        alone = set(edges.nodes).difference(self.labels) if is_graph(edges) else set()
        if alone:
            raise InfeasibleError(
                f"no edge leads to {some_of(sorted(alone, key=repr))}, so no tree connects every node"
            )
        if len(self.labels) == 1:
            raise ValueError(f"SpanningTree needs two nodes or more, {self.labels[0]!r} is the only one")
        self.k = len(self.labels) - 1
        self._refuse_disconnected(np.arange(len(self._ends)), "the edges given")

    def best(self, scores: ArrayLike, X: FloatArray | None = None, rng: Generator | None = None) -> Selection:
        """The spanning tree with the largest sum of scores."""
        return self.best_given(scores, rng)

    def best_given(
        self,
        scores: ArrayLike,
        rng: Generator | None = None,
        *,
        required: ArrayLike = (),
        excluded: ArrayLike = (),
        X: FloatArray | None = None,
    ) -> Selection:
        """The best spanning tree with every `required` arm in it and none of the `excluded`."""
        values = check_scores(scores)
        n_arms = len(self._ends)
        if values.size != n_arms:
            raise ValueError(f"SpanningTree has {n_arms} edges, got {values.size} scores")
        must, must_not = check_given(required, excluded, n_arms, self.arm_names)
        if must.size > self._rank(must):
            raise InfeasibleError(f"the required edges close a cycle: {some_of(self.arm_names(must), bare=True)}")
        if must_not.size:
            self._refuse_disconnected(np.delete(np.arange(n_arms), must_not), "the edges that are not excluded")
        order = as_generator(rng).permutation(n_arms)
        order = order[np.argsort(-values[order], kind="stable")]
        if must.size or must_not.size:  # what comes first is taken, and what comes last is never needed
            turn = np.zeros(n_arms, dtype=np.int64)
            turn[must], turn[must_not] = -1, 1
            order = order[np.argsort(turn[order], kind="stable")]
        indices = np.sort(self._first_tree(order))
        return Selection(indices, float(values[indices].sum()))

    def violation(self, indices: ArrayLike) -> float:
        """How many arms are repeated or close a cycle, and how many more it takes to connect every node."""
        chosen = check_indices(indices, len(self._ends))
        distinct = np.unique(chosen)
        rank = self._rank(distinct)
        return float(repeated(chosen) + (distinct.size - rank) + (self.k - rank))

    def arm_names(self, indices: ArrayLike) -> list[str]:
        """Return the edges by the names of their nodes, like `home - park`."""
        arms = check_indices(indices, len(self._ends))
        return edge_names(self.options["edges"], self.labels, self._ends, arms, directed=False)

    def _first_tree(self, order: IntArray) -> IntArray:
        """The arms that Kruskal takes, going through all of them in this order."""
        by_pair, firsts, begins, high = self._rows
        ranks = np.empty(order.size)
        ranks[order] = np.arange(1, order.size + 1)  # from 1: scipy takes a weight of 0 for no edge
        best = np.minimum.reduceat(ranks[by_pair], firsts)
        return order[minimum_spanning_tree(rows_of_graph(best, high, begins)).data.astype(np.int64) - 1]

    @cached_property
    def _rows(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """The arms as rows of a sparse matrix, where parallel edges begin, and the rows with these as one."""
        low, high = self._ends.min(axis=1), self._ends.max(axis=1)
        by_pair = np.lexsort((high, low))
        low, high = low[by_pair], high[by_pair]
        firsts = np.flatnonzero(np.concatenate([[True], (low[1:] != low[:-1]) | (high[1:] != high[:-1])]))
        return by_pair, firsts, np.searchsorted(low[firsts], np.arange(len(self.labels) + 1)), high[firsts]

    def _rank(self, arms: IntArray) -> int:
        """The size of the largest part of `arms` without a cycle."""
        return len(self.labels) - int(self._components(arms)[0])

    def _components(self, arms: IntArray) -> tuple[int, IntArray]:
        tail, head = self._ends[arms].T
        number, component = connected_components(adjacency(tail, head, len(self.labels)), directed=False)
        return int(number), component.astype(np.int64)

    def _refuse_disconnected(self, arms: IntArray, what: str) -> None:
        number, component = self._components(arms)
        if number > 1:
            beyond = [self.labels[node] for node in np.flatnonzero(component != component[0]).tolist()]
            raise InfeasibleError(f"{what} do not lead from node {self.labels[0]!r} to {some_of(beyond)}")
