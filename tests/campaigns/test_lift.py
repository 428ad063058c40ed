import json
from datetime import UTC, datetime

import numpy as np
import pytest
from scipy.stats import t as student

from armful.campaigns._records import RoundRecord
from armful.campaigns.holdout import share_of
from armful.campaigns.lift import LiftData, describe_pool, estimate_lift, lift_data, lift_path
from armful.campaigns.lift._words import unit_of
from tests.campaigns.made_lift import MadeCampaign

FIELDS = ("per_contact", "low", "high", "anytime_low", "anytime_high", "relative", "relative_low", "relative_high")


def made_data(seed, *, rounds=5, people=60, missing=0.1):
    """Random rewards of people who come back, some unknown; in the last round nobody of the holdout is known."""
    rng = np.random.default_rng(seed)
    n = 40 * rounds
    round_of, person = np.repeat(np.arange(rounds), 40), rng.integers(0, people, n)
    treated = person % 3 != 0
    rewards = (
        2 + rng.normal(size=rounds)[round_of] + 0.4 * treated + rng.normal(size=people)[person] + rng.normal(size=n)
    )
    rewards[rng.random(n) < missing] = np.nan
    rewards[(round_of == rounds - 1) & ~treated] = np.nan
    return LiftData(rounds=round_of, people=person, treated=treated, rewards=rewards)


def plain_lift(data, level=0.95):
    """The formula of the page docs/lift.md, written out person by person."""
    known = [i for i in range(data.rewards.size) if np.isfinite(data.rewards[i])]
    cells = {}
    for i in known:
        cells.setdefault((data.rounds[i], bool(data.treated[i])), []).append(data.rewards[i])
    rounds = [
        t for t in sorted(set(data.rounds.tolist())) if min(len(cells.get((t, d), [])) for d in (True, False)) >= 2
    ]
    T = len(rounds)
    lift = sum(np.mean(cells[t, True]) - np.mean(cells[t, False]) for t in rounds) / T
    psi, held_out = {}, set()
    for i in known:
        t, d = int(data.rounds[i]), bool(data.treated[i])
        if t in rounds:
            rewards = cells[t, d]
            n = len(rewards)
            term = (data.rewards[i] - np.mean(rewards)) / n / T * np.sqrt(n / (n - 1))
            psi[data.people[i]] = psi.get(data.people[i], 0.0) + (term if d else -term)
            held_out |= set() if d else {data.people[i]}
    g = len(held_out)
    half = student.ppf((1 + level) / 2, g - 1) * np.sqrt(sum(each**2 for each in psi.values()) * g / (g - 1))
    return lift, lift - half, lift + half


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_interval_is_the_formula_written_out_person_by_person(seed, level):
    data = made_data(seed)
    lift = estimate_lift(data, level=level)
    assert (lift.per_contact, lift.low, lift.high) == pytest.approx(plain_lift(data, level), rel=1e-12)
    assert (lift.n_rounds, lift.n_holdout_people) == (
        4,
        np.unique(data.people[~data.treated & np.isfinite(data.rewards)]).size,
    )


def test_the_order_of_rows_and_the_names_of_people_and_rounds_do_not_matter():
    data, rng = made_data(1), np.random.default_rng(1)
    order = rng.permutation(data.rewards.size)
    other = LiftData(
        rounds=7 * data.rounds[order] + 3,
        people=rng.permutation(1000)[data.people[order]],
        treated=data.treated[order],
        rewards=data.rewards[order],
    )
    for field in FIELDS:
        assert getattr(estimate_lift(other), field) == pytest.approx(getattr(estimate_lift(data), field), rel=1e-9)


def test_the_shock_of_a_round_cancels_and_the_unit_of_rewards_goes_through():
    data = made_data(2)
    shocked = LiftData(
        rounds=data.rounds,
        people=data.people,
        treated=data.treated,
        rewards=3 * (data.rewards + np.array([5.0, -7.0, 0.3, 11.0, 0.0])[data.rounds]),
    )
    for field in FIELDS[:5]:
        assert getattr(estimate_lift(shocked), field) == pytest.approx(
            3 * getattr(estimate_lift(data), field), rel=1e-9
        )


