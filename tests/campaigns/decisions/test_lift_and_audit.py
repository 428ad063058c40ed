"""The lift of decisions against that of rows, and the audit on segments."""

import re
from datetime import timedelta

import numpy as np
import pytest

from armful.campaigns.decisions import DecisionFold, _audit, _counts, _lift, _segments, fold
from armful.campaigns.decisions._lift import decision_lift
from armful.campaigns.decisions._series import totals_of
from armful.campaigns.decisions.summary import headline, policy_of
from armful.campaigns.lift import LiftData, estimate_lift
from armful.ledger import NewRewards
from tests.campaigns.decisions.made import NOON, D, decision, made_settings, opened, reward

LATER = NOON + timedelta(hours=1)


@pytest.fixture
def small_segments(monkeypatch):
    for module in (_segments, fold, _audit):
        monkeypatch.setattr(module, "SIZE", 20)


def served(tmp_path, settings, n, *, units=30, scale=1.0):
    """A ledger of slates of three; every fifth unit is in the holdout, and earns less."""
    rng = np.random.default_rng(0)
    ledger = opened(tmp_path, settings)
    who = rng.integers(units, size=n)
    made = []
    for i, unit in enumerate(who):
        shares = ["holdout"] * 3 if unit % 5 == 0 else ["chosen", "chosen", "explored"]
        at = NOON + timedelta(seconds=i)
        made.append(decision(rng, at, unit=f"user {unit}", shares=shares, ids=[0, 1, 2]))
    ledger.add_decisions(made)
    taste = rng.random(units)
    rewards = rng.random((n, 3)) < np.where(who % 5 == 0, 0.3, 0.5)[:, None] * (0.5 + taste[who])[:, None]
    rows = [(i + 1, f"arm {j}", scale * float(rewards[i, j])) for i in range(n) for j in range(3)]
    ledger.add_reward_requests([NewRewards(rewards=rows, received_at=NOON, strict=True)])
    return ledger, who, rewards.astype(float)


