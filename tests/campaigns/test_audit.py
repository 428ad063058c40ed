import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from armful import C2UCB, CappedC2UCB, CombLinTS
from armful.campaigns.audit import Finding, audit
from armful.campaigns.audit import _data as _audit_data
from armful.campaigns.audit._data import gather
from armful.campaigns.audit._scores import WithinRounds, chance, critical
from armful.campaigns.audit._shocks import check_shocks
from armful.campaigns.audit._words import CAMPAIGN
from armful.campaigns.report._surprises import surprising_groups, surprising_people
from armful.campaigns.settings import LearningSettings
from tests.campaigns.made_rounds import World, made_policy, made_settings, opened, play

NAMES = ["cap", "shocks", "drift", "shape", "radius", "delays", "leakage"]


def found(world, records, policy, settings=None):
    return {each.name: each for each in audit(records, policy, settings or made_settings(), world.names)}


@pytest.fixture
def world():
    return World(np.random.default_rng(1), level=0.3)


def test_an_audit_has_one_finding_for_each_assumption(world):
    policy = made_policy(world)
    findings = audit(play(world, policy), policy, made_settings(), world.names)
    assert [each.name for each in findings] == NAMES
    assert all(each.checked and each.sentence.endswith(".") for each in findings)


CLEAN = {
    "yes or no": ({}, {}),
    "rare": ({"level": 0.03}, {}),
    "amounts": ({"kind": "amount"}, {}),
    "people who come back": ({"person_effect": 0.9, "n_people": 1500}, {"rounds": 20, "k": 100}),
    "late outcomes": ({"kind": "normal"}, {"lag": 3, "rest": 2, "rounds": 8}),
    "small rounds": ({}, {"rounds": 4, "k": 50, "holdout": 20}),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLEAN)
def test_an_audit_rarely_finds_something_where_nothing_is_wrong(kind):
    """At a rate of 1 in 100, more than 4 of 30 audits find something with probability 2e-5."""
    world_options, play_options = CLEAN[kind]
    alarms = 0
    for seed in range(30):
        world = World(np.random.default_rng([3, seed]), **world_options)
        policy = C2UCB(n_features=len(world.names), seed=0) if kind == "amounts" else made_policy(world)
        records = play(world, policy, **play_options)
        alarms += any(each.level != "fine" for each in found(world, records, policy).values())
    assert alarms <= 4


def test_one_round_says_nothing_about_change(world):
    policy = made_policy(world)
    finding = found(world, play(world, policy, rounds=1), policy)["drift"]
    assert not finding.checked
    assert finding.sentence == "Whether effects change over time needs two closed rounds."


# Faults are planted so large that a check misses them by chance less than once in 10,000 runs, whatever the seed.


def test_a_cap_below_the_mean_rewards_is_found(world):
    finding = found(world, play(world, made_policy(world)), made_policy(world, cap=0.1))["cap"]
    assert finding.level == "problem"
    assert "`cap = " in finding.repair


def test_what_a_policy_does_not_have_is_no_finding(world):
    policy = C2UCB(n_features=len(world.names), seed=0)
    assert NAMES[1:] == list(found(world, play(world, policy), policy))
    policy = CombLinTS(n_features=len(world.names), seed=0)
    assert [name for name in NAMES if name not in ("cap", "radius")] == list(found(world, play(world, policy), policy))


def with_shocks(world, size):
    shocks = size * np.array([1, -1, 1, 1, -1, -1])
    return {"changed": lambda t, people, mean: mean + shocks[t]}


def test_noise_that_a_round_has_in_common_is_found_and_the_setting_repairs_it():
    world = World(np.random.default_rng(1), kind="normal")
    policy = made_policy(world)
    records = play(world, policy, **with_shocks(world, 0.2))
    finding = found(world, records, policy)["shocks"]
    assert finding.level == "problem"
    shock = float(finding.repair.partition("`shock = ")[2].partition("`")[0])
    assert 0.2 < shock < 1.0  # 0.2^2 * 6 / 5 / 0.3^2 = 0.53
    repaired = replace(made_settings(), learning=LearningSettings(shock=shock))
    assert found(world, records, policy, repaired)["shocks"].level == "fine"


