"""An environment of your own in a few lines: shops on a street, of which some are closed each day, and a limited van.

Run it here, or name it in a plan: class = "add_an_environment.py:Deliveries".
"""

import argparse
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
    """With this in a test file, pytest checks your environment as it checks armful's own."""

    def environment(self) -> Deliveries:
        return Deliveries()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figure", metavar="PATH", help="draw a figure there too; needs matplotlib")
    options = parser.parse_args()

    policies = [
        armful.C2UCB(n_features=4, radius=1.0),
        armful.CombLinTS(n_features=4, noise=0.3),
        armful.EpsilonGreedy(n_features=4),
    ]
    results = {}
    for policy in policies:
        result = armful.simulate(policy, Deliveries(), rounds=60, repetitions=20, seed=0)
        results[type(policy).__name__] = result
        early, late = result.regret[:, :10].mean(), result.regret[:, -10:].mean()
        print(f"{type(policy).__name__:13} regret a day: {early:.2f} in the first ten, {late:.2f} in the last")

    if options.figure:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.subplots()
        days = np.arange(1, 61)
        for name, result in results.items():
            total = result.regret.cumsum(axis=1)  # (repetitions, days)
            mean, stderr = total.mean(axis=0), total.std(axis=0, ddof=1) / np.sqrt(len(total))
            axes.plot(days, mean, label=name)
            axes.fill_between(days, mean - stderr, mean + stderr, alpha=0.2)
        axes.set(xlabel="day", ylabel="regret so far", xlim=(0, 60), ylim=(0, None))
        axes.legend(frameon=False)
        figure.savefig(options.figure)
