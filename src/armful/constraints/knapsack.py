"""A budget: each arm costs something."""

import math
import time
from collections.abc import Iterator

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from armful import checks
from armful.checks import FloatArray, IntArray
from armful.constraints._checks import NO_ARMS, check_indices, repeated
from armful.constraints._knapsack_core import BITS, Problem, best_that_fits
from armful.constraints._milp_rows import TOLERANCE, whole_bound
from armful.constraints._restrictable import RestrictableConstraint
from armful.constraints.base import Limit, UnmetRestriction
from armful.constraints.selection import Selection
from armful.errors import InfeasibleError


class Knapsack(RestrictableConstraint):
    """Arms that cost no more than the budget together, none whose score is negative; in rising order of index.

    Exact, by dynamic programming in integers; scores that are not integers count to within 1e-15 of their sum. HiGHS
    solves what takes more than 2^25 states, and where `at_most` binds; its answers are as good as those of `Linear`.
    The ratio of an answer is 1 if it is proved to be the best, otherwise value / bound. Ties are broken at random where
    that is easy: among few arms, or arms of one score. Arms that score exactly 0 are added in random order while
    they fit.

    Parameters
    ----------
    costs : array_like of shape (n_arms,)
        The cost of each arm, at least 0. Integers that float64 does not hold (some above 2^53) are refused.
    budget : float
        The most that the chosen arms may cost together. Where all costs are integers it is kept exactly; otherwise,
        since sums are rounded, to within 1e-9 of it.
    at_most : int, optional
        The largest number of arms.
    time_limit : float, optional
        Seconds for one answer, which is then the best set found so far; answers then depend on the machine.

    Raises
    ------
    ValueError
        If a cost is negative or not finite, or no arm is affordable.

    Examples
    --------
    >>> Knapsack([3.0, 4.0, 5.0], 7.0).best([2.0, 2.5, 4.0]).indices
    array([0, 1])
    >>> Knapsack([3.0, 4.0, 5.0], 7.0, at_most=1).best([2.0, 2.5, 4.0]).indices
    array([2])
    """

    _arms_are = "costs"
    k: int

    def __init__(
        self, costs: ArrayLike, budget: float, *, at_most: int | None = None, time_limit: float | None = None
    ) -> None:
        self.costs = checks.exact_floats("costs", costs).copy()
        if self.costs.ndim != 1 or self.costs.size == 0:
            raise ValueError(f"costs must have shape (n_arms,), got {self.costs.shape}")
        checks.refuse_not_finite("costs", self.costs)
        if self.costs.min() < 0:
            raise ValueError(f"costs must not be negative, got {self.costs.min():g} for arm {self.costs.argmin()}")
        extreme = (self.costs > 0) & ((self.costs < 1 / checks.LARGEST) | (self.costs > checks.LARGEST))
        if extreme.any():
            raise ValueError(f"costs must be 0 or from 1e-100 to 1e+100, got {self.costs[extreme][0]:g}")
        self.n_arms = self.costs.size
        self.budget = checks.at_least_zero("budget", budget)
        checks.exact_floats("budget", budget)
        self.at_most = None if at_most is None else checks.count("at_most", at_most)
        self.time_limit = None if time_limit is None else checks.positive("time_limit", time_limit, "it is in seconds")
        self.options = {"costs": self.costs, "budget": budget, "at_most": at_most, "time_limit": time_limit}
        whole = bool((np.trunc(self.costs) == self.costs).all())
        self._most = float(whole_bound(np.array(self.budget), 1.0)) if whole else (1 + TOLERANCE) * self.budget
        self._prices, self._capacity = _in_whole_units(self.costs, self._most if whole else self.budget, whole)
        self._most_arms = self.n_arms if self.at_most is None else min(self.at_most, self.n_arms)
        spent = np.cumsum(np.sort(self._prices))
        self.k = min(int(np.searchsorted(spent, self._capacity, side="right")), self._most_arms)
        if self.k == 0:
            raise ValueError(
                f"Knapsack allows the empty set only: the cheapest arm costs {self.costs.min():g}, "
                f"the budget is {self.budget:g}"
            )

    def _solve(
        self, scores: FloatArray, rng: Generator, required: IntArray, excluded: IntArray, X: FloatArray | None
    ) -> Selection:
        deadline = math.inf if self.time_limit is None else time.monotonic() + self.time_limit
        self._refuse_too_much(required)
        allowed = np.ones(scores.size, dtype=bool)
        allowed[required] = allowed[excluded] = False
        capacity = max(self._capacity - int(self._prices[required].sum()), 0)
        n_arms = self._most_arms - required.size
        arms = np.flatnonzero(allowed & (scores > 0) & (self._prices <= capacity))
        chosen, bound, proved = self._best_of(arms, scores[arms], capacity, n_arms, deadline, rng)
        chosen = np.concatenate([required, chosen])
        others = np.flatnonzero(allowed & (scores == 0))
        if others.size:
            chosen = np.concatenate([chosen, self._that_fit(rng.permutation(others), chosen)])
        chosen.sort()
        value = float(scores[chosen].sum())
        bound += float(scores[required].sum())
        ratio = 1.0 if proved or value >= bound else value / bound if value > 0 else math.nan
        return Selection(chosen, value, ratio)

    def violation(self, indices: ArrayLike) -> float:
        """Return the cost beyond the budget, the number of arms beyond `at_most`, and of repeated arms, in all."""
        chosen = check_indices(indices, self.n_arms)
        distinct = np.unique(chosen)
        return float(self._beyond(distinct) + max(distinct.size - self._most_arms, 0) + repeated(chosen))

    def limits(self, indices: ArrayLike) -> Iterator[Limit]:
        """Return the budget, if what is left is too little for some other arm, and at_most, if it is reached."""
        chosen = check_indices(indices)
        others = np.delete(self.costs, chosen)
        left = self._most - math.fsum(self.costs[chosen].tolist())
        if others.size and others.max() > left:
            yield Limit(f"budget {self.budget:g}", self.with_(budget=self.budget + 1))
        if self.at_most is not None and chosen.size == self.at_most < self.n_arms:
            yield Limit(f"at most {self.at_most} arms", self.with_(at_most=self.at_most + 1))

    def _best_of(
        self, arms: IntArray, scores: FloatArray, capacity: int, n_arms: int, deadline: float, rng: Generator
    ) -> tuple[IntArray, float, bool]:
        """Return the best of these arms of positive score, an upper bound on values, and whether it is the best."""
        if arms.size == 0 or n_arms == 0:
            return NO_ARMS, 0.0, True
        scale = 2.0 ** min(-math.floor(math.log2(scores.max())), 1000)
        if scores.max() < 2.0**53 and (np.trunc(scores) == scores).all():
            scale = 1.0
        scaled = np.maximum(scale * scores, 1e-300)  # next to 1e200, 1e-200 vanishes, but must not become 0
        found = best_that_fits(Problem(scaled, self._prices[arms], capacity, n_arms, deadline), rng)
        return arms[found.chosen], found.bound / scale, found.proved

    def _that_fit(self, others: IntArray, chosen: IntArray) -> IntArray:
        """Return those of the others, in this order, that fit with the chosen."""
        left = self._capacity - int(self._prices[chosen].sum())
        n_arms = self._most_arms - chosen.size
        added: list[int] = []
        for arm, cost in zip(others.tolist(), self._prices[others].tolist(), strict=True):
            if len(added) == n_arms:
                break
            if cost <= left:
                added.append(arm)
                left -= cost
        return np.array(added, dtype=np.int64)

    def _beyond(self, chosen: IntArray) -> float:
        """Return how much these distinct arms cost beyond the budget; 0 if that is within the tolerance."""
        costs = self.costs[chosen].tolist()
        return max(math.fsum([*costs, -self.budget]), 0.0) if math.fsum([*costs, -self._most]) > 0 else 0.0

    def _refuse_too_much(self, required: IntArray) -> None:
        if self._beyond(required) > 0:
            spent = math.fsum(self.costs[required].tolist())
            before = f"the required arms cost {spent:.15g}, the budget is {self.budget:.15g};"
            costliest = required[np.argsort(-self.costs[required], kind="stable")]
            raise UnmetRestriction(self, before, costliest, "is the costliest of them")
        if required.size > self._most_arms:
            raise InfeasibleError(f"{required.size} arms are required, at most {self._most_arms} may be chosen")


