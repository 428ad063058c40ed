"""Why these customers, what each limit costs, and what a change of the house's rules would be worth."""

import numpy as np

import armful

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
