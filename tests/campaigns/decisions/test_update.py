"""Publishing: what is new, by several updaters at once, after erasures, and the summary."""

import json
import math
import threading
from datetime import timedelta

import numpy as np
import pytest

from armful import LedgerError
from armful.campaigns.decisions import DecisionFold, PublishedModel, _segments, fold, update_model
from armful.campaigns.decisions._series import totals_of
from armful.campaigns.settings import parse_settings
from tests.campaigns.decisions.made import NOON, D, assert_close, decision, made_settings, opened, reward


@pytest.fixture
def small_segments(monkeypatch):
    monkeypatch.setattr(_segments, "SIZE", 4)
    monkeypatch.setattr(fold, "SIZE", 4)


def filled(tmp_path, n=10, settings=None, **options):
    settings = settings or made_settings()
    ledger = opened(tmp_path, settings)
    rng = np.random.default_rng(0)
    ledger.add_decisions([decision(rng, NOON + timedelta(seconds=i), ids=[0, 1, 2], **options) for i in range(n)])
    return ledger, settings


def test_a_model_is_published_when_something_is_new(tmp_path, small_segments):
    ledger, settings = filled(tmp_path, 0)
    folded = DecisionFold(ledger, settings, D)
    assert update_model(folded, NOON).version == 1  # workers can begin
    assert update_model(folded, NOON + timedelta(seconds=1)) is None
    assert ledger.newest_model()[0].checked_at == NOON + timedelta(seconds=1)
    ledger.add_decisions([decision(np.random.default_rng(0), NOON) for _ in range(5)])
    assert update_model(folded, NOON).version == 2
    model = PublishedModel.newest(ledger)
    assert np.allclose(model.pending.T @ model.pending, folded.pending.T @ folded.pending)
    assert model.version == 2
    assert update_model(folded, NOON + timedelta(minutes=29)) is None
    closed = update_model(folded, NOON + timedelta(minutes=30))
    assert (closed.version, closed.n_observations, closed.last_round) == (3, 15, 5)
    assert_close(PublishedModel.newest(ledger).state, folded.state)
    reward(ledger, 2, ledger.chosen(2).ids[0], 1.0, NOON)
    assert update_model(folded, NOON + timedelta(minutes=30)).version == 4


def test_a_new_process_publishes_only_what_is_new(tmp_path, small_segments):
    ledger, settings = filled(tmp_path)
    later = NOON + timedelta(hours=1)
    update_model(DecisionFold(ledger, settings, D), later)
    assert update_model(DecisionFold(ledger, settings, D), later) is None
    assert update_model(DecisionFold(ledger, settings, D), NOON).version == 2  # the windows are open again
    assert update_model(DecisionFold(ledger, made_settings(learning="discount = 0.9"), D), NOON).version == 3


def test_another_interval_is_published_at_once(tmp_path, small_segments):
    ledger, settings = filled(tmp_path)
    folded, later = DecisionFold(ledger, settings, D), NOON + timedelta(hours=1)
    for every, version in [(None, 1), (timedelta(seconds=2.5), 2), (timedelta(hours=1), 3)]:
        assert update_model(folded, later, update_every=every).version == version
        assert update_model(folded, later, update_every=every) is None
        seconds = json.loads(ledger.newest_model()[2])["model"]["update_every_seconds"]
        assert seconds == (30 if every is None else every.total_seconds())


def test_an_erased_person_is_gone_from_the_next_model(tmp_path, small_segments):
    settings = made_settings()
    ledger = opened(tmp_path, settings)
    rng = np.random.default_rng(0)
    ledger.add_decisions([decision(rng, NOON, unit=f"user {i % 3}", ids=[i, i + 20, i + 30]) for i in range(9)])
    later = NOON + timedelta(hours=1)
    folded = DecisionFold(ledger, settings, D)
    update_model(folded, later)
    ledger.forget(["user 1"])
    assert ledger.newest_model() is None
    assert update_model(folded, later).n_observations == 18
    ledger.forget(["arm 0"])
    assert update_model(DecisionFold(ledger, settings, D), later).n_observations == 17
    assert_close(PublishedModel.newest(ledger).state, folded_from_nothing(ledger, settings, later).state)


