"""Quotas as whole numbers: against exact fractions, and against what `Quotas` can fill."""

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from armful import Quotas
from armful.campaigns.settings import QuotaSettings
from armful.errors import InfeasibleError

SHARES = st.integers(0, 1000).map(lambda thousandths: thousandths / 1000)
BOUNDS = st.one_of(st.integers(0, 50), SHARES)


def test_counts_and_shares_become_counts():
    quota = QuotaSettings(column="region", at_least={"north": 3, "south": 0.25}, at_most=0.5)
    assert quota.bounds(["north", "south", "west"], 10) == (
        {"north": 3, "south": 2},
        {"north": 5, "south": 5, "west": 5},
    )
    assert QuotaSettings(column="region", at_least=2).bounds(["a", "b", "a"], 10) == ({"a": 2, "b": 2}, {})


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SHARES, st.integers(1, 10**6))
def test_a_share_is_rounded_so_that_less_is_asked_for_than_it_says(share, k):
    quota = QuotaSettings(column="region", at_least={"a": share}, at_most={"a": share})
    (low, high) = (bounds["a"] for bounds in quota.bounds(["a", "b"], k))
    exact = Fraction(round(share * 1000), 1000) * k
    assert low <= exact <= high
    assert high - low == (exact.denominator > 1)


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(1, 1000), min_size=1, max_size=8), st.integers(1, 60))
def test_shares_that_add_up_to_one_can_be_met(weights, k):
    shares = {str(i): weight * 1000 // sum(weights) / 1000 for i, weight in enumerate(weights)}
    at_least, at_most = QuotaSettings(column="g", at_least=shares, at_most=shares).bounds(list(shares), k)
    assert sum(at_least.values()) <= k
    # Eight shares that are cut after three digits are less than half a contact short of 60.
    assert sum(at_most.values()) >= k
    assert all(low <= high for low, high in zip(at_least.values(), at_most.values(), strict=True))


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from("abc"), BOUNDS), st.dictionaries(st.sampled_from("abcd"), BOUNDS))
def test_bounds_hold_for_the_groups_that_are_there(at_least, at_most):
    quota = QuotaSettings(column="g", at_least=at_least, at_most=at_most)
    groups = ["a", "b", "c"]
    needed = sum(int(Fraction(str(bound)) * 40) if isinstance(bound, float) else bound for bound in at_least.values())
    if needed > 40:
        with pytest.raises(InfeasibleError, match=f"asks for at least {needed} in .* groups, and k is 40"):
            quota.bounds(groups, 40)
        return
    low, high = quota.bounds(groups, 40)
    assert set(low) == set(at_least) & set(groups)
    assert set(high) == set(at_most) & set(groups)
    assert quota.absent(groups) == ["d"] * ("d" in at_most)


def test_quotas_take_the_bounds():
    labels = ["north"] * 30 + ["south"] * 30 + ["west"] * 3
    low, high = QuotaSettings(column="region", at_least=0.1, at_most={"north": 0.5}).bounds(labels, 20)
    chosen = Quotas(labels, at_least=low, at_most=high, total=20).best([1.0] * 30 + [0.0] * 33).indices
    counts = {group: sum(labels[i] == group for i in chosen) for group in set(labels)}
    assert counts == {"north": 10, "south": 10 - counts["west"], "west": counts["west"]}
    assert counts["west"] >= 2


def test_a_group_that_nobody_is_in_is_named():
    quota = QuotaSettings(column="region", at_least={"nort": 3, "south": 1}, at_most={"wst": 5})
    with pytest.raises(
        InfeasibleError,
        match=r"the quota of 'region' asks for at least 3 of 'nort', which no candidate is in; did you mean 'north'\?",
    ):
        quota.bounds(["north", "south"], 10)
    with pytest.raises(InfeasibleError, match="which no candidate is in; take it out of the quota"):
        quota.bounds(["xyz", "south"], 10)
    assert quota.absent(["north", "south"]) == ["nort", "wst"]


def test_groups_that_need_more_than_k_are_refused():
    quota = QuotaSettings(column="region", at_least=0.4)
    with pytest.raises(InfeasibleError, match="at least 12 in 3 groups, and k is 10; lower at_least, or raise k"):
        quota.bounds(["a", "b", "c"], 10)
