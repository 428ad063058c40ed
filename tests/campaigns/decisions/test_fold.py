"""The fold by segments against the fold round by round, on random histories."""

from contextlib import suppress
from datetime import timedelta

import numpy as np
import pytest

from armful import LedgerError
from armful.campaigns.decisions import DecisionFold, _groups, _segments, fold
from armful.campaigns.decisions.summary import summary
from armful.campaigns.rounds._fold import fold as fold_rounds
from armful.campaigns.rounds._fold import pending_features
from armful.ledger import Ledger, ModelInfo
from tests.campaigns.decisions.made import (
    NOON,
    D,
    assert_close,
    assert_same_gram,
    decision,
    made_settings,
    opened,
    reward,
)
from tests.postgresql import own_schema

RULES = {
    "plain": {},
    "missing unknown": {"outcomes": 'missing = "unknown"'},
    "missing known": {"outcomes": "missing = 0.25"},
    "at once": {"outcomes": 'learn = "at once"\nmissing = "unknown"'},
    "discount": {"learning": "discount = 0.9"},
    "shock": {"learning": "shock = 0.5"},
    "all": {"outcomes": 'learn = "at once"\nmissing = 0.1', "learning": "discount = 0.8\nshock = 2.0"},
}


@pytest.fixture(autouse=True)
def small_segments(monkeypatch):
    monkeypatch.setattr(_segments, "SIZE", 4)
    monkeypatch.setattr(_groups, "SIZE", 4)
    monkeypatch.setattr(_groups, "GROUP", 2)
    monkeypatch.setattr(_groups, "MOST_RECENT", 1)
    monkeypatch.setattr(fold, "SIZE", 4)
    monkeypatch.setattr(fold, "MOST_DEFERRED", 1)


class History:
    """Random decisions, rewards, corrections and erasures, on a clock that jumps."""

    def __init__(self, ledger, settings, seed):
        self.ledger, self.settings, self.rng, self.now = ledger, settings, np.random.default_rng(seed), NOON
        self.arms: list[tuple[int, str]] = []

    def step(self):
        rng = self.rng
        self.now += timedelta(minutes=float(rng.choice([0.1, 1, 5, 40, -3, -60], p=[0.4, 0.3, 0.15, 0.05, 0.05, 0.05])))
        what = rng.random()
        if what < 0.4 or not self.arms:
            new = []
            for _ in range(rng.integers(1, 4)):
                k = int(rng.integers(1, 5))
                unit = None if rng.random() < 0.5 else f"user {rng.integers(8)}"
                shares = rng.choice(["chosen", "explored", "holdout", "no-contact"], k, p=[0.5, 0.2, 0.2, 0.1]).tolist()
                window = timedelta(minutes=float(rng.choice([0, 5, 30])))
                new.append(decision(rng, self.now, k=k, unit=unit, shares=shares, window=window))
            for made, done in zip(new, self.ledger.add_decisions(new), strict=True):
                self.arms += [(done.number, row[0]) for row in made.rows]
        elif what < 0.95:
            for _ in range(rng.integers(1, 4)):
                number, arm = self.arms[rng.integers(len(self.arms))]
                with suppress(LedgerError):  # it was erased
                    reward(self.ledger, number, arm, float(rng.choice([0, 1, 0.5])), self.now)
        else:
            who = f"user {rng.integers(8)}" if rng.random() < 0.5 else self.arms[rng.integers(len(self.arms))][1]
            self.ledger.forget([who])

    def assert_equal(self, folded):
        empty = self.settings.policy.make(D, 0).state.empty()
        assert_close(folded.state, fold_rounds(self.ledger, self.settings, empty, self.now).state)
        assert_same_gram(folded.pending, pending_features(self.ledger, self.settings, D, self.now))


def history(tmp_path, rules, seed):
    settings = made_settings(**RULES[rules])
    return History(opened(tmp_path, settings), settings, seed)


def check_by_segments(past, steps):
    folded = DecisionFold(past.ledger, past.settings, D)
    for step in range(steps):
        past.step()
        if step % 3 == 0:
            folded.update(past.now)
            past.assert_equal(folded)


@pytest.mark.slow
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("seed", range(2))
def test_the_fold_by_segments_equals_the_fold_by_rounds(tmp_path, rules, seed):
    check_by_segments(history(tmp_path, rules, seed), 40)


def test_a_short_history_is_folded_by_segments_as_by_rounds(tmp_path):
    past = history(tmp_path, "all", 5)
    made = decision(past.rng, NOON)
    past.ledger.add_decisions([made])
    reward(past.ledger, 1, made.rows[0][0], 1.0, NOON)  # before its window closes
    check_by_segments(past, 12)