def test_the_lift_is_that_of_all_rows_clustered_by_unit(tmp_path, small_segments, monkeypatch):
    for module in (_counts, _lift):
        monkeypatch.setattr(module, "N_CLUSTERS", 2**14)  # each of 30 units in a cluster of its own
    settings = made_settings()
    ledger, who, rewards = served(tmp_path, settings, 130)
    folded = DecisionFold(ledger, settings, D)
    folded.update(LATER)
    found = decision_lift(folded.in_order(), "clicks")
    data = LiftData(
        rounds=np.repeat(np.arange(130) // 20, 3),
        people=np.repeat(who, 3),
        treated=np.repeat(who % 5 != 0, 3),
        rewards=rewards.ravel(),
    )
    expected = estimate_lift(data, adjust=False, unit="clicks")
    for name in ("per_contact", "low", "high", "anytime_low", "anytime_high", "relative_low", "baseline"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9), name
    for name in ("n_rounds", "n_contacts", "n_holdout", "n_holdout_people"):
        assert getattr(found, name) == getattr(expected, name), name
    assert found.sentence == expected.sentence


def test_clusters_of_several_units_give_about_the_same_interval(tmp_path):
    """600 units in 128 clusters; the relative error of a width is about 1 / sqrt(2 x 60), 5 of which are 0.46."""
    settings = made_settings()
    ledger, who, rewards = served(tmp_path, settings, 1500, units=600)
    folded = DecisionFold(ledger, settings, D)
    folded.update(LATER)
    found = decision_lift(folded.in_order(), "clicks")
    data = LiftData(
        rounds=np.repeat(np.arange(1500) // 512, 3),
        people=np.repeat(who, 3),
        treated=np.repeat(who % 5 != 0, 3),
        rewards=rewards.ravel(),
    )
    expected = estimate_lift(data, adjust=False)
    assert found.per_contact == pytest.approx(expected.per_contact)
    assert (found.high - found.low) / (expected.high - expected.low) == pytest.approx(1, abs=0.46)


def test_no_lift_without_a_holdout(tmp_path, small_segments):
    settings = made_settings()
    ledger = opened(tmp_path, settings)
    ledger.add_decisions([decision(np.random.default_rng(0), NOON) for _ in range(30)])
    folded = DecisionFold(ledger, settings, D)
    folded.update(LATER)
    assert decision_lift(folded.in_order(), "clicks") is None


def test_the_audit_finds_rewards_above_the_cap(tmp_path, small_segments):
    """The mean reward is about 1.6 with a standard deviation of 2, of 600 rewards of 30 units: 1 is 3 errors below."""
    settings = made_settings()
    for scale, level in ((0.5, "fine"), (8.0, "problem")):
        ledger, _, _ = served(tmp_path / str(scale), settings, 200, scale=scale)
        folded = DecisionFold(ledger, settings, D)
        folded.update(LATER)
        findings = {each.name: each for each in _audit.audit_decisions(folded, policy_of(folded), LATER)}
        assert findings["cap"].level == level
        assert len(findings) == 7


def test_what_to_do_about_drift_is_in_decisions(tmp_path, small_segments):
    """The effect of the first feature goes from 2 to -2 over 600 decisions; half of the past is to be kept."""
    settings, n = made_settings(), 600
    rng, ledger = np.random.default_rng(0), opened(tmp_path, settings)
    ledger.add_decisions([decision(rng, NOON + timedelta(seconds=i), ids=[0, 1, 2]) for i in range(n)])
    block = ledger.block(1, n)
    means = np.linspace(2, -2, n)[block.of_round] * block.features[:, 0] + np.linspace(0, 1, n)[block.of_round]
    rewards = (means + 0.1 * rng.standard_normal(means.size)).tolist()
    rows = list(zip(block.numbers[block.of_round].tolist(), block.ids.tolist(), rewards, strict=True))
    ledger.add_reward_requests([NewRewards(rewards=rows, received_at=NOON, strict=True)])
    folded = DecisionFold(ledger, settings, D)
    folded.update(LATER)
    findings = {each.name: each for each in _audit.audit_decisions(folded, policy_of(folded), LATER)}
    discount = float(re.search("discount = ([0-9.]+)`", findings["drift"].repair)[1])
    assert discount ** (n / 2) == pytest.approx(np.exp(-1), rel=0.05)


def test_what_to_do_about_blocks_that_are_good_or_bad_is_a_column_that_says_when(tmp_path, small_segments):
    """Rewards have noise of 0.1 and rise and fall by 0.5 in turn, so all but certainly it is found."""
    settings, n = made_settings(), 200
    rng, ledger = np.random.default_rng(0), opened(tmp_path, settings)
    ledger.add_decisions([decision(rng, NOON + timedelta(seconds=i), ids=[0, 1, 2]) for i in range(n)])
    rewards = np.repeat(0.5 * (-1.0) ** (np.arange(n) // 20), 3) + 0.1 * rng.standard_normal(3 * n)
    rows = [(i // 3 + 1, f"arm {i % 3}", value) for i, value in enumerate(rewards.tolist())]
    ledger.add_reward_requests([NewRewards(rewards=rows, received_at=NOON, strict=True)])
    folded = DecisionFold(ledger, settings, D)
    folded.update(LATER)
    findings = {each.name: each for each in _audit.audit_decisions(folded, policy_of(folded), LATER)}
    assert "`shock` is for those of one decision" in findings["shocks"].repair
    assert {each["title"] for each in _audit.as_json(list(findings.values()))} >= {"Good and bad times", "Late rewards"}


@pytest.mark.parametrize(("n", "level"), [(99, None), (100, "look")])
def test_a_service_to_which_no_reward_comes_is_warned(tmp_path, small_segments, n, level):
    settings = made_settings()
    ledger = opened(tmp_path, settings)
    rng = np.random.default_rng(0)
    ledger.add_decisions([decision(rng, NOON, ids=[0, 1, 2]) for _ in range(n)])
    ledger.add_decisions([decision(rng, LATER, ids=[0, 1, 2]) for _ in range(7)])  # their windows are open
    folded = DecisionFold(ledger, settings, D)
    folded.update(LATER)
    totals = totals_of(folded.in_order())
    found = _audit.silence(totals)
    assert [each.level for each in found] == ([] if level is None else [level])
    assert headline(totals, None, "click") == f"No reward has come for {n} decisions whose window has closed."
    assert not any(each.checked for each in _audit.audit_decisions(folded, policy_of(folded), LATER))
    reward(ledger, 5, "arm 1", 0.0, LATER)
    folded.update(LATER)
    assert _audit.silence(totals_of(folded.in_order())) == []


def sentences(findings):
    return " ".join(f"{each.sentence} {each.consequence} {each.repair}" for each in findings)


@pytest.mark.parametrize("n", [5, 200])
def test_the_audit_of_a_service_speaks_of_decisions_and_arms(tmp_path, small_segments, n):
    settings = made_settings()
    ledger, _, _ = served(tmp_path, settings, n, scale=8.0)
    folded = DecisionFold(ledger, settings, D)
    folded.update(LATER)
    said = sentences(_audit.audit_decisions(folded, policy_of(folded), LATER))
    assert not re.search(r"\b(rounds?|people|persons?|contacts?|customers?)\b", said, re.IGNORECASE)
    assert "blocks of 512 decisions" in said
    assert " arms " in said


def test_what_could_not_be_checked_is_not_called_fine(tmp_path, small_segments):
    settings = made_settings()
    ledger, _, _ = served(tmp_path, settings, 15, scale=8.0)
    folded = DecisionFold(ledger, settings, D)
    folded.update(LATER)
    findings = _audit.audit_decisions(folded, policy_of(folded), LATER)
    levels = {"fine": "ok", "look": "warning", "problem": "problem"}
    expected = [levels[each.level] if each.checked else "open" for each in findings]
    assert [each["level"] for each in _audit.as_json(findings)] == expected
    assert "open" in expected


def test_a_lift_without_a_ratio_is_per_arm(tmp_path, small_segments):
    settings = made_settings()
    ledger, _, _ = served(tmp_path, settings, 200, scale=-1.0)
    folded = DecisionFold(ledger, settings, D)
    folded.update(LATER)
    assert "clicks per arm (95 % CI" in decision_lift(folded.in_order(), "clicks").sentence


def test_a_record_of_a_segment_has_what_the_audit_needs(tmp_path, small_segments):
    settings = made_settings(outcomes='missing = "unknown"')
    ledger, who, rewards = served(tmp_path, settings, 45)
    folded = DecisionFold(ledger, settings, D)
    now = NOON + timedelta(minutes=30, seconds=30)  # the last 14 are open
    folded.update(now)
    records = [_audit.as_record(folded, index, now) for index in range(3)]
    assert [record.ids.size for record in records] == [60, 33, 0]
    assert sorted(set(records[0].ids.tolist())) == sorted({f"unit user {unit}" for unit in who[:20]})
    assert records[0].rewards.mean() == pytest.approx(rewards[:20].mean())
    delays = records[1].received_at - records[1].chosen_at.timestamp()
    assert np.allclose(np.sort(-delays)[:3], 20, atol=1e-5)  # received at noon, 20 seconds before the first was made
    assert records[1].closes_at - records[1].chosen_at == timedelta(minutes=30)
