"""Choose ten of a thousand, see how each did, choose better: the whole loop on made-up clicks."""

import argparse

import numpy as np

import armful

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--figure", metavar="PATH", help="draw a figure there too; needs matplotlib")
options = parser.parse_args()

rng = np.random.default_rng(0)
taste = np.array([0.3, 0.2, -0.2, 0.1, 0.0])  # what armful does not know


def items() -> np.ndarray:
    """A thousand items, new in every round: a 1 for the intercept, and four features."""
    return np.column_stack([np.ones(1000), rng.uniform(-1, 1, (1000, 4))])


policy = armful.CappedC2UCB(n_features=5, cap=1.0, seed=0)  # a click is never worth more than 1
history = []  # clicks per item in each round: expected of what was chosen, and possible
for round_number in range(1, 21):
    X = items()
    choice = policy.choose(X, armful.TopK(10))
    clicks = (rng.random(10) < X[choice.indices] @ taste).astype(float)
    policy.learn(choice, clicks)
    expected, best = (X[choice.indices] @ taste).mean(), np.sort(X @ taste)[-10:].mean()
    history.append((expected, best))
    if round_number in (1, 2, 5, 10, 20):
        print(f"round {round_number:2}: {expected:.2f} clicks per item expected, {best:.2f} possible")

print("why the first item of the last slate was chosen:")
print(f"  estimate {choice.mean[0]:.2f} + benefit of the doubt {choice.bonus[0]:.2f}, capped: {choice.capped[0]}")

if options.figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.subplots()
    expected, best = zip(*history, strict=True)
    axes.plot(range(1, 21), best, color="0.6", label="the best ten")
    axes.plot(range(1, 21), expected, marker="o", label="the ten that armful chose")
    axes.set(xlabel="round", ylabel="expected clicks per item", ylim=(0, None), xticks=range(2, 21, 2))
    axes.legend(frameon=False)
    figure.savefig(options.figure)