@pytest.mark.slow
@pytest.mark.parametrize("rules", RULES)
def test_resuming_from_saved_segments_equals_folding_from_nothing(tmp_path, rules):
    past = history(tmp_path, rules, 7)
    for _ in range(6):
        for _ in range(7):
            past.step()
        folded = DecisionFold(past.ledger, past.settings, D)
        folded.update(past.now)
        past.assert_equal(folded)


@pytest.mark.slow
def test_on_postgresql_the_fold_is_the_same():
    settings = made_settings(**RULES["all"])
    with own_schema() as url, Ledger.open(url, settings.name, create=True) as ledger:
        past = History(ledger, settings, 3)
        check_by_segments(past, 30)
        resumed = DecisionFold(ledger, settings, D)
        resumed.update(past.now)
        past.assert_equal(resumed)


class Reads:
    """A ledger that notes which blocks are read."""

    def __init__(self, ledger):
        self._ledger, self.blocks = ledger, []

    def __getattr__(self, name):
        return getattr(self._ledger, name)

    def block(self, first, last):
        self.blocks.append((first, last))
        return self._ledger.block(first, last)

    def taken(self):
        blocks, self.blocks = self.blocks, []
        return blocks


def test_only_changed_segments_are_read(tmp_path):
    settings = made_settings()
    ledger = Reads(opened(tmp_path, settings))
    rng = np.random.default_rng(0)
    ledger.add_decisions([decision(rng, NOON, unit=f"user {i}", ids=[i, 10 + i, 20 + i]) for i in range(10)])
    folded = DecisionFold(ledger, settings, D)
    assert folded.update(NOON)
    assert ledger.taken() == [(1, 4), (5, 8), (9, 10)]
    assert not folded.update(NOON + timedelta(minutes=1))
    assert ledger.taken() == []
    ledger.add_decisions([decision(rng, NOON + timedelta(minutes=10))])
    assert folded.update(NOON + timedelta(minutes=10))
    assert ledger.taken() == [(9, 11)]
    later = NOON + timedelta(minutes=30)
    assert folded.update(later)  # the windows of the first ten close
    assert ledger.taken() == [(1, 4), (5, 8), (9, 11)]
    reward(ledger, 6, "arm 5", 1.0, later)
    assert folded.update(later)
    assert ledger.taken() == [(5, 8)]
    reward(ledger, 6, "arm 5", 1.0, later)  # known already
    assert not folded.update(later)
    ledger.forget(["user 1"])
    assert folded.update(later)
    assert ledger.taken() == [(1, 4)]
    assert folded.update(later + timedelta(minutes=10))  # the eleventh closes
    assert ledger.taken() == [(9, 11)]
    assert folded.update(later + timedelta(minutes=5))  # and is open again
    assert ledger.taken() == [(9, 11)]
    again = DecisionFold(ledger, settings, D)
    again.update(later + timedelta(minutes=5))
    assert ledger.taken() == []
    assert_close(again.state, folded.state)
    reward(ledger, 6, "arm 5", 0.0, later)  # corrected while no process was there
    once_more = DecisionFold(ledger, settings, D)
    once_more.update(later + timedelta(minutes=5))
    assert ledger.taken() == [(5, 8)]


def test_a_reward_of_a_closed_decision_is_read_before_those_of_open_ones(tmp_path):
    """Rewards of open decisions change counts alone; they are read a few segments at a time."""
    settings = made_settings()
    ledger = Reads(opened(tmp_path, settings))
    rng = np.random.default_rng(0)
    ledger.add_decisions([decision(rng, NOON, ids=[0, 1, 2]) for _ in range(4)])
    open_until = NOON + timedelta(minutes=40)
    ledger.add_decisions([decision(rng, NOON, ids=[0, 1, 2], window=timedelta(days=1)) for _ in range(12)])
    folded = DecisionFold(ledger, settings, D)
    folded.update(open_until)
    ledger.taken()
    for number in (2, 5, 9, 13):
        reward(ledger, number, "arm 0", 1.0, open_until)
    assert folded.update(open_until)
    assert ledger.taken() == [(1, 4), (13, 16)]
    assert folded.update(open_until)
    assert ledger.taken() == [(9, 12)]
    assert folded.update(open_until)
    assert ledger.taken() == [(5, 8)]
    assert not folded.update(open_until)
    resumed = DecisionFold(ledger, settings, D)
    assert not resumed.update(open_until)


