"""Who is chosen in a round, against choosing from plain arrays."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import armful
from armful.campaigns.holdout import share_of, uniforms
from armful.errors import InfeasibleError
from armful.model._pending import with_pending
from tests.campaigns.small import customers, make, opened, outcomes, run

QUOTAS = """
[[choose.quotas]]
column = "region"
at_least = 0.25
at_most = { north = 15 }
"""

NESTED = """
[[choose.quotas]]
column = "region"
at_most = 16

[[choose.quotas]]
column = "city"
at_most = 9
nested = true
"""

CROSSING = """
[[choose.quotas]]
column = "region"
at_least = 10

[[choose.quotas]]
column = "old"
at_most = { yes = 12 }
"""

BUDGET = """
[choose.budget]
column = "cost"
limit = 60
"""


def shares(table, holdout=0.2, no_contact=0.0):
    return share_of(table["id"].to_numpy(), "autumn", holdout=holdout, no_contact=no_contact)


def features(campaign, table):
    return np.concatenate([campaign.recipe.transform(batch) for batch in table.to_batches()])


def on_list(campaign, number, share="chosen"):
    arms = campaign.ledger.chosen(number)
    return arms.ids[arms.shares == share].tolist()


def test_the_policy_chooses_as_it_would_from_an_array_of_those_who_may_be_chosen(tmp_path, clock):
    table = customers()
    with opened(make(tmp_path / "a"), clock) as campaign:
        run(campaign, clock, 3)
        may = np.flatnonzero(shares(table) == 0)
        policy = campaign.policy()
        pending = campaign.ledger.chosen(3).features  # the window of round 3 is open when round 4 is chosen
        policy.state = with_pending(policy.state, pending)
        k = campaign.choose(campaign.folder / "customers.csv").n_chosen
        best = np.sort(policy.scores(features(campaign, table)[may], k))[-k:]
        arms = campaign.ledger.chosen(4)
        mine = arms.shares == "chosen"
        assert set(on_list(campaign, 4)) <= set(table["id"].take(may).to_pylist())
        scores = policy.scores(arms.features[mine], k)
        np.testing.assert_allclose(np.sort(scores), best, rtol=1e-9)
        assert (np.diff(scores) <= 1e-9).all()  # by rank


def test_outstanding_outcomes_count_for_the_widths_only(tmp_path, clock):
    with opened(make(tmp_path / "a"), clock) as campaign:
        run(campaign, clock, 3)
        state, X = campaign.policy().state, campaign.ledger.chosen(3).features.astype(float)
        both = with_pending(state, X)
        np.testing.assert_allclose(both.theta, state.theta, atol=1e-12)
        np.testing.assert_allclose(both.V, state.V + X.T @ X, atol=1e-12)
        assert both.n == state.n
        np.testing.assert_allclose(both.residual, state.residual, atol=1e-12)


def test_rounds_before_the_first_outcomes_do_not_ask_the_same_people_again(tmp_path, clock):
    """Without counting what is outstanding the second round would be the first one, but for its ties."""
    with opened(make(tmp_path / "a"), clock) as campaign:
        first, second = ({*on_list(campaign, campaign.choose(customers()).number)} for _ in range(2))
        assert len(first & second) < len(first) / 2


def test_shares_are_sticky_and_nobody_of_the_holdout_is_chosen(tmp_path, clock):
    with opened(make(tmp_path / "a", holdout="no_contact = 0.1"), clock) as campaign:
        run(campaign, clock, 3)
        people = {share: set() for share in ("chosen", "holdout", "no-contact")}
        for number in (1, 2, 3):
            for share, ids in people.items():
                ids.update(on_list(campaign, number, share))
        assert not people["chosen"] & people["holdout"]
        assert not (people["chosen"] | people["holdout"]) & people["no-contact"]


def test_the_no_contact_share_is_not_learned_from(tmp_path, clock):
    with opened(make(tmp_path / "a", holdout="no_contact = 0.1"), clock) as campaign:
        campaign.choose(customers())
        campaign.learn(outcomes(campaign, 1))
        clock.pass_days(14)
        assert len(campaign.ledger.chosen(1)) > 40
        assert campaign.policy().state.n == 40


def test_nobody_is_contacted_again_while_resting(tmp_path, clock):
    with opened(make(tmp_path / "a", choose="rest = 2"), clock) as campaign:
        run(campaign, clock, 5)
        contacted = [set(on_list(campaign, n)) | set(on_list(campaign, n, "holdout")) for n in range(1, 6)]
        for i in range(5):
            for j in range(i + 1, min(i + 3, 5)):
                assert not contacted[i] & contacted[j]


def test_excluded_people_are_not_chosen_and_required_ones_are(tmp_path, clock):
    table = customers()
    folder = tmp_path / "a"
    folder.mkdir()
    wanted = table["id"].filter(pa.array(shares(table) == 0)).to_pylist()[:3]
    others = [each for each in table["id"].to_pylist() if each not in wanted]
    csv.write_csv(pa.table({"id": others[:200]}), folder / "out.csv")
    csv.write_csv(pa.table({"id": [*wanted, "not a customer"]}), folder / "must.csv")
    make(folder, choose="exclude = ['out.csv']\nrequire = ['must.csv']")
    out = set(csv.read_csv(folder / "out.csv")["id"].to_pylist())
    with opened(folder, clock) as campaign:
        run(campaign, clock, 2)
        for number in (1, 2):
            ids = on_list(campaign, number)
            assert ids[:3] == wanted
            assert not out & {*ids, *on_list(campaign, number, "holdout")}
            assert len(ids) == len(set(ids))


@pytest.mark.parametrize("key", ["exclude", "require"])
def test_a_file_of_ids_that_names_no_customer_is_noted(tmp_path, clock, key):
    folder = tmp_path / "a"
    folder.mkdir()
    for name, ids in {"some.csv": ["gone", "c7"], "none.csv": ["gone", "C7"]}.items():
        csv.write_csv(pa.table({"id": ids}), folder / name)
    (folder / "empty.csv").write_text("id\n")
    make(folder, choose=f"{key} = ['some.csv', 'none.csv', 'empty.csv']\nrest = 1")
    with opened(folder, clock) as campaign:
        for _ in range(2):
            assert [note for note in campaign.choose(customers()).notes if ".csv" in note] == [
                "no id in none.csv is that of a customer of this file; both files must write 'id' in the same way"
            ]


@pytest.mark.parametrize("quotas", [QUOTAS, NESTED])
def test_quotas_hold_for_chosen_and_holdout_together(tmp_path, clock, quotas):
    with opened(make(tmp_path / "a", choose=quotas), clock) as campaign:
        run(campaign, clock, 4)
        for number in range(1, 5):
            arms = campaign.ledger.chosen(number)
            assert len(arms) == 40
            regions = dict(zip(*np.unique(arms.groups["region"], return_counts=True), strict=True))
            if quotas == QUOTAS:
                assert min(regions.values()) >= 10
                assert regions["north"] <= 15
            else:
                assert max(regions.values()) <= 16
                assert np.unique(arms.groups["city"], return_counts=True)[1].max() <= 9


def test_quotas_of_columns_that_cross_hold(tmp_path, clock):
    table = customers()
    table = table.append_column("old", pa.array(np.where(table["age"].to_numpy() > 50, "yes", "no")))
    with opened(make(tmp_path / "a", choose=CROSSING), clock) as campaign:
        campaign.choose(table)
        arms = campaign.ledger.chosen(1)
        assert min(np.unique(arms.groups["region"], return_counts=True)[1]) >= 10
        assert (arms.groups["old"] == "yes").sum() <= 12


@pytest.mark.parametrize("quotas", ["", QUOTAS])
def test_a_budget_holds(tmp_path, clock, quotas):
    table = customers()
    cost = dict(zip(table["id"].to_pylist(), table["cost"].to_pylist(), strict=True))
    with opened(make(tmp_path / "a", choose=BUDGET + quotas), clock) as campaign:
        run(campaign, clock, 3)
        for number in (1, 2, 3):
            ids = campaign.ledger.chosen_ids(number)
            assert 0 < ids.size <= 40
            assert sum(cost[id] for id in ids.tolist()) <= 60


def test_a_budget_does_not_make_the_holdout_one_of_cheap_people(tmp_path, clock):
    """They are drawn in a random order until the holdout's part of the budget is spent."""
    table = customers()
    cost = dict(zip(table["id"].to_pylist(), table["cost"].to_pylist(), strict=True))
    with opened(make(tmp_path / "a", choose=BUDGET.replace("60", "150")), clock) as campaign:
        campaign.choose(table)
        drawn = on_list(campaign, 1, "holdout")
    held = table["id"].to_numpy()[shares(table) == 1]
    order = held[np.argsort(-uniforms(held, "autumn round 1"))].tolist()
    n = len(drawn)
    assert n >= 3
    assert drawn == order[:n]
    assert sum(cost[id] for id in drawn) <= 150 * 9 / 40
    assert n in (7, 8, 9) or sum(cost[id] for id in order[: n + 1]) > 150 * 7 / 40


