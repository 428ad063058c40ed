"""Slates that are not ten times the same thing: variety and topics as part of the value of a set."""

import argparse

import numpy as np

import armful

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--figure", metavar="PATH", help="draw a figure there too; needs matplotlib")
options = parser.parse_args()

rng = np.random.default_rng(0)
genre = rng.integers(5, size=300)  # each film has one of five genres, and two features of its own
films = np.column_stack([np.eye(5)[genre], rng.uniform(0, 1, (300, 2))])
policy = armful.C2UCB(n_features=7, radius=0.2, seed=0)
policy.learn(films[:200], films[:200] @ [0.9, 0.5, 0.5, 0.4, 0.3, 0.3, 0.1])

slates = {}
for name, objective in {
    "rewards alone": None,
    "with variety": armful.Diverse(weight=0.5, scale=0.5),
    "each genre once": armful.Coverage(np.eye(5)[genre], weight=1.0),
}.items():
    choice = policy.choose(films, armful.TopK(8), objective=objective)
    counts = np.bincount(genre[choice.indices], minlength=5)
    slates[name] = counts
    promise = "exact" if choice.ratio == 1 else f"at least {choice.ratio:.0%} of the best"
    print(f"{name:16} films per genre {counts}, mean estimate {choice.mean.mean():.2f}, {promise}")

if options.figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 2.8), layout="constrained")
    axes = figure.subplots()
    left = np.zeros(len(slates))
    for i in range(5):
        widths = np.array([counts[i] for counts in slates.values()])
        axes.barh(list(slates), widths, left=left, label=f"genre {i + 1}")
        left += widths
    axes.invert_yaxis()
    axes.set(xlabel="films of the slate")
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=5)
    figure.savefig(options.figure)
