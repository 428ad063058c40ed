"""The part of a graph that lies on paths, and the best paths in it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from heapq import heappop, heappush
from typing import Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order, dijkstra

from armful.checks import FloatArray, IntArray
from armful.constraints._graphs import adjacency, rows_of_graph, simple_rows

FEW_ARCS = 700
"""With no more arcs than this, Dijkstra's algorithm in Python is the faster one."""


@dataclass(frozen=True, eq=False)
class Network:
    """Arcs from a source to a target; every node lies on some walk between them.

    `tail`, `head` and `arm` `(n_arcs,)`, in rising order of head, are the ends of an arc and the arm it stands for. No
    arc enters the source, leaves the target or is a loop, since no simple path uses such a one. The label of a node is
    the largest sum of gains of a path from the source to it; gains are `(n_arcs,)`.
    """

    n_nodes: int
    source: int
    target: int
    tail: IntArray
    head: IntArray
    arm: IntArray

    @classmethod
    def between(
        cls, source: int, target: int, tail: IntArray, head: IntArray, arm: IntArray, n_nodes: int
    ) -> Self | None:
        """Return the network of the useful arcs, with its nodes renumbered; None if there is no path."""
        keep = (tail != head) & (head != source) & (tail != target)
        tail, head, arm = tail[keep], head[keep], arm[keep]
        useful = reached(tail, head, n_nodes, source) & reached(head, tail, n_nodes, target)
        if not useful[source]:
            return None
        keep = useful[tail] & useful[head]
        tail, head, arm = tail[keep], head[keep], arm[keep]
        number = np.cumsum(useful) - 1
        order = np.argsort(head, kind="stable")
        ends = (int(number[source]), int(number[target]))
        return cls(int(useful.sum()), *ends, number[tail[order]], number[head[order]], arm[order])

    def through(self, required: IntArray) -> Self | None:
        """Return the paths of an acyclic network that use the required arms; None if there are none.

        In topological order, every path leaves the nodes up to a required arc's tail by one arc: by that one.
        """
        ranks = np.array(self.topological_ranks)
        keep = np.ones(self.arm.size, dtype=np.bool_)
        for arm in required.tolist():
            begin = ranks[self.tail[self.arm == arm]]
            keep &= (ranks[self.tail] > begin) | (ranks[self.head] <= begin) | (self.arm == arm)
        return self.between(self.source, self.target, self.tail[keep], self.head[keep], self.arm[keep], self.n_nodes)

    @cached_property
    def n_arms(self) -> int:
        """The number of arms that some arc stands for."""
        return int(np.unique(self.arm).size)

    @cached_property
    def begins(self) -> IntArray:
        """Where the arcs into each node begin, `(n_nodes + 1,)`."""
        return np.searchsorted(self.head, np.arange(self.n_nodes + 1))

    @cached_property
    def topological_ranks(self) -> list[int] | None:
        """The rank of each node in a topological order; None if there is a cycle."""
        n_unseen = np.diff(self.begins).tolist()  # arcs into each node
        order = [self.source]
        for node in order:  # grows meanwhile
            for _, head in self._leaving[node]:
                n_unseen[head] -= 1
                if n_unseen[head] == 0:
                    order.append(head)
        return np.argsort(order).tolist() if len(order) == self.n_nodes else None

    @cached_property
    def longest(self) -> int:
        """The number of arcs of the longest path; with cycles, an upper bound."""
        if self.topological_ranks is None:
            return min(self.n_nodes - 1, self.n_arms)
        return int(self.labels_in_order(np.ones(self.arm.size))[self.target])

    def labels_in_order(self, gains: FloatArray) -> FloatArray:
        """Return labels by dynamic programming, for an acyclic network and gains of any sign."""
        order, tails, heads = self._forward
        labels = [-np.inf] * self.n_nodes
        labels[self.source] = 0.0
        for tail, head, gain in zip(tails, heads, gains[order].tolist(), strict=True):
            label = labels[tail] + gain
            if label > labels[head]:  # noqa: PLR1730 (max takes half as long again)
                labels[head] = label
        return np.array(labels)

    @cached_property
    def _forward(self) -> tuple[IntArray, list[int], list[int]]:
        order = np.argsort(np.array(self.topological_ranks)[self.tail], kind="stable")
        return order, self.tail[order].tolist(), self.head[order].tolist()

    def labels_of_costs(self, gains: FloatArray) -> FloatArray:
        """Return labels by Dijkstra's algorithm, for gains that are all zero or less.

        In a small network labels below the target's may be too low, which no path back from the target uses.
        """
        if gains.size <= FEW_ARCS:
            return self._labels_near_source((-gains).tolist())
        order, firsts, begins, heads = self._rows
        costs = np.minimum.reduceat(-gains[order], firsts)
        costs_to: FloatArray = dijkstra(rows_of_graph(costs, heads, begins), indices=[self.source])[0]
        return -costs_to

    def _labels_near_source(self, costs: list[float]) -> FloatArray:
        leaving, target = self._leaving, self.target
        costs_to = [np.inf] * self.n_nodes
        costs_to[self.source] = 0.0
        queue = [(0.0, self.source)]
        while queue:
            cost, node = heappop(queue)
            if cost > costs_to[target]:
                break
            if cost > costs_to[node]:
                continue
            for arc, head in leaving[node]:
                through = cost + costs[arc]
                if through < costs_to[head] and through <= costs_to[target]:
                    costs_to[head] = through
                    heappush(queue, (through, head))
        return -np.array(costs_to)

    @cached_property
    def _leaving(self) -> list[list[tuple[int, int]]]:
        """The arcs that leave each node, and where they lead."""
        return self._incident(self.tail, self.head)

    @cached_property
    def _entering(self) -> list[list[tuple[int, int]]]:
        """The arcs that enter each node, and where they come from."""
        return self._incident(self.head, self.tail)

    def _incident(self, here: IntArray, there: IntArray) -> list[list[tuple[int, int]]]:
        arcs: list[list[tuple[int, int]]] = [[] for _ in range(self.n_nodes)]
        for arc, (node, other) in enumerate(zip(here.tolist(), there.tolist(), strict=True)):
            arcs[node].append((arc, other))
        return arcs

    @cached_property
    def _rows(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        return simple_rows(self.tail, self.head, self.n_nodes)

    def labels_of_any_sign(self, gains: FloatArray) -> FloatArray | None:
        """Return labels by the algorithm of Bellman and Ford; None if some cycle has a positive sum."""
        begins, sizes = self.begins[:-1], np.diff(self.begins)
        entered = np.flatnonzero(sizes)  # all but the source
        begins, sizes = begins[entered], sizes[entered]
        labels = np.full(self.n_nodes, -np.inf)
        labels[self.source] = 0.0
        previous = np.full(self.n_nodes, self.source)
        for sweep in range(1, self.n_nodes + 1):
            offers = labels[self.tail] + gains
            best = np.maximum.reduceat(offers, begins)
            better = best > labels[entered]
            if not better.any():
                return labels
            winners = (offers == np.repeat(best, sizes)) & np.repeat(better, sizes)
            previous[self.head[winners]] = self.tail[winners]
            labels[entered[better]] = best[better]
            if sweep & (sweep - 1) == 0 and self._has_cycle(previous):
                return None
        return None

    def _has_cycle(self, previous: IntArray) -> bool:
        """Return whether some node's chain of predecessors does not lead to the source."""
        steps = 1
        while steps < self.n_nodes:
            previous, steps = previous[previous], 2 * steps
        return bool((previous != self.source).any())

    def tight_path(self, gains: FloatArray, labels: FloatArray, rng: Generator) -> IntArray:
        """Return the arcs of a best path, at random among ties: from the target back along tight arcs.

        An arc is tight if its gain is the difference of the labels of its head and its tail. Cycles of tight arcs (of
        zero sum) are left by backtracking to the last node that had a choice.
        """
        tight: Callable[[int], list[int]]
        if gains.size <= FEW_ARCS:
            tight = partial(self._tight_of_few, gains.tolist(), labels.tolist(), rng)
        else:
            tight = partial(self._tight, gains, labels, rng)
        arcs: list[int] = []
        seen = {self.target}
        choices = [tight(self.target)]
        node = self.target
        while node != self.source:
            if not choices[-1]:
                choices.pop()
                arcs.pop()
                continue
            arc = choices[-1].pop()
            node = int(self.tail[arc])
            if node not in seen:
                seen.add(node)
                arcs.append(arc)
                choices.append(tight(node))
        return np.array(arcs[::-1], dtype=np.int64)

    def shortest_tight_path(self, gains: FloatArray, labels: FloatArray, rng: Generator) -> IntArray:
        """Return the arcs of the best path that is the shortest, among ties, for random lengths of the arcs.

        Where all arcs gain 0, the path of `tight_path` would visit most of the nodes.
        """
        tight = labels[self.tail] + gains == labels[self.head]
        lengths = np.where(tight, 1.0 - rng.random(gains.size), np.inf)
        return self.tight_path(-lengths, self.labels_of_costs(-lengths), rng)

    def _tight(self, gains: FloatArray, labels: FloatArray, rng: Generator, node: int) -> list[int]:
        """Return the tight arcs into a node, in random order."""
        begin, end = self.begins[node], self.begins[node + 1]
        tight = begin + np.flatnonzero(labels[self.tail[begin:end]] + gains[begin:end] == labels[node])
        chosen: list[int] = (rng.permutation(tight) if tight.size > 1 else tight).tolist()
        return chosen

    def _tight_of_few(self, gains: list[float], labels: list[float], rng: Generator, node: int) -> list[int]:
        """Return the same, faster where there are few arcs."""
        label = labels[node]
        tight = [arc for arc, tail in self._entering[node] if labels[tail] + gains[arc] == label]
        if len(tight) > 1:
            rng.shuffle(tight)
        return tight


def reached(tail: IntArray, head: IntArray, n_nodes: int, start: int) -> NDArray[np.bool_]:
    """Return which nodes can be reached from `start`, `(n_nodes,)`."""
    found = np.zeros(n_nodes, dtype=np.bool_)
    found[breadth_first_order(adjacency(tail, head, n_nodes), start, return_predecessors=False)] = True
    return found
