"""Worlds for the other constraints: networks, budgets, regions and cities, panels, bundles."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from armful import checks
from armful.constraints import Constraint, Knapsack, NestedQuotas, OneOf, SpanningTree, overlapping_quotas
from armful.environments.round import Round
from armful.environments.synthetic import check_memory


class _FreshArms:
    """Arms with new features in every round under one constraint; theta* has length 1 and is drawn in each repetition.

    The first feature is constant, the others standard normal, all scaled to a mean squared length of 1.
    """

    def __init__(self, constraint: Constraint, n_arms: int, n_features: int, noise: float) -> None:
        self.constraint, self.n_arms = constraint, n_arms
        self.n_features = checks.count("n_features", n_features, minimum=2)
        self.noise = checks.at_least_zero("noise", noise)

    def rounds(self, n_rounds: int, rng: Generator) -> Iterator[Round]:
        """The same constraint and new features in every round."""
        theta = rng.standard_normal(self.n_features)
        theta /= math.sqrt(theta @ theta)
        for _ in range(n_rounds):
            features = rng.standard_normal((self.n_arms, self.n_features)) / math.sqrt(self.n_features)
            features[:, 0] = 1 / math.sqrt(self.n_features)
            yield Round(features, self.constraint, features @ theta, self.noise)


class Networks(_FreshArms):
    """Every round all sites are to be connected: a spanning tree of links whose worth changes with the conditions.

    Sites lie in the unit square, `layout` is the seed of where; each is linked to its nearest ones, and to the next.
    """

    def __init__(
        self, *, n_sites: int = 12, n_nearest: int = 3, n_features: int = 5, noise: float = 0.5, layout: int = 0
    ) -> None:
        checks.count("n_sites", n_sites, minimum=2)
        checks.fits_in_memory(f"n_sites = {n_sites}", 4 * n_sites**2)
        places = np.random.default_rng(layout).random((n_sites, 2))
        distance = np.linalg.norm(places[:, None] - places[None], axis=-1)
        nearest = np.argsort(distance, axis=1)[:, 1 : 1 + checks.count("n_nearest", n_nearest)]
        links = {(min(a, b), max(a, b)) for a, row in enumerate(nearest.tolist()) for b in row}
        edges = sorted(links | {(a, a + 1) for a in range(n_sites - 1)})
        super().__init__(SpanningTree(edges), len(edges), n_features, noise)


class Budgets(_FreshArms):
    """Offers that cost something, and a budget for each round: a knapsack. `layout` is the seed of the costs."""

    def __init__(
        self, *, n_arms: int = 60, budget: float = 50.0, n_features: int = 5, noise: float = 0.5, layout: int = 0
    ) -> None:
        costs = np.random.default_rng(layout).integers(1, 10, size=_n_arms(n_arms, n_features))
        super().__init__(Knapsack(costs, budget), n_arms, n_features, noise)


class Regions(_FreshArms):
    """Customers in cities in regions: at most `per_city` from each city, `k` in all, at least one from each region."""

    def __init__(
        self, *, n_arms: int = 200, k: int = 20, per_city: int = 2, n_features: int = 5, noise: float = 0.5
    ) -> None:
        city = np.arange(_n_arms(n_arms, n_features)) % 20
        constraint = NestedQuotas(
            {"region": city % 4, "city": city}, at_least={"region": 1}, at_most={"city": per_city}, total=k
        )
        super().__init__(constraint, n_arms, n_features, noise)


class Panels(_FreshArms):
    """People to be asked, so many from each region and from each age group: quotas that cross, an integer program."""

    def __init__(self, *, n_arms: int = 60, k: int = 12, n_features: int = 5, noise: float = 0.5) -> None:
        place = np.arange(_n_arms(n_arms, n_features))
        columns = {"region": place % 4, "age": place // 4 % 3}
        share = {"region": -(-k // 4), "age": -(-k // 3)}
        super().__init__(overlapping_quotas(columns, at_most=share, total=k), n_arms, n_features, noise)


class Bundles(_FreshArms):
    """Items sold in bundles, of which one is chosen whole. `layout` is the seed of what is in them."""

    def __init__(
        self,
        *,
        n_arms: int = 60,
        n_bundles: int = 15,
        k: int = 5,
        n_features: int = 5,
        noise: float = 0.5,
        layout: int = 0,
    ) -> None:
        rng = np.random.default_rng(layout)
        checks.fits_in_memory(f"n_bundles = {n_bundles} with k = {k}", _n_arms(n_arms, n_features) + n_bundles * k)
        bundles = [rng.choice(n_arms, size=k, replace=False) for _ in range(checks.count("n_bundles", n_bundles))]
        super().__init__(OneOf(bundles), n_arms, n_features, noise)


def _n_arms(n_arms: int, n_features: int) -> int:
    checks.count("n_arms", n_arms)
    check_memory(n_arms, checks.count("n_features", n_features, minimum=2))
    return n_arms