class ErasesBeforePublishing:
    """A ledger in which somebody is erased in the moment before a model is published, and once a rival publishes."""

    def __init__(self, ledger, before):
        self._ledger, self._before = ledger, before

    def __getattr__(self, name):
        return getattr(self._ledger, name)

    def publish_model(self, *model):
        if self._before:
            self._before.pop(0)()
        return self._ledger.publish_model(*model)


def test_a_model_made_before_an_erasure_or_after_a_rival_is_made_again(tmp_path, small_segments):
    settings = made_settings()
    ledger = opened(tmp_path, settings)
    rng = np.random.default_rng(0)
    ledger.add_decisions([decision(rng, NOON, unit=f"user {i}", ids=[i, i + 20, i + 30]) for i in range(5)])
    later = NOON + timedelta(hours=1)
    rival = DecisionFold(ledger, settings, D)
    before = [lambda: ledger.forget(["user 2"]), lambda: update_model(rival, later)]
    folded = DecisionFold(ErasesBeforePublishing(ledger, before), settings, D)
    assert update_model(folded, later).n_observations == 12
    assert PublishedModel.newest(ledger).n_observations == 12
    always = DecisionFold(ErasesBeforePublishing(ledger, [lambda: update_model(rival2(), later)] * 99), settings, D)

    def rival2():
        ledger.add_decisions([decision(rng, NOON)])
        return DecisionFold(ledger, settings, D)

    reward(ledger, 1, "arm 0", 1.0, later)
    with pytest.raises(LedgerError, match="run one updater alone"):
        update_model(always, later)


def test_two_updaters_at_once_end_with_a_model_of_everything(tmp_path, small_segments):
    ledger, settings = filled(tmp_path, 3)
    later = NOON + timedelta(hours=1)
    failures = []

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            with opened(tmp_path, settings) as own:
                mine = DecisionFold(own, settings, D)
                for _ in range(4):
                    own.add_decisions([decision(rng, NOON) for _ in range(3)])
                    update_model(mine, later)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures
    update_model(DecisionFold(ledger, settings, D), later)
    info, state, _ = ledger.newest_model()
    assert info.last_round == 27
    assert info.version == len(ledger.models())
    assert_close(PublishedModel.from_bytes(state).state, folded_from_nothing(ledger, settings, later).state)


def folded_from_nothing(ledger, settings, now):
    class Unsaved:
        def __getattr__(self, name):
            return getattr(ledger, name)

        def segments(self, first=1, last=None):
            return {}

    folded = DecisionFold(Unsaved(), settings, D)
    folded.update(now)
    return folded


@pytest.mark.parametrize("step", ["position", "last_number", "segments", "block", "write_segments", "publish_model"])
def test_an_update_that_is_stopped_anywhere_is_made_by_the_next_one(tmp_path, small_segments, step):
    ledger, settings = filled(tmp_path)
    later = NOON + timedelta(hours=1)

    class Stops:
        left = 1

        def __getattr__(self, name):
            if name == step and self.left:
                self.left = 0
                raise KeyboardInterrupt
            return getattr(ledger, name)

    folded = DecisionFold(Stops(), settings, D)
    with pytest.raises(KeyboardInterrupt):
        update_model(folded, later)
    assert ledger.newest_model() is None
    for again in (folded, DecisionFold(ledger, settings, D)):  # the same process, and a new one
        update_model(again, later)
        assert_close(PublishedModel.newest(ledger).state, folded_from_nothing(ledger, settings, later).state)


# -- the summary -------------------------------------------------------------------------------------


def numbers_in(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for each in value for number in numbers_in(each)]
    return [value] if isinstance(value, int | float) else []


def summary_of(ledger, settings, now=NOON + timedelta(hours=1)):
    update_model(DecisionFold(ledger, settings, D), now)
    return json.loads(PublishedModel.newest(ledger).summary)


def test_the_summary_of_nothing(tmp_path):
    settings = made_settings()
    found = summary_of(opened(tmp_path, settings), settings)
    assert found["sentence"] == "Nothing has been decided yet."
    assert (found["decisions"], found["series"], found["lift"], found["positions"]) == (0, [], None, [])


