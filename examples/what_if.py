"""Why these customers were chosen, what each limit costs, and what a changed limit would bring."""

import argparse

import numpy as np

import armful

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--figure", metavar="PATH", help="draw a figure there too; needs matplotlib")
options = parser.parse_args()

rng = np.random.default_rng(0)
n = 60_000
regions = np.array(["north", "south", "east", "west"])[rng.integers(4, size=n)]
customers = rng.standard_normal((n, 6)) / np.sqrt(6)
worth = rng.standard_normal(6)

policy = armful.CappedC2UCB(n_features=6, cap=5.0, noise=0.5, norm=4.0, seed=0)
policy.learn(customers[:2000], customers[:2000] @ worth + 0.5 * rng.standard_normal(2000))

house = armful.Quotas(regions, at_most={"north": 1000, "south": 3000}, total=8000)
choice = policy.choose(customers, house)
print(choice.explain(most=3))

# What-if: the same scores under another rule of the house.
scores = policy.scores(customers, k=house.k)
more_north = house.with_(at_most={"north": 2000, "south": 3000})
gain = more_north.best(scores).value - house.best(scores).value
print(f"\n1,000 more contacts in the north are worth {gain:,.0f} at the same total")

opted_out = rng.random(n) < 0.02
without = policy.choose(customers, armful.Excluding(house, opted_out))
print(f"leaving out {opted_out.sum():,} customers who opted out costs {choice.value - without.value:,.0f}")

if options.figure:
    from matplotlib.figure import Figure

    limits = np.arange(0, 3001, 250)
    values = [house.with_(at_most={"north": int(most), "south": 3000}).best(scores).value for most in limits]
    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(limits, np.array(values) - choice.value, marker="o")
    axes.axvline(1000, color="0.6", linestyle="--")
    axes.axhline(0, color="0.6", linestyle="--", label="the rule of the house")
    axes.set(xlabel="at most so many from the north", ylabel="worth more than now by")
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(options.figure)
