"""The part of a graph that its paths can use, and the largest sum of gains to each of its nodes."""

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
from armful.constraints._graphs import adjacency, rows_of_graph

FEW_ARCS = 700
"""With no more arcs than this, Dijkstra's algorithm in Python is the faster one."""


@dataclass(frozen=True, eq=False)
class Network:
    """Arcs from a source to a target, every node of which lies on some way between them.

    tail, head, arm: `(n_arcs,)`, in rising order of head: where an arc begins and ends, and which arm it is. No arc
    enters the source, leaves the target or stays where it is, since no simple path uses such a one.
    A label of a node is the largest sum of gains of a path from the source to it; gains are `(n_arcs,)`.
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
        """What remains of the arcs once useless ones are dropped, its nodes numbered anew; None if there is no way."""
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

    def only(self, arcs: NDArray[np.bool_]) -> Self | None:
        """The network of some of the arcs; None if there is no way left."""
        return self.between(self.source, self.target, self.tail[arcs], self.head[arcs], self.arm[arcs], self.n_nodes)

    def through(self, required: IntArray) -> Self | None:
        """What remains of a network without cycles when every path must use the required arms; None if none can.

        In the order of `places`, every path leaves the nodes up to a required arc's tail by one arc: by that one.
        """
        places = np.array(self.places)
        keep = np.ones(self.arm.size, dtype=np.bool_)
        for arm in required.tolist():
            begin = places[self.tail[self.arm == arm]]
            keep &= (places[self.tail] > begin) | (places[self.head] <= begin) | (self.arm == arm)
        return self.only(keep)

    @cached_property
    def n_arms(self) -> int:
        """How many arms some arc stands for."""
        return int(np.unique(self.arm).size)

    @cached_property
    def begins(self) -> IntArray:
        """Where the arcs into each node begin, `(n_nodes + 1,)`."""
        return np.searchsorted(self.head, np.arange(self.n_nodes + 1))

    @cached_property
    def places(self) -> list[int] | None:
        """The place of each node in an order in which every arc leads forward; None if there is a cycle."""
        following: list[list[int]] = [[] for _ in range(self.n_nodes)]
        for tail, head in zip(self.tail.tolist(), self.head.tolist(), strict=True):
            following[tail].append(head)
        waiting = np.diff(self.begins).tolist()
        order = [self.source]
        for node in order:  # grows as it is walked
            for head in following[node]:
                waiting[head] -= 1
                if waiting[head] == 0:
                    order.append(head)
        return np.argsort(order).tolist() if len(order) == self.n_nodes else None

    @cached_property
    def longest(self) -> int:
        """The number of arcs of the longest path; with cycles, a bound on it."""
        if self.places is None:
            return min(self.n_nodes - 1, self.n_arms)
        return int(self.labels_in_order(np.ones(self.arm.size))[self.target])

    def labels_in_order(self, gains: FloatArray) -> FloatArray:
        """Labels by dynamic programming, for a network without cycles and gains of any sign."""
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
        order = np.argsort(np.array(self.places)[self.tail], kind="stable")
        return order, self.tail[order].tolist(), self.head[order].tolist()

    def labels_of_costs(self, gains: FloatArray) -> FloatArray:
        """Labels by Dijkstra's algorithm, for gains that are all zero or less; below the target's they may be too low.

        So they are in a small network, where Python is done before scipy has begun. `walk` does not look at those.
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
        leaving: list[list[tuple[int, int]]] = [[] for _ in range(self.n_nodes)]
        for arc, (tail, head) in enumerate(zip(self.tail.tolist(), self.head.tolist(), strict=True)):
            leaving[tail].append((arc, head))
        return leaving

    @cached_property
    def _entering(self) -> list[list[tuple[int, int]]]:
        """The arcs that enter each node, and where they come from."""
        entering: list[list[tuple[int, int]]] = [[] for _ in range(self.n_nodes)]
        for arc, (tail, head) in enumerate(zip(self.tail.tolist(), self.head.tolist(), strict=True)):
            entering[head].append((arc, tail))
        return entering

    @cached_property
    def _rows(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """The arcs as rows of a sparse matrix, where parallel arcs begin, and the rows with these as one."""
        order = np.lexsort((self.head, self.tail))
        tail, head = self.tail[order], self.head[order]
        firsts = np.flatnonzero(np.concatenate([[True], (tail[1:] != tail[:-1]) | (head[1:] != head[:-1])]))
        return order, firsts, np.searchsorted(tail[firsts], np.arange(self.n_nodes + 1)), head[firsts]

    def labels_of_any_sign(self, gains: FloatArray) -> FloatArray | None:
        """Labels by the algorithm of Bellman and Ford; None if going round some cycle is a gain."""
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
            if sweep & (sweep - 1) == 0 and self._goes_round(previous):
                return None
        return None

    def _goes_round(self, previous: IntArray) -> bool:
        """Whether someone who goes from each node to the one before it never comes to the source."""
        steps = 1
        while steps < self.n_nodes:
            previous, steps = previous[previous], 2 * steps
        return bool((previous != self.source).any())

    def walk(self, gains: FloatArray, labels: FloatArray, rng: Generator) -> IntArray:
        """The arcs of a best path, at random where several are as good: from the target back along tight arcs.

        An arc is tight if its gain is what its head has more than its tail. A tight cycle (of zero sum) may lead
        astray: then go back to the last node that had a choice.
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

    def short_walk(self, gains: FloatArray, labels: FloatArray, rng: Generator) -> IntArray:
        """The arcs of a best path that, of several as good, is the shortest for random lengths of the arcs.

        `walk` strays: where all arcs gain 0 its path visits most of the nodes.
        """
        tight = labels[self.tail] + gains == labels[self.head]
        lengths = np.where(tight, 1.0 - rng.random(gains.size), np.inf)
        return self.walk(-lengths, self.labels_of_costs(-lengths), rng)

    def _tight(self, gains: FloatArray, labels: FloatArray, rng: Generator, node: int) -> list[int]:
        """The tight arcs into a node, in random order."""
        begin, end = self.begins[node], self.begins[node + 1]
        tight = begin + np.flatnonzero(labels[self.tail[begin:end]] + gains[begin:end] == labels[node])
        chosen: list[int] = (rng.permutation(tight) if tight.size > 1 else tight).tolist()
        return chosen

    def _tight_of_few(self, gains: list[float], labels: list[float], rng: Generator, node: int) -> list[int]:
        """The same, faster where arcs are few."""
        label = labels[node]
        tight = [arc for arc, tail in self._entering[node] if labels[tail] + gains[arc] == label]
        if len(tight) > 1:
            rng.shuffle(tight)
        return tight


def reached(tail: IntArray, head: IntArray, n_nodes: int, start: int) -> NDArray[np.bool_]:
    """Which nodes the arcs lead to from `start`, `(n_nodes,)`."""
    found = np.zeros(n_nodes, dtype=np.bool_)
    found[breadth_first_order(adjacency(tail, head, n_nodes), start, return_predecessors=False)] = True
    return found
