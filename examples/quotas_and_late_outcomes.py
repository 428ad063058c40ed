"""A campaign: so many contacts per region, outcomes that come late and in parts, a policy that survives a restart."""

import argparse
import tempfile
from pathlib import Path

import numpy as np

import armful

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--figure", metavar="PATH", help="draw a figure there too; needs matplotlib")
options = parser.parse_args()

rng = np.random.default_rng(0)
regions = np.array(["north", "south", "east"])[rng.integers(3, size=3000)]
customers = rng.standard_normal((3000, 8)) / np.sqrt(8)
worth = rng.standard_normal(8)

policy = armful.CappedC2UCB(n_features=8, cap=3.0, seed=0)
quotas = armful.Quotas(regions, at_least={"north": 20}, at_most={"south": 40}, total=100)

history = []  # mean outcome and contacts per region, week by week
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
    history.append((outcomes.mean(), counts))
    print(f"week {week}: mean outcome {outcomes.mean():.2f}, contacted {counts}")

best = quotas.best(customers @ worth).value / 100
print(f"the best possible under these quotas: {best:.2f}")

if options.figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 5), layout="constrained")
    above, below = figure.subplots(2, sharex=True)
    weeks = range(1, 9)
    above.axhline(best, color="0.6", label="the best possible")
    above.plot(weeks, [outcome for outcome, _ in history], marker="o", label="chosen by armful")
    above.set(ylabel="mean outcome")
    above.legend(frameon=False, loc="lower right")
    bottom = np.zeros(8)
    for region in ("north", "south", "east"):
        heights = np.array([counts[region] for _, counts in history])
        below.bar(weeks, heights, bottom=bottom, label=region)
        bottom += heights
    below.set(xlabel="week", ylabel="contacts", ylim=(0, 100))
    below.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)
    figure.savefig(options.figure)
