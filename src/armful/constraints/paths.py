"""Paths through a graph whose edges are the arms."""

import math
import warnings
from collections import Counter
from collections.abc import Hashable

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from armful.checks import FloatArray, IntArray
from armful.constraints._checks import NO_ARMS, check_indices, repeated
from armful.constraints._graphs import Edges, edge_names, is_graph, keep_edges, number_nodes, some_of
from armful.constraints._path_network import Network, reached
from armful.constraints._restrictable import RestrictableConstraint
from armful.constraints.selection import Selection
from armful.errors import InfeasibleError

MANY_EDGES = 2000
"""An integer program on more edges than this comes with a warning."""


class Path(RestrictableConstraint):
    """The edges of a simple path (no node twice) from `source` to `target`, in the order of the path.

    Always exact. The algorithm depends on the scores and on the part of the graph between source and target: Dijkstra's
    if no score is positive (so always with `costs=True`); dynamic programming without cycles; Bellman and Ford's if
    no cycle has a positive sum; otherwise an integer program by HiGHS, exact to 1e-10 of the largest score for each
    edge of the path, which may take long and warns on more than 2,000 edges. So it is with required arms in a
    graph with cycles. `k` is the length of the longest path where there are no cycles, else an upper bound: one less
    than the number of nodes between source and target.

    Parameters
    ----------
    edges : iterable of pairs, ndarray of shape (n_arms, 2), or networkx graph
        A pair (tail, head) for each arm; a node is anything hashable. An array of integers is fastest. Of a graph, the
        arms are the edges in the order of `G.edges`. Edges may be parallel; one from a node to itself is never chosen.
    source, target : hashable
        Two nodes.
    directed : bool, optional
        Whether an edge leads from its tail to its head only, or both ways (as one arm); by default as the graph says,
        and True for pairs.
    costs : bool
        Whether scores are negated costs, so that an optimistic cost is never a gain: positive scores count as 0, in the
        choice and in `value`. Of paths that tie because edges cost nothing, a short one is drawn: the shortest for
        random lengths of the edges.

    Raises
    ------
    ValueError
        If these are not pairs of nodes.
    InfeasibleError
        If no path leads from source to target.

    Examples
    --------
    >>> streets = [("home", "park"), ("park", "work"), ("home", "work")]
    >>> Path(streets, "home", "work").best([-1.0, -1.0, -3.0]).indices
    array([0, 1])
    """

    always_exact = True
    _arms_are = "edges"
    k: int

    def __init__(
        self, edges: Edges, source: Hashable, target: Hashable, *, directed: bool | None = None, costs: bool = False
    ) -> None:
        kept = keep_edges(edges)
        if is_graph(edges):
            if directed and not edges.is_directed():
                raise ValueError(
                    "directed=True needs a graph with directions, like G.to_directed(), got an undirected one"
                )
            directed = edges.is_directed() if directed is None else directed
        directed = True if directed is None else bool(directed)
        self.options = {"edges": kept, "source": source, "target": target, "directed": directed, "costs": costs}
        self.source, self.target, self.directed = source, target, directed
        self.costs = self.only_costs = bool(costs)
        self.labels, self._ends = number_nodes(kept)
        self.n_arms = len(self._ends)
        self._source, self._target = self._number("source", source), self._number("target", target)
        if self._source == self._target:
            raise ValueError(f"source and target must be two nodes, both are {source!r}")
        tail, head = self._ends.T
        arm = np.arange(self.n_arms)
        self._arcs = (tail, head, arm) if directed else (np.r_[tail, head], np.r_[head, tail], np.r_[arm, arm])
        network = self._network_without(NO_ARMS)
        if network is None:
            raise InfeasibleError(f"no path leads from {source!r} to {target!r}; {self._from_the_source()}")
        self._network = network
        self.k = network.longest

    def _solve(
        self, scores: FloatArray, rng: Generator, required: IntArray, excluded: IntArray, X: FloatArray | None
    ) -> Selection:
        network = self._network_given(required, excluded) if required.size or excluded.size else self._network
        scores = np.minimum(scores, 0.0) if self.costs else scores
        arcs = self._best_arcs(network, _scaled(scores)[network.arm], required, rng)
        if arcs is None:
            raise InfeasibleError(self._no_path(required, excluded))
        indices = network.arm[arcs]
        return Selection(indices, float(scores[indices].sum()))

    def violation(self, indices: ArrayLike) -> float:
        """Return how many edges are repeated, missing or too many at a node, or not connected with the source."""
        chosen = check_indices(indices, self.n_arms)
        ends = self._ends[np.unique(chosen)].tolist()
        defects = self._directed_defects(ends) if self.directed else self._undirected_defects(ends)
        return float(repeated(chosen) + defects + self._stray(ends))

    def arm_names(self, indices: ArrayLike) -> list[str]:
        """Return the edges by the names of their nodes, like `home -> park`."""
        arms = check_indices(indices, self.n_arms)
        return edge_names(self.options["edges"], self.labels, self._ends, arms, directed=self.directed)

    # -- the best path -------------------------------------------------------------------------------

    def _best_arcs(self, network: Network, gains: FloatArray, required: IntArray, rng: Generator) -> IntArray | None:
        labels: FloatArray | None
        acyclic = network.topological_ranks is not None  # then _network_given has dealt with required arms
        if required.size and not acyclic:
            labels = None
        elif (gains <= 0).all():
            labels = network.labels_of_costs(gains)
        elif acyclic:
            labels = network.labels_in_order(gains)
        else:
            labels = network.labels_of_any_sign(gains)
        if labels is not None:
            walk = network.shortest_tight_path if self.costs and not gains.all() else network.tight_path
            return walk(gains, labels, rng)
        if network.n_arms > MANY_EDGES:
            reason = "some arms are required" if required.size else "some cycle has a positive sum of scores"
            hint = "require fewer arms or remove cycles" if required.size else "if scores are costs, give costs=True"
            warnings.warn(
                f"Path has {network.n_arms} edges for an integer program, which may take long, as {reason}; {hint}",
                stacklevel=5,
            )
        # scipy's optimisers take a third of a second to import, and few paths need them.
        from armful.constraints._path_milp import best_by_program  # noqa: PLC0415

        return best_by_program(network, gains, required, rng)

    def _network_given(self, required: IntArray, excluded: IntArray) -> Network:
        network: Network | None = self._network
        if excluded.size:
            network = self._network_without(excluded)
        if network is not None and required.size:
            useless = np.setdiff1d(required, network.arm)
            if useless.size:
                raise InfeasibleError(
                    f"edge {self.arm_names(useless[:1])[0]} is required, but no usable path from {self.source!r} to "
                    f"{self.target!r} uses it"
                )
            if network.topological_ranks is not None:
                network = network.through(required)
        if network is None:
            raise InfeasibleError(self._no_path(required, excluded))
        return network

    def _network_without(self, excluded: IntArray) -> Network | None:
        usable = np.isin(self._arcs[2], excluded, invert=True)
        tail, head, arm = (each[usable] for each in self._arcs)
        return Network.between(self._source, self._target, tail, head, arm, len(self.labels))

    # -- how far a set is from a path ----------------------------------------------------------------

    def _directed_defects(self, ends: list[list[int]]) -> int:
        out, into = Counter(tail for tail, _ in ends), Counter(head for _, head in ends)
        defects = abs(out[self._source] - 1) + into[self._source] + abs(into[self._target] - 1) + out[self._target]
        for node in (out.keys() | into.keys()) - {self._source, self._target}:
            defects += max(out[node], into[node], 1) - min(out[node], into[node], 1)
        return defects

    def _undirected_defects(self, ends: list[list[int]]) -> int:
        degree = Counter(node for pair in ends for node in pair)
        defects = abs(degree[self._source] - 1) + abs(degree[self._target] - 1)
        return defects + sum(abs(degree[node] - 2) for node in degree.keys() - {self._source, self._target})

    def _stray(self, ends: list[list[int]]) -> int:
        """Return how many edges are not connected with the source."""
        meeting: dict[int, list[int]] = {}
        for tail, head in ends:
            meeting.setdefault(tail, []).append(head)
            meeting.setdefault(head, []).append(tail)
        found = [self._source]
        seen = {self._source}
        for node in found:  # grows as it is walked
            new = set(meeting.get(node, ())) - seen
            seen |= new
            found.extend(new)
        return sum(tail not in seen for tail, _ in ends)

    # -- error messages ---------------------------------------------------------------------------------

    def _number(self, name: str, node: Hashable) -> int:
        try:
            return self.labels.index(node)
        except ValueError:
            raise InfeasibleError(f"{name} {node!r} is on no edge; the nodes are {some_of(self.labels)}") from None

    def _from_the_source(self) -> str:
        tail, head, _ = self._arcs
        nodes = np.flatnonzero(reached(tail, head, len(self.labels), self._source)).tolist()
        names = [self.labels[node] for node in nodes if node != self._source]
        return f"reachable are {some_of(names)}" if names else "no edge leaves it"

    def _no_path(self, required: IntArray, excluded: IntArray) -> str:
        uses, avoids = "", ""
        if required.size:
            uses = f" uses all required edges ({some_of(self.arm_names(required), bare=True)})"
        if excluded.size:
            avoids = f" avoids all excluded edges ({some_of(self.arm_names(excluded), bare=True)})"
        return f"no path from {self.source!r} to {self.target!r}{uses}{' and' if uses and avoids else ''}{avoids}"


def _scaled(scores: FloatArray) -> FloatArray:
    """Return the scores times a power of two that makes the largest about 1: exact, and sums cannot overflow."""
    exponent = math.frexp(float(np.abs(scores).max()))[1]
    return np.ldexp(scores, -exponent)
