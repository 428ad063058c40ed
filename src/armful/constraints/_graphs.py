"""Graphs whose edges are the arms: nodes are numbered, and named in messages."""

from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from armful.checks import FloatArray, IntArray
from armful.constraints._checks import numbered, plain, with_others


class Graph(Protocol):
    """A graph of networkx, of any of its four kinds, or one with the same methods."""

    @property
    def nodes(self) -> Iterable[Hashable]:
        """The nodes."""

    @property
    def edges(self) -> Any:
        """The edges: called, pairs of nodes; with `keys=True` on a multigraph, (tail, head, key)."""

    def is_directed(self) -> bool:
        """Return whether edges lead one way only."""

    def is_multigraph(self) -> bool:
        """Return whether edges may be parallel, and have keys."""


Edges = Iterable[tuple[Hashable, Hashable]] | NDArray[np.generic] | Graph


class KeyedEdges(list[tuple[Hashable, Hashable]]):
    """Pairs of nodes of a multigraph, with `keys`."""

    keys: list[Hashable]


def is_graph(edges: object) -> TypeGuard[Graph]:
    """Return whether this is a graph, not a list of edges."""
    return all(hasattr(edges, name) for name in ("nodes", "edges", "is_directed", "is_multigraph"))


def keep_edges(edges: Edges) -> list[tuple[Hashable, Hashable]] | NDArray[np.generic]:
    """Return the edges as a list of pairs or an `(n_arms, 2)` array, safe from later changes."""
    pairs: list[tuple[Hashable, Hashable]] | NDArray[np.generic]
    if is_graph(edges):
        pairs = _edges_of(edges)
    elif isinstance(edges, KeyedEdges):
        return edges
    elif isinstance(edges, np.ndarray):
        if edges.ndim != 2 or edges.shape[1] != 2:
            raise ValueError(f"edges must be pairs of nodes, (n_arms, 2), got an array of shape {edges.shape}")
        pairs = edges.copy() if edges.dtype.kind in "iubUS" else [(tail, head) for tail, head in edges.tolist()]
    else:
        pairs = _pairs(edges)
    if len(pairs) == 0:
        raise ValueError("edges must be pairs of nodes, got none")
    return pairs


def _edges_of(graph: Graph) -> list[tuple[Hashable, Hashable]]:
    if not graph.is_multigraph():
        return [(tail, head) for tail, head in graph.edges()]
    keyed = list(graph.edges(keys=True))
    pairs = KeyedEdges((tail, head) for tail, head, _ in keyed)
    pairs.keys = [key for _, _, key in keyed]
    return pairs


def _pairs(edges: Any) -> list[tuple[Hashable, Hashable]]:
    try:
        pairs = list(edges)
    except TypeError:
        raise ValueError(f"edges must be pairs of nodes or a networkx graph, got {type(edges).__name__}") from None
    for i, pair in enumerate(pairs):
        try:
            tail, head = pair
        except (TypeError, ValueError):
            raise ValueError(f"edges must be pairs of nodes, edge {i} is {pair!r}") from None
        pairs[i] = (tail, head)
    return pairs


def edge_names(edges: Any, labels: Sequence[Hashable], ends: IntArray, arms: IntArray, *, directed: bool) -> list[str]:
    """Return the names of these arms, like `home -> park`, or `home - park` if they lead both ways.

    Names of parallel edges also have their keys in a multigraph, else their arm indices.
    """
    joins = ends if directed else np.sort(ends, axis=1)
    parallel = with_others(joins[:, 0], joins[:, 1])[arms].tolist()
    names = []
    for arm, (tail, head), is_parallel in zip(arms.tolist(), ends[arms].tolist(), parallel, strict=True):
        name = f"{plain(labels[tail])} {'->' if directed else '-'} {plain(labels[head])}"
        if is_parallel:
            name += f" ({plain(edges.keys[arm])})" if isinstance(edges, KeyedEdges) else f" (arm {arm})"
        names.append(name)
    return names


def number_nodes(pairs: list[tuple[Hashable, Hashable]] | NDArray[np.generic]) -> tuple[list[Hashable], IntArray]:
    """Return the nodes in order of appearance, and the numbers of each edge's two nodes, `(n_arms, 2)`."""
    nodes = pairs.ravel() if isinstance(pairs, np.ndarray) else chain.from_iterable(pairs)
    try:
        labels, numbers = numbered(nodes)
    except TypeError:
        raise ValueError("nodes must be hashable labels: numbers, strings, tuples") from None
    return labels, numbers.reshape(-1, 2)


def adjacency(tail: IntArray, head: IntArray, n_nodes: int) -> "csr_array[np.float64]":
    """Return a sparse `(n_nodes, n_nodes)` matrix that is positive wherever there is an edge."""
    return csr_array((np.ones(tail.size), (tail.astype(np.int32), head.astype(np.int32))), shape=(n_nodes, n_nodes))


def rows_of_graph(weights: FloatArray, heads: IntArray, begins: IntArray) -> "csr_array[np.float64]":
    """Return a square sparse matrix whose row i holds `weights` at the columns `heads`, from `begins[i]` on.

    scipy's graph algorithms take indices of 32 bits; not every version converts others by itself.
    """
    n_nodes = begins.size - 1
    return csr_array((weights, heads.astype(np.int32), begins.astype(np.int32)), shape=(n_nodes, n_nodes))


def simple_rows(tail: IntArray, head: IntArray, n_nodes: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return the edges as rows of a sparse matrix with parallel edges merged.

    These are the edges by tail and head `(n_edges,)`, where parallel ones begin in that order, where the rows begin
    among those, and their heads.
    """
    order = np.lexsort((head, tail))
    tail, head = tail[order], head[order]
    firsts = np.flatnonzero(np.concatenate([[True], (tail[1:] != tail[:-1]) | (head[1:] != head[:-1])]))
    return order, firsts, np.searchsorted(tail[firsts], np.arange(n_nodes + 1)), head[firsts]


def some_of(names: Sequence[object], most: int = 5, *, bare: bool = False) -> str:
    """Return a few of them: `'a', 'b' and 7 more`; without quotation marks if `bare`."""
    shown = ", ".join(str(name) if bare else repr(name) for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