def _in_whole_units(costs: FloatArray, budget: float, whole: bool) -> tuple[IntArray, int]:
    """Return costs and budget as integers of some unit: 1, a cent, or a very small one.

    Costs that are integers, or integers of cents, are exact. Others are rounded to 2^-BITS of their sum, and up if
    they are integers too large for that. Costs above the budget become anything above it.
    """
    most = budget if whole else (1 + TOLERANCE / 2) * budget
    payable = costs <= most
    paid, divisor = costs[payable], 1
    for decimals in range(1 if whole else 5):
        units, capacity = np.rint(paid * 10**decimals), math.floor(most * 10**decimals)
        if (np.abs(paid * 10**decimals - units) <= 1e-12 * units).all() and units.sum() < 2.0**BITS:
            divisor = max(int(np.gcd.reduce(units.astype(np.int64), initial=0)), 1)
            break
    else:
        exponent = BITS - math.frexp(float(paid.sum()))[1]
        units, capacity = np.ldexp(paid, exponent), math.floor(math.ldexp(most, exponent))
        units = np.ceil(units) if whole else np.rint(units)
    affordable = units.astype(np.int64) // divisor
    capacity = min(capacity // divisor, int(affordable.sum()))
    prices = np.full(costs.size, capacity + 1)
    prices[payable] = affordable
    return prices, capacity
