"""Environments for the other constraints: networks, budgets, regions and cities, panels, bundles."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from armful import checks
from armful.constraints import Constraint, Knapsack, NestedQuotas, OneOf, SpanningTree, overlapping_quotas
from armful.environments._shared import ShowsOptions, check_arms, draw_direction
from armful.environments.round import Round


class _FreshArms(ShowsOptions):
    """New features in every round under one constraint; theta* has length 1 and is drawn in each repetition.

    The first feature is constant, the others are standard normal, all scaled to a mean squared length of 1.
    """

    def __init__(self, constraint: Constraint, n_arms: int, n_features: int, noise: float) -> None:
        self.constraint, self.n_arms = constraint, n_arms
        self.n_features = checks.count("n_features", n_features, minimum=2)
        self.noise = checks.at_least_zero("noise", noise)

    def rounds(self, n_rounds: int, rng: Generator) -> Iterator[Round]:
        """Yield rounds with new features under the same constraint."""
        theta = draw_direction(rng, self.n_features)
        for _ in range(n_rounds):
            features = rng.standard_normal((self.n_arms, self.n_features)) / math.sqrt(self.n_features)
            features[:, 0] = 1 / math.sqrt(self.n_features)
            yield Round(features, self.constraint, features @ theta, self.noise)


class Networks(_FreshArms):
    """Sites to be connected in every round: links are arms, and a set is a spanning tree.

    Sites are points of the unit square. Each is linked to its nearest sites and to the next one by number. Features
    are new in every round: the first is constant, the others are standard normal, all scaled to a mean squared length
    of 1. theta* has length 1 and is drawn in each repetition.

    Parameters
    ----------
    n_sites : int
        The number of sites.
    n_nearest : int
        To how many of its nearest sites each site is linked.
    n_features : int
        The number of features, at least 2.
    noise : float
        The standard deviation of the noise on a reward.
    layout : int
        The seed of the positions of the sites; they are the same in all repetitions.

    Examples
    --------
    >>> environment = Networks(n_sites=6)
    >>> next(environment.rounds(10, np.random.default_rng(0))).constraint.k
    5
    """

    def __init__(
        self, *, n_sites: int = 12, n_nearest: int = 3, n_features: int = 5, noise: float = 0.5, layout: int = 0
    ) -> None:
        self.n_sites, self.layout = checks.count("n_sites", n_sites, minimum=2), layout
        checks.fits_in_memory(f"n_sites = {n_sites}", 4 * n_sites**2)
        self.n_nearest = checks.count("n_nearest", n_nearest)
        positions = np.random.default_rng(layout).random((n_sites, 2))
        distance = np.linalg.norm(positions[:, None] - positions[None], axis=-1)
        nearest = np.argsort(distance, axis=1)[:, 1 : 1 + n_nearest]
        links = {(min(a, b), max(a, b)) for a, row in enumerate(nearest.tolist()) for b in row}
        edges = sorted(links | {(a, a + 1) for a in range(n_sites - 1)})
        super().__init__(SpanningTree(edges), len(edges), n_features, noise)


class Budgets(_FreshArms):
    """Offers with costs from 1 to 9, and a budget for each round: a knapsack.

    Features are new in every round, as in `Networks`; the costs stay.

    Parameters
    ----------
    n_arms : int
        The number of offers.
    budget : float
        What the chosen offers may cost in all.
    n_features : int
        The number of features, at least 2.
    noise : float
        The standard deviation of the noise on a reward.
    layout : int
        The seed of the costs; they are the same in all repetitions.

    Examples
    --------
    >>> environment = Budgets(n_arms=15, budget=20)
    >>> next(environment.rounds(10, np.random.default_rng(0))).features.shape
    (15, 5)
    """

    def __init__(
        self, *, n_arms: int = 60, budget: float = 50.0, n_features: int = 5, noise: float = 0.5, layout: int = 0
    ) -> None:
        check_arms(n_arms, n_features, least_features=2)
        self.budget, self.layout = budget, layout
        costs = np.random.default_rng(layout).integers(1, 10, size=n_arms)
        super().__init__(Knapsack(costs, budget), n_arms, n_features, noise)


class Regions(_FreshArms):
    """Customers in 20 cities of 4 regions: at least one from each region, a limit for each city, and one for all.

    The constraint is `NestedQuotas`. Features are new in every round, as in `Networks`.

    Parameters
    ----------
    n_arms : int
        The number of customers.
    k : int
        How many are chosen in a round.
    per_city : int
        How many may be chosen from one city.
    n_features : int
        The number of features, at least 2.
    noise : float
        The standard deviation of the noise on a reward.

    Examples
    --------
    >>> environment = Regions(n_arms=40, k=9)
    >>> next(environment.rounds(10, np.random.default_rng(0))).constraint.k
    9
    """

    def __init__(
        self, *, n_arms: int = 200, k: int = 20, per_city: int = 2, n_features: int = 5, noise: float = 0.5
    ) -> None:
        check_arms(n_arms, n_features, least_features=2)
        self.k, self.per_city = k, per_city
        city = np.arange(n_arms) % 20
        constraint = NestedQuotas(
            {"region": city % 4, "city": city}, at_least={"region": 1}, at_most={"city": per_city}, total=k
        )
        super().__init__(constraint, n_arms, n_features, noise)


class Panels(_FreshArms):
    """People to be asked: quotas for 4 regions and for 3 age groups at once, an integer program.

    The quotas overlap, since everybody is in a region and in an age group: `overlapping_quotas`. Each group may have
    its equal share of k, rounded up. Features are new in every round, as in `Networks`.

    Parameters
    ----------
    n_arms : int
        The number of people.
    k : int
        How many are asked in a round.
    n_features : int
        The number of features, at least 2.
    noise : float
        The standard deviation of the noise on a reward.

    Examples
    --------
    >>> environment = Panels(n_arms=24, k=6)
    >>> next(environment.rounds(10, np.random.default_rng(0))).constraint.k
    6
    """

    def __init__(self, *, n_arms: int = 60, k: int = 12, n_features: int = 5, noise: float = 0.5) -> None:
        check_arms(n_arms, n_features, least_features=2)
        self.k = k
        arm = np.arange(n_arms)
        columns = {"region": arm % 4, "age": arm // 4 % 3}
        share = {"region": -(-k // 4), "age": -(-k // 3)}
        super().__init__(overlapping_quotas(columns, at_most=share, total=k), n_arms, n_features, noise)


class Bundles(_FreshArms):
    """Items sold in bundles, of which one is chosen as a whole in each round: `OneOf`.

    Features are new in every round, as in `Networks`; the bundles stay.

    Parameters
    ----------
    n_arms : int
        The number of items.
    n_bundles : int
        The number of bundles.
    k : int
        How many items are in a bundle.
    n_features : int
        The number of features, at least 2.
    noise : float
        The standard deviation of the noise on a reward.
    layout : int
        The seed of what is in the bundles; they are the same in all repetitions.

    Examples
    --------
    >>> environment = Bundles(n_arms=12, n_bundles=5, k=3)
    >>> next(environment.rounds(10, np.random.default_rng(0))).constraint.k
    3
    """

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
        check_arms(n_arms, n_features, least_features=2)
        checks.fits_in_memory(f"n_bundles = {n_bundles} with k = {k}", n_arms + n_bundles * k)
        self.n_bundles, self.k, self.layout = checks.count("n_bundles", n_bundles), k, layout
        rng = np.random.default_rng(layout)
        bundles = [rng.choice(n_arms, size=k, replace=False) for _ in range(n_bundles)]
        super().__init__(OneOf(bundles), n_arms, n_features, noise)
