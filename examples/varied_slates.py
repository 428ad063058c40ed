"""Slates that are not ten times the same thing: variety and topics as part of what a set is worth."""

import numpy as np

import armful

rng = np.random.default_rng(0)
genre = rng.integers(5, size=300)  # each film has one of five genres, and two features of its own
films = np.column_stack([np.eye(5)[genre], rng.uniform(0, 1, (300, 2))])
policy = armful.C2UCB(n_features=7, radius=0.2, seed=0)
policy.learn(films[:200], films[:200] @ [0.9, 0.5, 0.5, 0.4, 0.3, 0.3, 0.1])

for name, objective in {
    "rewards alone": None,
    "with variety": armful.Diverse(weight=0.5, scale=0.5),
    "each genre once": armful.Coverage(np.eye(5)[genre], weight=1.0),
}.items():
    choice = policy.choose(films, armful.TopK(8), objective=objective)
    counts = np.bincount(genre[choice.indices], minlength=5)
    promise = "exact" if choice.ratio == 1 else f"at least {choice.ratio:.0%} of the best"
    print(f"{name:16} films per genre {counts}, mean estimate {choice.mean.mean():.2f}, {promise}")