@pytest.mark.parametrize("seed", range(8))
def test_the_interval_of_the_relative_lift_is_where_the_difference_may_be_zero(seed):
    """Fieller: at each end of the ratio, the chosen mean minus the ratio times the other is just told from 0."""
    data = made_data(seed)
    lift = estimate_lift(data)
    assert lift.relative_low < lift.relative < lift.relative_high
    assert lift.relative == pytest.approx(lift.per_contact / lift.baseline)
    assert lift.treated_mean - lift.baseline == pytest.approx(lift.per_contact)
    for end in (lift.relative_low, lift.relative_high):
        scaled = np.where(data.treated, data.rewards, (1 + end) * data.rewards)
        ends = estimate_lift(LiftData(rounds=data.rounds, people=data.people, treated=data.treated, rewards=scaled))
        assert min(abs(ends.low), abs(ends.high)) == pytest.approx(0.0, abs=1e-9)
    assert (lift.relative_low > 0) == (lift.low > 0)


def test_a_baseline_that_may_be_zero_has_no_relative_interval():
    data = made_data(3)
    for shift in (-2.6, -5.0):
        moved = LiftData(rounds=data.rounds, people=data.people, treated=data.treated, rewards=data.rewards + shift)
        lift = estimate_lift(moved, unit="visits")
        assert (lift.relative_low, lift.relative_high) == (None, None)
        assert (lift.relative is None) == (lift.baseline <= 0)
        assert lift.per_contact == pytest.approx(estimate_lift(data).per_contact)
        assert " visits per contact (95 % CI " in lift.sentence


def test_the_path_has_the_lift_after_each_round():
    data = made_data(4, people=200)
    path = lift_path(data)
    assert [each.n_rounds for each in path] == [1, 2, 3, 4]
    assert [each.last_round for each in path] == [0, 1, 2, 3]
    for each in path:
        so_far = data.rounds < each.n_rounds
        alone = estimate_lift(
            LiftData(
                rounds=data.rounds[so_far],
                people=data.people[so_far],
                treated=data.treated[so_far],
                rewards=data.rewards[so_far],
            )
        )
        assert each.sentence == alone.sentence
        for field in FIELDS:
            assert (getattr(each, field) or 0.0) == pytest.approx(getattr(alone, field) or 0.0, rel=1e-9)


def test_the_anytime_interval_is_wider_and_narrowest_in_comparison_after_the_variance_has_grown_tenfold():
    path = lift_path(MadeCampaign(rounds=20, people=8000, own=0.0).draw(np.random.default_rng(0)))
    ratios = [(each.anytime_high - each.anytime_low) / (each.high - each.low) for each in path]
    assert min(ratios) > 1.5
    assert 7 <= int(np.argmin(ratios)) <= 13


def test_a_control_that_tells_the_rewards_leaves_the_mean_of_all_who_could_be_drawn():
    """The holdout's rewards are its predictions: adjusted, its mean is that of the pool, whoever was drawn."""
    rng = np.random.default_rng(0)
    pool = rng.normal(5.0, 1.0, 400)
    drawn = rng.permutation(400)[:60]
    rewards = np.concatenate([pool[drawn], rng.normal(9.0, 1.0, 200)])
    controls = np.concatenate([pool[drawn] - pool.mean(), np.zeros(200)])
    data = LiftData(
        rounds=np.zeros(260, dtype=int),
        people=np.arange(260),
        treated=np.arange(260) >= 60,
        rewards=rewards,
        controls=controls,
        control_variances=np.full(260, pool.var() / 400),
    )
    adjusted, plain = estimate_lift(data), estimate_lift(data, adjust=False)
    assert adjusted.adjusted
    assert not plain.adjusted
    assert adjusted.baseline == pytest.approx(pool.mean())
    assert adjusted.treated_mean == plain.treated_mean  # what the policy gains by choosing is not adjusted away
    quantile = student.ppf(0.975, 58)
    error = np.sqrt(rewards[60:].var(ddof=1) / 200 * 60 / 58 + pool.var() / 400)
    assert adjusted.high - adjusted.per_contact == pytest.approx(quantile * error)
    assert adjusted.high - adjusted.low < plain.high - plain.low


