from itertools import combinations

import numpy as np
import pytest

from armful import C2UCB, AtMost, CappedC2UCB, Diverse, Excluding, NestedQuotas, OneOf, Quotas, TopK, overlapping_quotas


def chosen(constraint, scores, **options):
    """A choice whose scores are the given ones: one feature for each arm, learned so often that there is no doubt."""
    n = len(scores)
    policy = C2UCB(n_features=n, radius=0.0, seed=0)
    policy.learn(np.eye(n), scores, weights=np.full(n, 1e9))
    return policy.choose(np.eye(n), constraint, **options)


def test_every_chosen_arm_is_explained_by_what_was_added_up():
    policy = CappedC2UCB(n_features=2, cap=1.0, radius=1.0, seed=0)
    policy.learn([[1.0, 0.0]] * 9, [0.5] * 9)
    X = np.array([[1.0, 0.0], [0.0, 3.0], [0.5, 0.0]])
    choice = policy.choose(X, TopK(2))
    records = {record["arm"]: record for record in choice.explain().arms}
    assert set(records) == {0, 1}
    assert records[1]["cap"] == 1.0
    assert records[1]["score"] == pytest.approx(1.0, rel=1e-6)
    assert records[1]["mean"] + records[1]["bonus"] > 1.0
    assert records[0]["score"] == pytest.approx(records[0]["mean"] + records[0]["bonus"])
    assert records[0]["runner_up"] == [2]
    assert records[0]["loss"] == pytest.approx(records[0]["score"] - policy.scores(X, 2)[2])


def test_the_runner_up_comes_from_the_same_group_where_the_group_decides():
    quotas = Quotas(["a", "a", "b", "b"], exactly=1)
    explained = chosen(quotas, [3.0, 2.5, 9.0, 1.0]).explain()
    assert {r["arm"]: (r["runner_up"], pytest.approx(r["loss"])) for r in explained.arms} == {
        0: ([1], 0.5),
        2: ([3], 8.0),
    }


def test_an_arm_without_substitute_says_so():
    (record,) = chosen(OneOf([[0]]), [1.0, 2.0]).explain().arms
    assert record["runner_up"] is None
    assert record["loss"] is None


@pytest.mark.parametrize(
    ("constraint", "prices"),
    [
        (TopK(2), {"exactly 2": 3.0}),
        (AtMost(2), {"at most 2": 3.0}),
        (AtMost(5), {}),
        (Quotas([0, 0, 0, 1, 1], at_most={0: 1}), {"at most 1 from 0": 4.0}),
        (Quotas([0, 0, 0, 1, 1], at_least={1: 2}, total=3), {"at least 2 from 1": 4.0 + 1.0, "exactly 3 in all": 4.0}),
        (Quotas([0, 0, 0, 1, 1], exactly={0: 1, 1: 1}), {"exactly 1 from 0": 4.0, "exactly 1 from 1": 0.0}),
        (Quotas([0, 0, 0, 1, 1], at_least={1: 1}, at_most={1: 1}), {"exactly 1 from 1": 0.0}),
        (Excluding(TopK(1), [0]), {"exactly 1": 3.0}),
        (
            NestedQuotas({"r": [0, 0, 0, 1, 1], "c": [0, 0, 1, 2, 2]}, at_most={"r": 2, "c": 1}),
            {"at most 1 from c 0": 1.0},
        ),
        (
            NestedQuotas({"r": [0, 0, 0, 1, 1], "c": [0, 0, 1, 2, 2]}, at_least={"c": {2: 2}}),
            {"at least 2 from c 2": 1.0},
        ),
    ],
)
def test_a_price_is_what_choosing_anew_with_the_limit_loosened_gains(constraint, prices):
    """Worked out by hand for scores 5, 4, 3, 2, -1."""
    choice = chosen(constraint, [5.0, 4.0, 3.0, 2.0, -1.0])
    found = {record["limit"]: pytest.approx(record["price"], abs=1e-5) for record in choice.explain().prices}
    for limit, price in prices.items():
        assert found[limit] == price
    for limit in constraint.limits(choice.indices):
        again = limit.loosened.best(choice._problem.scores.value).value
        assert found[limit.name] == again - choice.value


def test_explained_under_an_objective_it_is_chosen_anew_under_the_objective():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 3))
    policy = C2UCB(n_features=3, radius=0.5, seed=0)
    objective = Diverse(weight=2.0, scale=0.5)
    choice = policy.choose(X, TopK(3), objective=objective)
    explained = choice.explain()
    assert len(explained.arms) == 3
    assert all(record["loss"] > -1e-6 for record in explained.arms)
    (price,) = explained.prices
    assert price["price"] > 0


def test_the_table_has_a_line_for_each_record():
    choice = chosen(Quotas(["a", "a", "b"], at_most=1), [1.0, 2.0, 3.0])
    explained = choice.explain()
    text = str(explained)
    assert len(text.splitlines()) == 2 + len(explained.arms) + 1 + 2 + len(explained.prices)
    assert "runner_up" in text
    assert "at most 1 from 'a'" in text
    assert str(chosen(AtMost(1), [-1.0, -2.0]).explain()) == "no arm was chosen"


def test_no_more_is_explained_than_asked_for():
    choice = chosen(TopK(4), [1.0, 2.0, 3.0, 4.0, 5.0])
    assert len(choice.explain(most=2).arms) == 2