def test_an_erasure_of_an_open_decision_does_not_wait(tmp_path):
    settings = made_settings()
    ledger = opened(tmp_path, settings)
    rng = np.random.default_rng(0)
    ledger.add_decisions([decision(rng, NOON, unit=f"user {i}", ids=[0, 1, 2]) for i in range(12)])
    folded = DecisionFold(ledger, settings, D)
    folded.update(NOON)
    for number in (6, 11):
        reward(ledger, number, "arm 0", 1.0, NOON)
    ledger.forget(["user 1"])
    folded.update(NOON)
    assert_same_gram(folded.pending, pending_features(ledger, settings, D, NOON))


def test_segments_of_other_settings_are_made_anew(tmp_path):
    settings = made_settings()
    ledger = Reads(opened(tmp_path, settings))
    rng = np.random.default_rng(0)
    ledger.add_decisions([decision(rng, NOON) for _ in range(6)])
    DecisionFold(ledger, settings, D).update(NOON + timedelta(hours=1))
    ledger.taken()
    for other in (
        made_settings(outcomes="missing = 0.5"),
        made_settings(learning="discount = 0.9"),
        made_settings(learning="shock = 0.5"),
        made_settings(service="positions = [1.0, 0.5, 0.25]"),
    ):
        folded = DecisionFold(ledger, other, D)
        folded.update(NOON + timedelta(hours=1))
        assert len(ledger.taken()) == 2


def test_damaged_segments_are_made_anew(tmp_path):
    settings = made_settings()
    ledger = opened(tmp_path, settings)
    rng = np.random.default_rng(0)
    ledger.add_decisions([decision(rng, NOON) for _ in range(6)])
    first = DecisionFold(ledger, settings, D)
    first.update(NOON + timedelta(hours=1))
    ledger.write_segments({span: data[:-40] for span, (_, data) in ledger.segments().items()}, ledger.position())
    again = DecisionFold(ledger, settings, D)
    again.update(NOON + timedelta(hours=1))
    assert_close(again.state, first.state)


def test_decisions_of_other_features_are_refused(tmp_path):
    settings = made_settings()
    ledger = opened(tmp_path, settings)
    ledger.add_decisions([decision(np.random.default_rng(0), NOON)])
    with pytest.raises(LedgerError, match="have 4 features, the campaign has 3"):
        DecisionFold(ledger, settings, 3).update(NOON)


def test_nothing_decided_is_an_empty_state(tmp_path):
    settings = made_settings()
    folded = DecisionFold(opened(tmp_path, settings), settings, D)
    assert not folded.update(NOON)
    assert folded.state.n == 0
    assert folded.pending.shape == (0, D)


def test_with_examination_weights_a_reward_is_that_of_what_was_looked_at(tmp_path):
    """An observation at a place of weight w enters as (x, r / w) with weight w^2, and counts as one in n."""
    settings = made_settings(service="positions = [1.0, 0.5, 0.25]")
    ledger = opened(tmp_path, settings)
    rng = np.random.default_rng(0)
    made = [decision(rng, NOON, k=4) for _ in range(9)]
    ledger.add_decisions(made)
    X = np.concatenate([[np.frombuffer(row[7], "<f4") for row in each.rows] for each in made]).astype(float)
    w = np.tile([1.0, 0.5, 0.25, 0.25], 9)  # places beyond the last weight have the last one
    folded = DecisionFold(ledger, settings, D)
    folded.update(NOON)
    assert_same_gram(folded.pending, w[:, None] * X)
    for number in range(1, 10):
        reward(ledger, number, made[number - 1].rows[number % 4][0], 1.0, NOON)
    folded.update(NOON + timedelta(hours=1))
    r = np.concatenate([np.arange(4) == (number % 4) for number in range(1, 10)]).astype(float)
    expected = settings.policy.make(D, 0).state.empty().learn(X, r / w, weights=w**2)
    assert np.allclose(folded.state.V, expected.V)
    assert np.allclose(folded.state.b, expected.b)
    assert np.isclose(folded.state.residual, expected.residual)
    assert folded.state.n == 36


def closed_history(tmp_path, n, settings):
    """Return a ledger with n closed decisions, of which the last is 1 hour old, and a fold of them."""
    ledger = Reads(opened(tmp_path, settings))
    rng = np.random.default_rng(3)
    units = [f"user {i % 7}" for i in range(n)]
    shares = [["chosen", "explored", "holdout"], ["chosen"] * 3]
    made = [
        decision(rng, NOON, unit=units[i], ids=[i, 100 + i, 200 + i], shares=shares[i % 2], groups=["a", "b", "a"])
        for i in range(n)
    ]
    ledger.add_decisions(made)
    for number in range(1, n + 1):
        reward(ledger, number, f"arm {number - 1}", float(rng.random()), NOON)
    folded = DecisionFold(ledger, settings, D)
    folded.update(NOON + timedelta(hours=1))
    ledger.taken()
    return ledger, folded