def test_few_people_or_controls_that_do_not_vary_are_not_adjusted_for():
    rng = np.random.default_rng(0)
    for n_held, spread in ((19, 1.0), (40, 0.0)):
        data = LiftData(
            rounds=np.zeros(100, dtype=int),
            people=np.arange(100),
            treated=np.arange(100) >= n_held,
            rewards=rng.normal(size=100),
            controls=spread * rng.normal(size=100),
        )
        assert estimate_lift(data) == estimate_lift(data, adjust=False)


def test_someone_who_changes_share_is_one_person_still():
    """Half of the people move in the second round; the formula written out person by person knows it."""
    rng = np.random.default_rng(0)
    people, rounds = np.tile(np.arange(40), 2), np.repeat([0, 1], 40)
    treated = (people % 2 == 0) ^ ((rounds == 1) & (people < 20))
    data = LiftData(
        rounds=rounds, people=people, treated=treated, rewards=rng.normal(size=40)[people] + rng.normal(size=80)
    )
    lift = estimate_lift(data)
    assert (lift.per_contact, lift.low, lift.high) == pytest.approx(plain_lift(data), rel=1e-12)


def rows(rewards, treated, rounds=None, people=None):
    n = len(rewards)
    return LiftData(
        rounds=np.zeros(n, dtype=int) if rounds is None else rounds,
        people=np.arange(n) if people is None else people,
        treated=treated,
        rewards=rewards,
    )


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (rows([], []), "no round's window has closed"),
        (
            rows([1.0, 0.0, 1.0], [True] * 3),
            "no closed round had people of the holdout to compare with; holdout.share says how many there are",
        ),
        (
            rows([1.0, 0.0, np.nan], [True, True, False]),
            "the outcomes of 0 people of the holdout are known, and two are needed",
        ),
        (
            rows([1.0, 0.0, 1.0], [True, True, False]),
            "the outcomes of 1 person of the holdout are known, and two are needed",
        ),
        (rows([np.nan, 0.0, 1.0], [True, False, False]), "the outcomes of 0 people of the chosen share are known"),
        (
            rows([1.0, 0.0, 0.0, 0.0], [True, True, False, False]),
            "all known rewards of the holdout are 0, so chance cannot",
        ),
        (
            rows([1.0, 1.0, 2.0, 0.0], [True, True, False, False]),
            "all known rewards of the chosen share are 1, so chance",
        ),
        (
            rows([1.0, 0.0, 2.0, 0.0], [True, True, False, False], rounds=[0, 0, 1, 1]),
            "no round has two known outcomes in the chosen share and two in the holdout that differ",
        ),
        (
            rows([1.0, 0.0, 2.0, 0.0] * 2, [True, True, False, False] * 2, people=[1, 2, 3, 3] * 2),
            "the outcomes of 1 person of the holdout are known",
        ),
    ],
)
def test_what_cannot_be_estimated_is_a_sentence(data, reason):
    lift = estimate_lift(data)
    assert lift.sentence.startswith("No lift can be given yet: ")
    assert reason in lift.sentence
    assert not lift.known
    assert lift_path(data) == []
    assert lift.to_dict()["per_contact"] is None
    assert json.loads(json.dumps(lift.to_dict()))["sentence"] == lift.sentence


def test_the_effect_of_a_contact_has_a_sentence_of_its_own():
    data = made_data(0)
    lift = estimate_lift(data, against="no-contact", unit="visits")
    assert lift.sentence.startswith("being contacted changes the outcome of those chosen by +")
    assert "visits per contact (95 % CI" in lift.sentence
    assert estimate_lift(rows([1.0], [True]), against="no-contact").sentence == (
        "The effect of a contact cannot be given yet: no closed round had people of the no-contact share to compare "
        "with; holdout.no_contact says how many there are."
    )