def test_a_small_shock_that_many_outcomes_show_is_nothing_to_look_at():
    """Without a shock 1.25^2 times the variance is estimated of 100 rounds once in 3,000 times; p = 1 is "shown"."""
    world = World(np.random.default_rng(1), kind="normal")
    policy = made_policy(world)
    evidence = gather(play(world, policy, rounds=100, k=100, holdout=20), len(world.names))
    finding = check_shocks(evidence, made_settings(), CAMPAIGN, 1.0)
    assert finding.level == "fine"
    assert re.match(r"The mean outcome of a round is 1(\.[012]\d*)? times as uncertain as", finding.sentence)
    assert finding.sentence.index("which changes little") < finding.sentence.index("the means of 100 rounds differ")


@pytest.mark.parametrize(("level", "side"), [(4.0, "higher"), (-4.0, "lower")])
def test_features_without_a_constant_need_one(level, side):
    world = World(np.random.default_rng(1), kind="normal")
    policy = made_policy(world, cap=10.0)
    rng = np.random.default_rng(2)

    def without_constant(t, people, X, rewards):
        return (rng.normal(size=X.shape) / 3).astype(np.float32)

    records = play(world, policy, features=without_constant, changed=lambda t, people, mean: mean + level)
    finding = found(world, records, policy)["shocks"]
    assert finding.level == "problem"
    assert re.search(f"are all {side} than predicted, by [34].* to [34]", finding.sentence)
    assert finding.repair == "Add a constant: a feature that has the same value for all people, such as 1."


def test_the_consequence_of_a_shock_comes_first():
    world = World(np.random.default_rng(1), kind="normal")
    policy = made_policy(world)
    finding = found(world, play(world, policy, **with_shocks(world, 0.2)), policy)["shocks"]
    assert re.match(r"The mean outcome of a round is \d\d?(\.\d+)? times as uncertain as the model", finding.sentence)


def test_outcomes_that_never_came_are_not_called_fine(world):
    """Where `missing` is 0 they are known to be 0 when the window closes."""
    policy = made_policy(world)
    records = [
        replace(record, rewards=np.zeros(record.ids.size), came=np.zeros(record.ids.size, dtype=bool))
        for record in play(world, policy)
    ]
    findings = found(world, records, policy)
    assert not any(each.checked for each in findings.values())
    assert "once an outcome has come" in findings["shape"].sentence


@pytest.mark.parametrize("reward", [1.0, 0.1, 1000.1])
@pytest.mark.parametrize("noise", [0.0, 1e-14])
def test_differences_as_small_as_rounding_makes_them_are_no_findings(world, reward, noise):
    """All rewards are the same, but for their last digits: these differ by round, and by a feature more and more."""
    policy = made_policy(world, cap=reward)
    rng = np.random.default_rng(2)
    records = [
        replace(
            record, rewards=reward * (1 + noise * (rng.choice([-3, 2]) + 9 * record.number * record.features[:, 1]))
        )
        for record in play(world, made_policy(world))
    ]
    exact = [
        replace(record, predicted=np.full(record.ids.size, reward), bonus=1e-20 + 0 * record.bonus)
        for record in records
    ]
    for each in (records, exact):
        findings = found(world, each, policy)
        assert {finding.level for name, finding in findings.items() if name != "radius"} == {"fine"}
        assert not findings["leakage"].checked
    assert findings["radius"].level == "fine"
    assert all(
        abs(each.distance) < 1 for each in surprising_groups(gather(exact, len(world.names)).rows, world.names)[0]
    )
    assert surprising_people(gather(exact, len(world.names)).rows)[0] == ()


def test_without_a_group_to_look_at_straight_lines_are_not_checked(world):
    policy = made_policy(world)
    constant = np.ones((1, len(world.names)), dtype=np.float32) / 4
    records = play(world, policy, features=lambda t, people, X, rewards: np.repeat(constant, len(X), axis=0))
    findings = found(world, records, policy)
    assert not findings["shape"].checked
    assert not findings["drift"].checked