def test_what_if_in_two_lines():
    scores = np.array([5.0, 4.0, 3.0, 2.0])
    house = Quotas(["n", "n", "s", "s"], at_most={"n": 1}, total=2)
    assert house.with_(at_most={"n": 2}).best(scores).value - house.best(scores).value == 1.0
    assert TopK(2).with_(k=3) == TopK(3)
    with pytest.raises(ValueError, match="Quotas has no option 'colour'"):
        house.with_(colour=1)


def test_small_losses_beside_a_huge_score_are_not_lost():
    explained = chosen(TopK(3), [1e10, 5.0, 4.0, 3.0, 2.0]).explain()
    losses = {record["arm"]: record["loss"] for record in explained.arms}
    assert losses[1] == pytest.approx(2.0, rel=1e-4)
    assert losses[2] == pytest.approx(1.0, rel=1e-4)
    assert explained.prices[0]["price"] == pytest.approx(3.0, rel=1e-4)


def test_of_equally_good_substitutes_the_one_that_changes_least_is_named():
    policy = CappedC2UCB(n_features=2, cap=1.0, radius=100.0, seed=0)
    for record in policy.choose(np.ones((30, 2)), TopK(10)).explain().arms:
        assert len(record["runner_up"]) == 1
        assert record["loss"] == 0.0


def limits_of(constraint, scores):
    choice = chosen(constraint, scores)
    return sorted(record["limit"] for record in choice.explain().prices)


@pytest.mark.parametrize(
    ("constraint", "names"),
    [
        (NestedQuotas({"r": [0, 0, 1, 1, 1], "c": [0, 1, 2, 2, 3]}, at_most={"c": 1}), ["at most 1 from c 2"]),
        (
            NestedQuotas({"r": [0, 0, 1, 1, 1], "c": [0, 1, 2, 2, 3]}, at_least={"c": {2: 2}}, at_most={"r": 2}),
            ["at least 2 from c 2", "at most 2 from r 1"],
        ),
        (
            Quotas([0, 0, 0, 1, 1], at_least={1: 1}, at_most={0: 2}, total=3),
            ["at least 1 from 1", "at most 2 from 0", "exactly 3 in all"],
        ),
        (Quotas([0, 0, 0, 1, 1], at_most={0: 3, 1: 2}), []),
        (Quotas([0, 0, 0, 1, 1], total=5), []),
    ],
)
def test_just_the_limits_that_bind_are_named(constraint, names):
    found = limits_of(constraint, [5.0, 4.0, 3.0, 2.0, 1.0])
    assert [name for name in found if name in names] == names
    assert set(found) - set(names) <= {"at least 5 in all"}


@pytest.mark.parametrize(
    ("constraint", "names"),
    [
        (Quotas([0, 0, 0, 1, 1], exactly={0: 2, 1: 1}), ["exactly 1 from 1", "exactly 2 from 0"]),
        (Quotas([0, 0, 0, 1, 1], at_least={0: 2}, at_most={0: 2}), ["exactly 2 from 0"]),
        (Quotas([0, 0, 0, 1, 1], total=2), ["exactly 2 in all"]),
        (
            NestedQuotas({"r": [0, 0, 0, 1, 1], "c": ["a", "a", "a", "b", "c"]}, at_most={"r": 1, "c": 1}),
            ["at most 1 from c 'a' (all of r 0)", "at most 1 from r 1"],
        ),
        (
            NestedQuotas({"s": [0] * 5, "r": [0] * 5, "c": [0, 0, 0, 1, 1]}, at_most={"s": 2, "r": 2, "c": 2}),
            ["at most 2 from c 0", "at most 2 from r 0 (all of s 0)"],
        ),
        (
            overlapping_quotas({"r": [0, 0, 0, 1, 1]}, at_least={"r": {0: 1}}, at_most={"r": {0: 1}}, total=2),
            ["r 0 exactly 1", "total exactly 2"],
        ),
    ],
)
def test_one_limit_is_printed_once(constraint, names):
    choice = chosen(constraint, [5.0, 4.0, 3.0, 2.0, 1.0])
    found = {record["limit"]: record["price"] for record in choice.explain().prices}
    assert sorted(found) == names
    scores = choice._problem.scores.value
    sets = [list(each) for size in range(6) for each in combinations(range(5), size)]
    for limit in constraint.limits(choice.indices):
        most = max(scores[each].sum() for each in sets if limit.loosened.violation(each) == 0.0)
        assert found[limit.name] == pytest.approx(most - choice.value, abs=1e-9)


@pytest.mark.parametrize("seed", range(25))
def test_prices_of_nested_quotas_are_those_of_enumeration(seed):
    rng = np.random.default_rng(seed)
    city = rng.integers(3, size=7)
    least = {"c": {int(city[0]): 1}, "r": {int(city[0] % 2): 1}} if seed % 2 else None
    quotas = NestedQuotas({"r": city % 2, "c": city}, at_least=least, at_most={"r": 2, "c": 1}, total=(0, 2))
    scores = rng.standard_normal(7) - 2.0 * (city == city[0])
    choice = chosen(quotas, scores)
    values = choice._problem.scores.value
    sets = [list(each) for size in range(8) for each in combinations(range(7), size)]
    for limit in quotas.limits(choice.indices):
        most = max(values[each].sum() for each in sets if limit.loosened.violation(each) == 0.0)
        (price,) = [record["price"] for record in choice.explain().prices if record["limit"] == limit.name]
        assert price == pytest.approx(most - choice.value, abs=1e-9)


def test_how_many_must_be_a_number():
    with pytest.raises(ValueError, match="most must be"):
        chosen(TopK(1), [1.0, 2.0]).explain(most=-1)