def test_the_holdout_is_drawn_at_random_and_its_probability_is_recorded(tmp_path, clock):
    table = customers()
    with opened(make(tmp_path / "a"), clock) as campaign:
        for _ in range(2):
            campaign.choose(table)
        first, second = (campaign.ledger.chosen(number) for number in (1, 2))
        mine = first.shares == "holdout"
        n = int((shares(table) == 1).sum())
        np.testing.assert_allclose(first.probabilities[mine], mine.sum() / n)
        assert np.isnan(first.probabilities[~mine]).all()
        assert {*first.ids[mine]} != {*second.ids[second.shares == "holdout"]}


def test_the_house_rule_may_be_a_column_of_scores(tmp_path, clock):
    table = customers()
    with opened(make(tmp_path / "a", holdout="rule = 'score'\nscore = 'old_score'"), clock) as campaign:
        campaign.choose(table)
        ids = on_list(campaign, 1, "holdout")
        held = shares(table) == 1
        order = np.argsort(-table["old_score"].to_numpy()[held])
        assert ids == np.array(table["id"].to_pylist())[held][order][: len(ids)].tolist()


def test_exploring_is_the_part_that_the_estimate_would_not_choose(tmp_path, clock):
    table = customers()
    with opened(make(tmp_path / "a"), clock) as campaign:
        run(campaign, clock, 4)
        state = campaign.policy().state
        chosen = campaign.choose(table)
        may = np.flatnonzero(shares(table) == 0)
        means = state.mean(features(campaign, table)[may])
        greedy = armful.TopK(chosen.n_chosen).best(means).indices
        threshold = means[greedy].min()
        picked = state.mean(campaign.ledger.chosen(5).features[: chosen.n_chosen].astype(float))
        below = (picked < threshold - 1e-9).mean()
        ties = (np.abs(picked - threshold) <= 1e-9).mean()
        assert below - 1e-9 <= chosen.exploring <= below + ties + 1e-9


