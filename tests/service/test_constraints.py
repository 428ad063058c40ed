"""The constraint of a decision allows what the settings and the request say, found by trying all sets."""

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from armful.campaigns.settings import parse_settings
from armful.constraints import TopK
from armful.errors import InfeasibleError
from armful.service._quota_requests import requested_quotas
from armful.service.constraints import Constraints

SETTINGS = """\
name = "shop"
id = "item"
policy.cap = 1.0
outcomes.reward = "click"
features.ready = 2
features.leave_out = ["region", "city", "age", "cost"]
[choose]
k = 3
"""
QUOTA = '[[choose.quotas]]\ncolumn = "region"\n'
BUDGET = '[choose.budget]\ncolumn = "cost"\nlimit = 6.0\n'
IDS = list("abcdef")
COLUMNS = {
    "region": ["n", "n", "s", "s", "s", "w"],
    "city": ["1", "2", "3", "3", "4", "5"],
    "age": ["y", "o", "y", "o", "y", "o"],
}
COSTS = {"cost": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}


@dataclass
class Quota:
    column: str
    at_least: object = None
    at_most: object = None
    nested: bool = False


REGION = partial(Quota, "region")


@dataclass
class Request:
    k: int | None = None
    quotas: list | None = None
    exclude: list = field(default_factory=list)
    require: list = field(default_factory=list)


def build(request=None, more="", ids=IDS, **files):
    constraints = Constraints(parse_settings(SETTINGS + more, None), **files)
    return constraints.build(ids, COLUMNS.__getitem__, COSTS.__getitem__, request)


def chosen(allowed, scores, ids=IDS):
    rows = np.arange(len(ids)) if allowed.rows is None else allowed.rows
    best = allowed.constraint.best(np.asarray(scores)[rows], rng=np.random.default_rng(0))
    return {ids[i] for i in rows[best.indices]}


SCORES = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


@pytest.mark.parametrize(
    ("request_", "more", "expected"),
    [
        (None, "", "def"),
        (Request(k=1), "", "f"),
        (Request(exclude=["f", "unknown"]), "", "cde"),
        (Request(require=["a"]), "", "aef"),
        (Request(require=["a"], exclude=["f"], k=2), "", "ae"),
        (None, QUOTA + "at_most = 1", "bef"),
        (None, QUOTA + "at_most = 0.34", "def"),
        (None, QUOTA + "at_least = { n = 2 }", "abf"),
        (Request(quotas=[]), QUOTA + "at_most = 1", "def"),
        (Request(quotas=[Quota("age", at_least={"y": 2})]), QUOTA + "at_most = 1", "cef"),
        (Request(quotas=[Quota("region", at_most=1.0)]), "", "bef"),
        (Request(quotas=[Quota("region", at_most=1), Quota("city", at_least={"1": 1}, nested=True)]), "", "aef"),
        (Request(quotas=[Quota("region", at_most=1), Quota("age", at_most={"o": 1})]), "", "aef"),
        (Request(quotas=[Quota("region", at_most=1)], require=["a"]), "", "aef"),
        (Request(2, [REGION(None, 1), Quota("age", at_most=1)], list("def")), "", "bc"),
        (Request(2, [REGION(None, 1), Quota("age", at_most=1)], list("def"), ["a"]), "", "a"),
        (None, BUDGET, "f"),
        (Request(k=2, require=["a"]), BUDGET, "ae"),
        (Request(quotas=[Quota("region", at_least={"n": 1})]), BUDGET, "ae"),
    ],
)
def test_the_best_set_keeps_what_is_asked_for(request_, more, expected):
    allowed = build(request_, more)
    found = chosen(allowed, SCORES)
    if expected == "f" and more == BUDGET:
        assert sum(COSTS["cost"][IDS.index(id)] for id in found) == 6.0
    else:
        assert found == set(expected)


def group_of(column, id):
    return COLUMNS[column][IDS.index(id)]


def by_group(bound, there):
    return bound if isinstance(bound, dict) else {} if bound is None else dict.fromkeys(there, bound)


