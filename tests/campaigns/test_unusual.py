"""Unusual ids, files, folders, settings and clocks."""

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import csv, parquet

from armful import policies
from armful.campaigns.holdout import share_of
from armful.errors import InfeasibleError
from tests.campaigns.small import customers, make, opened, outcomes, run

IDS = ["a,b", 'say "x"', "two\nlines", "M\xfcller", "\u5f20\u4f1f", "\U0001f600", " x", "=1+1"]
IDS += ["007", "7", "7.0", "1e3", "NA", "null"]


def with_ids(ids):
    """Return customers with other ids, as many as ids."""
    return customers(len(ids)).set_column(0, "id", pa.array(ids))


def shares(ids):
    return share_of(ids, "autumn", holdout=0.2)


def contacted(campaign, number):
    arms = campaign.ledger.chosen(number)
    return set(arms.ids[arms.shares != "no-contact"].tolist())


@pytest.mark.parametrize("write", [csv.write_csv, parquet.write_table])
def test_ids_are_kept_as_they_are_written(tmp_path, clock, write):
    """From the customers to the list, and from the list to the outcomes."""
    ids = [*IDS, "x" * 500, *(f"c{i}" for i in range(40 - len(IDS) - 1))]
    file = tmp_path / f"customers.{'csv' if write is csv.write_csv else 'parquet'}"
    write(with_ids(ids), file)
    with opened(make(tmp_path / "a"), clock) as campaign:
        chosen = campaign.choose(file)
        options = csv.ConvertOptions(column_types={"id": pa.string()})
        parse = csv.ParseOptions(newlines_in_values=True)
        table = csv.read_csv(chosen.path, convert_options=options, parse_options=parse)
        assert sorted(table["id"].to_pylist()) == sorted(ids) == sorted(campaign.ledger.chosen_ids(1).tolist())
        rewards = tmp_path / file.name.replace("customers", "outcomes")
        write(pa.table({"id": table["id"], "bought": np.arange(40.0)}), rewards)
        assert campaign.learn(rewards).new == 40
        came = campaign.ledger.outcomes(1)
        reward_of = dict(zip(came.ids.tolist(), came.rewards.tolist(), strict=True))
        assert reward_of == dict(zip(table["id"].to_pylist(), range(40), strict=True))
        assert campaign.forget(ids[:20]).n_people == 20


def test_whole_numbers_in_parquet_are_the_same_people_as_their_digits_in_csv(tmp_path, clock):
    numbers, texts = with_ids(np.arange(400)), with_ids([str(i) for i in range(400)])
    csv.write_csv(numbers, tmp_path / "numbers.csv")
    lists = []
    for source in (numbers, texts, tmp_path / "numbers.csv"):
        with opened(make(tmp_path / f"a{len(lists)}"), clock) as campaign:
            lists.append(campaign.choose(source).path.read_text())
            ids = campaign.ledger.chosen_ids(1)
            assert campaign.learn(pa.table({"id": ids.astype(np.int64), "bought": np.ones(40)})).new == 40
    assert lists[0] == lists[1] == lists[2]


def test_the_share_of_a_person_does_not_depend_on_who_else_is_in_the_file(tmp_path, clock):
    ids = [f"c{i}" for i in range(200)]
    with opened(make(tmp_path / "a", choose="rest = 0"), clock) as campaign:
        for others in ([], ["M\xfcller"], ["x" * 400], ["\u5f20\u4f1f " * 50]):
            campaign.choose(with_ids([*ids, *others]))
            arms = campaign.ledger.chosen(len(campaign.ledger.rounds()))
            assert np.array_equal(arms.shares == "holdout", shares(arms.ids) == 1)


def test_a_group_without_a_name_is_a_group(tmp_path, clock):
    region = [None if i % 4 == 0 else "north" for i in range(400)]
    table = customers().set_column(2, "region", pa.array(region))
    csv.write_csv(table, tmp_path / "customers.csv")
    quotas = "[[choose.quotas]]\ncolumn = 'region'\nat_least = { '(none)' = 25 }"
    for source in (table, tmp_path / "customers.csv"):
        with opened(make(tmp_path / "a", choose=quotas), clock) as campaign:
            chosen = campaign.choose(source)
            assert sum(chosen.groups["region"].values()) == 40
            assert chosen.groups["region"]["(none)"] >= 25


def test_a_quota_may_be_on_a_column_of_numbers(tmp_path, clock):
    table = customers().set_column(1, "age", pa.array(np.arange(400) % 3 * 10))
    csv.write_csv(table, tmp_path / "customers.csv")
    quotas = "[[choose.quotas]]\ncolumn = 'age'\nat_most = { 20 = 5 }"
    for source in (table, tmp_path / "customers.csv"):
        with opened(make(tmp_path / "a", choose=quotas), clock) as campaign:
            groups = campaign.choose(source).groups["age"]
            assert set(groups) <= {"0", "10", "20"}
            assert groups.get("20", 0) <= 5


