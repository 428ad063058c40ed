from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armful import InfeasibleError, NestedQuotas, Quotas
from armful.testing import RankedConstraintContract
from armful.testing._expectations import FALSE_ALARM, tail_bound


def random_groups(rng):
    groups = rng.integers(0, 3, int(rng.integers(1, 8))).tolist()
    return groups, {label: groups.count(label) for label in set(groups)}


class TestExactlyContract(RankedConstraintContract):
    def constraint(self, rng):
        groups, sizes = random_groups(rng)
        exactly = {label: int(rng.integers(0, size + 1)) for label, size in sizes.items()}
        exactly[groups[0]] = max(exactly[groups[0]], 1)
        return Quotas(groups, exactly=exactly), len(groups)


class TestBoundsAndTotalContract(RankedConstraintContract):
    def constraint(self, rng):
        groups, sizes = random_groups(rng)
        at_least = {label: int(rng.integers(0, size + 1)) for label, size in sizes.items()}
        at_most = {label: max(1, int(rng.integers(at_least[label], size + 1))) for label, size in sizes.items()}
        total = max(1, int(rng.integers(sum(at_least.values()), sum(at_most.values()) + 1)))
        return Quotas(groups, at_least=at_least, at_most=at_most, total=total), len(groups)


class TestRangeOfTotalsContract(RankedConstraintContract):
    def constraint(self, rng):
        groups, sizes = random_groups(rng)
        at_least = {groups[0]: int(rng.integers(0, 2))}
        most = sum(min(size, 3) for size in sizes.values())
        low = int(rng.integers(0, most + 1))
        high = int(rng.integers(max(low, 1), len(groups) + 2)) if max(low, 1) < len(groups) + 2 else low
        return Quotas(groups, at_least=at_least, at_most=3, total=(low, high)), len(groups)


class TestNoTotalContract(RankedConstraintContract):
    def constraint(self, rng):
        groups, sizes = random_groups(rng)
        at_least = {label: int(rng.integers(0, size + 1)) for label, size in sizes.items()}
        return Quotas(groups, at_least=at_least, at_most=max(2, *at_least.values())), len(groups)


class TestAtMostAloneContract(RankedConstraintContract):
    def constraint(self, rng):
        groups, _ = random_groups(rng)
        return Quotas(groups, at_most=int(rng.integers(1, 3))), len(groups)


class TestTotalAloneContract(RankedConstraintContract):
    def constraint(self, rng):
        groups, _ = random_groups(rng)
        return Quotas(groups, total=int(rng.integers(1, len(groups) + 1))), len(groups)


@st.composite
def questions(draw):
    """Groups, bounds that can be met, and signed scores with ties."""
    groups = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=7))
    lower, upper = {}, {}
    for label in sorted(set(groups)):
        lower[label] = draw(st.integers(0, groups.count(label)))
        upper[label] = draw(st.integers(lower[label], groups.count(label) + 1))
    least, most = sum(lower.values()), sum(min(upper[g], groups.count(g)) for g in lower)
    low = draw(st.integers(0, most))
    high = draw(st.integers(max(low, least), len(groups) + 1))
    total = draw(st.sampled_from([None, (low, high), max(low, least)]))
    scores = draw(st.lists(st.integers(-3, 3).map(lambda i: i / 2), min_size=len(groups), max_size=len(groups)))
    return groups, lower, upper, total, scores


def allowed_by_hand(groups, lower, upper, total):
    low, high = (0, len(groups)) if total is None else (total, total) if isinstance(total, int) else total
    for size in range(len(groups) + 1):
        for members in combinations(range(len(groups)), size):
            taken = [groups[i] for i in members]
            if low <= size <= high and all(lower[g] <= taken.count(g) <= upper[g] for g in lower):
                yield members


@settings(max_examples=300, deadline=None)
@given(questions())
def test_the_answer_is_the_best_of_all_subsets(question):
    groups, lower, upper, total, scores = question
    allowed = list(allowed_by_hand(groups, lower, upper, total))
    if total == 0 or max(map(len, allowed)) == 0:
        with pytest.raises(ValueError, match=r"empty set|at least 1"):
            Quotas(groups, at_least=lower, at_most=upper, total=total)
        return
    constraint = Quotas(groups, at_least=lower, at_most=upper, total=total)
    answer = constraint.best(scores)
    assert tuple(answer.indices.tolist()) in allowed
    assert answer.value == max(sum(scores[i] for i in members) for members in allowed)  # halves: exact
    assert constraint.k == max(map(len, allowed))
    for size in range(len(groups) + 1):
        for members in combinations(range(len(groups)), size):
            assert (constraint.violation(members) == 0.0) == (members in allowed)