def sentence(chosen, holdout, n=400, unit="visits"):
    """The sentence of a lift between sales of so many in each share."""
    rewards = np.concatenate([np.arange(n) < chosen, np.arange(n) < holdout]).astype(float)
    return estimate_lift(rows(rewards, np.arange(2 * n) < n), unit=unit).sentence


def test_the_sentence_says_the_lift_its_interval_and_what_the_holdout_cost():
    assert sentence(200, 100) == "+100 % (95 % CI 66 .. 146); the holdout cost about 100 visits"
    assert sentence(110, 100) == "+10 % (95 % CI -13 .. 40), which may be chance"
    assert sentence(60, 100) == "-40 % (95 % CI -56 .. -20); the holdout brought about 40 visits more"
    assert sentence(1000, 1001, n=2000) == "0 % (95 % CI -6 .. 6), which may be chance"
    assert sentence(19_100, 19_000, n=20_000) == ("+0.53 % (95 % CI 0.09 .. 0.97); the holdout cost about 100 visits")


@pytest.mark.parametrize(
    ("reward", "expected"),
    [
        ("visits", "visits"),
        ("bought", "purchases"),
        ("click", "clicks"),
        ("revenue", "in revenue"),
        ("order_value", "in 'order_value'"),
        ("loss", "in 'loss'"),
    ],
)
def test_the_sentence_names_the_reward_by_its_column(reward, expected):
    assert sentence(200, 100, unit=unit_of(reward)).endswith(f"; the holdout cost about 100 {expected}")
    assert sentence(60, 100, unit=unit_of(reward)).endswith(f"; the holdout brought about 40 {expected} more")


def test_rewards_that_are_rare_in_the_holdout_are_noted():
    rewards = np.concatenate([np.arange(400) < 30, np.arange(400) < 9]).astype(float)
    (note,) = estimate_lift(rows(rewards, np.arange(800) < 400)).notes
    assert note == ("Only 9 of the 400 known rewards of the holdout differ from 0: the intervals may be too narrow.")
    (note,) = estimate_lift(rows(np.arange(22) % 11 == 0, np.arange(22) < 11)).notes
    assert note.startswith("Only 1 of the 11 known rewards of the holdout differs from 0: ")
    few = estimate_lift(rows([1.0, 2.0, 3.0, 4.0], [True, True, False, False]))
    assert few.notes == ("Only 2 rewards of the holdout are known: the intervals may be too narrow.",)
    rewards[410] = 1.0
    assert estimate_lift(rows(rewards, np.arange(800) < 400)).notes == ()


def record(number, ids, shares, rewards, *, closed=True, predicted=None, probabilities=None, groups=None, details=None):
    n, now = len(ids), datetime(2026, 1, 1, tzinfo=UTC)
    return RoundRecord(
        number=number,
        chosen_at=now,
        closes_at=now,
        closed=closed,
        ids=np.array(ids),
        shares=np.array(shares),
        features=np.zeros((n, 1), dtype=np.float32),
        rewards=np.array(rewards, dtype=float),
        came=np.isfinite(rewards),
        received_at=np.full(n, np.nan),
        predicted=np.zeros(n) if predicted is None else np.array(predicted),
        bonus=np.zeros(n),
        capped=np.zeros(n, dtype=bool),
        probabilities=np.full(n, np.nan) if probabilities is None else np.array(probabilities),
        groups=groups or {},
        details=details or {},
    )


