"""The features of candidates are those that the recipe makes of the same columns, and wrong values are named."""

import math
from dataclasses import dataclass
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from sklearn.preprocessing import MinMaxScaler

from armful.campaigns.features import FeatureRecipe, _size
from armful.campaigns.settings import (
    ChooseSettings,
    ColumnSettings,
    FeatureSettings,
    HoldoutSettings,
    LearningSettings,
    OutcomeSettings,
    PolicySettings,
    ServiceSettings,
    Settings,
)
from armful.service.encoding import Encoder

ORDER = ("low", "middle", "high")
TYPES = {"number": pa.float64()}
VALUES = {
    "number": st.one_of(
        st.none(), st.sampled_from([0.0, -1.0, 999.0]), st.integers(-(10**6), 10**6), st.floats(-1e100, 1e100)
    ),
    "category": st.one_of(st.none(), st.sampled_from(["", "missing", "other", "a", "b", "c", "d", "é"]), st.text()),
    "ordered": st.one_of(st.none(), st.sampled_from(["", "?", "missing", *ORDER])),
    "date": st.one_of(
        st.none(),
        st.just(""),
        st.dates(date(1900, 1, 1), date(2200, 1, 1)).map(str),
        st.sampled_from(["2024-02-29 12:34:56", "2024-02-29T01:02:03.5"]),
    ),
    "text": st.one_of(st.none(), st.text(max_size=20), st.sampled_from(["Two words", "ÀÉ ÄÖ ß", "a, b; a"])),
}


@dataclass
class Arm:
    id: str
    columns: dict | None = None
    features: list | None = None


def made(features, context=(), **choose):
    return Settings(
        name="shop",
        store="",
        id="item",
        choose=ChooseSettings(k=2, **choose),
        features=features,
        outcomes=OutcomeSettings(reward="click", id="item"),
        policy=PolicySettings(),
        holdout=HoldoutSettings(),
        learning=LearningSettings(),
        folder=None,
        text="",
        service=ServiceSettings(context=tuple(context)),
    )


def batch(rows, columns):
    arrays = [pa.array([row.get(c.name) for row in rows], TYPES.get(c.kind, pa.string())) for c in columns]
    return pa.record_batch(arrays, names=[column.name for column in columns])


@st.composite
def columns(draw):
    """Columns of all kinds, some of them twice."""
    kinds = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=6))
    result = []
    for i, kind in enumerate(kinds):
        options = {}
        if kind == "number":
            options = draw(st.sampled_from([{}, {"log": True}, {"spline": 4}, {"spline": 2}]))
        if kind == "category":
            options = {"at_most": draw(st.integers(1, 4))}
        if kind == "ordered":
            options = {"order": ORDER}
        if kind == "text":
            options = {"buckets": draw(st.integers(1, 5))}
        result.append(ColumnSettings(name=f"{kind}{i}", kind=kind, **options))
    return tuple(result)


@st.composite
def campaigns(draw):
    """A recipe, which of its columns are the context, and candidates that may lack some columns."""
    chosen = draw(columns())
    names = [column.name for column in chosen]
    row = st.fixed_dictionaries({column.name: VALUES[column.kind] for column in chosen})
    fitted = draw(st.lists(row, min_size=2, max_size=30))
    pairs = [(a, b) for a in names for b in names if a != b]
    interactions = tuple(draw(st.lists(st.sampled_from(pairs), max_size=4, unique=True))) if pairs else ()
    features = FeatureSettings(columns=chosen, interactions=interactions, intercept=draw(st.booleans()))
    context = [name for name in names if draw(st.booleans())]
    part = st.fixed_dictionaries({}, optional={column.name: VALUES[column.kind] for column in chosen})
    candidates = draw(st.lists(st.one_of(row, part), min_size=1, max_size=12))
    try:
        recipe = FeatureRecipe.fit(features, [batch(fitted, chosen)])
    except ValueError:  # every column has one value
        reject()
    return recipe, features, context, candidates, draw(part)