BOUNDS = st.one_of(st.none(), st.integers(0, 3), st.dictionaries(st.sampled_from("nsw"), st.integers(0, 3), max_size=2))


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(
    st.integers(1, 7),
    BOUNDS,
    BOUNDS,
    st.sampled_from([None, "city", "age"]),
    st.integers(1, 2),
    st.sets(st.sampled_from(IDS), max_size=3),
    st.sets(st.sampled_from(IDS), max_size=2),
)
def test_the_best_set_is_that_of_all_sets(k, at_least, at_most, second, bound, exclude, require):
    """Of the sets that keep all bounds, one of the largest size up to k is chosen."""
    quotas = [] if at_least is None and at_most is None else [Quota("region", at_least, at_most)]
    if quotas and second:
        quotas.append(Quota(second, at_most=bound, nested=second == "city"))
    request = Request(k=k, quotas=quotas, exclude=sorted(exclude), require=sorted(require - exclude))

    def keeps(these):
        for quota in quotas:
            count = Counter(group_of(quota.column, id) for id in these)
            there = {group_of(quota.column, id) for id in IDS if id not in exclude}
            if any(count[group] < n for group, n in by_group(quota.at_least, there).items()):
                return False
            if any(count[group] > n for group, n in by_group(quota.at_most, there).items()):
                return False
        return require - exclude <= these and not exclude & these

    every = (set(these) for size in range(1, k + 1) for these in combinations(IDS, size))
    sets = [these for these in every if keeps(these)]
    largest = max(map(len, sets), default=0)
    value = {id: 2.0**i for i, id in enumerate(IDS)}
    try:
        found = chosen(build(request), list(value.values()))
    except (InfeasibleError, ValueError):
        assert not sets
        return
    assert len(found) == largest
    assert found == max((each for each in sets if len(each) == largest), key=lambda each: sum(map(value.get, each)))


@pytest.mark.parametrize(
    ("request_", "more", "sentence"),
    [
        (Request(require=["z"]), "", "arm 'z' is required by the request, and it is not among the candidates"),
        (Request(require=["a"], exclude=["a"]), "", "arm 'a' is required by the request, and it is excluded"),
        (Request(require=list("abcd")), "", "4 arms are required, and k is 3"),
        (Request(exclude=IDS), "", "no candidate may be chosen: all 6 are excluded"),
        (Request(quotas=[REGION({"n": 3})]), "", "region 'n' needs at least 3 arms, 2 are there"),
        (
            Request(quotas=[REGION({"x": 1})]),
            "",
            "the quota of 'region' asks for at least 1 of 'x', which no candidate",
        ),
        (Request(quotas=[REGION(2)]), "", "the quota of 'region' asks for at least 6"),
        (Request(quotas=[REGION(None, {"n": 1})], require=["a", "b"]), "", "region 'n' allows 1 arms, 2 are required"),
        (
            Request(quotas=[Quota("city", at_most=1), REGION(None, 1, nested=True)]),
            "",
            "region 'n' lies in more than one city; groups that cross must not be nested",
        ),
        (Request(quotas=[REGION({"w": 1, "n": 1})]), BUDGET, "rows region 'n', region 'w' and the budget conflict"),
        (Request(require=["f", "a"]), BUDGET, "the required arms cost 7, the budget is 6"),
        (
            Request(quotas=[Quota("regio", 1)]),
            "",
            "a quota needs a column of the candidates, got 'regio'; did you mean",
        ),
        (Request(quotas=[Quota("zzz", 1)]), "", "a quota needs a column of the candidates, got 'zzz'; list it in"),
        (Request(quotas=[REGION()]), "", "the quota of 'region' needs at_least or at_most"),
        (Request(quotas=[REGION(1), REGION(1)]), "", "the quota of 'region' is there twice"),
        (Request(quotas=[REGION(1, nested=True)]), "", "nested is for the second quota and later ones"),
        (
            Request(quotas=[REGION(1), Quota("city", 1, nested=True), Quota("age", 1)]),
            "",
            "nested must be the same in all quotas after the first",
        ),
        (
            Request(quotas=[REGION(None, 1.5)]),
            "",
            "at_most of 'region' must be a whole number of arms, or a share of k below 1, got 1.5",
        ),
        (
            Request(quotas=[REGION(None, {"n": -1})]),
            "",
            "at_most of 'region' must be a number of arms, or a share of k below 1, got -1",
        ),
        *(
            (Request(quotas=quotas), "", "no candidate may be chosen: each is in a group with at_most = 0; raise one")
            for quotas in (
                [REGION(None, 0)],
                [REGION(None, 0), Quota("city", at_most=1, nested=True)],
                [REGION(None, {"n": 0, "s": 0}), Quota("age", at_most={"o": 0})],
            )
        ),
    ],
)
def test_what_cannot_be_kept_is_one_sentence(request_, more, sentence):
    with pytest.raises(ValueError) as caught:
        chosen(build(request_, more), SCORES)
    assert str(caught.value).startswith(sentence)