def test_shocks_alone_are_taken_neither_for_drift_nor_for_another_shape():
    world = World(np.random.default_rng(2), kind="normal")
    policy = made_policy(world)
    findings = found(world, play(world, policy, **with_shocks(world, 0.2)), policy)
    assert [findings[name].level for name in ("drift", "shape", "delays")] == ["fine"] * 3


def test_an_effect_that_changes_over_time_is_found_and_a_discount_repairs_it():
    world = World(np.random.default_rng(3), kind="normal")
    policy = made_policy(world)
    x = world.numbers[:, 0] - 0.5
    records = play(world, policy, k=1000, changed=lambda t, people, mean: mean + 2 * (t / 5 - 0.5) * x[people])
    finding = found(world, records, policy)["drift"]
    assert finding.level == "problem"
    assert "`number 1`" in finding.sentence
    assert "`discount = 0.667`" in finding.repair
    repaired = replace(made_settings(), learning=LearningSettings(discount=0.8))
    assert found(world, records, policy, repaired)["drift"].level == "fine"


def test_an_effect_that_is_no_straight_line_is_found():
    world = World(np.random.default_rng(4), kind="normal")
    policy = made_policy(world)
    bent = 4 * (world.numbers[:, 0] - 0.5) ** 2
    records = play(world, policy, k=1000, changed=lambda t, people, mean: mean + 0.8 * bent[people])
    finding = found(world, records, policy)["shape"]
    assert finding.level == "problem"
    assert "standard errors" in finding.sentence
    assert "`spline = 4`" in finding.repair


def test_weights_of_places_that_do_not_fit_are_named():
    """A service multiplies all features of an arm, the constant too, by what it believes of the arm's place."""
    believed, true = np.array([1.0, 0.9, 0.8, 0.7]), np.array([1.0, 0.4, 0.3, 0.2])
    world = World(np.random.default_rng(4), kind="normal", level=0.8)
    policy = made_policy(world)

    def in_places(record):
        place = np.arange(len(record.rewards)) % 4
        features = (record.features * believed[place][:, None]).astype(np.float32)
        return replace(record, features=features, rewards=record.rewards * true[place])

    records = [in_places(record) for record in play(world, policy, k=1000)]
    finding = found(world, records, policy)["shape"]
    assert finding.level == "problem"
    assert "of the weights of their places earned" in finding.sentence
    assert finding.repair.startswith("The weights of places, `positions` under `[service]`, do not fit")


def test_an_interaction_is_found_in_the_tenths_of_the_predictions():
    world = World(np.random.default_rng(4), kind="normal")
    both = (world.numbers[:, 0] > 0.5) & (world.region == 0)
    policy = made_policy(world)
    records = play(world, policy, k=1500, holdout=700, changed=lambda t, people, mean: mean + 2.0 * both[people])
    finding = found(world, records, policy)["shape"]
    assert finding.level == "problem"
    assert re.match(
        "People in the (lowest|second|third|ninth|highest) tenth of the predictions earned", finding.sentence
    )


def test_what_a_check_needs_is_one_sentence(world):
    findings = found(world, play(world, made_policy(world), rounds=1, k=20, holdout=10), made_policy(world))
    assert findings["cap"].sentence == "Whether the cap holds needs 50 known outcomes, and 30 are there."
    assert findings["radius"].sentence.endswith("chosen after the model had learned, and 0 are there.")
    assert findings["shape"].sentence.endswith(" known outcomes of closed rounds, and 30 are there.")


@pytest.mark.parametrize("options", [{"radius": 0.001}, {"radius": "logdet", "noise": 0.001, "norm": 0.001}])
def test_a_radius_that_is_far_too_small_is_found(world, options):
    policy = made_policy(world, **options)
    finding = found(world, play(world, policy), policy)["radius"]
    assert finding.level == "problem"


def test_a_radius_that_is_much_too_large_is_found_where_it_makes_the_policy_explore(world):
    policy = C2UCB(n_features=len(world.names), radius=300.0, seed=0)
    finding = found(world, play(world, policy), policy)["radius"]
    assert finding.level == "look"
    assert "exploration" in finding.sentence


def late_if_nothing(rewards):
    return np.where(rewards > 0, 2.0, 9.0) + np.linspace(0, 1, rewards.size)


