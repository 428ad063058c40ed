import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armful import NestedQuotas
from armful.campaigns.holdout._splitting import GroupQuota, split_round
from armful.errors import InfeasibleError

REGION_OF_CITY = np.array([0, 0, 1, 1, 1, 2])


def quota(column, groups, at_least, at_most):
    labels = [f"{column}{i}" for i in range(len(at_least))]
    return GroupQuota(
        column=column,
        labels=labels,
        groups=np.asarray(groups),
        at_least=np.asarray(at_least),
        at_most=np.asarray(at_most),
    )


def constraint(quotas, people, total, at_least, at_most):
    """The quotas among some people, or the error that says why no set of them is allowed; None for an empty set."""
    if total == 0:
        assert all(not bound.any() for bound in at_least)
        return None
    by_label = [
        {
            each.column: dict(zip(each.labels, bound.tolist(), strict=True))
            for each, bound in zip(quotas, bounds, strict=True)
        }
        for bounds in (at_least, at_most)
    ]
    present = [set(each.groups[people].tolist()) for each in quotas]
    for bounds in by_label:  # armful warns of a bound on a group in which nobody is
        for each, groups in zip(quotas, present, strict=True):
            for i, label in enumerate(each.labels):
                if i not in groups:
                    assert bounds is not by_label[0] or bounds[each.column][label] == 0, "infeasible"
                    del bounds[each.column][label]
    labels = {each.column: np.array(each.labels)[each.groups[people]] for each in quotas}
    return NestedQuotas(labels, at_least=by_label[0], at_most=by_label[1], total=total)


@st.composite
def rounds(draw):
    n = draw(st.integers(1, 40))
    city = np.array(draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)))
    shares = np.array(draw(st.lists(st.sampled_from([0, 0, 0, 1, 2]), min_size=n, max_size=n)), dtype=np.uint8)
    quotas = []
    for column, groups, n_groups in (("region", REGION_OF_CITY[city], 3), ("city", city, 6)):
        least = draw(st.lists(st.integers(0, 3), min_size=n_groups, max_size=n_groups))
        more = draw(st.lists(st.integers(0, 8), min_size=n_groups, max_size=n_groups))
        quotas.append(quota(column, groups, least, np.add(least, more)))
    return draw(st.integers(1, 20)), shares, quotas, draw(st.floats(0, 1, exclude_max=True))


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(rounds())
def test_parts_are_feasible_and_add_up_exactly_when_the_whole_is_feasible(case):
    k, shares, quotas, offset = case
    contacts = np.flatnonzero(shares != 2)
    try:
        if not contacts.size:
            raise InfeasibleError("nobody")
        constraint(quotas, contacts, k, [each.at_least for each in quotas], [each.at_most for each in quotas])
    except (InfeasibleError, AssertionError):
        with pytest.raises(InfeasibleError):
            split_round(k, shares, quotas, offset=offset)
        return
    split = split_round(k, shares, quotas, offset=offset)
    assert split.k[:2].sum() == k
    for each, low, high in zip(quotas, split.at_least, split.at_most, strict=True):
        assert np.all(low[:, :2].sum(axis=1) >= each.at_least)
        assert np.all(high[:, :2].sum(axis=1) <= each.at_most)
    for share in range(3):
        people = np.flatnonzero(shares == share)
        constraint(
            quotas,
            people,
            int(split.k[share]),
            [low[:, share] for low in split.at_least],
            [high[:, share] for high in split.at_most],
        )


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(rounds())
def test_one_column_is_split_pro_rata_rounded_down_or_up(case):
    _, shares, quotas, offset = case
    cities = quotas[1]
    sizes = np.array([[np.sum((cities.groups == city) & (shares == share)) for share in range(3)] for city in range(6)])
    people = sizes[:, :2].sum(axis=1)
    least = np.minimum(cities.at_least, people)
    if not people.sum():
        return
    feasible = quota("city", cities.groups, least, np.maximum(cities.at_most, least))
    k = max(int(least.sum()), 1)
    if k > np.minimum(feasible.at_most, people).sum():
        return
    (low,) = split_round(k, shares, [feasible], offset=offset).at_least
    exact = least[:, None] * sizes / np.maximum(people, 1)[:, None]
    assert np.all(np.abs(low - exact) < 1)
    assert np.array_equal(low[:, :2].sum(axis=1), least)
    assert np.all(np.abs(low.sum(axis=0) - exact.sum(axis=0)) < 1 + 1e-9)


def test_without_quotas_the_contacts_are_in_the_ratio_of_the_people():
    shares = np.repeat([0, 1, 2], [900, 50, 100]).astype(np.uint8)
    assert split_round(95, shares).k.tolist() == [90, 5, 10]
    assert split_round(950, shares).k.tolist() == [900, 50, 100]
    assert split_round(10, shares).k.tolist() == [9, 1, 1]


def test_many_small_groups_give_the_holdout_its_part():
    """One contact from each of 1,000 groups of 20, of whom one is held out: rounded alone, each group gives none."""
    groups = np.repeat(np.arange(1000), 20)
    shares = (np.arange(20_000) % 20 == 0).astype(np.uint8)
    one_each = quota("city", groups, np.ones(1000, dtype=int), np.ones(1000, dtype=int))
    split = split_round(1000, shares, [one_each])
    assert split.k.tolist() == [950, 50, 0]
    assert np.array_equal(split.at_least[0], split.at_most[0])


