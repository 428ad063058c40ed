"""Means of the dashboard's points."""

from datetime import datetime, timedelta

import numpy as np
import pytest

from armful.campaigns._intervals import wilson
from armful.campaigns.decisions import DecisionFold, _counts, _groups, _segments, _series
from armful.campaigns.decisions import fold as fold_module
from armful.campaigns.decisions._counts import COLUMNS, summed
from armful.campaigns.decisions._pauses import MOST_IN_A_SEGMENT, after_pauses
from armful.campaigns.decisions._series import mean_of, series
from tests.campaigns.decisions.made import NOON, D, decision, made_settings, opened

N_DECISIONS = 3


@pytest.mark.parametrize("k", range(2, 13))
def test_decisions_with_equal_means_count_once_each(k):
    for clicks in range(k + 1):
        sums = {"n": k, "sum": clicks, "squares": clicks**2, "product": clicks * k, "sizes": k**2}
        totals = {f"chosen_{name}": float(N_DECISIONS * value) for name, value in sums.items()}
        found = mean_of(totals, "chosen", yes_or_no=True)
        assert (found["low"], found["high"]) == pytest.approx(wilson(clicks / k, N_DECISIONS))
        assert mean_of(totals, "chosen")["low"] is None


def served(ledger, times):
    """Add a decision at each of some seconds after noon."""
    rng = np.random.default_rng(0)
    ledger.add_decisions([decision(rng, NOON + timedelta(seconds=float(at)), ids=[0, 1, 2]) for at in times])


def folded(ledger):
    fold = DecisionFold(ledger, made_settings(), D)
    fold.update(NOON + timedelta(days=9))
    return fold


def spans(points):
    """From when to when points last, in seconds after noon."""
    ends = [(datetime.fromisoformat(each["from"]), datetime.fromisoformat(each["to"])) for each in points]
    return [((begin - NOON).total_seconds(), (end - NOON).total_seconds()) for begin, end in ends]


def spells(*each):
    """Return a decision each second from when each spell begins, so many of them."""
    return np.concatenate([begin + np.arange(n) for begin, n in each])


@pytest.mark.parametrize(
    ("before", "expected"), [(40, [40, 24, 36]), (64, [64, 60]), (100, [64, 36, 28, 32]), (512, [64] * 8 + [60])]
)
def test_no_point_spans_a_pause(tmp_path, before, expected):
    ledger = opened(tmp_path, made_settings())
    served(ledger, spells((0, before), (before + 240, 60)))
    points = series(folded(ledger).in_order())
    assert all(end < before or begin >= before + 240 for begin, end in spans(points))
    assert [each["decisions"] for each in points] == expected


def test_without_a_pause_points_are_as_long_as_each_other(tmp_path):
    ledger = opened(tmp_path, made_settings())
    rng = np.random.default_rng(1)
    served(ledger, np.cumsum(rng.exponential(size=200)) + 10 * (np.arange(200) // 20))  # irregular, some at once
    assert [each["decisions"] for each in series(folded(ledger).in_order())] == [64, 64, 64, 8]


def test_a_segment_keeps_its_longest_pauses_alone():
    times = np.cumsum(np.where(np.arange(512) % 16 == 0, 1000.0 + np.arange(512), 1.0))
    found = np.flatnonzero(after_pauses(times, bucket=64))
    assert found.tolist() == [512 - 16 * (i + 1) for i in range(MOST_IN_A_SEGMENT)][::-1]


def test_there_are_never_more_points_than_may_be(tmp_path, monkeypatch):
    monkeypatch.setattr(_series, "MOST_POINTS", 10)
    ledger = opened(tmp_path, made_settings())
    served(ledger, spells(*((10_000 * i + i**2, 40) for i in range(20))))
    points = series(folded(ledger).in_order())
    assert len(points) == 10
    assert sum(each["decisions"] for each in points) == 800


def test_rows_are_merged_alike_in_one_step_or_in_several():
    rng = np.random.default_rng(2)
    rows = np.zeros((64, len(COLUMNS)))
    rows[:, COLUMNS.index("buckets")] = rng.random(64) < 0.7
    rows[0, COLUMNS.index("buckets")] = 1
    rows[:, COLUMNS.index("pause")] = np.where(rng.random(64) < 0.3, rng.choice([1.5, 2.5, 5.0, 9.0], 64), 0)
    rows[:, COLUMNS.index("decisions")] = rng.integers(1, 64, 64)
    counts = made_counts(rows)
    for step in (2, 4):
        assert np.array_equal(counts.coarse(step).coarse(8).buckets, counts.coarse(8).buckets)
    assert len(counts.coarse(2).buckets) > len(counts.coarse(8).buckets) > 8
    assert np.array_equal(summed(counts.coarse(8).buckets, np.zeros(1, int)), summed(rows, np.zeros(1, int)))


def made_counts(rows):
    empty = np.zeros(0)
    return _counts.Counts(buckets=rows, places=empty, compared=empty, clusters=empty, seen=empty, groups={})


def test_the_series_is_the_same_from_snapshots_and_from_the_start(tmp_path, monkeypatch):
    for module in (_segments, fold_module, _groups):
        monkeypatch.setattr(module, "SIZE", 32)
    for module in (_counts, _groups):
        monkeypatch.setattr(module, "BUCKET", 8)
    monkeypatch.setattr(_groups, "GROUP", 2)
    monkeypatch.setattr(_series, "MOST_POINTS", 30)
    settings = made_settings()
    rng = np.random.default_rng(3)
    gaps = np.where(rng.random(600) < 0.03, rng.choice([20.0, 60.0, 200.0], 600), 1.0)
    times = np.cumsum(gaps)
    ledger, other = (opened(tmp_path / name, settings) for name in ("grows", "whole"))
    growing = DecisionFold(ledger, settings, D)
    for begin in range(0, 600, 100):
        served(ledger, times[begin : begin + 100])
        growing.update(NOON + timedelta(days=9))
    served(other, times)
    whole, resumed = folded(other), folded(ledger)
    assert growing.segments.groups
    assert spans(series(growing.in_order())) == spans(series(resumed.in_order())) == spans(series(whole.in_order()))
    longest = np.flatnonzero(gaps == 200.0)
    assert 3 < longest.size < 10
    for i in longest.tolist():
        assert not any(begin <= times[i - 1] and end >= times[i] for begin, end in spans(series(whole.in_order())))
