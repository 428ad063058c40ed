"""Means of the dashboard's points."""

import pytest

from armful.campaigns.decisions._series import mean_of

N_DECISIONS = 3


@pytest.mark.parametrize("k", range(2, 13))
def test_decisions_with_equal_means_count_once_each(k):
    for clicks in range(k + 1):
        sums = {"n": k, "sum": clicks, "squares": clicks**2, "product": clicks * k, "sizes": k**2}
        totals = {f"chosen_{name}": float(N_DECISIONS * value) for name, value in sums.items()}
        assert mean_of(totals, "chosen", yes_or_no=True)["effective_n"] == pytest.approx(N_DECISIONS)
        assert mean_of(totals, "chosen")["low"] is None
