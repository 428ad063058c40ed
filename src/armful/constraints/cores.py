"""The knapsack problem, exactly: most arms are decided by bounds, what is left (the core) by dynamic programming.

For any prices `unit >= 0` of a unit of budget and `place >= 0` of a place among `at_most`, no set is worth more than
`U = unit * capacity + place * at_most + sum(max(score - unit * cost - place, 0))`, and a set that disagrees with this
relaxation about an arm is worth at least `|score - unit * cost - place|` less than U (Dantzig 1957, Balas and Zemel
1980). Prices that make U small therefore decide every arm whose loss exceeds U minus a value already found.
"""

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray
from armful.constraints.programs import Rows, maximise, sparse

Mask = NDArray[np.bool_]

TIES = 1e-12
"""Ties are broken by adding this much of the mean score to each arm, times a random number from 0 to 1."""

ROUNDING = 1e-11
"""Values that differ by less, relative to their size, are equal."""

FEW_STATES, MOST_STATES = 2_000_000, 20_000_000
"""States of the dynamic programme in all, with ties broken and without; a core that needs more goes to HiGHS."""

CORE_SIZES = (200, 2_000)


@dataclass(frozen=True, eq=False)
class Problem:
    """Arms of positive score that fit one by one. scores, costs: `(n_arms,)`."""

    scores: FloatArray
    costs: FloatArray
    capacity: float
    at_most: int
    deadline: float

    def late(self) -> bool:
        """Whether time is up."""
        return time.monotonic() > self.deadline


@dataclass(frozen=True, eq=False)
class Relaxation:
    """What prices say. taken: `(n_arms,)`, the arms that pay. loss: `(n_arms,)`, the cost of disagreeing about one."""

    unit: float
    taken: Mask
    loss: FloatArray
    bound: float


@dataclass(frozen=True, eq=False)
class Found:
    """A set that fits, as a mask, its value, and a bound on the value of every set that fits."""

    chosen: Mask
    value: float
    bound: float
    proved: bool = False


def best_that_fits(problem: Problem, rng: Generator) -> Found:
    """The set with the largest sum of scores; with a deadline perhaps not the best, but with a bound.

    Ties are broken by random numbers added to the scores. Where these make too many states (thousands of arms at one
    cap, say) the scores go in as they are, and chosen arms change places at random with others of the same score.
    """
    if problem.costs.sum() <= problem.capacity and problem.scores.size <= problem.at_most:
        value = float(problem.scores.sum())
        return Found(np.ones(problem.scores.size, dtype=bool), value, value, proved=True)
    asked = replace(problem, scores=problem.scores + TIES * problem.scores.mean() * rng.random(problem.scores.size))
    relaxed, found = _of_any_size(asked, FEW_STATES)
    if not (found.proved or problem.late()):
        asked = problem
        relaxed, found = _of_any_size(problem, MOST_STATES)
    if found.chosen.sum() > problem.at_most:
        relaxed, found = _by_prices(asked)
    if not (found.proved or problem.late()):
        found = _by_highs(asked, relaxed, found, rng)
    return _exchanged(problem, found, rng)


def _of_any_size(problem: Problem, most_states: int) -> tuple[Relaxation, Found]:
    relaxed, found = _by_density(problem)
    if found.proved:
        return relaxed, found
    return relaxed, _by_dynamic_programming(problem, relaxed, found, most_states) or found


def _by_density(problem: Problem) -> tuple[Relaxation, Found]:
    """Arms in falling order of score per cost while they fit, at_most left aside: the relaxation, and a set near it."""
    scores, costs = problem.scores, problem.costs
    with np.errstate(divide="ignore", over="ignore"):
        density = scores / costs
    order = np.argsort(-density)
    spent = np.cumsum(costs[order])
    n_fit = int(np.searchsorted(spent, problem.capacity, side="right"))
    taken = np.zeros(scores.size, dtype=bool)
    taken[order[:n_fit]] = True
    unit = float(density[order[n_fit]]) if n_fit < scores.size else 0.0
    left = problem.capacity - (float(spent[n_fit - 1]) if n_fit else 0.0)
    value = float(scores[taken].sum())
    relaxed = Relaxation(unit, taken, np.abs(scores - unit * costs), value + unit * left)
    found = _filled(problem, taken, order[n_fit:], left, relaxed.bound)
    return relaxed, replace(found, proved=found.value >= relaxed.bound)


