"""Choosing rounds and learning their outcomes, against plain formulas."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import armful
from armful.campaigns import Campaign
from armful.errors import InfeasibleError, LedgerError
from armful.ledger import NewDecision
from tests.campaigns.small import customers, make, opened, outcomes, run, same_state


def literal_state(campaign, numbers, *, missing=0.0, discount=1.0):
    """V and b of the contacted people of some rounds, by the formula."""
    d = campaign.recipe.n_features
    V, b, last = np.zeros((d, d)), np.zeros(d), len(campaign.ledger.rounds())
    for number in numbers:
        arms, came = campaign.ledger.chosen(number), campaign.ledger.outcomes(number)
        for share, x, reward in zip(arms.shares, arms.features.astype(float), came.rewards, strict=True):
            if share == "no-contact" or (np.isnan(reward) and missing is None):
                continue
            weight = discount ** (last - number)
            V += weight * np.outer(x, x)
            b += weight * x * (missing if np.isnan(reward) else reward)
    return np.eye(d) + V, b


def test_the_state_is_the_ridge_regression_of_the_closed_rounds(tmp_path, clock):
    with opened(make(tmp_path / "a"), clock) as campaign:
        run(campaign, clock, 4)
        V, b = literal_state(campaign, [1, 2, 3])  # the window of round 4, a week ago, is open
        state = campaign.policy().state
        assert state.n == sum(len(campaign.ledger.chosen(number)) for number in (1, 2, 3))
        np.testing.assert_allclose(state.V, V, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(state.b, b, rtol=1e-12, atol=1e-12)


def test_a_discount_counts_older_rounds_less(tmp_path, clock):
    with opened(make(tmp_path / "a", learning="discount = 0.5"), clock) as campaign:
        run(campaign, clock, 4)
        V, b = literal_state(campaign, [1, 2, 3], discount=0.5)
        np.testing.assert_allclose(campaign.policy().state.V, V, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(campaign.policy().state.b, b, rtol=1e-12, atol=1e-12)


def test_replaying_the_ledger_without_snapshots_gives_the_same_state(tmp_path, clock):
    folder = make(tmp_path / "a")
    with opened(folder, clock) as campaign:
        run(campaign, clock, 4)
        before = campaign.policy().state
        for number in range(1, 5):  # a snapshot that cannot be read is made anew
            campaign.ledger.add_snapshot(number, number, 10**9, b"damaged")
        after = campaign.policy().state
        np.testing.assert_array_equal(before.V, after.V)
        np.testing.assert_array_equal(before.theta, after.theta)


def test_other_settings_are_not_served_from_old_snapshots(tmp_path, clock):
    folder = make(tmp_path / "a")
    with opened(folder, clock) as campaign:
        run(campaign, clock, 3)
    make(folder, outcomes="missing = -1.0")
    with opened(folder, clock) as campaign:
        clock.pass_days(14)
        table = outcomes(campaign, 3).slice(0, 10)
        campaign.learn(table)
        _, b = literal_state(campaign, [1, 2, 3], missing=-1.0)
        np.testing.assert_allclose(campaign.policy().state.b, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("setting", "missing"), [("", 0.0), ("missing = 'unknown'", None), ("missing = 0.5", 0.5)])
def test_no_outcome_is_what_the_settings_say_once_the_window_closes(tmp_path, clock, setting, missing):
    with opened(make(tmp_path / "a", outcomes=setting), clock) as campaign:
        campaign.choose(campaign.folder / "customers.csv")
        campaign.learn(outcomes(campaign, 1).slice(0, 15))
        assert campaign.policy().state.n == 0
        assert campaign.status().outstanding == 25
        clock.pass_days(14)
        V, b = literal_state(campaign, [1], missing=missing)
        np.testing.assert_allclose(campaign.policy().state.V, V, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(campaign.policy().state.b, b, rtol=1e-12, atol=1e-12)
        (status,) = campaign.status().rounds
        assert (status.came, status.outstanding, status.assumed) == (15, 0, 0 if missing is None else 25)


def test_outcomes_can_be_learned_at_once(tmp_path, clock):
    with opened(make(tmp_path / "a", outcomes='learn = "at once"'), clock) as campaign:
        campaign.choose(campaign.folder / "customers.csv")
        learned = campaign.learn(outcomes(campaign, 1).slice(0, 15))
        assert campaign.policy().state.n == 15
        assert "window" in learned.notes[0]
        clock.pass_days(14)
        assert campaign.policy().state.n == 40


def doubled(table):
    return pa.concat_tables([table, table])


def with_strangers(table):
    n = round(table.num_rows * 3 / 7)
    return pa.concat_tables([table, pa.table({"id": [f"stranger {i}" for i in range(n)], "bought": np.ones(n)})])


def reversed_rows(table):
    return table.take(np.arange(table.num_rows)[::-1])


@pytest.mark.parametrize("spoil", [doubled, with_strangers, reversed_rows])
def test_repeated_rows_strangers_and_another_order_give_the_same_state(tmp_path, clock, spoil):
    with opened(make(tmp_path / "a"), clock) as clean, opened(make(tmp_path / "b"), clock) as spoilt:
        for campaign in (clean, spoilt):
            campaign.choose(campaign.folder / "customers.csv")
        table = outcomes(clean, 1)
        clean.learn(table)
        learned = spoilt.learn(spoil(table))
        assert learned.matched == learned.new == table.num_rows
        clock.pass_days(14)
        assert same_state(clean, spoilt)


def test_the_same_file_again_changes_nothing_and_a_correction_replaces(tmp_path, clock):
    with opened(make(tmp_path / "a"), clock) as campaign:
        campaign.choose(campaign.folder / "customers.csv")
        table = outcomes(campaign, 1)
        campaign.learn(table)
        again = campaign.learn(table)
        assert (again.new, again.repeated, again.corrected) == (0, 40, 0)
        clock.pass_days(14)
        assert campaign.policy().state.n == 40  # made from a snapshot from now on
        rewards = table["bought"].to_numpy().copy()
        rewards[0] = 5.0
        fixed = table.set_column(1, "bought", pa.array(rewards))
        corrected = campaign.learn(fixed.append_column("week", pa.array(np.ones(40, dtype=int))), round="week")
        assert (corrected.new, corrected.repeated, corrected.corrected) == (0, 39, 1)
        _, b = literal_state(campaign, [1])
        assert campaign.ledger.outcomes(1).rewards.max() == 5.0
        np.testing.assert_allclose(campaign.policy().state.b, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("repeats", ["last", "sum"])
def test_a_file_that_comes_again_after_its_window_is_repeated_and_not_outside(tmp_path, clock, repeats):
    with opened(make(tmp_path / "autumn", outcomes=f'repeats = "{repeats}"'), clock) as campaign:
        for number in (1, 2):
            campaign.choose(campaign.folder / "customers.csv")
            came = outcomes(campaign, number)
            twice = pa.concat_tables([came, came])
            assert campaign.learn(twice).new == len(came)
            clock.pass_days(15)
        learned = campaign.learn(twice)
        assert (learned.new, learned.corrected, learned.outside_window) == (0, 0, 0)
        assert (learned.repeated, learned.duplicates) == (len(came), len(came))
        position = campaign.ledger.position()
        other = pa.table({"id": came["id"], "bought": [0.25] * len(came)})
        learned = campaign.learn(other)
        assert (learned.matched, learned.outside_window) == (0, len(came))
        stranger = pa.table({"id": ["nobody"], "bought": [1.0]})
        learned = campaign.learn(pa.concat_tables([came.slice(0, 5), came.slice(0, 5), other.slice(5), stranger]))
        assert (learned.repeated, learned.outside_window, learned.never_chosen) == (5, len(came) - 5, 1)
        assert campaign.ledger.position() == position


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_list_can_be_sent_back_with_outcomes_whatever_separates_its_columns(tmp_path, clock, delimiter):
    folder = make(tmp_path / "autumn")
    settings = folder / "campaign.toml"
    settings.write_text(f'delimiter = "{delimiter}"\n' + settings.read_text())
    csv.write_csv(customers(), folder / "customers.csv", csv.WriteOptions(delimiter=delimiter))
    with opened(folder, clock) as campaign:
        chosen = campaign.choose(folder / "customers.csv")
        rows = csv.read_csv(chosen.path)
        back = rows.append_column("bought", pa.array(np.arange(len(rows)) % 2))
        for own in (",", ";", "\t"):
            csv.write_csv(back, tmp_path / "back.csv", csv.WriteOptions(delimiter=own))
            learned = campaign.learn(tmp_path / "back.csv")
            assert learned.matched == len(rows) == 40


def test_a_list_can_be_sent_back_where_customers_call_their_ids_otherwise(tmp_path, clock):
    folder = make(tmp_path / "autumn")
    settings = folder / "campaign.toml"
    settings.write_text(settings.read_text().replace('id = "id"', 'id = "client"'))
    csv.write_csv(customers().rename_columns({"id": "client"}), folder / "customers.csv")
    with opened(folder, clock) as campaign:
        rows = csv.read_csv(campaign.choose(folder / "customers.csv").path)
        csv.write_csv(rows.append_column("bought", pa.array([1] * len(rows))), tmp_path / "back.csv")
        assert campaign.learn(tmp_path / "back.csv").new == len(rows)
        csv.write_csv(rows, tmp_path / "back.csv")
        with pytest.raises(ValueError, match="has no column 'client', 'bought'"):
            campaign.learn(tmp_path / "back.csv")


def test_an_outcome_belongs_to_the_last_round_within_whose_window_it_lies(tmp_path, clock):
    with opened(make(tmp_path / "a", choose="require = ['vip.csv']", outcomes="time = 'day'"), clock) as campaign:
        for _ in range(3):  # on days 1, 8 and 15 of the month at noon
            campaign.choose(campaign.folder / "customers.csv")
            clock.pass_days(7)

        def round_of(day):
            learned = campaign.learn(pa.table({"id": ["c7"], "bought": [1.0], "day": [day]}))
            came = [n for n in (1, 2, 3) if np.isfinite(campaign.ledger.outcomes(n).rewards).any()]
            return came[-1] if learned.matched else None

        assert round_of("2025-12-31") is None  # before the first round
        assert round_of("2026-01-01 11:00") is None
        assert round_of("2026-01-01") == 1  # at some time of that day
        assert round_of("2026-01-08 11:00") == 1
        assert round_of("2026-01-08 13:00") == 2
        assert round_of("2026-01-29T12:00:00+00:00") == 3
        assert round_of("2026-01-29 13:00") is None


def test_a_round_column_names_the_round(tmp_path, clock):
    with opened(make(tmp_path / "a"), clock) as campaign:
        run(campaign, clock, 2)
        ids = campaign.ledger.chosen_ids(1)[:3].tolist()
        learned = campaign.learn(pa.table({"id": ids, "bought": [7.0] * 3, "week": [1] * 3}), round="week")
        assert learned.matched == 3
        assert (campaign.ledger.outcomes(1).rewards == 7.0).sum() == 3
        with pytest.raises(ValueError, match="name round 9, and there are rounds 1 to 2"):
            campaign.learn(pa.table({"id": ids, "bought": [7.0] * 3, "week": [9] * 3}), round="week")


@pytest.mark.parametrize(("repeats", "reward"), [("last", 2.0), ("sum", 6.0), ("max", 4.0)])
def test_different_rewards_of_one_person_are_refused_or_joined(tmp_path, clock, repeats, reward):
    table = {"bought": [0.0, 4.0, 2.0]}
    with opened(make(tmp_path / "a", outcomes=f"repeats = '{repeats}'"), clock) as campaign:
        campaign.choose(campaign.folder / "customers.csv")
        id = campaign.ledger.chosen_ids(1)[0]
        learned = campaign.learn(pa.table({"id": [id] * 3, **table}))
        assert (learned.matched, learned.duplicates) == (1, 2)
        assert np.nanmax(campaign.ledger.outcomes(1).rewards) == reward
    with opened(make(tmp_path / "b"), clock) as campaign:
        campaign.choose(campaign.folder / "customers.csv")
        id = campaign.ledger.chosen_ids(1)[0]
        with pytest.raises(ValueError, match="has the rewards 0 and 4 in round 1"):
            campaign.learn(pa.table({"id": [id] * 3, **table}))
        assert np.isnan(campaign.ledger.outcomes(1).rewards).all()


def test_the_same_key_returns_the_same_round(tmp_path, clock):
    with opened(make(tmp_path / "a"), clock) as campaign:
        first = campaign.choose(campaign.folder / "customers.csv", key="week 1")
        text = first.path.read_text()
        again = campaign.choose(campaign.folder / "customers.csv", key="week 1", out=tmp_path / "copy.csv")
        assert again.number == 1
        assert again.repeated
        assert first.path.read_text() == (tmp_path / "copy.csv").read_text() == text
        assert campaign.choose(campaign.folder / "customers.csv", key="week 2").number == 2


def test_a_round_whose_list_was_not_written_is_returned_by_the_next_call(tmp_path, clock):
    folder = make(tmp_path / "a")
    with opened(folder, clock) as campaign:
        first = campaign.choose(folder / "customers.csv")
        text = first.path.read_text()
        first.path.unlink()  # as if the command had been killed just before
    with opened(folder, clock) as campaign:
        again = campaign.choose(folder / "customers.csv")
        assert (again.number, again.repeated) == (1, True)
        assert again.path.read_text() == text
        assert "an earlier command was stopped" in again.notes[-1]
        assert campaign.choose(folder / "customers.csv").number == 2


def test_a_decision_of_the_service_is_no_round_whose_list_is_missing(tmp_path, clock):
    folder = make(tmp_path / "a")
    with opened(folder, clock) as campaign:
        first = campaign.choose(folder / "customers.csv", key="week 1")
        arms = campaign.ledger.chosen(1)
        row = ("c1", 0, "chosen", 0.5, 0.1, False, 1.0, arms.features[0].tobytes(), None)
        decision = NewDecision(
            key="page-view",
            unit=None,
            model_version=0,
            chosen_at=clock(),
            closes_at=clock(),
            n_features=arms.features.shape[1],
            details="{}",
            rows=[row],
        )
        campaign.ledger.add_decisions([decision])
        with pytest.raises(ValueError, match="'page-view' is that of decision 2 of the service: give another key"):
            campaign.choose(folder / "customers.csv", key="page-view")
        again = campaign.choose(folder / "customers.csv", key="week 1")
        assert (again.number, again.repeated) == (first.number, True)
        third = campaign.choose(folder / "customers.csv")
        assert (third.number, third.repeated) == (3, False)
        assert not (folder / "rounds" / "002").exists()


def test_a_dry_run_records_nothing(tmp_path, clock):
    with opened(make(tmp_path / "a"), clock) as campaign:
        tried = campaign.choose(campaign.folder / "customers.csv", dry_run=True, out=tmp_path / "try.csv")
        assert campaign.ledger.rounds() == []
        assert not (campaign.folder / "rounds").exists()
        real = campaign.choose(campaign.folder / "customers.csv")
        assert (tmp_path / "try.csv").read_text() == real.path.read_text()
        assert tried.number == real.number


def test_two_programs_that_choose_at_once_do_not_both_succeed(tmp_path, clock, monkeypatch):
    folder = make(tmp_path / "a")
    with opened(folder, clock) as one, opened(folder, clock) as other:
        add_round = one.ledger.add_round

        def meanwhile(**round_):
            other.choose(folder / "customers.csv")
            return add_round(**round_)

        monkeypatch.setattr(one.ledger, "add_round", meanwhile)
        with pytest.raises(LedgerError, match="meanwhile"):
            one.choose(folder / "customers.csv")
        assert [each.number for each in other.ledger.rounds()] == [1]


def test_forgetting_a_person_gives_the_state_as_if_never_learned(tmp_path, clock):
    with opened(make(tmp_path / "a"), clock) as campaign:
        run(campaign, clock, 3)
        clock.pass_days(14)
        id = str(campaign.ledger.chosen_ids(1)[0])
        assert campaign.policy().state.n == 120
        forgotten = campaign.forget([id, "nobody"])
        assert forgotten.n_people == 1
        V, b = literal_state(campaign, [1, 2, 3])
        state = campaign.policy().state
        assert state.n == 120 - len(forgotten.rounds)
        np.testing.assert_allclose(state.V, V, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(state.b, b, rtol=1e-12, atol=1e-12)
        for path in campaign.folder.rglob("*"):
            if path.is_file() and path.name != "customers.csv":
                assert f"{id}," not in path.read_bytes().decode(errors="replace"), path


def test_a_campaign_opens_by_the_url_of_its_store(tmp_path, clock, monkeypatch):
    folder = make(tmp_path / "a")
    with opened(folder, clock) as campaign:
        run(campaign, clock, 3)
        state = campaign.policy().state
    monkeypatch.chdir(tmp_path)
    with Campaign.open(f"sqlite:///{folder}/ledger.sqlite", now=clock) as by_url:
        np.testing.assert_array_equal(by_url.policy().state.theta, state.theta)
        chosen = by_url.choose(folder / "customers.csv")
        assert chosen.path.resolve() == tmp_path / "autumn" / "rounds" / "004" / "chosen.csv"


def test_the_list_has_the_columns_that_scripts_rely_on(tmp_path, clock):
    quotas = "[[choose.quotas]]\ncolumn = 'region'\nat_least = 0.2"
    with opened(make(tmp_path / "a", choose=quotas, holdout="no_contact = 0.1"), clock) as campaign:
        chosen = campaign.choose(campaign.folder / "customers.csv")
        table = csv.read_csv(chosen.path)
        assert table.column_names == ["id", "rank", "predicted", "bonus", "capped", "share", "region"]
        shares = table["share"].to_pylist()
        assert [shares.count(each) for each in ("chosen", "holdout", "no-contact")] == [
            chosen.n_chosen,
            chosen.n_holdout,
            chosen.n_no_contact,
        ]
        assert chosen.n_chosen + chosen.n_holdout == 40
        assert table["rank"].to_pylist()[: chosen.n_chosen] == list(range(1, chosen.n_chosen + 1))


def test_a_first_call_other_than_choose_says_what_to_do(tmp_path, clock):
    with opened(make(tmp_path / "a"), clock) as campaign:
        with pytest.raises(ValueError, match="no round yet: choose one first"):
            campaign.learn(pa.table({"id": ["c1"], "bought": [1.0]}))
        assert campaign.status().rounds == []


def test_armful_campaign_is_the_same_class():
    assert armful.Campaign is Campaign


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("id", ["c1", "c1", "c2"], "'c1' is in rows 1 and 2"),
        ("id", ["c1", "", "c2"], "every customer needs an id, and 'id' is empty in row 2"),
        ("id", ["c1", None, "c2"], "every customer needs an id, and 'id' is empty in row 2"),
    ],
)
def test_bad_ids_of_customers_are_refused(tmp_path, clock, column, values, message):
    table = customers(3)
    table = table.set_column(table.column_names.index(column), column, pa.array(values))
    with opened(make(tmp_path / "a"), clock) as campaign:
        with pytest.raises(ValueError, match=message):
            campaign.choose(table)
        assert campaign.ledger.rounds() == []
        assert not (campaign.folder / ".work").exists()


def test_more_contacts_than_customers_are_refused(tmp_path, clock):
    with opened(make(tmp_path / "a"), clock) as campaign:
        with pytest.raises(InfeasibleError, match="k = 40 is more than the 30 people who may be contacted"):
            campaign.choose(customers(30))
        assert campaign.ledger.rounds() == []


def test_ready_features_are_chosen_by_and_learned_as_they_are(tmp_path, clock):
    folder = make(tmp_path / "a")
    text = (folder / "campaign.toml").read_text()
    begin, end = text.index("[features.columns]"), text.index("[outcomes]")
    ready = '[features]\nready = ["old_score"]\n\n'
    (folder / "campaign.toml").write_text(text[:begin] + ready + text[end:])
    with opened(folder, clock) as campaign:
        run(campaign, clock, 3)
        assert campaign.recipe.names == ["old_score"]
        V, b = literal_state(campaign, [1, 2])
        np.testing.assert_allclose(campaign.policy().state.V, V, rtol=1e-9)
        np.testing.assert_allclose(campaign.policy().state.b, b, rtol=1e-9)
        arms, table = campaign.ledger.chosen(1), customers()
        places = [table["id"].to_pylist().index(id) for id in arms.ids.tolist()]
        np.testing.assert_array_equal(arms.features[:, 0], table["old_score"].to_numpy()[places].astype(np.float32))
