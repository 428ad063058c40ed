import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from armful import InfeasibleError, NestedQuotas, Quotas
from armful.constraints import _ranks as ranks
from armful.testing import RankedConstraintContract


def random_levels(rng, n):
    city = rng.integers(4, size=n)
    return {"country": city * 0, "region": city % 2, "city": city}


def random_nested(rng, n_arms):
    """A random instance that can be met; bounds are drawn until one can."""
    groups = random_levels(rng, n_arms)
    while True:
        try:
            return NestedQuotas(
                groups,
                at_least={
                    name: {int(g): int(rng.integers(0, 3)) for g in set(groups[name].tolist())} for name in groups
                },
                at_most={"city": int(rng.integers(1, 4)), "region": int(rng.integers(1, 6))},
                total=[None, (int(rng.integers(0, 3)), int(rng.integers(3, 7))), int(rng.integers(1, n_arms))][
                    rng.integers(3)
                ],
            )
        except (InfeasibleError, ValueError):
            continue


class TestNestedQuotas(RankedConstraintContract):
    instances = 40

    def constraint(self, rng):
        n_arms = int(rng.integers(3, 9))
        return random_nested(rng, n_arms), n_arms


class TestNestedQuotasWithoutLowerBounds(RankedConstraintContract):
    def constraint(self, rng):
        n_arms = int(rng.integers(3, 9))
        return NestedQuotas(random_levels(rng, n_arms), at_most={"region": 2, "city": 1}), n_arms


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**9))
def test_it_is_the_integer_program_on_many_arms(seed):
    """Against HiGHS on up to 60 arms, with signed and tied scores."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 60))
    nested = random_nested(rng, n)
    scores = rng.standard_normal(n) if seed % 2 else rng.integers(-3, 4, n).astype(float)
    rows, lower, upper = [np.ones(n)], [nested._low], [nested._high]
    for level in nested._levels:
        for g in range(len(level.groups.labels)):
            rows.append((level.groups.of_arm == g).astype(float))
            lower.append(level.lower[g])
            upper.append(level.upper[g])
    program = milp(
        -scores,
        integrality=np.ones(n, dtype=int),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(np.array(rows), lower, upper),
        options={"mip_rel_gap": 0},
    )
    answer = nested.best(scores, rng=rng)
    assert nested.violation(answer.indices) == 0.0
    assert answer.value == pytest.approx(-program.fun, abs=1e-6)


def test_one_level_is_plain_quotas():
    rng = np.random.default_rng(0)
    groups, scores = rng.integers(5, size=200), rng.standard_normal(200)
    plain = Quotas(groups, at_least=2, at_most={0: 5, 1: 9}, total=40).best(scores)
    nested = NestedQuotas({"g": groups}, at_least={"g": 2}, at_most={"g": {0: 5, 1: 9}}, total=40).best(scores)
    assert plain.indices.tolist() == nested.indices.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": {}}, "a column of labels for each level"),
        ({"groups": [1, 2]}, "a column of labels for each level"),
        ({"groups": {"a": ["x", "x", "y"], "b": [1, 2, 2]}}, "b 2 lies in more than one a"),
        ({"groups": {"a": ["x", "x"], "b": [1]}}, "all levels must have a label for each arm"),
        ({"at_most": {"town": 1}}, "at_most names a level 'town'; there are 'region', 'city'"),
        ({"at_least": {"region": {"s": 5}}}, "region 's' needs at least 5 arms, 2 are there"),
        (
            {"at_least": {"city": 1}, "at_most": {"region": {"n": 1}}},
            "region 'n' allows at most 1 arms, its parts need at least 2",
        ),
        (
            {"at_least": {"region": {"n": 3}}, "at_most": {"city": 1}},
            "region 'n' needs at least 3 arms, its parts allow at most 2",
        ),
        ({"total": 9}, "a total of 9 arms is asked for, the groups allow at most 5"),
    ],
)
def test_what_cannot_be_met_is_said(options, message):
    groups = {"region": ["n", "n", "n", "s", "s"], "city": ["a", "a", "b", "c", "c"]}
    with pytest.raises(ValueError, match=message):
        NestedQuotas(**{"groups": groups, **options})


@pytest.mark.parametrize("seed", range(30))
def test_a_shortlist_of_many_arms_gives_the_same_set_as_all_of_them(seed, monkeypatch):
    """With and without the shortlist, bounds tight and loose, lower bounds that lie far below the best arms."""
    rng = np.random.default_rng(seed)
    n = 25_000
    city = rng.integers(60, size=n)
    scores = rng.standard_normal(n) + (city % 7 == 0) * -5.0 + (city < seed) * 10.0  # the best in ever more cities
    free = NestedQuotas(
        {"region": city % 6, "city": city},
        at_least={"region": int(rng.integers(0, 40)), "city": int(rng.integers(0, 6))},
        at_most={"region": int(rng.integers(60, 200)), "city": int(rng.integers(8, 60))},
    )
    total = int(rng.integers(free.k * 9 // 10, free.k + 1))
    quotas = free.with_(total=total if seed % 2 else (0, total))
    quick = quotas.best(scores, rng=rng)
    monkeypatch.setattr(ranks, "MANY_ARMS", n + 1)
    plain = quotas.best(scores, rng=rng)
    assert quotas.violation(quick.indices) == 0.0
    assert quick.indices.tolist() == plain.indices.tolist()


def test_many_arms_where_a_region_needs_more_than_its_cities_do():
    """The region's last needed arm is not among the best of all arms, and must still be its best spare one."""
    n = 20_000
    region, city = ["G"] * 6 + ["H"] * (n - 6), ["c1", "c1", "c2", "c3", "c3", "c3"] + ["h"] * (n - 6)
    scores = 1 + np.arange(n) * 1e-6
    scores[:6] = [-5, -6, 0.5, 9, 8, 7]
    quotas = NestedQuotas(
        {"region": region, "city": city},
        at_least={"region": {"G": 3}, "city": {"c1": 1}},
        at_most={"city": {"c3": 1}},
        total=5,
    )
    assert quotas.best(scores).indices.tolist() == [0, 2, 3, 19_998, 19_999]