def _filled(problem: Problem, taken: Mask, others: IntArray, left: float, bound: float) -> Found:
    """The taken arms and the first few of the others that still fit."""
    chosen = taken.copy()
    for _ in range(20):
        others = others[problem.costs[others] <= left]
        if others.size == 0:
            break
        chosen[others[0]] = True
        left -= float(problem.costs[others[0]])
        others = others[1:]
    return Found(chosen, float(problem.scores[chosen].sum()), bound)


def _by_dynamic_programming(problem: Problem, relaxed: Relaxation, found: Found, most_states: int) -> Found | None:
    """The best set of any size, or None if there are too many states.

    A state is a set that disagrees with the relaxation about some of the arms looked at so far, in rising order of
    loss. It is dropped when another costs no more and is worth no less, and when its bound is below the value found;
    costs need not be whole (Nemhauser and Ullmann 1969; the order and the bounds are Pisinger's, 1997).
    """
    sign = np.where(relaxed.taken, -1.0, 1.0)
    base = float(problem.scores[relaxed.taken].sum())
    left = problem.capacity - math.fsum(problem.costs[relaxed.taken].tolist())
    best = found.value - base
    margin = _step(problem.scores) or -1e-14 * float(problem.scores.max())  # a better set is better by this much
    order = np.argsort(relaxed.loss)
    costs, values = np.zeros(1), np.zeros(1)  # of the states, beyond the relaxation's, both rising
    history: list[tuple[int, IntArray]] = []
    n_states = 0
    for arm in order.tolist():
        if relaxed.loss[arm] > relaxed.unit * left - best - margin:
            break
        if problem.late():
            return found
        n_states += costs.size
        if n_states > most_states:
            return None
        more_costs = np.concatenate([costs, costs + sign[arm] * problem.costs[arm]])
        more_values = np.concatenate([values, values + sign[arm] * problem.scores[arm]])
        rising = np.lexsort((-more_values, more_costs))
        highest = np.maximum.accumulate(more_values[rising])
        kept = rising[np.concatenate([[True], more_values[rising[1:]] > highest[:-1]])]
        fit = int(np.searchsorted(more_costs[kept], left, side="right"))
        if fit:
            best = max(best, float(more_values[kept[fit - 1]]))
        bounds = more_values[kept] + relaxed.unit * (left - more_costs[kept])
        kept = kept[(bounds >= best + margin) | (more_values[kept] == best)]
        history.append((costs.size, kept.astype(np.int32)))
        costs, values = more_costs[kept], more_values[kept]
    fit = int(np.searchsorted(costs, left, side="right"))
    if fit == 0 or base + values[fit - 1] < found.value:
        return Found(found.chosen, found.value, found.value, proved=True)
    chosen, state = relaxed.taken.copy(), fit - 1
    for arm, (n_before, kept) in zip(order[: len(history)][::-1].tolist(), reversed(history), strict=True):
        state = int(kept[state])
        if state >= n_before:
            chosen[arm] = ~chosen[arm]
            state -= n_before
    value = float(problem.scores[chosen].sum())
    return Found(chosen, value, value, proved=True)


def _step(scores: FloatArray) -> float:
    """Nearly the smallest score if all are multiples of it, which values then are too; otherwise 0."""
    smallest = float(scores.min())
    if smallest < 1e-9 * scores.max() or (np.fmod(scores, smallest) != 0).any():
        return 0.0
    return (1 - 1e-6) * smallest