def test_a_campaign_may_have_no_holdout(tmp_path, clock):
    folder = make(tmp_path / "a")
    file = folder / "campaign.toml"
    file.write_text(file.read_text().replace("share = 0.2", "share = 0"))
    with opened(folder, clock) as campaign:
        chosen = campaign.choose(customers())
        assert (chosen.n_chosen, chosen.n_holdout) == (40, 0)


@pytest.mark.parametrize("share", [0, 1])
def test_a_round_may_have_nobody_of_a_share(tmp_path, clock, share):
    table = customers(1000)
    of_share = table.filter(pa.array(shares(table["id"].to_pylist()) == share)).slice(0, 60)
    with opened(make(tmp_path / "a"), clock) as campaign:
        chosen = campaign.choose(of_share)
        assert (chosen.n_chosen, chosen.n_holdout) == ((40, 0) if share == 0 else (0, 40))
        campaign.learn(outcomes(campaign, 1))
        clock.pass_days(15)
        assert campaign.status().n_observations == 40
        chosen.to_dict()


def test_a_round_may_contact_everybody_who_does_not_rest(tmp_path, clock):
    with opened(make(tmp_path / "a", choose="rest = 2"), clock) as campaign:
        table = customers(80)
        first, second = (campaign.choose(table) for _ in range(2))
        assert contacted(campaign, 1) | contacted(campaign, 2) == set(table["id"].to_pylist())
        assert second.n_excluded == 40
        with pytest.raises(InfeasibleError, match="k = 40 is more than the 0 people who may be contacted"):
            campaign.choose(table)
        assert first.number == 1
        assert len(campaign.ledger.rounds()) == 2


@pytest.mark.parametrize("quotas", ["", "[[choose.quotas]]\ncolumn = 'region'\nat_least = 0.2"])
def test_everybody_who_is_required_is_contacted_whatever_their_share(tmp_path, clock, quotas):
    """Far more people of the holdout are required than its part of the round."""
    table = customers()
    ids = np.array(table["id"].to_pylist())
    required = [*ids[shares(ids) == 1][:20], *ids[shares(ids) == 0][:5]]
    folder = make(tmp_path / "a", choose="require = ['must.csv']\n" + quotas)
    csv.write_csv(pa.table({"id": required}), folder / "must.csv")
    with opened(folder, clock) as campaign:
        for number in (1, 2):
            chosen = campaign.choose(table)
            assert set(required) <= contacted(campaign, number)
            assert chosen.n_chosen + chosen.n_holdout == 40
            assert chosen.n_holdout >= 20


def test_who_is_required_and_never_contacted_is_mentioned(tmp_path, clock):
    table = customers()
    ids = np.array(table["id"].to_pylist())
    never = ids[share_of(ids, "autumn", holdout=0.2, no_contact=0.1) == 2][:3]
    folder = make(tmp_path / "a", choose="require = ['must.csv']", holdout="no_contact = 0.1")
    csv.write_csv(pa.table({"id": [*never, "nobody"]}), folder / "must.csv")
    with opened(folder, clock) as campaign:
        chosen = campaign.choose(table)
        note = "3 of the required customers are not contacted: excluded, resting or in the no-contact share"
        assert note in chosen.notes
        assert not {*never} & contacted(campaign, 1)


def test_more_required_customers_than_a_round_or_a_group_may_have_are_refused(tmp_path, clock):
    quotas = "[[choose.quotas]]\ncolumn = 'region'\nat_most = { north = 4 }"
    for name, ids, sentence in (
        ("a", customers()["id"].to_pylist()[:41], "41 customers are required, and k is 40"),
        (
            "b",
            customers().filter(pc.field("region") == "north")["id"].to_pylist()[:5],
            "region 'north' allows 4 contacts, and 5 of it are required",
        ),
    ):
        folder = make(tmp_path / name, choose="require = ['must.csv']\n" + quotas)
        csv.write_csv(pa.table({"id": ids}), folder / "must.csv")
        with opened(folder, clock) as campaign, pytest.raises(InfeasibleError, match=sentence):
            campaign.choose(customers())


@pytest.mark.parametrize("name", ["with space", "what?", "ha#sh", "per%20cent", "a?b=c", "\xfcml'aut", "semi;colon"])
def test_a_campaign_may_be_in_any_folder_and_be_moved(tmp_path, clock, name):
    folder = make(tmp_path / "plain")
    with opened(folder, clock) as campaign:
        campaign.choose(customers())
    moved = shutil.move(folder, tmp_path / name)
    with opened(moved, clock) as campaign:
        assert campaign.choose(customers()).number == 2
    assert sorted(path.name for path in moved.iterdir()) == [
        "campaign.toml",
        "customers.csv",
        "ledger.sqlite",
        "rounds",
        "vip.csv",
    ]
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_clock_may_go_back(tmp_path, clock):
    """Then rounds that were closed are open again."""
    with opened(make(tmp_path / "a"), clock) as campaign:
        run(campaign, clock, 3)
        clock.pass_days(14)
        assert campaign.policy().state.n == 120
        clock.pass_days(-20)
        assert campaign.policy().state.n == 40
        assert campaign.choose(customers()).number == 4
        clock.pass_days(20)
        assert campaign.policy().state.n == 160