@pytest.mark.parametrize(
    "groups",
    [
        ["north", "south", "north", "east"],
        [1, 2, 1, 3],
        [("a", 1), ("b", 2), ("a", 1), ("c", 3)],
        [None, "x", None, 7],
        np.array(["north", "south", "north", "east"]),
        np.array([5, -2, 5, 9]),
        np.array([5, 2, 5, 9], dtype=np.uint8),
        np.array([True, False, True, False]),
        np.array([b"n", b"s", b"n", b"e"]),
        np.array([None, "x", None, 7], dtype=object),
        np.array([0.5, 1.5, 0.5, 2.5]),
        [1.5, "1.5", 1.5, frozenset({1})],
        "abac",
    ],
    ids=lambda groups: type(groups).__name__ + str(getattr(groups, "dtype", "")),
)
def test_labels_may_be_anything_hashable(groups):
    labels = list(groups)
    for given_as in (groups, iter(labels)):
        constraint = Quotas(given_as, exactly={labels[0]: 1, labels[1]: 1})
        assert constraint.best([1.0, 5.0, 2.0, -9.0]).indices.tolist() == [1, 2]
        assert constraint.labels[:2] == labels[:2]


def test_a_group_that_exactly_does_not_name_gives_none():
    assert Quotas("aab", exactly={"a": 1}).best([1.0, 2.0, 9.0]).indices.tolist() == [1]


def test_one_number_holds_for_every_group():
    assert Quotas("aabb", exactly=1).best([1.0, 2.0, -4.0, -3.0]).indices.tolist() == [1, 3]
    assert Quotas("aabb", at_least=1).best([-1.0, -2.0, 4.0, 0.0]).indices.tolist() == [0, 2, 3]


def test_without_a_total_no_negative_arm_is_taken_beyond_what_is_asked_for():
    assert Quotas("aabb", at_least={"a": 1}).best([-1.0, -2.0, 4.0, -0.5]).indices.tolist() == [0, 2]


def test_equal_arms_are_taken_equally_often_within_groups_and_between():
    """Two of the three a, and one of the remaining four. False alarms: 1e-6 by Chernoff, any seed."""
    constraint, rng, draws = Quotas("baabacd", at_least={"a": 2}, total=3), np.random.default_rng(0), 900
    taken = np.zeros(7, dtype=int)
    for _ in range(draws):
        taken[constraint.best(np.full(7, -2.0), rng=rng).indices] += 1
    expected = [1 / 5, 2 / 3 + 1 / 15, 2 / 3 + 1 / 15, 1 / 5, 2 / 3 + 1 / 15, 1 / 5, 1 / 5]
    chances = [tail_bound(int(n), draws, p) for n, p in zip(taken, expected, strict=True)]
    assert 2 * 7 * min(chances) >= FALSE_ALARM


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"exactly": {"north": 3}}, "group 'north' needs exactly 3 arms, 2 are there"),
        ({"at_least": {"north": 3}}, "group 'north' needs at least 3 arms, 2 are there"),
        ({"at_least": 2}, "group 'south' needs at least 2 arms, 1 are there"),
        ({"at_least": {"west": 1}}, "group 'west' needs at least 1 arm, none are there"),
        ({"exactly": {"west": 2}}, "group 'west' needs exactly 2 arms, none are there"),
        ({"at_least": {"north": 2}, "at_most": 1}, "group 'north' needs at least 2 arms and at most 1"),
        ({"at_most": 1, "total": 3}, "a total of 3 arms is asked for, the groups allow at most 2"),
        ({"at_most": 1, "total": (3, 9)}, "a total of 3 arms is asked for, the groups allow at most 2"),
        ({"at_least": 1, "total": 1}, "a total of 1 arms is asked for, the groups need at least 2"),
    ],
)
def test_what_cannot_be_met_is_named_with_its_numbers(options, message):
    with pytest.raises(InfeasibleError) as refusal:
        Quotas(["north", "north", "south"], **options)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "Quotas needs exactly, at_least, at_most or total"),
        ({"exactly": 1, "total": 2}, "Quotas takes exactly, or at_least, at_most and total, not both"),
        ({"exactly": 1, "at_most": 2}, "Quotas takes exactly, or at_least, at_most and total, not both"),
        ({"exactly": 1, "at_least": 2}, "Quotas takes exactly, or at_least, at_most and total, not both"),
        ({"exactly": -1}, "exactly must be a whole number of at least 0, got -1"),
        ({"exactly": 1.0}, "exactly must be a whole number of at least 0, got 1.0"),
        ({"at_least": {"a": 0.5}}, "at_least of group 'a' must be a whole number of at least 0, got 0.5"),
        ({"at_most": {"a": -2}}, "at_most of group 'a' must be a whole number of at least 0, got -2"),
        ({"at_most": {"z": -2}}, "at_most of group 'z' must be a whole number of at least 0, got -2"),
        ({"total": 0}, "total must be a whole number of at least 1, got 0"),
        ({"total": 1.5}, "total must be a whole number of at least 1, got 1.5"),
        ({"total": (1, 2, 3)}, "total must be a number or a pair (low, high), got (1, 2, 3)"),
        ({"total": (2, 1)}, "total must be a pair (low, high) with low <= high, got (2, 1)"),
        ({"total": (-1, 1)}, "total must be a whole number of at least 0, got -1"),
        ({"total": (0, 0)}, "Quotas allows the empty set only; raise a quota or the total"),
        ({"exactly": 0}, "Quotas allows the empty set only; raise a quota or the total"),
        ({"at_most": 0}, "Quotas allows the empty set only; raise a quota or the total"),
    ],
)
def test_every_wrong_option_gets_one_sentence(options, message):
    with pytest.raises(ValueError) as refusal:
        Quotas(["a", "a", "b"], **options)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([], "groups must be one label for each arm, got none"),
        (np.array([], dtype=int), "groups must be one label for each arm, got none"),
        ([["a"], ["b"]], "groups must be hashable labels, one for each arm"),
        (np.zeros((2, 2)), "groups must be one label for each arm, got an array of shape (2, 2)"),
        (5, "groups must be hashable labels, one for each arm"),
    ],
)
def test_groups_that_are_no_labels_are_refused(groups, message):
    with pytest.raises(ValueError) as refusal:
        Quotas(groups, at_most=1)
    assert str(refusal.value) == message


