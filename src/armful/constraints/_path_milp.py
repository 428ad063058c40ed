"""The best path as an integer program, where no faster algorithm is exact."""

from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from armful.checks import FloatArray, IntArray
from armful.constraints._milp import maximise
from armful.constraints._milp_rows import LinearRows, SparseMatrix, sparse
from armful.constraints._path_network import Network


def best_by_program(network: Network, gains: FloatArray, required: IntArray, rng: Generator) -> IntArray | None:
    """Return the arcs of a best simple path through the required arms, for any `gains` `(n_arcs,)`; None if none is.

    One 0/1 variable for each arc, as much flow into a node as out of it and at most 1. This allows cycles besides the
    path; each that occurs is cut off, and the program solved again: a node of it can only be visited by a path
    that enters its nodes from outside.
    """
    rows = _flow(network).stacked_with(_one_way(network)).stacked_with(_required(network, required))
    while True:
        chosen = maximise(gains, rows, rng).chosen
        if chosen is None:
            return None
        path, *cycles = _parts(network, chosen)
        if not cycles:
            return path
        for cycle in cycles:
            rows = rows.stacked_with(_entered(network, cycle))


def _flow(network: Network) -> LinearRows:
    """Return rows that conserve flow from source to target, and visit each node at most once."""
    arcs, n_nodes = np.arange(network.arm.size), network.n_nodes
    into = _matrix(network.head, arcs, n_nodes, arcs.size)
    out = _matrix(network.tail, arcs, n_nodes, arcs.size)
    surplus = np.zeros(n_nodes)
    surplus[network.source], surplus[network.target] = 1, -1
    return LinearRows(out - into, surplus, surplus).stacked_with(LinearRows(into, np.zeros(n_nodes), np.ones(n_nodes)))


def _one_way(network: Network) -> LinearRows:
    """Return rows that allow one arc between two nodes: the shortest cycles are cut off from the start."""
    low, high = np.minimum(network.tail, network.head), np.maximum(network.tail, network.head)
    pairs, pair = np.unique(low * network.n_nodes + high, return_inverse=True)
    several = _matrix(pair, np.arange(pair.size), pairs.size, pair.size)[np.bincount(pair) > 1]
    return LinearRows(several, np.zeros(several.shape[0]), np.ones(several.shape[0]))


def _required(network: Network, required: IntArray) -> LinearRows:
    """Return rows that use each required arm once, in either direction where it has two."""
    arcs = np.flatnonzero(np.isin(network.arm, required))
    matrix = _matrix(np.searchsorted(required, network.arm[arcs]), arcs, required.size, network.arm.size)
    return LinearRows(matrix, np.ones(required.size), np.ones(required.size))


def _entered(network: Network, cycle: IntArray) -> LinearRows:
    """Return a row for each node of the cycle: no more flow into it than enters the cycle's nodes from outside."""
    nodes = network.head[cycle]
    within = np.zeros(network.n_nodes, dtype=np.bool_)
    within[nodes] = True
    entering = (within[network.head] & ~within[network.tail]).astype(np.float64)
    into_each = (network.head == nodes[:, None]).astype(np.float64)
    return LinearRows(sparse(entering - into_each), np.zeros(nodes.size), np.full(nodes.size, np.inf))


def _matrix(rows: IntArray, columns: IntArray, n_rows: int, n_columns: int) -> SparseMatrix:
    """Return a sparse matrix of ones at these entries."""
    return sparse((np.ones(rows.size), (rows, columns)), shape=(n_rows, n_columns))


def _parts(network: Network, arcs: IntArray) -> Iterator[IntArray]:
    """Yield the path among the chosen arcs, in order, then each cycle."""
    leaving = dict(zip(network.tail[arcs].tolist(), arcs.tolist(), strict=True))
    begin = network.source
    while True:
        part = []
        node = begin
        while node in leaving:
            arc = leaving.pop(node)
            part.append(arc)
            node = int(network.head[arc])
        yield np.array(part, dtype=np.int64)
        if not leaving:
            return
        begin = next(iter(leaving))
