"""A campaign: so many contacts per region, outcomes that come late and in parts, a policy that survives a restart."""

import tempfile
from pathlib import Path

import numpy as np

import armful

rng = np.random.default_rng(0)
regions = np.array(["north", "south", "east"])[rng.integers(3, size=3000)]
customers = rng.standard_normal((3000, 8)) / np.sqrt(8)
worth = rng.standard_normal(8)

policy = armful.CappedC2UCB(n_features=8, cap=3.0, seed=0)
quotas = armful.Quotas(regions, at_least={"north": 20}, at_most={"south": 40}, total=100)

waiting = []  # (features, outcomes) that have not come back yet
for week in range(1, 9):
    choice = policy.choose(customers, quotas)
    outcomes = choice.features @ worth + 0.5 * rng.standard_normal(len(choice))
    waiting.append((choice.features, outcomes))

    # Half of this week's outcomes come now, the rest a week later: to learn in parts and late is the same to armful.
    features, seen = waiting[-1]
    policy.learn(features[:50], seen[:50])
    if len(waiting) > 1:
        features, seen = waiting[-2]
        policy.learn(features[50:], seen[50:])

    with tempfile.TemporaryDirectory() as folder:  # save, "crash", load: it goes on exactly where it was
        policy.save(Path(folder) / "campaign.armful")
        policy = armful.load(Path(folder) / "campaign.armful")

    counts = {region: int((regions[choice.indices] == region).sum()) for region in ("north", "south", "east")}
    print(f"week {week}: mean outcome {outcomes.mean():.2f}, contacted {counts}")

best = quotas.best(customers @ worth).value / 100
print(f"the best possible under these quotas: {best:.2f}")