def test_the_summary_counts_what_is_in_the_ledger(tmp_path):
    settings = made_settings()
    ledger = opened(tmp_path, settings)
    rng = np.random.default_rng(0)
    shares = [["chosen", "explored", "chosen"], ["holdout"] * 3]
    made = [
        decision(rng, NOON + timedelta(seconds=i), shares=shares[i % 5 == 0], ids=[0, 1, 2], groups=["a", "b", "a"])
        for i in range(200)
    ]
    ledger.add_decisions(made)
    rewards = rng.integers(0, 2, (200, 3)).astype(float)
    for number in range(1, 201):
        for i in range(3):
            reward(ledger, number, f"arm {i}", rewards[number - 1, i], NOON)
    ledger.add_decisions([decision(rng, NOON + timedelta(minutes=50)) for _ in range(7)])
    found = summary_of(ledger, settings)
    assert (found["decisions"], found["rewards"], found["outstanding"]) == (207, 600, 21)
    assert [point["decisions"] for point in found["series"]] == [64, 64, 64, 8, 7]
    first = found["series"][0]
    policy = np.array([made[i].rows[0][2] != "holdout" for i in range(64)])
    assert first["chosen"]["mean"] == pytest.approx(rewards[:64][policy][:, [0, 2]].mean())
    assert first["explored"]["mean"] == pytest.approx(rewards[:64][policy][:, 1].mean())
    assert first["holdout"]["mean"] == pytest.approx(rewards[:64][~policy].mean())
    assert first["holdout"]["n"] == 3 * (~policy).sum()
    assert first["exploring"] == pytest.approx(1 / 3)
    assert first["from"] == NOON.isoformat()
    assert first["to"] == (NOON + timedelta(seconds=63)).isoformat()
    assert {(each["group"], each["n"]) for each in found["quotas"]} == {("a", 400), ("b", 200)}
    assert found["positions"] == []
    assert sorted(each["name"] for each in found["coefficients"]) == ["x1", "x2", "x3", "x4"]
    assert found["model"]["n_observations"] == 600
    assert len(found["audit"]) == 7
    assert all(math.isfinite(number) for number in numbers_in(found))
    resumed = DecisionFold(ledger, settings, D)
    assert not resumed.update(NOON + timedelta(hours=1))
    assert totals_of(resumed.in_order())["came"] == 600
    weighted = made_settings(service="positions = [1.0, 0.5, 0.5]")
    positions = summary_of(ledger, weighted)["positions"]
    assert [each["weight"] for each in positions] == [1.0, 0.5, 0.5]
    assert positions[1]["mean"] == pytest.approx(rewards[:, 1].mean())


@pytest.mark.parametrize("learn", ["at once", "when the window closes"])
@pytest.mark.parametrize("missing", ["0", '"unknown"'])
def test_points_with_open_windows_are_what_came_so_far(tmp_path, learn, missing):
    settings = made_settings(outcomes=f'learn = "{learn}"\nmissing = {missing}')
    ledger = opened(tmp_path, settings)
    rng = np.random.default_rng(0)
    shares = [["chosen", "explored", "chosen"], ["holdout"] * 3]
    times = [NOON + timedelta(seconds=i) for i in range(192)]
    ledger.add_decisions([decision(rng, at, shares=shares[i % 5 == 0], ids=[0, 1, 2]) for i, at in enumerate(times)])
    rewards = np.where(rng.random((192, 3)) < 0.3, rng.random((192, 3)), np.nan)
    for i, j in np.argwhere(np.isfinite(rewards)).tolist():
        reward(ledger, i + 1, f"arm {j}", rewards[i, j], times[i])
    now = NOON + timedelta(minutes=30, seconds=100)  # the windows of the first 101 have closed
    points = summary_of(ledger, settings, now)["series"]
    assert [(point["decisions"], point["open"]) for point in points] == [(64, 0), (64, 27), (64, 64)]
    known = rewards if missing != "0" else np.nan_to_num(rewards)
    holdout = np.arange(192) % 5 == 0
    for i, point in enumerate(points):
        inside = np.arange(192) // 64 == i
        expected = known[inside & ~holdout][:, [0, 2]], known[inside & ~holdout][:, [1]], known[inside & holdout]
        for share, values in zip(("chosen", "explored", "holdout"), expected, strict=True):
            assert point[share]["n"] == np.isfinite(values).sum()
            assert point[share]["mean"] == pytest.approx(np.nanmean(values))
            assert (point[share]["low"] is None) == (i > 0), "an interval of what is not complete would say too much"
    later = summary_of(ledger, settings, NOON + timedelta(hours=1))["series"]
    assert [point["open"] for point in later] == [0, 0, 0]
    assert [point["chosen"]["mean"] for point in later] == pytest.approx([point["chosen"]["mean"] for point in points])