def test_offsets_over_the_whole_range_give_every_group_its_exact_part_on_average():
    rng = np.random.default_rng(0)
    groups, shares = rng.integers(0, 7, 300), (rng.random(300) < 0.2).astype(np.uint8)
    wanted = np.array([3, 1, 4, 1, 5, 2, 6])
    cities = quota("city", groups, wanted, wanted)
    n = 1000
    mean = np.mean([split_round(22, shares, [cities], offset=(i + 0.5) / n).at_least[0] for i in range(n)], axis=0)
    sizes = np.array([[np.sum((groups == g) & (shares == s)) for s in range(2)] for g in range(7)])
    assert np.allclose(mean[:, :2], wanted[:, None] * sizes / sizes.sum(axis=1, keepdims=True), atol=2e-3)


@pytest.mark.parametrize(
    ("k", "quotas", "sentence"),
    [
        (9, [], "k = 9 is more than the 8 people who may be contacted"),
        (
            5,
            [quota("region", [0] * 4 + [1] * 6, [0, 0], [2, 2])],
            "k = 5 is more than the 4 people whom the quotas allow",
        ),
        (
            2,
            [quota("region", [0] * 4 + [1] * 6, [2, 2], [9, 9])],
            "k = 2 is less than the 4 people whom the quotas need",
        ),
        (5, [quota("region", [0] * 4 + [1] * 6, [5, 0], [9, 9])], "region 'region0' needs at least 5 people, 4 can be"),
        (
            5,
            [quota("region", [0] * 4 + [1] * 6, [3, 0], [2, 9])],
            "region 'region0' needs at least 3 people and at most 2",
        ),
        (
            5,
            [quota("region", [0] * 10, [0], [3]), quota("city", [0] * 4 + [1] * 6, [2, 2], [9, 9])],
            "region 'region0' needs at least 4 people and at most 3",
        ),
    ],
)
def test_what_cannot_be_met_is_named(k, quotas, sentence):
    shares = np.array([0] * 7 + [1] + [2] * 2, dtype=np.uint8)
    with pytest.raises(InfeasibleError, match=sentence):
        split_round(k, shares, quotas)


@st.composite
def crossing_rounds(draw):
    n = draw(st.integers(1, 30))
    columns = [np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))) for _ in range(2)]
    shares = np.array(draw(st.lists(st.sampled_from([0, 0, 0, 1, 2]), min_size=n, max_size=n)), dtype=np.uint8)
    quotas = []
    for column, groups in zip(("region", "age"), columns, strict=True):
        least = draw(st.lists(st.integers(0, 2), min_size=3, max_size=3))
        more = draw(st.lists(st.integers(0, 5), min_size=3, max_size=3))
        quotas.append(quota(column, groups, least, np.add(least, more)))
    return draw(st.integers(1, 12)), shares, quotas, draw(st.floats(0, 1, exclude_max=True))


def some_set(quotas, people, total, at_least, at_most):
    """Whether some set of so many people keeps the bounds: by trying all numbers of people from each combination."""
    cells, sizes = np.unique(np.stack([each.groups[people] for each in quotas], axis=1), axis=0, return_counts=True)
    low = [np.array(bound) for bound in at_least]
    high = [np.array(bound) for bound in at_most]

    def possible(i, left, taken):
        if i == len(cells):
            return left == 0 and all(np.all(t >= bound) for t, bound in zip(taken, low, strict=True))
        for count in range(min(int(sizes[i]), left) + 1):
            now = [t.copy() for t in taken]
            for t, group in zip(now, cells[i], strict=True):
                t[group] += count
            if all(np.all(t <= bound) for t, bound in zip(now, high, strict=True)) and possible(
                i + 1, left - count, now
            ):
                return True
        return False

    return possible(0, total, [np.zeros(3, dtype=int), np.zeros(3, dtype=int)])


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(crossing_rounds())
def test_parts_of_columns_that_cross_are_feasible_exactly_when_the_whole_is(case):
    k, shares, quotas, offset = case
    contacts = np.flatnonzero(shares != 2)
    whole = [each.at_least for each in quotas], [each.at_most for each in quotas]
    if not some_set(quotas, contacts, k, *whole):
        with pytest.raises(InfeasibleError):
            split_round(k, shares, quotas, offset=offset)
        return
    split = split_round(k, shares, quotas, offset=offset)
    assert split.k[:2].sum() == k
    for each, low, high in zip(quotas, split.at_least, split.at_most, strict=True):
        assert np.all(low[:, :2].sum(axis=1) >= each.at_least)
        assert np.all(high[:, :2].sum(axis=1) <= each.at_most)
    for share in range(3):
        low, high = ([bound[:, share] for bound in bounds] for bounds in (split.at_least, split.at_most))
        assert some_set(quotas, np.flatnonzero(shares == share), int(split.k[share]), low, high)


def test_columns_that_cross_are_split_pro_rata():
    rng = np.random.default_rng(0)
    n = 20_000
    shares = rng.choice([0, 1, 2], n, p=[0.85, 0.1, 0.05]).astype(np.uint8)
    regions, ages = (
        quota("region", rng.integers(0, 4, n), [100] * 4, [400] * 4),
        quota("age", rng.integers(0, 5, n), [50] * 5, [300] * 5),
    )
    split = split_round(1000, shares, [regions, ages])
    assert split.k.tolist() == pytest.approx([895, 105, 53], abs=12)
    assert split.at_most[0][:, 1].tolist() == pytest.approx([42] * 4, abs=6)
    assert split.at_least[1][:, 1].tolist() == pytest.approx([5] * 5, abs=3)


def test_columns_that_cross_and_contradict_each_other_are_named():
    shares = np.zeros(4, dtype=np.uint8)
    crossing = [quota("region", [0, 0, 1, 1], [2, 0], [2, 0]), quota("age", [0, 1, 0, 1], [0, 2], [0, 2])]
    with pytest.raises(
        InfeasibleError, match="no 2 people keep the quotas of region and age together, though each can"
    ):
        split_round(2, shares, crossing)