@pytest.mark.parametrize(
    ("settings", "level"),
    [({"learn_at_once": True}, "problem"), ({"missing": None}, "look"), ({}, "fine")],
    ids=["at once", "unknown", "when the window closes"],
)
def test_a_delay_that_depends_on_the_reward_matters_where_it_biases_the_model(world, settings, level):
    policy = made_policy(world)
    records = play(world, policy, delays=late_if_nothing)
    finding = found(world, records, policy, made_settings(**settings))["delays"]
    assert finding.level == level
    assert "came first is higher" in finding.sentence


def test_outcomes_that_never_came_count_as_coming_when_the_window_closed(world):
    policy = made_policy(world)
    records = []
    for record in play(world, policy):
        came = record.rewards > 0
        records.append(replace(record, came=came, received_at=np.where(came, record.received_at, np.nan)))
    assert found(world, records, policy, made_settings(learn_at_once=True))["delays"].level == "problem"


def test_outcomes_that_come_in_one_file_have_no_early_ones(world):
    policy = made_policy(world)
    records = play(world, policy, delays=lambda rewards: np.full(rewards.size, 7.0))
    assert "came equally soon" in found(world, records, policy)["delays"].sentence


def leaking(values):
    def features(t, people, X, rewards):
        X = X.copy()
        X[:, 1] = values(rewards) / np.sqrt(X.shape[1])
        return X

    return features