@pytest.mark.parametrize(
    "policy",
    ["cap = 0.1", "kind = 'EpsilonGreedy'\nepsilon = 0.2", "kind = 'CombLinTS'", "kind = 'C2UCB'\nridge = 5.0"],
)
def test_other_settings_hold_from_the_next_round_on(tmp_path, clock, policy):
    folder = make(tmp_path / "a")
    with opened(folder, clock) as campaign:
        run(campaign, clock, 3)
        before = campaign.policy().state
    text = (folder / "campaign.toml").read_text().replace("cap = 1.0", policy).replace("k = 40", "k = 25")
    (folder / "campaign.toml").write_text(text)
    with opened(folder, clock) as campaign:
        kind = campaign.settings.policy.kind
        assert isinstance(campaign.policy(), getattr(policies, kind))
        state = campaign.policy().state
        ridge = 5.0 if "ridge" in policy else 1.0
        np.testing.assert_allclose(state.V - ridge * np.eye(6), before.V - np.eye(6), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(state.b, before.b, rtol=1e-12, atol=1e-12)
        chosen = campaign.choose(customers())
        assert chosen.n_chosen + chosen.n_holdout == 25
        assert chosen.notes == []


def test_the_features_stay_those_of_the_first_round_and_a_change_is_mentioned(tmp_path, clock):
    """Codes of digits were categories: they are not read as numbers later, whatever the settings say."""
    table = customers()
    codes = pa.array([f"0{i % 3}" for i in range(400)])
    csv.write_csv(table.set_column(2, "region", codes), tmp_path / "customers.csv")
    folder = make(tmp_path / "a")
    with opened(folder, clock) as campaign:
        campaign.choose(tmp_path / "customers.csv")
        names = campaign.recipe.names
    text = (folder / "campaign.toml").read_text()
    text = text.replace('region = { kind = "category" }', 'region = { kind = "number" }\ncity = { kind = "category" }')
    (folder / "campaign.toml").write_text(text.replace('"city", ', ""))
    with opened(folder, clock) as campaign:
        chosen = campaign.choose(tmp_path / "customers.csv")
        assert chosen.notes == [
            "the features are those of the first round: what campaign.toml now says of 'city', 'region' has no effect "
            "on them"
        ]
        assert campaign.recipe.names == names
        other = campaign.ledger.chosen(2).features[:, names.index("region: other")]
        assert not other.any()


def test_a_stream_that_can_be_read_once_is_refused_in_the_first_round(tmp_path, clock):
    with opened(make(tmp_path / "a"), clock) as campaign:
        with pytest.raises(ValueError, match="a stream can be read once, and the first round reads it twice"):
            campaign.choose(customers().to_reader())
        campaign.choose(customers())
        assert campaign.choose(customers().to_reader()).number == 2


def test_a_dry_run_with_the_key_of_a_round_writes_no_list(tmp_path, clock):
    with opened(make(tmp_path / "a"), clock) as campaign:
        first = campaign.choose(customers(), key="one")
        first.path.unlink()
        assert campaign.choose(customers(), key="one", dry_run=True, out=tmp_path / "out.csv").number == 1
        assert not first.path.exists()
        assert (tmp_path / "out.csv").exists()


def test_an_erasure_that_was_stopped_is_completed_by_the_next(tmp_path, clock, monkeypatch):
    with opened(make(tmp_path / "a"), clock) as campaign:
        run(campaign, clock, 2)
        person = str(campaign.ledger.chosen_ids(1)[0])

        def stop(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("armful.campaigns.campaign.remove_from_list", stop)
            with pytest.raises(KeyboardInterrupt):
                campaign.forget(person)
        assert campaign.forget(person).n_people == 1
        for path in (campaign.folder / "rounds").rglob("chosen.csv"):
            assert person not in csv.read_csv(path)["id"].to_pylist()


def test_a_row_counts_as_never_chosen_if_it_names_a_round_without_that_person(tmp_path, clock):
    with opened(make(tmp_path / "a", choose="rest = 1"), clock) as campaign:
        run(campaign, clock, 2)
        first, second = (campaign.ledger.chosen_ids(number)[0] for number in (1, 2))
        table = pa.table({"id": [first, second, "nobody"], "bought": [1.0] * 3, "week": [2, 2, 1]})
        learned = campaign.learn(table, round="week")
        assert (learned.matched, learned.never_chosen, learned.outside_window) == (1, 2, 0)
