"""Thousands of small random instances of the greedy constraints against looking at every set."""

from itertools import chain, combinations

import numpy as np
import pytest

from armful import AtMost, InfeasibleError, OneOf, Quotas, TopK
from tests.constraints.test_nested import random_nested

SCORES = {
    "signed": lambda rng, n: rng.standard_normal(n),
    "tied": lambda rng, n: rng.integers(-1, 2, n).astype(float),
    "zero": lambda rng, n: np.zeros(n),
    "huge": lambda rng, n: rng.standard_normal(n) * 2.0**255,
    "of all sizes": lambda rng, n: rng.standard_normal(n) * 2.0 ** rng.integers(-20, 20, n),
}


def quotas(rng, n):
    groups = rng.integers(3, size=n)
    while True:
        bounds = {
            name: {g: int(rng.integers(0, 4)) for g in set(groups.tolist()) if rng.random() < 0.7}
            for name in ("low", "high")
        }
        total = [None, (0, int(rng.integers(1, n + 1))), int(rng.integers(1, n + 1))][rng.integers(3)]
        try:
            if rng.random() < 0.3:
                return Quotas(groups, exactly=bounds["low"])
            return Quotas(groups, at_least=bounds["low"], at_most=bounds["high"], total=total)
        except (InfeasibleError, ValueError):
            continue


FAMILIES = {
    "TopK": lambda rng, n: TopK(int(rng.integers(1, n + 1))),
    "AtMost": lambda rng, n: AtMost(int(rng.integers(1, n + 2))),
    "OneOf": lambda rng, n: OneOf([rng.permutation(n)[: rng.integers(1, n + 1)] for _ in range(rng.integers(1, 6))]),
    "Quotas": quotas,
    "NestedQuotas": random_nested,
}


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", SCORES)
def test_the_answer_is_the_best_of_all_allowed_sets(family, kind):
    """400 instances each: 10,000 in all."""
    for seed in range(400):
        rng = np.random.default_rng([seed, len(family), len(kind)])
        n = int(rng.integers(2, 8))
        constraint, scores = FAMILIES[family](rng, n), SCORES[kind](rng, n)
        answer = constraint.best(scores, rng=rng)
        sets = chain.from_iterable(combinations(range(n), size) for size in range(n + 1))
        best = max(scores[list(each)].sum() for each in sets if constraint.violation(list(each)) == 0.0)
        assert constraint.violation(answer.indices) == 0.0
        assert answer.value == pytest.approx(best, abs=1e-12 * np.abs(scores).sum()), f"seed {seed}"