def check(recipe, features, context, candidates, given_context):
    given_context = {name: value for name, value in given_context.items() if name in context}
    rows = [{name: value for name, value in row.items() if name not in context} for row in candidates]
    expected = recipe.transform(batch([row | given_context for row in rows], features.columns))
    encoder = Encoder.of(made(features, context), recipe)
    arms = [Arm(str(i), row) for i, row in enumerate(rows)]
    for given_ in (given_context, {name: given_context.get(name) for name in context}):
        found = encoder.encode(arms, given_)
        assert found.dtype == np.float32
        np.testing.assert_array_max_ulp(found, expected, 1)
    assert encoder.names == recipe.names
    assert encoder.n_features == found.shape[1]
    alone = np.concatenate([encoder.encode([arm], given_context) for arm in arms])
    np.testing.assert_array_max_ulp(alone, expected, 1)


@settings(deadline=None, max_examples=15)
@given(campaigns())
def test_candidates_are_encoded_as_the_recipe_does_it(campaign):
    check(*campaign)


@pytest.mark.slow
@settings(deadline=None, max_examples=400)
@given(campaigns())
def test_many_candidates_are_encoded_as_the_recipe_does_it(campaign):
    check(*campaign)


COLUMNS = (
    ColumnSettings(name="price", kind="number"),
    ColumnSettings(name="old", kind="number", spline=3),
    ColumnSettings(name="brand", kind="category"),
    ColumnSettings(name="size", kind="category"),
    ColumnSettings(name="level", kind="ordered", order=ORDER),
    ColumnSettings(name="since", kind="date"),
    ColumnSettings(name="title", kind="text", buckets=4),
    ColumnSettings(name="country", kind="category"),
)
ROWS = [
    {
        "price": float(i),
        "old": i % 7,
        "brand": "xyz"[i % 3],
        "size": str(i % 4),
        "level": ORDER[i % 3],
        "since": f"2024-01-{i + 1:02}",
        "title": f"word {i}",
        "country": ["PT", "DE"][i % 2],
    }
    for i in range(28)
]


@pytest.fixture(scope="module")
def recipe():
    arrays = [pa.array([row[name] for row in ROWS]) for name in ROWS[0]]
    arrays[3] = pa.array([int(row["size"]) for row in ROWS])  # sizes were numbers when they were fitted
    return FeatureRecipe.fit(FeatureSettings(columns=COLUMNS), [pa.record_batch(arrays, names=list(ROWS[0]))])


@pytest.mark.parametrize("context", [["country"], ["country", "price"], ["brand", "title", "since"]])
@pytest.mark.parametrize("turned", [False, True])
def test_every_column_is_crossed_with_the_context(context, turned):
    arm = [column.name for column in COLUMNS if column.name not in context]
    pairs = [(a, b) for b in context for a in arm]
    pairs += [("brand", "size")] if "brand" in arm else []
    features = FeatureSettings(columns=COLUMNS, interactions=tuple((b, a) if turned else (a, b) for a, b in pairs))
    recipe = FeatureRecipe.fit(features, [batch(ROWS, COLUMNS)])
    encoder = Encoder.of(made(features, context), recipe)
    given = {name: ROWS[5][name] for name in context}
    arms = [Arm(str(i), {name: row[name] for name in arm}) for i, row in enumerate(ROWS)]
    expected = recipe.transform(batch([row | given for row in ROWS], COLUMNS))
    np.testing.assert_array_equal(encoder.encode(arms, given), expected)


@pytest.fixture
def encoder(recipe):
    return Encoder.of(made(FeatureSettings(columns=COLUMNS, leave_out=("note",)), ["country"]), recipe)


GOOD = {name: value for name, value in ROWS[3].items() if name != "country"}


