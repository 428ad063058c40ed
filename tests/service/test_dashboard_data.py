"""What the dashboard shows, against the campaign and the ledger it is read from."""

import json
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from armful.campaigns.lift import estimate_lift, lift_data
from armful.campaigns.lift._words import unit_of
from armful.campaigns.settings import PolicySettings
from armful.ledger import Ledger, ModelInfo
from armful.service.dashboard import CampaignSource, ServiceSource, StoreSource
from armful.service.dashboard._service_data import N_DECISIONS
from armful.service.dashboard._why import HOLDOUT, why
from armful.testing._made_decisions import made_decision
from tests.campaigns import small
from tests.campaigns.decisions import made
from tests.service.made_dashboard import made_data


@pytest.fixture
def campaign(tmp_path):
    clock = small.Clock()
    folder = small.make(tmp_path / "autumn", choose='[[choose.quotas]]\ncolumn = "region"\nat_least = { north = 5 }')
    with small.opened(folder, clock) as campaign:
        campaign.clock = clock
        yield campaign


@pytest.fixture
def service(tmp_path):
    """A ledger with 30 decisions, and the settings of its campaign."""
    settings, rng = made.made_settings(), np.random.default_rng(5)
    with made.opened(tmp_path, settings) as ledger:
        decisions = [
            made.decision(rng, made.NOON + timedelta(seconds=i), unit=None if i % 2 else f"user {i}") for i in range(30)
        ]
        ledger.add_decisions(decisions)
        yield ledger, settings


def publish(ledger, version, **summary):
    info = ModelInfo(
        version=version,
        position=ledger.position(),
        closed_until=made.NOON,
        last_round=ledger.last_number(),
        made_at=made.NOON,
        checked_at=made.NOON + timedelta(seconds=version),
        n_observations=7.0,
    )
    assert ledger.publish_model(info, b"state", json.dumps(summary))


def test_a_campaign_shows_what_its_status_and_report_say(campaign):
    small.run(campaign, campaign.clock, 4)
    shown, status = CampaignSource(campaign).data(), campaign.status()
    json.dumps(shown, allow_nan=False)
    assert [each["round"] for each in shown["series"]] == [each.number for each in status.rounds]
    for point, each in zip(shown["series"], status.rounds, strict=True):
        expected = [each.mean_chosen, each.mean_holdout] if each.closed else [None, None]
        assert [point["chosen"]["mean"], point["holdout"]["mean"]] == pytest.approx(expected)
        assert point["exploring"] == pytest.approx(each.exploring)
        assert (point["open"] == 0) == each.closed
    assert {each.closed for each in status.rounds} == {True, False}
    assert shown["outstanding"] == status.outstanding
    assert shown["rewards"] == sum(each.came for each in status.rounds)
    assert shown["coefficients"] == [each.to_dict() for each in status.coefficients]
    assert shown["model"]["n_observations"] == status.n_observations
    assert sum(each["share"] for each in shown["quotas"]) == pytest.approx(1)
    assert {each["at_least"] for each in shown["quotas"] if each["group"] == "north"} == {5}
    assert len(shown["audit"]) == 7
    lift = estimate_lift(lift_data(list(campaign.records())), unit=unit_of("bought"))
    assert shown["sentence"] == lift.headline("The chosen", "the holdout")
    assert shown["lift"]["sentence"].startswith(lift.sentence)
    assert shown["lift"]["certainty"] == lift.certainty


def test_both_kinds_have_the_parts_that_the_page_reads(campaign, service):
    expected = made_data("x", points=3, version=1, now=made.NOON)
    small.run(campaign, campaign.clock, 3)
    shown = CampaignSource(campaign).data()
    assert shown.keys() == expected.keys() - {"last_decisions"}
    assert shown["series"][0].keys() >= expected["series"][0].keys() - {"explored"}
    ledger, settings = service
    shown = ServiceSource(ledger, settings).data()
    assert shown.keys() == expected.keys()
    assert shown["ready_features"] == bool(settings.features.ready)
    assert shown["last_decisions"][0].keys() == expected["last_decisions"][0].keys()
    assert shown["last_decisions"][0]["chosen"][0].keys() >= expected["last_decisions"][0]["chosen"][0].keys()


def test_a_campaign_without_a_round_says_so(campaign):
    source = CampaignSource(campaign)
    assert source.data()["sentence"] == "No round has been chosen yet."
    before = source.stamp()
    small.run(campaign, campaign.clock, 1)
    assert source.stamp() != before