def assert_is_the_fold_by_rounds(folded, now=NOON + timedelta(hours=1)):
    empty = folded.settings.policy.make(D, 0).state.empty()
    assert_close(folded.state, fold_rounds(folded.ledger, folded.settings, empty, now).state)


def test_closed_segments_are_merged_in_groups_and_dropped(tmp_path):
    ledger, folded = closed_history(tmp_path, 24, made_settings(learning="discount = 0.9"))
    assert (sorted(folded.segments.single), sorted(folded.segments.groups)) == ([4, 5], [0, 1])
    assert folded.segments.indices() == folded.segments.closed_indices() == list(range(6))
    assert_is_the_fold_by_rounds(folded)
    ledger.add_decisions([decision(np.random.default_rng(0), NOON) for _ in range(4)])
    folded.update(NOON + timedelta(hours=1))
    assert (sorted(folded.segments.single), sorted(folded.segments.groups)) == ([6], [0, 1, 2])
    resumed = DecisionFold(ledger, folded.settings, D)
    ledger.taken()
    resumed.update(NOON + timedelta(hours=1))
    assert (ledger.taken(), sorted(resumed.segments.groups)) == ([], [0, 1, 2])
    assert_is_the_fold_by_rounds(resumed)


def test_a_correction_in_a_group_reads_one_segment(tmp_path):
    later = NOON + timedelta(hours=1)
    ledger, folded = closed_history(tmp_path, 24, made_settings(learning="discount = 0.9"))
    reward(ledger, 6, "arm 5", 0.875, later)
    assert folded.update(later)
    assert ledger.taken() == [(5, 8)]
    assert (sorted(folded.segments.single), sorted(folded.segments.groups)) == ([4, 5], [0, 1])
    assert_is_the_fold_by_rounds(folded)
    ledger.forget(["user 3"])
    assert folded.update(later)
    assert sorted(folded.segments.groups) == [0, 1]
    assert_is_the_fold_by_rounds(folded)


def test_segments_of_a_group_that_others_wrote_are_made_anew(tmp_path):
    """Of two processes that fold at once, one may save a segment as it was before a reward that the other has."""
    later = NOON + timedelta(hours=1)
    ledger, folded = closed_history(tmp_path, 24, made_settings())
    before = ledger.segments()
    reward(ledger, 2, "arm 1", 0.875, later)
    folded.update(later)
    ledger.write_segments({span: data for span, (_, data) in before.items()}, ledger.position())
    reward(ledger, 6, "arm 5", 0.875, later)
    ledger.taken()
    folded.update(later)
    assert ledger.taken() == [(1, 4), (5, 8)]
    assert_is_the_fold_by_rounds(folded)


def test_a_clock_that_is_set_back_opens_groups(tmp_path):
    ledger, folded = closed_history(tmp_path, 24, made_settings())
    assert folded.update(NOON + timedelta(minutes=10))
    assert not folded.segments.groups
    assert folded.state.n == 0
    assert folded.update(NOON + timedelta(hours=1))
    assert sorted(folded.segments.groups) == [0, 1]
    assert_is_the_fold_by_rounds(folded)
    ledger._ledger.close()


def test_the_summary_of_groups_is_that_of_their_segments(tmp_path, monkeypatch):
    monkeypatch.setattr("armful.campaigns.decisions._series.MOST_POINTS", 3)
    ledger, folded = closed_history(tmp_path, 45, made_settings())
    assert {len(group.sums.counts.buckets) for group in folded.segments.groups.values()} == {1}
    info = ModelInfo(
        version=1, position=0, closed_until=NOON, last_round=45, made_at=NOON, checked_at=NOON, n_observations=1.0
    )
    found = summary(folded, info, [])
    monkeypatch.setattr(_groups, "MOST_RECENT", 99)
    plain = DecisionFold(ledger, folded.settings, D)
    plain.update(NOON + timedelta(hours=1))
    assert not plain.segments.groups
    expected = summary(plain, info, [])
    assert len(found["series"]) == 3
    for one, other in zip(flat(found), flat(expected), strict=True):
        assert one == (pytest.approx(other, rel=1e-9, abs=1e-12) if isinstance(other, float) else other)


def flat(value):
    if isinstance(value, dict):
        return [each for key, inner in value.items() for each in (key, *flat(inner))]
    return [each for inner in value for each in flat(inner)] if isinstance(value, list) else [value]