@pytest.mark.parametrize(
    ("column", "value", "same"),
    [
        ("size", 3, "3"),
        ("size", 3.0, "3"),
        ("size", "", None),
        ("size", "other", "no such"),
        ("price", True, 1.0),
        ("brand", "never seen", "other"),
        ("title", 7, "7"),
        ("title", True, "true"),
        ("since", "", None),
        ("price", None, None),
    ],
)
def test_values_that_mean_the_same_are_encoded_alike(encoder, column, value, same):
    if same == "no such":
        same = 1e9
    pair = [Arm("a", GOOD | {column: value}), Arm("b", GOOD | {column: same})]
    first, second = encoder.encode(pair, {"country": "PT"})
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("price", "12", "column 'price' must be a number, got the text '12'"),
        (
            "price",
            math.nan,
            "column 'price' must be a finite number of at most 1e+100, or null if it is missing, got nan",
        ),
        ("price", math.inf, "column 'price' must be a finite number of at most 1e+100"),
        ("price", 10**400, "column 'price' must be a finite number of at most 1e+100"),
        ("price", 1e200, "column 'price' must be a finite number of at most 1e+100"),
        ("price", [1.0], "column 'price' must be a number, got a list"),
        ("price", {"a": 1}, "column 'price' must be a number, got an object"),
        ("old", "x" * 100, f"column 'old' must be a number, got the text '{'x' * 40}'..."),
        ("brand", 3, "column 'brand' should hold text like 'x', got numbers"),
        ("brand", ["x"], "column 'brand' must be a text or a number, got a list"),
        ("brand", math.nan, "column 'brand' must be a text or a number of usual size, got nan"),
        ("size", "large", "column 'size' should hold numbers like 0, got text like 'large'"),
        ("size", 10**400, "column 'size' must be a text or a number of usual size, got a number of very many digits"),
        ("level", {"a": 1}, "column 'level' must be a text or a number, got an object"),
        ("since", 20240101, "column 'since' must be a date in quotes, got 20240101"),
        ("since", "soon", "column 'since' should hold dates like 2026-12-31 or 2026-12-31 18:00:00, got 'soon'"),
        ("since", [], "column 'since' must be a date in quotes, got a list"),
        ("title", [], "column 'title' must be a text or a number, got a list"),
        ("title", "\ud800", "column 'title'"),
        ("prise", 1.0, "column 'prise' is not known; did you mean \"price\"?"),
        ("zzz", 1.0, "column 'zzz' is not known; if it is no feature, put it into features.leave_out"),
        ("country", "PT", "column 'country' is not known; it comes once with the request, in context"),
    ],
)
def test_a_wrong_value_is_named_with_its_candidate(encoder, column, value, sentence):
    arms = [Arm("good", GOOD), Arm("bad one", GOOD | {column: value})]
    with pytest.raises(ValueError) as caught:
        encoder.encode(arms, None)
    assert str(caught.value).startswith(f"candidate 'bad one': {sentence}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("context", "sentence"),
    [
        ({"country": ["PT"]}, "the context: column 'country' must be a text or a number, got a list"),
        ({"contry": "PT"}, "the context has 'contry', which is not known there; did you mean \"country\"?"),
        ({"weather": "sun"}, "the context has 'weather', which is not known there; known: country"),
        ({"price": 1.0}, "the context has 'price', which is not known there; it is a column of the candidates"),
    ],
)
def test_a_wrong_context_is_named(encoder, context, sentence):
    with pytest.raises(ValueError) as caught:
        encoder.encode([Arm("a", GOOD)], context)
    assert str(caught.value) == sentence


def test_a_campaign_without_context_says_so(recipe):
    encoder = Encoder.of(made(FeatureSettings(columns=COLUMNS)), recipe)
    with pytest.raises(
        ValueError, match=r"the context has 'x', and this campaign uses none: list it in service\.context"
    ):
        encoder.encode([Arm("a", ROWS[0])], {"x": 1})


def test_columns_that_are_no_features_may_come_along(encoder):
    plain = encoder.encode([Arm("a", GOOD)], None)
    more = encoder.encode([Arm("a", GOOD | {"note": {"any": "thing"}, "item": 17, "click": 1})], None)
    np.testing.assert_array_equal(plain, more)


@pytest.mark.parametrize(
    ("arm", "sentence"),
    [
        (Arm("a", None, [1.0]), "candidate 'a' has features, and this campaign makes them from columns: send these"),
        (Arm("a"), "candidate 'a' has no columns, and is not registered"),
    ],
)
def test_a_campaign_of_columns_needs_columns(encoder, arm, sentence):
    with pytest.raises(ValueError) as caught:
        encoder.encode([Arm("good", GOOD), arm], None)
    assert str(caught.value) == sentence