def test_the_stamp_changes_with_rewards_and_when_a_window_closes(campaign):
    source = CampaignSource(campaign)
    campaign.choose(campaign.folder / "customers.csv")
    stamps = [source.stamp(), source.stamp()]
    campaign.learn(small.outcomes(campaign, 1))
    stamps.append(source.stamp())
    campaign.clock.pass_days(15)
    stamps.append(source.stamp())
    assert stamps[0] == stamps[1]
    assert len(set(stamps)) == 3


def test_the_last_decisions_are_those_of_the_ledger(service):
    ledger, settings = service
    shown = ServiceSource(ledger, settings).data()
    assert [each["decision_id"] for each in shown["last_decisions"]] == [str(30 - i) for i in range(N_DECISIONS)]
    for each in shown["last_decisions"]:
        arms = ledger.chosen(int(each["decision_id"]))
        assert [arm["id"] for arm in each["chosen"]] == arms.ids.tolist()
        assert [arm["position"] for arm in each["chosen"]] == [1, 2, 3]
        assert [arm["score"] for arm in each["chosen"]] == pytest.approx((arms.predicted + arms.bonus).tolist())
        assert each["unit_present"] == (int(each["decision_id"]) % 2 == 1)
    json.dumps(shown, allow_nan=False)
    assert "user" not in json.dumps(shown["last_decisions"])


def test_decisions_without_a_new_reward_are_not_read_again(service, monkeypatch):
    ledger, settings = service
    source = ServiceSource(ledger, settings)
    source.data()
    read, plain = [], ledger.round
    monkeypatch.setattr(ledger, "round", lambda number: read.append(number) or plain(number))
    before = source.stamp()
    source.data()
    assert read == []
    arm = str(ledger.chosen_ids(28)[1])
    made.reward(ledger, 28, arm, 1.0, made.NOON + timedelta(minutes=1))
    assert source.stamp() != before
    (decision,) = [each for each in source.data()["last_decisions"] if each["decision_id"] == "28"]
    assert read == [28]
    assert {each["id"]: each["reward"] for each in decision["chosen"]}[arm] == 1.0
    ledger.add_decisions([made.decision(np.random.default_rng(1), made.NOON)])
    assert source.data()["last_decisions"][0]["decision_id"] == "31"
    assert read == [28, 31]


def test_who_was_erased_is_gone_from_the_dashboard(service):
    ledger, settings = service
    source = ServiceSource(ledger, settings)
    source.data()
    ledger.forget(["user 28"])
    (decision,) = [each for each in source.data()["last_decisions"] if each["decision_id"] == "29"]
    assert decision["chosen"] == []
    assert not decision["unit_present"]
    assert decision["why"].startswith("Its arms were erased")


def test_the_summary_is_that_of_the_newest_model(service):
    ledger, settings = service
    source = ServiceSource(ledger, settings)
    assert source.data()["model"] == {"version": 0, "n_observations": 0.0, "update_every_seconds": 30.0}
    assert source.data()["sentence"] == "30 decisions so far."
    publish(ledger, 1, sentence="first", outstanding=3, model={"suggested_seconds": 42})
    first = source.data()
    assert (first["sentence"], first["outstanding"], first["decisions"]) == ("first", 3, 30)
    assert (first["model"]["version"], first["model"]["suggested_seconds"]) == (1, 42)
    before = source.stamp()
    ledger.model_checked(1, made.NOON + timedelta(minutes=5))
    assert source.stamp() != before
    assert source.data()["model"]["checked_at"] == (made.NOON + timedelta(minutes=5)).isoformat()
    publish(ledger, 2, sentence="second")
    assert source.data()["sentence"] == "second"


def test_a_folder_shows_its_campaign_and_a_store_all_of_them(campaign, service, tmp_path):
    small.run(campaign, campaign.clock, 1)
    source = StoreSource(campaign.folder, now=campaign.clock)
    assert source.campaigns() == [{"name": "autumn", "kind": "campaign"}]
    assert source.data("autumn")["decisions"] == 1
    publish(campaign.ledger, 1, sentence="served now")
    assert source.campaigns() == [{"name": "autumn", "kind": "campaign"}]  # nothing has been decided
    campaign.ledger.add_decisions([made_decision(np.random.default_rng(0), model_version=1)])
    assert source.campaigns() == [{"name": "autumn", "kind": "service"}]
    assert source.data("autumn")["sentence"] == "served now"
    source.close()
    _, settings = service
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    Ledger.open(url, "winter", create=True, settings=settings.text.replace("autumn", "winter")).close()
    whole, one = StoreSource(url), StoreSource(url, "winter")
    assert {each["name"]: each["kind"] for each in whole.campaigns()} == {"autumn": "service", "winter": "service"}
    assert whole.data("autumn")["decisions"] == 30
    assert whole.data("winter")["sentence"] == "No decision has been asked for yet."
    assert [each["name"] for each in one.campaigns()] == ["winter"]
    whole.close()
    one.close()


