import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armful import AtMost, NestedQuotas, Quotas, TopK
from armful.constraints._ranks import largest, largest_of_one
from armful.randomness import draw_key, tie_keys


def some_constraint(kind, n, rng):
    groups = rng.integers(0, 4, n)
    sizes = np.bincount(groups, minlength=4)
    if kind == "TopK":
        return TopK(int(rng.integers(1, n + 1)))
    if kind == "AtMost":
        return AtMost(int(rng.integers(1, n + 1)))
    least = {int(g): int(rng.integers(0, sizes[g] + 1) // 2) for g in np.unique(groups)}
    most = {g: int(rng.integers(least[g], sizes[g] + 1)) for g in least}
    low, high = sum(least.values()), sum(most.values())
    if high == 0:
        return TopK(1)
    if kind == "Quotas":
        total = sorted(int(t) for t in rng.integers(low, high + 1, 2))
        return Quotas(groups, at_least=least, at_most=most, total=(total[0], max(total[1], 1)))
    regions = groups // 2
    region_low = {r: sum(least.get(g, 0) for g in (2 * r, 2 * r + 1)) for r in np.unique(regions).tolist()}
    region_high = {r: sum(most.get(g, 0) for g in (2 * r, 2 * r + 1)) for r in region_low}
    at_least = {r: int(rng.integers(region_low[r], region_high[r] + 1)) for r in region_low}
    at_most = {r: int(rng.integers(at_least[r], region_high[r] + 1)) for r in region_low}
    if sum(at_most.values()) == 0:
        return TopK(1)
    return NestedQuotas(
        {"region": regions, "city": groups},
        at_least={"region": at_least, "city": least},
        at_most={"region": at_most, "city": most},
        total=(sum(at_least.values()), int(rng.integers(max(sum(at_least.values()), 1), sum(at_most.values()) + 1))),
    )


@pytest.mark.slow
@settings(max_examples=1500, deadline=None)
@given(
    kind=st.sampled_from(["TopK", "AtMost", "Quotas", "NestedQuotas"]),
    n=st.integers(1, 24),
    seed=st.integers(0, 2**32 - 1),
)
def test_candidates_of_parts_hold_the_best_set_of_all(kind, n, seed):
    """However arms are divided, thinned out, and thinned out again; with exact ties, and scores of any sign."""
    rng = np.random.default_rng(seed)
    constraint, key = some_constraint(kind, n, rng), draw_key(rng)
    scores = rng.integers(-3, 4, n).astype(float)
    expected = constraint.best_among(scores, key)
    arm_indices = np.arange(n)
    part = rng.integers(0, 3, n)
    left = []
    for i in range(3):
        here = arm_indices[part == i]
        kept, thresholds = constraint.ranks.reduce(here, scores[here], key)
        left.append(here[kept])
        below = scores < constraint.ranks.thresholds_of(thresholds, arm_indices)
        assert not below[expected.indices].any()
    merged = np.sort(np.concatenate(left))
    kept, thresholds = constraint.ranks.reduce(merged, scores[merged], key)
    found = constraint.best_among(scores[merged[kept]], key, merged[kept])
    assert np.array_equal(np.sort(found.indices), np.sort(expected.indices))
    assert found.value == expected.value
    assert not (scores < constraint.ranks.thresholds_of(thresholds, arm_indices))[expected.indices].any()


@settings(max_examples=500, deadline=None)
@given(
    kind=st.sampled_from(["TopK", "AtMost", "Quotas", "NestedQuotas"]),
    n=st.integers(1, 24),
    seed=st.integers(0, 2**32 - 1),
)
def test_thresholds_from_scores_that_are_too_low_still_hold(kind, n, seed):
    rng = np.random.default_rng(seed)
    constraint, key = some_constraint(kind, n, rng), draw_key(rng)
    scores = rng.integers(-3, 4, n).astype(float)
    lowest = scores - rng.integers(0, 3, n)
    expected = constraint.best_among(scores, key).indices
    here = np.flatnonzero(rng.random(n) < 0.7)
    _, thresholds = constraint.ranks.reduce(here, lowest[here], key)
    assert not (scores < constraint.ranks.thresholds_of(thresholds, np.arange(n)))[expected].any()


def test_few_candidates_remain():
    rng = np.random.default_rng(0)
    scores, key, arm_indices = rng.standard_normal(10_000), draw_key(rng), np.arange(10_000)
    assert TopK(7).ranks.reduce(arm_indices, scores, key)[0].sum() == 7
    assert TopK(7).ranks.reduce(arm_indices, np.ones(10_000), key)[0].sum() == 7
    quotas = Quotas(arm_indices % 10, at_least=2, at_most=30, total=100)
    assert quotas.ranks.reduce(arm_indices, scores, key)[0].sum() <= 100 + 2 * 10
    assert AtMost(7).ranks.reduce(arm_indices, -np.abs(scores) - 1, key)[0].sum() == 0


def test_a_part_of_the_ranks_speaks_of_the_same_arms():
    rng = np.random.default_rng(0)
    quotas = Quotas(rng.integers(0, 5, 100), at_most=3, total=9)
    scores, key, arm_indices = rng.standard_normal(100), draw_key(rng), np.arange(40, 90)
    kept, thresholds = quotas.ranks.reduce(arm_indices, scores[arm_indices], key)
    part = quotas.ranks.part(40, 90)
    again, same = part.reduce(arm_indices, scores[arm_indices], key)
    assert np.array_equal(kept, again)
    assert np.array_equal(thresholds, same)
    assert np.array_equal(
        part.thresholds_of(same, slice(50, 60)), quotas.ranks.thresholds_of(thresholds, slice(50, 60))
    )


def test_the_largest_of_some_arms_break_ties_as_among_all():
    key = draw_key(np.random.default_rng(0))
    scores = np.array([1.0, 2.0, 2.0, 0.0, 2.0, 1.0])
    everything = largest(scores[None], 3, np.array([key], dtype=np.uint64))[0]
    arm_indices = np.array([1, 2, 4, 5])
    assert np.array_equal(arm_indices[largest_of_one(scores[arm_indices], 3, key, arm_indices)], everything)
    assert np.array_equal(everything, np.array([1, 2, 4])[np.argsort(tie_keys(key, np.array([1, 2, 4])))])
