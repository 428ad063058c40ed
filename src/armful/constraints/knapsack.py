"""A budget: each arm costs something."""

import math
import time
from collections.abc import Iterator

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from armful import checks
from armful.checks import FloatArray, IntArray
from armful.constraints.cores import Problem, best_that_fits
from armful.constraints.programs import TOLERANCE
from armful.constraints.selection import NO_ARMS, Changeable, Limit, Selection, check_indices, check_scores, repeated
from armful.errors import InfeasibleError
from armful.randomness import as_generator


class Knapsack(Changeable):
    """Arms that together cost no more than the budget, and none whose score is negative.

    costs: `(n_arms,)`, zero or more. budget: what the chosen arms may cost together (kept within 1e-9 of it).
    at_most: how many arms at most, or None for any number.
    time_limit: seconds for one answer, then the best set found so far; answers then depend on the machine.

    Exact: bounds decide most arms, dynamic programming the rest, whether costs are whole numbers or not; HiGHS where
    that takes too many states, and with `at_most` where it binds. The ratio of an answer is 1, or under a time limit
    value / bound as far as it was proved. Ties are broken at random, to within 1e-12 of the scores (1e-10 by HiGHS).
    Arms that score exactly 0 are added in random order while they fit.

    >>> Knapsack([3.0, 4.0, 5.0], 7.0).best([2.0, 2.5, 4.0]).indices
    array([0, 1])
    >>> Knapsack([3.0, 4.0, 5.0], 7.0, at_most=1).best([2.0, 2.5, 4.0]).indices
    array([2])
    """

    def __init__(
        self, costs: ArrayLike, budget: float, *, at_most: int | None = None, time_limit: float | None = None
    ) -> None:
        self.costs = checks.floats("costs", costs).copy()
        if self.costs.ndim != 1 or self.costs.size == 0:
            raise ValueError(f"costs must have shape (n_arms,), got {self.costs.shape}")
        checks.refuse_not_finite("costs", self.costs)
        if self.costs.min() < 0:
            raise ValueError(f"costs must not be negative, got {self.costs.min():g} for arm {self.costs.argmin()}")
        extreme = (self.costs > 0) & ((self.costs < 1 / checks.LARGEST) | (self.costs > checks.LARGEST))
        if extreme.any():
            raise ValueError(f"costs must be 0 or from 1e-100 to 1e+100, got {self.costs[extreme][0]:g}")
        self.budget = checks.at_least_zero("budget", budget)
        self.at_most = None if at_most is None else checks.count("at_most", at_most)
        self.time_limit = None if time_limit is None else checks.positive("time_limit", time_limit, "it is in seconds")
        self.options = {"costs": self.costs, "budget": budget, "at_most": at_most, "time_limit": time_limit}
        unit = _unit(self.costs)
        self._prices = self.costs if unit is None else np.rint(self.costs / unit)
        capacity = (1 + TOLERANCE / 2) * self.budget
        self._capacity = capacity if unit is None else float(math.floor(capacity / unit))
        self._places = self.costs.size if self.at_most is None else min(self.at_most, self.costs.size)
        spent = np.cumsum(np.sort(self._prices))
        self.k = min(int(np.searchsorted(spent, self._capacity, side="right")), self._places)
        if self.k == 0:
            raise ValueError(
                f"Knapsack allows the empty set only: the cheapest arm costs {self.costs.min():g}, "
                f"the budget is {self.budget:g}"
            )

    def __repr__(self) -> str:
        places = "" if self.at_most is None else f", at most {self.at_most}"
        return f"Knapsack({self.costs.size} arms, budget {self.budget:g}{places})"

    def best(self, scores: ArrayLike, X: FloatArray | None = None, rng: Generator | None = None) -> Selection:
        """The affordable set with the largest sum of scores, in rising order of index."""
        return self.best_given(scores, as_generator(rng), required=NO_ARMS, excluded=NO_ARMS)

    def best_given(self, scores: ArrayLike, rng: Generator, *, required: IntArray, excluded: IntArray) -> Selection:
        """The best affordable set with all the required arms and none of the excluded."""
        deadline = math.inf if self.time_limit is None else time.monotonic() + self.time_limit
        values = check_scores(scores)
        if values.size != self.costs.size:
            raise ValueError(f"Knapsack has costs for {self.costs.size} arms, got {values.size} scores")
        self._refuse_too_much(math.fsum(self.costs[required].tolist()), required.size)
        allowed = np.ones(values.size, dtype=bool)
        allowed[required] = allowed[excluded] = False
        capacity = max(self._capacity - math.fsum(self._prices[required].tolist()), 0.0)
        places = self._places - required.size
        arms = np.flatnonzero(allowed & (values > 0) & (self._prices <= capacity))
        chosen, bound, proved = self._best_of(arms, values[arms], capacity, places, deadline, rng)
        chosen = np.concatenate([required, chosen])
        others = rng.permutation(np.flatnonzero(allowed & (values == 0)))
        chosen = np.sort(np.concatenate([chosen, self._that_fit(others, chosen)]))
        value = float(values[chosen].sum())
        bound += float(values[required].sum())
        ratio = 1.0 if proved or value >= bound else value / bound if value > 0 else math.nan
        return Selection(chosen, value, ratio)

    def violation(self, indices: ArrayLike) -> float:
        """How much the arms cost beyond the budget, how many there are too many, and how many are repeated."""
        chosen = check_indices(indices, self.costs.size)
        distinct = np.unique(chosen)
        beyond = math.fsum(self.costs[distinct].tolist()) - self.budget
        beyond = 0.0 if beyond <= TOLERANCE * self.budget else beyond
        return float(beyond + max(distinct.size - self._places, 0) + repeated(chosen))

    def limits(self, indices: ArrayLike) -> Iterator[Limit]:
        """The budget, when an arm that is not chosen does not fit what is left of it; at_most, when it is reached."""
        chosen = check_indices(indices)
        others = np.delete(self.costs, chosen)
        left = self.budget - math.fsum(self.costs[chosen].tolist())
        if others.size and others.max() > left + TOLERANCE * self.budget:
            yield Limit(f"budget {self.budget:g}", self.with_(budget=self.budget + 1))
        if self.at_most is not None and chosen.size == self.at_most < self.costs.size:
            yield Limit(f"at most {self.at_most} arms", self.with_(at_most=self.at_most + 1))

    def _best_of(
        self, arms: IntArray, scores: FloatArray, capacity: float, places: int, deadline: float, rng: Generator
    ) -> tuple[IntArray, float, bool]:
        """The best of these arms of positive score, a bound on the value of any, and whether it is proved the best."""
        if arms.size == 0 or places == 0:
            return NO_ARMS, 0.0, True
        scale = 2.0 ** min(-math.floor(math.log2(scores.max())), 1000)
        scaled = np.maximum(scale * scores, 1e-300)  # beside 1e200, 1e-200 is nothing, but not 0
        found = best_that_fits(Problem(scaled, self._prices[arms], capacity, places, deadline), rng)
        return arms[found.chosen], found.bound / scale, found.proved

    def _that_fit(self, others: IntArray, chosen: IntArray) -> IntArray:
        """Those of the others, in this order, that fit beside the chosen."""
        left = self._capacity - math.fsum(self._prices[chosen].tolist())
        places = self._places - chosen.size
        added: list[int] = []
        for arm, cost in zip(others.tolist(), self._prices[others].tolist(), strict=True):
            if len(added) == places:
                break
            if cost <= left:
                added.append(arm)
                left -= cost
        return np.array(added, dtype=np.int64)

    def _refuse_too_much(self, spent: float, n_arms: int) -> None:
        if spent > (1 + TOLERANCE) * self.budget:
            raise InfeasibleError(f"the required arms cost {spent:g}, the budget is {self.budget:g}")
        if n_arms > self._places:
            raise InfeasibleError(f"{n_arms} arms are required, at most {self._places} may be chosen")


def _unit(costs: FloatArray) -> float | None:
    """A unit in which all costs are whole numbers, such as cents, or None."""
    for decimals in range(5):
        units = costs * 10**decimals
        whole = np.rint(units)
        if (np.abs(units - whole) <= 1e-12 * units).all() and units.max() < 2**40:
            divisor = int(np.gcd.reduce(whole.astype(np.int64)))
            return float(max(divisor, 1) / 10**decimals)
    return None