@pytest.mark.parametrize("value", [1.0, 0.5])
def test_intervals_of_clicks_stay_between_0_and_1(tmp_path, value):
    settings = made_settings()
    ledger = opened(tmp_path, settings)
    rng = np.random.default_rng(0)
    shares = [["chosen", "explored", "chosen"], ["holdout"] * 3]
    times = [NOON + timedelta(seconds=i) for i in range(128)]
    ledger.add_decisions([decision(rng, at, shares=shares[i % 5 == 0], ids=[0, 1, 2]) for i, at in enumerate(times)])
    for number in (2, 3, 6, 7, 70):  # one click in the holdout, and that in the first half; some among the chosen
        reward(ledger, number, "arm 0", value if number == 6 else 1.0, times[number - 1])
    points = summary_of(ledger, settings, NOON + timedelta(hours=1))["series"]
    means = [point[share] for point in points for share in ("chosen", "explored", "holdout")]
    if value != 1:  # amounts
        assert min(each["low"] for each in means if each["low"] is not None) < 0
        assert all("squares" not in each for each in means)
        return
    assert all(0 <= each["low"] < each["high"] < 1 for each in means)
    assert all(each["low"] <= each["mean"] <= each["high"] for each in means)
    n = sum(np.arange(64, 128) % 5 == 0)
    nothing = points[1]["holdout"]
    assert (nothing["mean"], nothing["n"], nothing["sizes"]) == (0, 3 * n, 9 * n)
    assert nothing["high"] == pytest.approx(1.96**2 / (n + 1.96**2))


def test_a_long_series_is_downsampled(tmp_path, monkeypatch):
    monkeypatch.setattr("armful.campaigns.decisions._series.MOST_POINTS", 5)
    ledger, settings = filled(tmp_path, 64 * 12 + 1)
    found = summary_of(ledger, settings)
    assert [point["decisions"] for point in found["series"]] == [256, 256, 256, 1]


def test_too_long_an_interval_is_noted(tmp_path):
    settings = made_settings(service='update_every = "1 hour"')
    ledger = opened(tmp_path, settings)
    rng = np.random.default_rng(0)
    ledger.add_decisions([decision(rng, NOON + timedelta(milliseconds=10 * i)) for i in range(200)])
    found = summary_of(ledger, settings)
    assert "the model is updated every 60 minutes" in found["notes"][-1]
    assert found["model"]["suggested_seconds"] < 3600
    reward(ledger, 1, ledger.chosen(1).ids[0], 1.0, NOON)
    assert not any("updated every" in note for note in summary_of(ledger, made_settings())["notes"])


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        ("", {"a": (None, None), "b": (None, None)}),
        ('column = "other"\nat_most = 1', {"a": (None, None), "b": (None, None)}),
        ('column = "kind"\nat_most = 2', {"a": (None, 2), "b": (None, 2)}),
        ('column = "kind"\nat_least = { a = 1.0 }\nat_most = { b = 0.4, c = 1 }', {"a": (3, None), "b": (None, 0.4)}),
    ],
)
def test_the_summary_has_what_the_settings_allow_of_each_group(tmp_path, quota, expected):
    text = made_settings().text.replace("[outcomes]", 'features.leave_out = ["kind", "other"]\n[outcomes]')
    settings = parse_settings(f"{text}\n[[choose.quotas]]\n{quota}" if quota else text, None)
    ledger, _ = filled(tmp_path, 5, settings, groups=["a", "b", "a"])
    found = summary_of(ledger, settings)["quotas"]
    assert {each["group"]: (each["at_least"], each["at_most"]) for each in found} == expected