def test_a_code_counts_as_the_median_and_is_marked():
    rows = {
        "days": [float(i % 9) for i in range(40)] + [999.0] * 20 + [None] * 3,
        "debt": [-1.0] * 12 + [float(i) for i in range(51)],
    }
    columns = tuple(ColumnSettings(name=name, kind="number") for name in rows)
    recipe = FeatureRecipe.fit(FeatureSettings(columns=columns), [pa.record_batch(rows)])
    assert "days: 999" in recipe.names
    assert "debt: -1" in recipe.names
    later = {"days": [999.0, None, 4.0, 3.0, 999], "debt": [-1.0, 999.0, None, 7.0, 2.0]}
    encoder = Encoder.of(made(FeatureSettings(columns=columns)), recipe)
    arms = [Arm(str(i), {name: later[name][i] for name in later}) for i in range(5)]
    expected = recipe.transform(
        pa.record_batch({name: pa.array(values, pa.float64()) for name, values in later.items()})
    )
    np.testing.assert_array_equal(encoder.encode(arms, None), expected)


def test_dates_of_several_writings_come_in_one_request(encoder):
    ways = ["2024-01-05", "2024-01-05T00:00:00Z", "2024-01-05 02:00:00+02:00"]
    X = encoder.encode([Arm(way, GOOD | {"since": way}) for way in ways], None)
    np.testing.assert_array_equal(X[1:], X[:1].repeat(2, axis=0))


def test_truths_are_found_however_they_were_written():
    column = ColumnSettings(name="new", kind="category")
    rows = pa.record_batch({"new": ["True", "False", "True"]})
    recipe = FeatureRecipe.fit(FeatureSettings(columns=(column,)), [rows])
    encoder = Encoder.of(made(FeatureSettings(columns=(column,))), recipe)
    X = encoder.encode([Arm("a", {"new": True}), Arm("b", {"new": "True"}), Arm("c", {"new": False})], None)
    expected = recipe.transform(pa.record_batch({"new": pa.array([True, True, False])}))
    np.testing.assert_array_equal(X, expected)


@pytest.mark.slow
def test_a_transformer_of_ones_own_is_used_as_it_is():
    rows = pa.record_batch({"price": [1.0, 2.0, 5.0], "age": [1.0, 0.0, 2.0]})
    recipe = FeatureRecipe.from_transformer(MinMaxScaler(), ["price", "age"], [rows])
    columns = tuple(ColumnSettings(name=name, kind="number") for name in ("price", "age"))
    encoder = Encoder.of(made(FeatureSettings(columns=columns)), recipe)
    X = encoder.encode([Arm("a", {"age": 1.0, "price": 3.0})], None)
    np.testing.assert_array_equal(X, recipe.transform(pa.record_batch({"price": [3.0], "age": [1.0]})))
    with pytest.raises(ValueError, match="one transformer reads 'price' and columns of the context"):
        Encoder.of(made(FeatureSettings(columns=columns), ["age"]), recipe)


READY = FeatureSettings(columns=(), ready=("x", "y", "z"), intercept=False, leave_out=("region",))


def test_ready_features_are_used_as_they_are():
    encoder = Encoder.of(made(READY), None)
    arms = [
        Arm("a", None, [1.0, 2, 0.25]),
        Arm("b", {"region": "north"}, [0.0, -1.0, 1e6]),
        Arm("c", {"y": 5, "x": 4.0, "z": True, "region": None}),
    ]
    expected = np.array([[1.0, 2.0, 0.25], [0.0, -1.0, 1e6], [4.0, 5.0, 1.0]], dtype=np.float32)
    np.testing.assert_array_equal(encoder.encode(arms, None), expected)
    assert encoder.names == ["x", "y", "z"]
    assert encoder.groups("region", arms) == ["(none)", "north", "(none)"]
    assert encoder.encode([], None).shape == (0, 3)


