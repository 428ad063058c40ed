"""The best path as an integer program, where no shorter algorithm is exact."""

from collections.abc import Iterator

import numpy as np
from numpy.random import Generator
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, vstack

from armful.checks import FloatArray, IntArray
from armful.constraints.path_network import Network

SCALE = 2.0**24
"""Gains are multiplied by this: HiGHS stops within 1e-6 of the best, which is then less than 1e-13 of a gain of 1."""

TIE = 2.0**-36
"""Gains are shaken by up to this much, so that ties fall at random."""


def best_by_program(network: Network, gains: FloatArray, required: IntArray, rng: Generator) -> IntArray | None:
    """The arcs of a best simple path through the required arms; None if there is none.

    gains: `(n_arcs,)`, of any sign, the largest about 1 in size.

    One 0/1 variable for each arc, as much flow into a node as out of it and at most 1. What this leaves beside the
    path are cycles; each that shows up is cut off, and the program solved anew: whoever visits a node of it
    must enter it from outside.
    """
    shaken = gains + TIE * rng.uniform(-1, 1, gains.size)
    rules = [_flow(network), _one_way(network)] + ([_required(network, required)] if required.size else [])
    while True:
        answer = milp(
            -SCALE * shaken,
            integrality=np.ones(gains.size, dtype=np.int64),
            bounds=Bounds(0, 1),
            constraints=rules,
            options={"mip_rel_gap": 0.0, "presolve": False},  # on a ring of 1,000 nodes presolve takes 20 seconds
        )
        if answer.status == 2:
            return None
        if answer.x is None or answer.status != 0:
            raise RuntimeError(f"HiGHS could not solve the integer program of a path: {answer.message}")
        path, *cycles = _parts(network, np.flatnonzero(answer.x > 0.5))
        if not cycles:
            return path
        rules += [_entered(network, cycle) for cycle in cycles]


def _flow(network: Network) -> LinearConstraint:
    arcs, one = np.arange(network.arm.size), np.ones(network.arm.size)
    shape = (network.n_nodes, network.arm.size)
    into = csr_array((one, (network.head, arcs)), shape=shape)
    out = csr_array((one, (network.tail, arcs)), shape=shape)
    surplus = np.zeros(network.n_nodes)
    surplus[network.source], surplus[network.target] = 1, -1
    most = np.ones(network.n_nodes)
    return LinearConstraint(
        vstack([out - into, into], format="csr"), np.r_[surplus, np.zeros_like(most)], np.r_[surplus, most]
    )


def _one_way(network: Network) -> LinearConstraint:
    """Between two nodes at most one arc, in one direction: the shortest cycles are cut off from the start."""
    low, high = np.minimum(network.tail, network.head), np.maximum(network.tail, network.head)
    pairs, pair = np.unique(low * network.n_nodes + high, return_inverse=True)
    rows = csr_array((np.ones(pair.size), (pair, np.arange(pair.size))), shape=(pairs.size, pair.size))
    return LinearConstraint(rows[np.bincount(pair) > 1], 0, 1)


def _required(network: Network, required: IntArray) -> LinearConstraint:
    """Each required arm once, in either direction where it has two."""
    arcs = np.flatnonzero(np.isin(network.arm, required))
    rows = np.searchsorted(required, network.arm[arcs])
    return LinearConstraint(
        csr_array((np.ones(arcs.size), (rows, arcs)), shape=(required.size, network.arm.size)), 1, 1
    )


def _entered(network: Network, cycle: IntArray) -> LinearConstraint:
    """For each node of the cycle: no more flow into it than enters the cycle's nodes from outside."""
    nodes = network.head[cycle]
    within = np.zeros(network.n_nodes, dtype=np.bool_)
    within[nodes] = True
    entering = (within[network.head] & ~within[network.tail]).astype(np.float64)
    into_each = (network.head == nodes[:, None]).astype(np.float64)
    return LinearConstraint(csr_array(entering - into_each), 0, np.inf)


def _parts(network: Network, arcs: IntArray) -> Iterator[IntArray]:
    """The path among the chosen arcs, in order, then each cycle."""
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
