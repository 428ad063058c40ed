"""A campaign whose store is a PostgreSQL database."""

import numpy as np
import pyarrow as pa
import pytest

from armful.campaigns import Campaign
from armful.errors import LedgerError
from tests.campaigns.commands import Commands
from tests.campaigns.small import Clock, customers, make, opened, outcomes, run
from tests.postgresql import own_schema

QUOTAS = "rest = 1\n[[choose.quotas]]\ncolumn = 'region'\nat_least = 0.2"


@pytest.fixture
def url():
    with own_schema() as url:
        yield url


def make_on(folder, url, **settings):
    """Make a small campaign with another store."""
    make(folder, **settings)
    file = folder / "campaign.toml"
    file.write_text(file.read_text().replace("sqlite:///ledger.sqlite", url))
    return folder


def play(folder):
    """Run a campaign with late, corrected and missing outcomes, and forget somebody; return it, open."""
    clock = Clock()
    campaign = opened(folder, clock)
    run(campaign, clock, 3)
    corrected = outcomes(campaign, 1, seed=2).slice(0, 10)
    campaign.learn(corrected.append_column("week", pa.array([1] * 10)), round="week")
    campaign.forget([str(campaign.ledger.chosen_ids(2)[0])])
    clock.pass_days(10)
    campaign.choose(customers(), key="a key")
    return campaign


def test_lists_state_and_status_are_those_of_sqlite(tmp_path, url):
    settings = {"choose": QUOTAS, "holdout": "no_contact = 0.1", "outcomes": "missing = 'unknown'"}
    on_sqlite = play(make(tmp_path / "sqlite", **settings))
    on_postgresql = play(make_on(tmp_path / "postgresql", url, **settings))
    with on_sqlite, on_postgresql:
        for path in sorted((tmp_path / "sqlite" / "rounds").rglob("*.csv")):
            other = tmp_path / "postgresql" / path.relative_to(tmp_path / "sqlite")
            assert path.read_text() == other.read_text()
        ours, theirs = on_postgresql.policy().state, on_sqlite.policy().state
        assert ours.n == theirs.n
        np.testing.assert_allclose(ours.V, theirs.V, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(ours.theta, theirs.theta, rtol=1e-9, atol=1e-12)
        assert on_postgresql.status().to_dict()["rounds"] == on_sqlite.status().to_dict()["rounds"]
        assert on_postgresql.choose(customers(), key="a key").number == 4
        for ours, theirs in zip(on_postgresql.records(), on_sqlite.records(), strict=True):
            for name in ("ids", "shares", "features", "rewards", "received_at", "predicted", "probabilities"):
                np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)


def test_a_campaign_opens_by_url_and_by_name(tmp_path, url, monkeypatch):
    monkeypatch.chdir(tmp_path)
    clock = Clock()
    for name in ("autumn", "winter"):
        file = make_on(tmp_path / name, url) / "campaign.toml"
        file.write_text(file.read_text().replace('"autumn"', f'"{name}"'))
        with opened(tmp_path / name, clock) as campaign:
            campaign.choose(customers())
    with pytest.raises(ValueError, match=r"give the name of the campaign .*: the store has 'autumn', 'winter'"):
        Campaign.open(url)
    with pytest.raises(LedgerError, match=r"there is no campaign 'spring' in .*: it has 'autumn', 'winter'"):
        Campaign.open(url, name="spring")
    with Campaign.open(url, name="winter", now=clock) as campaign:
        assert campaign.choose(customers()).number == 2
        assert campaign.settings.name == "winter"
    with Campaign.open(url, name="autumn") as campaign:
        assert len(campaign.ledger.rounds()) == 1


def test_a_server_that_is_not_there_is_one_sentence_without_the_password(tmp_path):
    url = "postgresql://ann:s3cret@127.0.0.1:1/campaigns"
    for where in (url, make_on(tmp_path / "a", url)):
        with pytest.raises(LedgerError) as refused:
            Campaign.open(where, name="autumn" if where == url else None)
        sentence = str(refused.value)
        assert sentence.startswith("postgresql://ann@127.0.0.1:1/campaigns cannot be reached: ")
        assert "s3cret" not in sentence
        assert "\n" not in sentence


@pytest.mark.slow
def test_two_processes_that_choose_and_learn_at_once_lose_and_double_nothing(tmp_path, url):
    folder, acknowledged, learned = make_on(tmp_path / "a", url), 0, 0
    file = folder / "outcomes.csv"
    with Commands() as commands:
        for day in range(1, 7):
            choose = ("choose", folder, folder / "customers.csv", "--now", f"2026-01-{day:02d}")
            learn = ("learn", folder, file, "--round", "week", "--now", f"2026-01-{day:02d}")
            done = commands.several([choose, choose, learn, learn] if acknowledged else [choose, choose])
            numbers = sorted(each.json["number"] for each in done[:2] if each.code == 0)
            assert numbers == list(range(acknowledged + 1, acknowledged + 1 + len(numbers)))
            assert all(" by another command" in each.sentence for each in done[:2] if each.code)
            new = [each.json["new"] for each in done[2:]]
            assert sum(new) == 40 * (acknowledged - learned)
            assert sum(each.json["new"] + each.json["repeated"] for each in done[2:]) == 80 * acknowledged * bool(new)
            learned, acknowledged = acknowledged, acknowledged + len(numbers)
            with Campaign.open(folder) as campaign:
                rounds = [(n, id) for n in range(1, acknowledged + 1) for id in campaign.ledger.chosen_ids(n)]
            file.write_text("\n".join(["id,week,bought", *(f"{id},{n},{int(id[1:])}" for n, id in rounds)]) + "\n")
        status = commands("status", folder, "--now", "2026-01-10").json
    assert [each["number"] for each in status["rounds"]] == list(range(1, acknowledged + 1))
    assert acknowledged >= 6
    with Campaign.open(folder) as campaign:
        for number in range(1, learned + 1):
            came = campaign.ledger.outcomes(number)
            assert came.rewards.tolist() == [int(id[1:]) for id in came.ids.tolist()]
            assert not came.corrected.any()
