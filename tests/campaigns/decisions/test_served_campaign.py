"""`Campaign` and its commands where single decisions are served."""

import json
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest

from armful import Campaign
from armful.campaigns import ServiceStatus
from armful.campaigns.decisions import DecisionFold, PublishedModel, update_model
from armful.campaigns.decisions.fold import frozen_recipe
from armful.campaigns.decisions.summary import published_interval
from armful.ledger import Ledger
from tests.campaigns.decisions.made import NOON, D, assert_close, decision, made_settings, reward
from tests.cli.campaigns import Terminal

LATER = NOON + timedelta(hours=1)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "campaign.toml").write_text(made_settings().text, encoding="utf-8")
    return tmp_path


def opened(folder, now=LATER):
    return Campaign.open(folder, now=lambda: now)


def fill(campaign, n=30):
    rng = np.random.default_rng(0)
    ledger = campaign.ledger
    ledger.add_decisions([decision(rng, NOON, unit=f"user {i % 7}", ids=[i % 5, 6, 7]) for i in range(n)])
    for number in range(1, n + 1):
        reward(ledger, number, "arm 6", float(rng.random() < 0.5), NOON)


def test_status_and_policy_of_a_served_campaign(folder):
    with opened(folder) as campaign:
        empty = campaign.status()
        assert isinstance(empty, ServiceStatus)
        assert (empty.decisions, empty.sentence) == (0, "Nothing has been decided yet.")
        assert empty.notes == ["no model has been published yet: `armful serve` does that"]
        fill(campaign)
        status = campaign.status()
        assert (status.decisions, status.rewards, status.outstanding, status.n_observations) == (30, 30, 0, 90)
        assert len(status.coefficients) == D
        assert repr(campaign) == "Campaign('autumn', 30 decisions)"
        folded = DecisionFold.of(campaign.ledger, campaign.settings)
        update_model(folded, LATER)
        assert_close(campaign.policy().state, folded.state)
        assert campaign.status().model_version == 1
        assert json.loads(json.dumps(status.to_dict()))["decisions"] == 30
    with opened(folder, LATER + timedelta(days=1)) as campaign:
        assert "model 1 was last found to be up to date at 2026-03-01 13:00:00" in campaign.status().notes[0]


def test_a_served_campaign_has_no_rounds_to_plan(folder):
    with opened(folder) as campaign, pytest.raises(ValueError, match=r"'autumn' decides on request \(\[service\]"):
        campaign.plan()


def test_the_status_goes_by_the_interval_of_the_running_service(folder):
    with opened(folder) as campaign:
        fill(campaign)
        folded = DecisionFold.of(campaign.ledger, campaign.settings)
        update_model(folded, LATER, update_every=timedelta(hours=3))
    with opened(folder, LATER + timedelta(days=1)) as campaign:
        assert campaign.status().update_every_seconds == 3 * 3600
        assert not any("up to date" in note for note in campaign.status().notes)


def test_forgetting_publishes_a_model_without_the_person(folder):
    with opened(folder) as campaign:
        fill(campaign)
        update_model(DecisionFold.of(campaign.ledger, campaign.settings), LATER)
        forgotten = campaign.forget("user 1")
        assert (forgotten.n_people, forgotten.rounds) == (1, [])
        model = PublishedModel.newest(campaign.ledger)
        assert (model.version, model.n_observations) == (2, 75)
        assert campaign.forget("nobody").n_people == 0
        assert campaign.ledger.model_version() == 2


def test_outcomes_of_decisions_are_learned_from_a_file(folder):
    with opened(folder) as campaign:
        fill(campaign, 4)
        campaign.ledger.freeze_recipe(frozen_recipe(campaign.ledger, campaign.settings).to_json())
        file = folder / "outcomes.csv"
        file.write_text("id,round,click\narm 7,2,1\n", encoding="utf-8")
        learned = campaign.learn(file, round="round")
        assert (learned.new, learned.outstanding) == (1, 0)


