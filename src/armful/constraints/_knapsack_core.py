"""The knapsack problem: dynamic programming in integers; HiGHS where that takes too long, or `at_most` binds.

For any prices `unit >= 0` of a unit of budget and `slot >= 0` of one of `at_most` slots, no set has a larger value than
`U = unit * capacity + slot * at_most + sum(max(score - unit * cost - slot, 0))`, and a set that differs from this
relaxation in an arm has at least `|score - unit * cost - slot|` less than U (Dantzig 1957, Balas and Zemel 1980).
Prices that make U small therefore decide every arm whose loss exceeds U minus a value already found.
"""

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from armful.checks import FloatArray, IntArray
from armful.constraints._knapsack_states import Mask, States
from armful.constraints._milp import are_whole, maximise
from armful.constraints._milp_rows import LinearRows, sparse

ROUNDING = 1e-11
"""Values that differ by less, relative to their size, are equal."""

BITS = 59
"""Sums of values, and of costs, are below 2^BITS and a few more."""

MOST_STATES = 2**25
"""States of the dynamic programme in all; what needs more goes to HiGHS."""

FEW_ARMS = 12
"""Up to so many arms that could be in a best set or not, all their sets are tried, to take a best one at random."""

CORE_SIZES = (200, 2_000)


@dataclass(frozen=True, eq=False)
class Problem:
    """Arms of positive score that each fit alone; `scores` and integer `costs` are `(n_arms,)`."""

    scores: FloatArray
    costs: IntArray
    capacity: int
    at_most: int
    deadline: float

    def late(self) -> bool:
        """Return whether the deadline has passed."""
        return time.monotonic() > self.deadline


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The relaxation at some prices: arms with a gain are `taken`; deciding otherwise about one costs its `loss`."""

    unit: float
    taken: Mask
    loss: FloatArray
    bound: float


@dataclass(frozen=True, eq=False)
class Packing:
    """A set that fits, as a mask, its value, and an upper bound on the values of all sets that fit."""

    chosen: Mask
    value: float
    bound: float
    proved: bool = False


def best_that_fits(problem: Problem, rng: Generator) -> Packing:
    """Return the set with the largest sum of scores; at the deadline the best found so far, with a bound.

    Ties are broken at random: among all best sets where few arms are undecided, and by exchanging chosen arms for
    others of the same score that fit.
    """
    if int(problem.costs.sum()) <= problem.capacity and problem.scores.size <= problem.at_most:
        value = float(problem.scores.sum())
        return Packing(np.ones(problem.scores.size, dtype=bool), value, value, proved=True)
    found = _by_states(problem, rng)
    if found.chosen.sum() > problem.at_most:
        found = _by_prices(problem)[1]
    if not (found.proved or problem.late()):
        relaxed, other = _by_prices(problem)
        found = other if other.value > found.value else replace(found, bound=min(found.bound, other.bound))
        found = _by_highs(problem, relaxed, found, rng)
    return _exchanged(problem, found, rng)


def whole_values(scores: FloatArray) -> tuple[IntArray, float]:
    """Return scores as positive integers of a unit, and the unit; their sum is about 2^BITS at most.

    Scores that are integers of some unit (1, a cent, one cap for all) are exact; others are rounded, by less than
    1e-17 of their sum for each arm.
    """
    normal = np.ldexp(scores, -math.frexp(float(scores.max()))[1])
    exponent = BITS - math.frexp(float(normal.sum()))[1]
    values = np.maximum(np.rint(np.ldexp(normal, exponent)).astype(np.int64), 1)
    divisor = int(np.gcd.reduce(values))
    unit = math.ldexp(divisor, math.frexp(float(scores.max()))[1] - exponent)
    return values // divisor, unit


def _by_states(problem: Problem, rng: Generator) -> Packing:
    """Return the best set of any size by dynamic programming, or the best that it found before giving up."""
    paid = np.flatnonzero(problem.costs > 0)
    chosen = problem.costs == 0
    if paid.size == 0:
        return Packing(chosen, float(problem.scores.sum()), float(problem.scores.sum()), proved=True)
    values, unit = whole_values(problem.scores[paid])
    states = States(values, problem.costs[paid], problem.capacity)
    undecided = states.undecided().nonzero()[0]
    proved = undecided.size <= FEW_ARMS
    if not proved and (proved := states.search(MOST_STATES, problem.late)):
        undecided = states.undecided().nonzero()[0]
    if proved and undecided.size <= FEW_ARMS:
        best = _any_best(values, problem.costs[paid], problem.capacity, states.taken, undecided, rng)
    else:
        best = states.chosen()
    most = float(values[states.taken].sum()) + states.unit * states.left
    chosen[paid[best]] = True
    value = float(problem.scores[chosen].sum())
    bound = value if proved else max(value, float(problem.scores[problem.costs == 0].sum()) + unit * most)
    return Packing(chosen, value, bound, proved)


def _any_best(
    values: IntArray, costs: IntArray, capacity: int, taken: Mask, undecided: IntArray, rng: Generator
) -> Mask:
    """Return, at random, one of the best of all sets that differ from those taken in undecided arms alone."""
    base = taken.copy()
    base[undecided] = False
    cost, value = np.zeros((2, 2**undecided.size), dtype=np.int64)  # of every set; bit i of its index is arm i
    size = 1
    for arm_cost, arm_value in zip(costs[undecided].tolist(), values[undecided].tolist(), strict=True):
        np.add(cost[:size], arm_cost, out=cost[size : 2 * size])
        np.add(value[:size], arm_value, out=value[size : 2 * size])
        size *= 2
    value[cost > capacity - int(costs[base].sum())] = -1
    among = (value == value.max()).nonzero()[0]
    base[undecided] = (int(rng.choice(among)) >> np.arange(undecided.size)) & 1
    return base


def _by_prices(problem: Problem) -> tuple[Relaxation, Packing]:
    """Return the relaxation at the price of budget with the smallest bound, by bisection, and the best set met."""
    scores, costs, n_slots = problem.scores, problem.costs, problem.at_most
    low, high = 0.0, float((scores / np.maximum(costs, 1)).max())
    no_arms = np.zeros(scores.size, dtype=bool)
    relaxed, found = None, Packing(no_arms, 0.0, math.inf)
    for _ in range(60):
        unit = 0.0 if relaxed is None else (low + high) / 2
        gain = scores - unit * costs
        slot = max(float(np.partition(gain, -n_slots)[-n_slots]), 0.0) if n_slots < gain.size else 0.0
        bound = unit * problem.capacity + slot * n_slots + float(np.maximum(gain - slot, 0.0).sum())
        if relaxed is None or bound < relaxed.bound:
            relaxed = Relaxation(unit, gain > slot, np.abs(gain - slot), bound)
        order = np.argsort(-gain[gain >= slot])[:n_slots]
        best = np.flatnonzero(gain >= slot)[order]
        spent = np.cumsum(costs[best])
        n_fit = int(np.searchsorted(spent, problem.capacity, side="right"))
        if float(scores[best[:n_fit]].sum()) > found.value:
            chosen = no_arms.copy()
            chosen[best[:n_fit]] = True
            found = Packing(chosen, float(scores[chosen].sum()), math.inf)
        if n_fit == best.size:
            high = unit
            if unit == 0.0:
                break
        else:
            low = unit
        if problem.late():
            break
    assert relaxed is not None
    tolerance = min(ROUNDING * relaxed.bound, 0.5 if are_whole(scores) else math.inf)
    return relaxed, replace(found, bound=relaxed.bound, proved=found.value >= relaxed.bound - tolerance)


def _by_highs(problem: Problem, relaxed: Relaxation, found: Packing, rng: Generator) -> Packing:
    """Solve the core by HiGHS: first a small one for a good value, then all arms that this value leaves undecided."""
    slack = ROUNDING * relaxed.bound
    for size in (*CORE_SIZES, problem.scores.size):
        undecided = relaxed.loss <= relaxed.bound - found.value + slack
        core = np.argsort(np.where(undecided, relaxed.loss, np.inf))[: min(size, int(undecided.sum()))]
        found, core_bound = _with_core(problem, relaxed, found, core, rng)
        undecided = relaxed.loss <= relaxed.bound - found.value + slack
        undecided[core] = False
        if not undecided.any():
            bound = max(found.value, min(core_bound, relaxed.bound))
            return replace(found, bound=bound, proved=core_bound <= found.value)
        if problem.late():
            break
    return found


def _with_core(
    problem: Problem, relaxed: Relaxation, found: Packing, core: IntArray, rng: Generator
) -> tuple[Packing, float]:
    """Return the best set that agrees with the relaxation outside the core, if better, and a bound on such sets."""
    chosen = relaxed.taken.copy()
    chosen[core] = False
    capacity = problem.capacity - int(problem.costs[chosen].sum())
    n_slots = problem.at_most - int(chosen.sum())
    if capacity < 0 or n_slots < 0:
        return found, -math.inf
    base = float(problem.scores[chosen].sum())
    rows = LinearRows(
        sparse(np.stack([problem.costs[core].astype(np.float64), np.ones(core.size)])),
        np.array([-math.inf, -math.inf]),
        np.array([float(capacity), float(min(n_slots, core.size))]),
    )
    time_limit = None if problem.deadline == math.inf else max(problem.deadline - time.monotonic(), 1e-3)
    answer = maximise(problem.scores[core], rows, rng, time_limit=time_limit)
    if answer.chosen is not None:
        chosen[core[answer.chosen]] = True
        value = float(problem.scores[chosen].sum())
        if value > found.value and int(problem.costs[chosen].sum()) <= problem.capacity:
            found = Packing(chosen, value, found.bound)
    return found, found.value if answer.proved else base + answer.bound


def _exchanged(problem: Problem, found: Packing, rng: Generator) -> Packing:
    """Exchange, at random, chosen arms for others of the same score that fit."""
    scores, costs, chosen = problem.scores, problem.costs, found.chosen.copy()
    order = rng.permutation(scores.size)
    order = order[scores[order].argsort(kind="stable")]
    same = scores[order[1:]] == scores[order[:-1]]
    differ = chosen[order[1:]] != chosen[order[:-1]]
    pairs = np.flatnonzero(same & differ)
    if pairs.size == 0:
        return found
    pairs = pairs[rng.random(pairs.size) < 0.5]
    left = problem.capacity - int(costs[chosen].sum())
    for one, other in zip(order[pairs].tolist(), order[pairs + 1].tolist(), strict=True):
        if chosen[one] == chosen[other]:
            continue
        dearer = (costs[other] - costs[one]) * (1 if chosen[one] else -1)
        if dearer <= left:
            chosen[one], chosen[other] = chosen[other], chosen[one]
            left -= dearer
    return replace(found, chosen=chosen)
