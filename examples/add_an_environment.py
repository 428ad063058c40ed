"""A world of your own in a few lines: shops on a street, of which some are closed each day, and a limited van.

Run it here, or name it in a plan: class = "add_an_environment.py:Deliveries".
"""

from collections.abc import Iterator

import numpy as np

import armful
from armful.environments import Round
from armful.testing import EnvironmentContract


class Deliveries:
    """Every day another set of shops is open; at most k can be served, at most two on each side of the street."""

    n_features = 4

    def __init__(self, *, k: int = 3) -> None:
        self.k = k

    def rounds(self, n_rounds: int, rng: np.random.Generator) -> Iterator[Round]:
        shops = rng.uniform(0, 1, (40, 4))
        theta = rng.uniform(-0.5, 1, 4)
        for _ in range(n_rounds):
            is_open = np.sort(rng.choice(40, size=20, replace=False))
            side = is_open % 2
            allowed = armful.Quotas(side, at_most=2, total=(0, self.k))
            yield Round(shops[is_open], allowed, shops[is_open] @ theta, noise=0.3)


class TestDeliveries(EnvironmentContract):
    """With this in a test file, pytest checks your world as it checks armful's own."""

    def environment(self) -> Deliveries:
        return Deliveries()


if __name__ == "__main__":
    policies = [
        armful.C2UCB(n_features=4, radius=1.0),
        armful.CombLinTS(n_features=4, noise=0.3),
        armful.EpsilonGreedy(n_features=4),
    ]
    for policy in policies:
        result = armful.simulate(policy, Deliveries(), rounds=60, repetitions=20, seed=0)
        early, late = result.regret[:, :10].mean(), result.regret[:, -10:].mean()
        print(f"{type(policy).__name__:13} regret a day: {early:.2f} in the first ten, {late:.2f} in the last")
