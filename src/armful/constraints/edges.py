"""Graphs whose edges are the arms: nodes by number, and by name when something must be said about them."""

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from armful.checks import FloatArray, IntArray
from armful.constraints.selection import check_indices
from armful.errors import InfeasibleError

Edges = Iterable[tuple[Hashable, Hashable]] | NDArray[np.generic]


def keep_edges(edges: Edges) -> list[tuple[Hashable, Hashable]] | NDArray[np.generic]:
    """The edges as a list of pairs or an `(n_arms, 2)` array, safe from later changes."""
    if isinstance(edges, np.ndarray):
        if edges.ndim != 2 or edges.shape[1] != 2:
            raise ValueError(f"edges must be pairs of nodes, (n_arms, 2), got an array of shape {edges.shape}")
        pairs = edges.copy() if edges.dtype.kind in "iubUS" else [(tail, head) for tail, head in edges.tolist()]
    else:
        try:
            pairs = list(edges)
        except TypeError:
            raise ValueError(f"edges must be pairs of nodes, got {type(edges).__name__}") from None
        for place, pair in enumerate(pairs):
            try:
                tail, head = pair
            except (TypeError, ValueError):
                raise ValueError(f"edges must be pairs of nodes, edge {place} is {pair!r}") from None
            pairs[place] = (tail, head)
    if len(pairs) == 0:
        raise ValueError("edges must be pairs of nodes, got none")
    return pairs


def number_nodes(pairs: list[tuple[Hashable, Hashable]] | NDArray[np.generic]) -> tuple[list[Hashable], IntArray]:
    """The nodes in order of appearance, and the number of each edge's two nodes, `(n_arms, 2)`."""
    if isinstance(pairs, np.ndarray):
        labels, first, codes = np.unique(pairs.ravel(), return_index=True, return_inverse=True)
        appearance = np.argsort(np.argsort(first))
        return labels[np.argsort(first)].tolist(), appearance[codes].astype(np.int64).reshape(-1, 2)
    numbers: dict[Hashable, int] = {}
    try:
        coded = [numbers.setdefault(node, len(numbers)) for pair in pairs for node in pair]
    except TypeError:
        raise ValueError("nodes must be hashable labels: numbers, strings, tuples") from None
    return list(numbers), np.array(coded, dtype=np.int64).reshape(-1, 2)


def adjacency(tail: IntArray, head: IntArray, n_nodes: int) -> "csr_array[np.float64]":
    """A sparse `(n_nodes, n_nodes)` with something positive wherever an edge leads."""
    return csr_array((np.ones(tail.size), (tail.astype(np.int32), head.astype(np.int32))), shape=(n_nodes, n_nodes))


def rows_of_graph(weights: FloatArray, heads: IntArray, begins: IntArray) -> "csr_array[np.float64]":
    """Return a square sparse matrix whose row i holds `weights` at the columns `heads`, from `begins[i]` on.

    scipy's graph algorithms take indices of 32 bits; not every version converts others by itself.
    """
    n_nodes = begins.size - 1
    return csr_array((weights, heads.astype(np.int32), begins.astype(np.int32)), shape=(n_nodes, n_nodes))


def some_of(names: Sequence[object], most: int = 5) -> str:
    """A few of them: `'a', 'b' and 7 more`."""
    shown = ", ".join(repr(name) for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def check_given(required: ArrayLike, excluded: ArrayLike, n_arms: int) -> tuple[IntArray, IntArray]:
    """Arms that must and must not be chosen, each once; nothing can be both."""
    must, must_not = np.unique(check_indices(required)), np.unique(check_indices(excluded))
    for name, arms in (("required", must), ("excluded", must_not)):
        if arms.size and (arms[0] < 0 or arms[-1] >= n_arms):
            raise ValueError(f"{name} arms must be from 0 to {n_arms - 1}, got {arms}")
    both = np.intersect1d(must, must_not)
    if both.size:
        raise InfeasibleError(f"arms required and excluded at once: {some_of(both.tolist())}")
    return must, must_not