def test_a_group_that_needs_more_people_than_there_are_is_named(tmp_path, clock):
    quotas = "[[choose.quotas]]\ncolumn = 'region'\nat_least = { north = 30 }"
    table = customers(60)
    with opened(make(tmp_path / "a", choose=quotas), clock) as campaign:
        with pytest.raises(InfeasibleError, match="region 'north' needs at least 30"):
            campaign.choose(table)
        assert campaign.ledger.rounds() == []


def test_a_first_round_is_chosen_in_parts_so_that_it_teaches_more(tmp_path, clock):
    table = customers()
    with opened(make(tmp_path / "a"), clock) as campaign:
        k = campaign.choose(table).n_chosen
        X = features(campaign, table)[shares(table) == 0].astype(float)
        d = X.shape[1]
        policy = armful.CappedC2UCB(n_features=d, cap=1.0, seed=0)
        at_once = policy.choose(X, armful.TopK(k)).features
        in_parts = []
        for size in np.diff(np.linspace(0, k, 5).round().astype(int)):
            free = X if not in_parts else X[~(X[:, None] == np.concatenate(in_parts)).all(axis=-1).any(axis=1)]
            in_parts.append(policy.choose(free, armful.TopK(int(size))).features)
            policy.state = with_pending(policy.state, in_parts[-1])

        def taught(rows):
            return np.linalg.slogdet(np.eye(d) + rows.T @ rows)[1]

        chosen = campaign.ledger.chosen(1)
        first = chosen.features[chosen.shares == "chosen"].astype(float)
        assert taught(first) > taught(at_once) + 0.2
        assert abs(taught(first) - taught(np.concatenate(in_parts))) < 0.2


def test_a_quota_on_a_group_that_nobody_is_in_is_noted(tmp_path, clock):
    quotas = "[[choose.quotas]]\ncolumn = 'region'\nat_most = { norht = 5 }"
    with opened(make(tmp_path / "a", choose=quotas), clock) as campaign:
        (note,) = campaign.choose(customers()).notes
        assert note == "the quota on 'region' names 'norht', and no customer of this file has that"