@pytest.mark.parametrize(
    ("arm", "sentence"),
    [
        (Arm("b", None, [1.0, 2.0]), "candidate 'b' must have 3 features, got 2"),
        (Arm("b", None, [1.0] * 4), "candidate 'b' must have 3 features, got 4"),
        (Arm("b"), "candidate 'b' has no features, and is not registered"),
        (
            Arm("b", None, [1.0, math.nan, 1.0]),
            "candidate 'b': feature 'y' must be a finite number of at most 1,000,000, got nan",
        ),
        (
            Arm("b", None, [1.0, 1e7, 1.0]),
            "candidate 'b': feature 'y' must be a finite number of at most 1,000,000, got 10000000.0",
        ),
        (
            Arm("b", None, [1.0, 10**400, 1.0]),
            "candidate 'b': feature 'y' must be a finite number of at most 1,000,000",
        ),
        (
            Arm("b", None, [1.0, "2", 1.0]),
            "candidate 'b': feature 'y' must be a finite number of at most 1,000,000, got the text '2'",
        ),
        (
            Arm("b", None, [1.0, None, 1.0]),
            "candidate 'b': feature 'y' must be a finite number of at most 1,000,000, got null",
        ),
        (
            Arm("b", None, [1.0, [2.0], 1.0]),
            "candidate 'b': feature 'y' must be a finite number of at most 1,000,000, got a list",
        ),
        (
            Arm("b", {"x": 1.0, "y": 2.0}),
            "candidate 'b': feature 'z' must be a finite number of at most 1,000,000, got null",
        ),
        (Arm("b", {"x": 1.0}, [1.0] * 3), "candidate 'b' has 'x' as a column and in features: leave one out"),
        (Arm("b", {"q": 1.0}, [1.0] * 3), "candidate 'b': column 'q' is not known; if it is no feature, put it into"),
    ],
)
def test_wrong_ready_features_are_named(arm, sentence):
    with pytest.raises(ValueError) as caught:
        Encoder.of(made(READY), None).encode([Arm("good", None, [1.0] * 3), arm], None)
    assert str(caught.value).startswith(sentence)
    assert ("scale features" in str(caught.value)) == sentence.endswith(
        ("got nan", "got 10000000.0", "of at most 1,000,000")
    )


def test_features_of_all_candidates_with_the_wrong_length_are_refused():
    with pytest.raises(ValueError, match="candidate 'a' must have 3 features, got 2"):
        Encoder.of(made(READY), None).encode([Arm("a", None, [1.0] * 2), Arm("b", None, [1.0] * 2)], None)


def test_without_a_recipe_nothing_but_ready_features_can_be_encoded():
    with pytest.raises(ValueError, match="the features of this campaign are not fitted yet"):
        Encoder.of(made(FeatureSettings(columns=COLUMNS)), None)


def test_too_many_features_are_refused_with_what_makes_them(recipe, monkeypatch):
    monkeypatch.setattr(_size, "MOST_FEATURES", 20)
    with pytest.raises(
        ValueError, match=r"the columns make 2\d features, and a service can use 20; most come from "
    ) as caught:
        Encoder.of(made(FeatureSettings(columns=COLUMNS)), recipe)
    assert "leave columns out of features.columns or service.context" in str(caught.value)
    with pytest.raises(ValueError, match=r"features\.ready has 21 features, and a service can use 20"):
        Encoder.of(made(FeatureSettings(columns=(), ready=tuple(f"x{i}" for i in range(21)), intercept=False)), None)


def test_costs_are_numbers_of_at_least_0(encoder):
    assert encoder.costs("price", [Arm("a", {"price": 2}), Arm("b", {"price": 0.5})]) == [2.0, 0.5]
    for value, shown in ((-1.0, "-1.0"), (None, "null")):
        with pytest.raises(
            ValueError, match=f"candidate 'b': column 'price' must be a cost of at least 0, got {shown}"
        ):
            encoder.costs("price", [Arm("b", {"price": value})])
    with pytest.raises(ValueError, match="candidate 'b': column 'price' must be a number, got the text"):
        encoder.costs("price", [Arm("b", {"price": "x"})])
    with pytest.raises(ValueError, match="candidate 'b': column 'brand' must be a text or a number, got a list"):
        encoder.groups("brand", [Arm("b", {"brand": []})])