def test_a_report_is_refused_in_one_sentence(folder):
    with opened(folder) as campaign, pytest.raises(ValueError, match="its dashboard shows what a report would"):
        campaign.report()


def test_records_are_segments(folder):
    with opened(folder) as campaign:
        fill(campaign)
        (record,) = campaign.records()
        assert record.ids.size == 90
        assert set(record.ids.tolist()) == {f"unit user {i}" for i in range(7)}
        assert np.isfinite(record.rewards).all()


def test_the_commands_know_decisions(folder, capsys, monkeypatch):
    with opened(folder) as campaign:
        fill(campaign)
        update_model(DecisionFold.of(campaign.ledger, campaign.settings), LATER)
    armful = Terminal(capsys, monkeypatch)
    shown = armful.works("status", folder, "--now", LATER.isoformat())
    assert "30 decisions, 30 rewards, 0 outstanding, 90 learned" in shown.stdout
    assert "model 1 of 2026-03-01 13:00, updated every 30 seconds" in shown.stdout
    refused = armful("report", folder)
    assert refused.code == 2
    assert refused.stderr.endswith(f"armful dashboard {folder}\n")
    assert "erased 1 customer\n" in armful.works("forget", folder, "--id", "user 3", "--yes").stdout


def test_a_campaign_without_decisions_is_not_served(tmp_path):
    text = made_settings().text.replace("[service]", "")
    (tmp_path / "campaign.toml").write_text(text, encoding="utf-8")
    with opened(tmp_path) as campaign:
        assert not campaign.is_served
        assert not isinstance(campaign.status(), ServiceStatus)
        update_model(DecisionFold.of(campaign.ledger, campaign.settings), LATER)  # as `armful serve` does at its start
        assert not campaign.is_served
        fill(campaign, 2)
        update_model(DecisionFold.of(campaign.ledger, campaign.settings), LATER)
        assert campaign.is_served
        assert campaign.status().decisions == 2


def test_after_somebody_was_forgotten_the_model_says_the_interval_that_the_service_runs_with(folder):
    with opened(folder) as campaign:
        fill(campaign)
        every = timedelta(seconds=1)
        update_model(DecisionFold.of(campaign.ledger, campaign.settings), LATER, update_every=every)
        assert campaign.forget("user 3").n_people == 1
        assert published_interval(campaign.ledger.newest_model()[2]) == every


def test_before_the_features_are_frozen_nothing_has_been_decided(tmp_path):
    text = made_settings().text.replace("features.ready = 4", 'features.columns.age.kind = "number"')
    (tmp_path / "campaign.toml").write_text(text, encoding="utf-8")
    with opened(tmp_path) as campaign:
        status = campaign.status()
        assert (status.decisions, status.sentence) == (0, "Nothing has been decided yet.")
        assert status.notes == ["no model has been published yet: `armful serve` does that"]
        assert list(campaign.records()) == []
        assert campaign.forget("nobody").n_people == 0
        with pytest.raises(ValueError, match="has no features yet: serve it"):
            campaign.policy()


def test_the_store_alone_is_enough(folder):
    with opened(folder) as campaign:
        fill(campaign)
    with Ledger.open(f"sqlite:///{folder / 'ledger.sqlite'}", "autumn") as ledger:
        assert DecisionFold.of(ledger, made_settings()).update(LATER)


def test_a_first_round_can_be_chosen_before_anything_is_served(tmp_path):
    text = made_settings().text.replace("features.ready = 4", 'features.columns.age.kind = "number"')
    (tmp_path / "campaign.toml").write_text(text, encoding="utf-8")
    with opened(tmp_path) as campaign:
        people = pa.table({campaign.settings.id: [f"p{i}" for i in range(20)], "age": list(range(20))})
        chosen = campaign.choose(people)
        assert (chosen.number, chosen.n_chosen + chosen.n_holdout) == (1, campaign.settings.choose.k)
        assert campaign.choose(people).number == 2
        assert campaign.status().decisions == 2
