import numpy as np
import pytest

from armful.constraints import _tops
from armful.constraints._tops import GroupedScores, top
from armful.randomness import tie_keys


def some_arms(rng):
    """Return scores with many ties, groups of which some are empty, a key and arm indices."""
    n, n_groups = int(rng.integers(0, 60)), int(rng.integers(1, 6))
    scores = rng.integers(-3, 4, n).astype(np.float64)
    scores[rng.random(n) < 0.1] = -np.inf
    return scores, rng.integers(0, n_groups, n), n_groups, int(rng.integers(2**63)), rng.permutation(1000)[:n]


def plain_top(scores, count, key, arm_indices):
    """Sort all arms."""
    order = np.lexsort((tie_keys(key, arm_indices), -scores))[:count]
    last = np.inf if count == 0 else scores[order[-1]] if order.size == count else -np.inf
    return np.isin(np.arange(scores.size), order), last


@pytest.mark.parametrize("seed", range(50))
def test_the_top_is_that_of_sorting_all(seed):
    rng = np.random.default_rng(seed)
    scores, _, _, key, arm_indices = some_arms(rng)
    for count in range(scores.size + 2):
        first, last = top(scores, count, key, arm_indices)
        expected, expected_last = plain_top(scores, count, key, arm_indices)
        assert first.tolist() == expected.tolist()
        assert last == expected_last


@pytest.mark.parametrize("seed", range(50))
@pytest.mark.parametrize("sorted_below", [0, 10**9])
def test_the_top_of_each_group_is_that_of_sorting_it(monkeypatch, seed, sorted_below):
    monkeypatch.setattr(_tops, "SORTED_BELOW", sorted_below)
    rng = np.random.default_rng(seed)
    scores, groups, n_groups, key, arm_indices = some_arms(rng)
    grouped = GroupedScores(scores, groups, n_groups, key, arm_indices)
    for _ in range(3):
        counts = rng.integers(0, 20, n_groups)
        first, last = grouped.top(counts)
        for i in range(n_groups):
            mine = groups == i
            expected, expected_last = plain_top(scores[mine], counts[i], key, arm_indices[mine])
            assert first[mine].tolist() == expected.tolist()
            assert last[i] == expected_last