def test_rounds_of_a_campaign_become_rows_of_closed_rounds_with_the_same_people():
    shares = ["chosen", "chosen", "holdout", "no-contact"]
    first = record(1, ["a", "b", "c", "d"], shares, [1.0, 0.0, 1.0, 0.0])
    later = record(2, ["b", "a", "e", "c"], shares, [0.0, np.nan, 1.0, 0.0])
    still_open = record(3, ["a", "b", "c", "d"], shares, [1.0, 1.0, 1.0, 1.0], closed=False)
    data = lift_data([first, later, still_open])
    assert data.rounds.tolist() == [1, 1, 1, 2, 2, 2]
    assert data.treated.tolist() == [True, True, False] * 2
    assert data.people[[0, 1]].tolist() == data.people[[4, 3]].tolist()
    assert np.unique(data.people).size == 4
    assert data.ranks.tolist() == [0.5, 1.0, 1.0] * 2
    contact = lift_data([first, later], against="no-contact")
    assert contact.rewards[2] == 0.0
    assert contact.people[5] == data.people[2]  # c


def test_a_campaign_without_rounds_has_a_sentence():
    assert estimate_lift(lift_data([])).sentence == "No lift can be given yet: no round's window has closed."


def test_controls_are_predictions_minus_the_mean_of_those_of_the_same_groups():
    region = np.array(["north", "north", "south", "south", "south"])
    pool_region = np.repeat(["north", "south"], [4, 10])
    pool_predicted = np.concatenate([[1.0, 2.0, 3.0, 4.0], np.arange(10.0)])
    one = record(
        1,
        list("abcde"),
        ["chosen", "holdout", "holdout", "holdout", "holdout"],
        [1.0, 1.0, 2.0, np.nan, 0.0],
        predicted=[9.0, 3.0, 5.0, 7.0, 8.0],
        probabilities=[np.nan, np.nan, np.nan, np.nan, 1.0],
        groups={"region": region},
        details={"holdout_pool": json.loads(json.dumps(describe_pool(pool_predicted, {"region": pool_region})))},
    )
    data = lift_data([one])
    assert data.controls.tolist() == [0.0, 3.0 - 2.5, 5.0 - 4.5, 0.0, 0.0]  # unknown: not used; e had to be contacted
    north, south = np.var([1, 2, 3, 4]) / 4, np.var(np.arange(10)) / 10
    assert data.control_variances[1:] == pytest.approx(np.full(4, north / 9 + south / 9))
    assert np.isnan(data.ranks[1:]).all()


def test_groups_that_the_pool_does_not_know_are_not_adjusted_for():
    one = record(
        1, ["a", "b"], ["chosen", "holdout"], [1.0, 1.0], predicted=[2.0, 3.0],
        groups={"region": np.array(["north", "west"])}, details={"holdout_pool": {"north": [4, 2.0, 1.0]}},
    )  # fmt: skip
    assert lift_data([one]).controls.tolist() == [0.0, 0.0]


def test_arrays_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match=r"people must have shape \(2,\) like rounds, got \(3,\)"):
        LiftData(rounds=[1, 2], people=[1, 2, 3], treated=[True, False], rewards=[1.0, 2.0])


def test_a_level_that_is_not_one_is_refused():
    with pytest.raises(ValueError, match="level must be between 0 and 1, got 95"):
        estimate_lift(made_data(0), level=95)


def test_shares_by_hash_and_the_estimate_work_together():
    """From ids to the lift: the difference of the means of the two shares of one round."""
    ids = np.arange(3000).astype(str)
    held = share_of(ids, "autumn", holdout=0.2) == 1
    rewards = np.where(held, 1.0, 2.0) + np.random.default_rng(0).normal(size=3000)
    one = record(1, ids, np.where(held, "holdout", "chosen"), rewards, details={"holdout_pool": {"": [600, 0.0, 0.0]}})
    lift = estimate_lift(lift_data([one]))
    assert lift.per_contact == pytest.approx(rewards[~held].mean() - rewards[held].mean())
    assert lift.n_holdout == held.sum()


def test_rewards_that_are_all_the_same_do_not_vary_by_rounding():
    """The mean of three times 0.1 is not 0.1 in float64."""
    lift = estimate_lift(rows([0.1, 0.1, 0.1, 0.2, 0.4, 0.1], [False] * 3 + [True] * 3))
    assert lift.sentence.endswith("all known rewards of the holdout are 0.1, so chance cannot be judged.")
