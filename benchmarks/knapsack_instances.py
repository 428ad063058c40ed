"""Knapsack instances by published recipes.

Pisinger, Where are the hard knapsack problems?, Computers & Operations Research 32 (2005): all but the last.
Jooken, Leyman and De Causmaecker, A new class of hard problem instances for the 0-1 knapsack problem, European Journal
of Operational Research 301 (2022): `jooken`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Pairs = tuple[np.ndarray, np.ndarray]


class Instance(NamedTuple):
    """Whole numbers: values `(n,)`, costs `(n,)` and the budget."""

    values: np.ndarray
    costs: np.ndarray
    budget: int


def uncorrelated(rng: np.random.Generator, n: int, largest: int) -> Pairs:
    return rng.integers(1, largest + 1, n), rng.integers(1, largest + 1, n)


def weakly_correlated(rng: np.random.Generator, n: int, largest: int) -> Pairs:
    costs = rng.integers(1, largest + 1, n)
    return np.maximum(costs + rng.integers(-largest // 10, largest // 10 + 1, n), 1), costs


def strongly_correlated(rng: np.random.Generator, n: int, largest: int) -> Pairs:
    costs = rng.integers(1, largest + 1, n)
    return costs + largest // 10, costs


def inverse_strongly_correlated(rng: np.random.Generator, n: int, largest: int) -> Pairs:
    values = rng.integers(1, largest + 1, n)
    return values, values + largest // 10


def almost_strongly_correlated(rng: np.random.Generator, n: int, largest: int) -> Pairs:
    costs = rng.integers(1, largest + 1, n)
    return costs + largest // 10 + rng.integers(-largest // 500, largest // 500 + 1, n), costs


def subset_sum(rng: np.random.Generator, n: int, largest: int) -> Pairs:
    costs = rng.integers(1, largest + 1, n)
    return costs, costs


def similar_weights(rng: np.random.Generator, n: int, largest: int) -> Pairs:
    return rng.integers(1, largest + 1, n), rng.integers(100_000, 100_101, n)


def spanner(rng: np.random.Generator, n: int, largest: int) -> Pairs:
    """Multiples 1 to 10 of two strongly correlated arms, `span(2, 10)`."""
    values, costs = strongly_correlated(rng, 2, largest)
    which, times = rng.integers(2, size=n), rng.integers(1, 11, n)
    return times * -(-2 * values[which] // 10), times * -(-2 * costs[which] // 10)


FAMILIES: dict[str, Callable[[np.random.Generator, int, int], Pairs]] = {
    "uncorrelated": uncorrelated,
    "weakly correlated": weakly_correlated,
    "strongly correlated": strongly_correlated,
    "inverse strongly correlated": inverse_strongly_correlated,
    "almost strongly correlated": almost_strongly_correlated,
    "subset sum": subset_sum,
    "similar weights": similar_weights,
    "spanner": spanner,
}


def pisinger(family: str, n: int, seed: int, *, largest: int = 1000, part: float = 1 / 101) -> Instance:
    """`n` arms of a family with numbers up to `largest`; the budget is this part of the sum of costs."""
    values, costs = FAMILIES[family](np.random.default_rng([seed, n]), n, largest)
    return Instance(values, costs, max(int(part * costs.sum()), int(costs.max())))


def jooken(n: int, budget: int, groups: int, fraction: float, epsilon: float, small: int, seed: int) -> Instance:
    """Arms of group j = 1, ..., groups - 1 cost about (1/2^j + epsilon) of the budget, a last fraction nearly nothing.

    They are worth the same; to each cost and each value a whole number from 1 to `small` is added.
    """
    rng = np.random.default_rng([seed, n])
    n_each = (n - int(n * fraction)) // (groups - 1)
    shares = np.repeat([2.0**-j + epsilon for j in range(1, groups)], n_each)
    base = np.zeros(n)
    base[: shares.size] = shares * budget
    values, costs = (np.floor(base + rng.integers(1, small + 1, n)).astype(np.int64) for _ in range(2))
    return Instance(values, costs, budget)