@pytest.mark.parametrize("n_scores", [0, 2, 4])
def test_scores_for_another_number_of_arms_are_refused(n_scores):
    with pytest.raises(ValueError, match=rf"^Quotas has groups for 3 arms, got {n_scores}$"):
        Quotas("aab", total=1).best(np.ones(n_scores))


@pytest.mark.parametrize(
    ("indices", "violation"), [([0, 2], 0.0), ([0], 2.0), ([0, 1, 2], 2.0), ([2, 3], 2.0), ([0, 0], 3.0)]
)
def test_a_violation_counts_arms_by_group_and_in_all(indices, violation):
    assert Quotas("aabb", exactly=1).violation(indices) == violation


def test_arms_that_are_not_there_are_refused():
    with pytest.raises(ValueError, match=r"^indices must be from 0 to 3, got"):
        Quotas("aabb", exactly=1).violation([0, 4])


def test_a_hundred_thousand_arms_are_chosen_as_group_by_group():
    rng = np.random.default_rng(0)
    groups, scores = rng.integers(0, 100, 100_000), rng.standard_normal(100_000)
    answer = Quotas(groups, exactly=7).best(scores)
    literal = [np.flatnonzero(groups == g)[np.argsort(-scores[groups == g])[:7]] for g in range(100)]
    assert answer.indices.tolist() == np.sort(np.concatenate(literal)).tolist()


def test_a_quota_for_a_group_that_no_arm_is_in_warns():
    with pytest.warns(UserWarning, match="at_most names group 'nroth', which no arm is in"):
        Quotas(["north", "south"], at_most={"nroth": 0})


def test_the_message_has_the_number_that_was_asked_for():
    with pytest.raises(InfeasibleError, match="needs at least 1000 arms, 2 are there"):
        Quotas(["a", "b", "a"], at_least={"a": 1000})


def test_changing_what_was_given_changes_nothing():
    most = {"a": 1}
    quotas = Quotas("aab", at_most=most)
    most["a"] = 2
    assert quotas.with_(total=None).k == 2


def test_levels_without_a_mapping_are_refused():
    with pytest.raises(ValueError, match="at_most must be a mapping by level"):
        NestedQuotas({"r": [0, 1]}, at_most=1)