def _by_prices(problem: Problem) -> tuple[Relaxation, Found]:
    """The price of budget that makes the bound smallest, by bisection; places go to the arms that gain most from it."""
    scores, costs, places = problem.scores, problem.costs, problem.at_most
    low, high = 0.0, float((scores / np.maximum(costs, 1e-300)).max())
    nobody = np.zeros(scores.size, dtype=bool)
    relaxed, found = None, Found(nobody, 0.0, math.inf)
    for _ in range(60):
        unit = 0.0 if relaxed is None else (low + high) / 2
        gain = scores - unit * costs
        place = max(float(np.partition(gain, -places)[-places]), 0.0) if places < gain.size else 0.0
        bound = unit * problem.capacity + place * places + float(np.maximum(gain - place, 0.0).sum())
        if relaxed is None or bound < relaxed.bound:
            relaxed = Relaxation(unit, gain > place, np.abs(gain - place), bound)
        order = np.argsort(-gain[gain >= place])[:places]
        best = np.flatnonzero(gain >= place)[order]
        spent = np.cumsum(costs[best])
        n_fit = int(np.searchsorted(spent, problem.capacity, side="right"))
        if float(scores[best[:n_fit]].sum()) > found.value:
            chosen = nobody.copy()
            chosen[best[:n_fit]] = True
            found = Found(chosen, float(scores[chosen].sum()), math.inf)
        if n_fit == best.size:
            high = unit
            if unit == 0.0:
                break
        else:
            low = unit
        if problem.late():
            break
    assert relaxed is not None
    return relaxed, replace(found, bound=relaxed.bound, proved=found.value >= (1 - ROUNDING) * relaxed.bound)


def _by_highs(problem: Problem, relaxed: Relaxation, found: Found, rng: Generator) -> Found:
    """The core by HiGHS: first a small one for a good value, then all arms that this value leaves undecided."""
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
    problem: Problem, relaxed: Relaxation, found: Found, core: IntArray, rng: Generator
) -> tuple[Found, float]:
    """The best set that agrees with the relaxation outside the core, if better, and a bound on all such sets."""
    chosen = relaxed.taken.copy()
    chosen[core] = False
    capacity = problem.capacity - math.fsum(problem.costs[chosen].tolist())
    places = problem.at_most - int(chosen.sum())
    if capacity < 0 or places < 0:
        return found, -math.inf
    base = float(problem.scores[chosen].sum())
    rows = Rows(
        sparse(np.stack([problem.costs[core], np.ones(core.size)])),
        np.array([-math.inf, -math.inf]),
        np.array([capacity, float(min(places, core.size))]),
        tolerance=1e-10,
    )
    time_limit = None if problem.deadline == math.inf else max(problem.deadline - time.monotonic(), 1e-3)
    answer = maximise(problem.scores[core], rows, rng, time_limit=time_limit)
    if answer.chosen is not None:
        chosen[core[answer.chosen]] = True
        value = float(problem.scores[chosen].sum())
        if value > found.value:
            found = Found(chosen, value, found.bound)
    return found, found.value if answer.proved else base + answer.bound


def _exchanged(problem: Problem, found: Found, rng: Generator) -> Found:
    """Chosen arms and others of the same score that fit in their place, exchanged at random."""
    scores, costs, chosen = problem.scores, problem.costs, found.chosen.copy()
    order = rng.permutation(scores.size)
    order = order[np.argsort(scores[order], kind="stable")]
    same = scores[order[1:]] == scores[order[:-1]]
    differ = chosen[order[1:]] != chosen[order[:-1]]
    pairs = np.flatnonzero(same & differ & (rng.random(same.size) < 0.5))
    left = problem.capacity - math.fsum(costs[chosen].tolist())
    for one, other in zip(order[pairs].tolist(), order[pairs + 1].tolist(), strict=True):
        if chosen[one] == chosen[other]:
            continue
        dearer = (costs[other] - costs[one]) * (1 if chosen[one] else -1)
        if dearer <= left:
            chosen[one], chosen[other] = chosen[other], chosen[one]
            left -= dearer
    return replace(found, chosen=chosen)