ARM = {"id": "a", "share": "chosen", "predicted": 0.25, "bonus": 0.05, "score": 0.3, "capped": False}
SCORES = "`a` scores 0.3: 0.25 predicted + 0.05 bonus for what is not known yet"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"share": "holdout"}, HOLDOUT),
        ({"chosen": []}, "Its arms were erased, and with them why they were chosen."),
        ({"chosen": [{**ARM, "bonus": 0.0, "score": 0.25}]}, "`a` scores 0.25, its predicted reward."),
        ({"chosen": [{**ARM, "share": "explored"}]}, "1 of 1 arms was drawn at random to explore."),
        ({"chosen": 1200 * [{**ARM, "share": "explored"}]}, "1,200 of 1,200 arms were drawn at random to explore."),
        (
            {"chosen": [{**ARM, "share": "explored", "id": "x", "score": 0.9}, {**ARM, "capped": True}]},
            f"{SCORES.replace(':', ', the cap:')}; 1 of 2 arms was drawn at random to explore.",
        ),
        (
            {"chosen": [{**ARM, "id": "b", "score": 0.28}, ARM], "runner_up": {"id": "c", "score": 0.2}},
            f"{SCORES}; the last that got in, `b`, scores 0.28; the best left out, `c`, scores 0.2.",
        ),
        (
            {"runner_up": {"id": "c", "score": 0.4}},
            f"{SCORES}; the best left out, `c`, scores 0.4, and the constraint kept it out.",
        ),
    ],
)
def test_why_is_one_sentence_with_the_parts_of_the_score(changes, expected):
    assert why({"share": "chosen", "chosen": [ARM], "runner_up": None, **changes}) == expected


@pytest.mark.parametrize(
    ("by", "bonus", "expected"),
    [
        ("draw", 0.05, "`a` scores 0.3: 0.25 predicted + 0.05 from a random draw."),
        ("draw", -0.05, "`a` scores 0.2: 0.25 predicted \u2212 0.05 from a random draw."),
        ("random", 0.05, "All arms had a random score this time, to explore: `a` scores 0.3."),
        ("random", 0.0, "`a` scores 0.25, its predicted reward."),
    ],
)
def test_why_is_told_as_the_policy_explores(by, bonus, expected):
    arm = {**ARM, "bonus": bonus, "score": 0.25 + bonus}
    assert why({"share": "chosen", "chosen": [arm], "runner_up": None}, by) == expected


@pytest.mark.parametrize(
    ("kind", "by"),
    [
        ("CappedC2UCB", "bonus"),
        ("CombLinUCB", "bonus"),
        ("ArmwiseThompson", "draw"),
        ("CombLinTS", "draw"),
        ("EpsilonGreedy", "random"),
    ],
)
def test_the_way_of_exploring_and_what_silence_means_are_shown(kind, by, tmp_path):
    settings = made.made_settings(outcomes="missing = 0")
    settings = replace(settings, policy=PolicySettings(kind=kind))
    with made.opened(tmp_path, settings) as ledger:
        ledger.add_decisions([made.decision(np.random.default_rng(1), made.NOON)])
        shown = ServiceSource(ledger, settings).data()
    assert (shown["explores_by"], shown["missing"]) == (by, 0.0)
    (decision,) = shown["last_decisions"]
    assert decision["why"] == why(decision, by)


def test_a_decision_is_explored_where_all_of_its_arms_were_drawn_at_random(tmp_path):
    settings, rng = made.made_settings(), np.random.default_rng(5)
    shares = [["explored"] * 3, ["explored", "chosen", "chosen"], ["chosen"] * 3]
    with made.opened(tmp_path, settings) as ledger:
        ledger.add_decisions([made.decision(rng, made.NOON, shares=each) for each in shares])
        shown = ServiceSource(ledger, settings).data()["last_decisions"]
    assert [each["share"] for each in shown] == ["chosen", "chosen", "explored"]