def test_fewer_candidates_than_k_are_all_chosen_and_noted():
    allowed = build(Request(k=10))
    assert allowed.constraint == TopK(6)
    assert allowed.notes == ("k is 10, and 6 of 6 candidates are all that may be chosen",)
    assert build(Request(k=6)).notes == ()
    bounded = build(Request(k=5, quotas=[Quota("region", at_most=1)]))
    assert bounded.constraint.k == 3
    assert bounded.notes == ("k is 5, and 3 of 6 candidates are all that may be chosen",)


def test_shares_are_of_the_arms_that_are_chosen():
    """With k = 10 and 6 candidates, half of k is 3."""
    allowed = build(Request(k=10, quotas=[Quota("region", at_most={"s": 0.34})]))
    assert len(chosen(allowed, SCORES)) == 6  # 0.34 of 6 is rounded up to 3
    allowed = build(Request(k=10, quotas=[Quota("region", at_most={"s": 0.33})]))
    assert len(chosen(allowed, SCORES)) == 5


def test_files_of_the_campaign_apply_to_every_decision():
    assert chosen(build(require=["a"]), SCORES) == {"a", "e", "f"}
    assert chosen(build(exclude=["f"]), SCORES) == {"c", "d", "e"}
    allowed = build(exclude=["f", "z"], require=["a", "f", "not here"])
    assert chosen(allowed, SCORES) == {"a", "d", "e"}
    assert chosen(build(Request(exclude=["a"]), exclude=["f"], require=["a"]), SCORES) == {"c", "d", "e"}
    with pytest.raises(ValueError, match="arm 'f' is required by the request, and it is excluded"):
        build(Request(require=["f"]), exclude=["f"])


def test_a_plain_constraint_is_made_once():
    assert build().constraint is build().constraint


def test_numbers_below_1_are_shares_and_others_counts():
    (quota,) = requested_quotas([Quota("region", at_least=0.5, at_most={"n": 1.0, "s": 3, "w": 0.0})])
    assert quota.at_most == {"n": 1, "s": 3, "w": 0}
    assert all(isinstance(bound, int) for bound in quota.at_most.values())
    assert quota.at_least == 0.5


@pytest.mark.parametrize(
    ("request_", "more"),
    [
        (None, BUDGET),
        (Request(quotas=[REGION(at_most=1)]), BUDGET),
        (Request(quotas=[REGION(at_most=1), Quota("age", at_most=2)]), ""),
    ],
)
def test_integer_programs_have_a_part_of_the_time_of_a_request(request_, more, monkeypatch):
    limits, plain = [], scipy.optimize.milp

    def milp(*given, options, **more):
        limits.append(options["time_limit"])
        return plain(*given, options=options, **more)

    monkeypatch.setattr(scipy.optimize, "milp", milp)
    allowed = build(request_, more + "[service]\ntimeout = '80 seconds'\n")
    assert allowed.constraint.time_limit == 10
    chosen(allowed, SCORES)
    assert all(limit <= 10 for limit in limits)


def test_quotas_and_budgets_need_their_columns():
    constraints = Constraints(parse_settings(SETTINGS + QUOTA + "at_most = 1", None))
    with pytest.raises(ValueError, match="the quota of 'region' needs this column of every candidate"):
        constraints.build(IDS)
    constraints = Constraints(parse_settings(SETTINGS + BUDGET, None))
    with pytest.raises(ValueError, match="the budget needs column 'cost' of every candidate"):
        constraints.build(IDS)