LEAKS = {
    "the reward itself": lambda rewards: rewards,
    "nearly the reward": lambda rewards: rewards + 0.1 * np.sin(np.arange(rewards.size)),
    "always more after a purchase": lambda rewards: (1 + rewards * 9) * np.linspace(0.1, 1, rewards.size) / 10,
    "a mark of some who bought": lambda rewards: rewards * (np.arange(rewards.size) % 4 == 0),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_a_column_that_is_known_only_afterwards_is_found(world, leak):
    policy = made_policy(world)
    finding = found(world, play(world, policy, features=leaking(LEAKS[leak])), policy)["leakage"]
    assert finding.level == "problem"
    assert "`number 1`" in finding.sentence
    assert "`leave_out`" in finding.repair


def test_with_few_outcomes_the_findings_say_that_nothing_was_checked(world):
    policy = made_policy(world)
    findings = found(world, play(world, policy, rounds=1, k=20, holdout=5), policy)
    assert all(each.level == "fine" and not each.checked for each in findings.values())


def test_an_audit_before_the_first_outcomes_says_that_nothing_was_checked(world):
    policy = made_policy(world)
    record = play(world, policy, rounds=1)[0]
    for records in ([], [opened(record, np.zeros(record.ids.size, dtype=bool))]):
        assert not any(each.checked for each in found(world, records, policy).values())


def test_open_rounds_and_people_without_contact_do_not_count(world):
    policy = made_policy(world)
    records = play(world, policy)
    nobody = np.full(records[0].ids.size, "no-contact")
    strange = replace(records[0], shares=nobody, rewards=np.full(nobody.size, 1e6))
    half = np.arange(nobody.size) % 2 == 0
    still_open = opened(replace(records[0], rewards=np.full(nobody.size, 1e6)), half)
    more = [*records, strange, still_open]
    before, after = found(world, records, policy), found(world, more, policy)
    assert before == {**after, "shocks": before["shocks"]}


def test_equal_rewards_and_constant_columns_do_no_harm(world):
    policy = made_policy(world)
    records = [replace(record, rewards=np.zeros(record.ids.size)) for record in play(world, policy)]
    findings = found(world, records, policy)
    assert all(each.level == "fine" for name, each in findings.items() if name != "radius")
    assert not findings["leakage"].checked


def test_a_name_with_backquotes_does_not_break_the_sentence(world):
    policy = made_policy(world)
    records = play(world, policy, features=leaking(lambda rewards: rewards))
    world.names[1] = "a`b"
    assert "`a'b`" in found(world, records, policy)["leakage"].sentence


def test_findings_can_be_written_as_json():
    finding = Finding(name="cap", level="fine", sentence="Fine.")
    assert finding.to_dict()["level"] == "fine"


def test_many_outcomes_are_looked_at_in_a_sample_of_whole_people(world, monkeypatch):
    monkeypatch.setattr(_audit_data, "MOST_ROWS", 300)
    records = play(world, made_policy(world))
    rows = gather(records, len(world.names)).rows
    everybody = _everybody(records, world)
    assert 100 < rows.n <= 300
    people, counts = np.unique(rows.person, return_counts=True)
    assert dict(zip(people.tolist(), counts.tolist(), strict=True)).items() <= everybody.items()


def _everybody(records, world):
    rows = [gather([record], len(world.names)).rows for record in records]
    monkeyed = np.concatenate([each.person for each in rows])
    people, counts = np.unique(monkeyed, return_counts=True)
    return dict(zip(people.tolist(), counts.tolist(), strict=True))


def test_the_score_of_a_further_column_is_that_of_plain_least_squares(world):
    rows = gather(play(world, made_policy(world)), len(world.names)).rows
    extra = np.column_stack([rows.X[:, 1] ** 2, np.cos(rows.delay)])
    added = WithinRounds.fit(rows).test(extra)
    rounds = np.eye(rows.period.max() + 1)[rows.period]
    base = np.hstack([rows.X, rounds])
    residuals = rows.rewards - base @ np.linalg.lstsq(base, rows.rewards, rcond=1e-6)[0]
    for j in range(2):
        z = extra[:, j] - base @ np.linalg.lstsq(base, extra[:, j], rcond=1e-6)[0]
        parts = {}
        for person, part in zip(rows.person.tolist(), (z * residuals).tolist(), strict=True):
            parts[person] = parts.get(person, 0.0) + part
        clustered = sum(part**2 for part in parts.values())
        variance = residuals @ residuals / (rows.n - rows.X.shape[1] - rounds.shape[1])
        expected = z @ residuals / np.sqrt(max(clustered, variance * (z @ z)))
        assert added.z[j] == pytest.approx(expected, rel=1e-6)
        both = np.column_stack([base, extra[:, j]])
        rest = rows.rewards - both @ np.linalg.lstsq(both, rows.rewards, rcond=1e-6)[0]
        assert added.gain[j] == pytest.approx(residuals @ residuals - rest @ rest, rel=1e-6)


def test_a_column_that_the_features_hold_already_is_not_looked_at(world):
    rows = gather(play(world, made_policy(world)), len(world.names)).rows
    added = WithinRounds.fit(rows).test(rows.X[:, :3] @ np.array([[1.0, 0.0], [0.5, 0.0], [0.0, 2.0]]))
    assert added.n_usable == 0
    assert not added.z.any()


def test_the_test_of_shocks_is_the_score_test_of_one_column_for_each_round(world):
    records = play(world, made_policy(world), **with_shocks(world, 0.1))
    evidence = gather(records, len(world.names))
    rows = evidence.rows
    X, rounds = rows.X, np.eye(len(records))[rows.period]
    residuals = rows.rewards - X @ np.linalg.lstsq(X, rows.rewards, rcond=1e-6)[0]
    left = rounds - X @ np.linalg.lstsq(X, rounds, rcond=1e-6)[0]
    own = np.array([(residuals[rows.period == t] ** 2).mean() for t in range(len(records))])
    common = residuals @ residuals / (rows.n - X.shape[1])
    covariance = left.T @ (left * np.maximum(own, common)[rows.period][:, None])
    score = rounds.T @ residuals
    p = chi2.sf(score @ np.linalg.pinv(covariance, rcond=1e-6) @ score, len(records) - 1)
    above, below = (check_shocks(evidence, made_settings(), CAMPAIGN, p * factor).level for factor in (1.001, 0.999))
    assert above != "fine"
    assert below == "fine"


def test_critical_values_and_chances_agree():
    assert chance(critical(0.01, 1), 1) == pytest.approx(0.01)
    assert chance(critical(0.01, 50), 50) == pytest.approx(0.01, rel=0.01)
    assert chance(0.0, 5) == pytest.approx(1.0)


def test_a_policy_of_another_kind_can_be_audited(world):
    policy = CappedC2UCB(n_features=len(world.names), norm=1.0, seed=0)
    assert found(world, play(world, policy), policy)["radius"].level == "fine"
