import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armful.campaigns.features import FeatureRecipe
from armful.campaigns.features import _fitting as fitting
from armful.campaigns.settings import ColumnSettings, FeatureSettings
from armful.errors import FileFormatError
from tests.campaigns import plain_recipe as plain

TYPES = {"number": pa.float64()}
ORDER = ("low", "middle", "high", "top")


def kind(name, kind="number", **options):
    return ColumnSettings(name=name, kind=kind, **options)


def fit(columns, *batches, **options):
    return FeatureRecipe.fit(FeatureSettings(columns=tuple(columns), **options), batches)


def batch(**columns):
    return pa.RecordBatch.from_pydict(columns)


def one(values, settings, type=None):
    """Return the recipe of one column without a constant, and the column."""
    rows = pa.record_batch([pa.array(values, type=type)], names=[settings.name])
    return fit([settings], rows, intercept=False), rows


def unscaled(recipe, rows):
    """Return the features before they are divided by the square root of their number."""
    return (recipe.transform(rows) * math.sqrt(recipe.n_features)).round(6).tolist()


NUMBERS = st.one_of(
    st.none(),
    st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -1.0, 999.0, 1e200]),
    st.integers(-5, 40).map(float),
    st.floats(-1e6, 1e6),
)
CODED = st.one_of(st.just(999.0), st.integers(0, 20).map(float))
WORDS = st.one_of(st.none(), st.sampled_from(["", "other", "missing", "a", "b", "c", "Ünï", "d e"]))
LEVELS = st.one_of(st.none(), st.sampled_from([*ORDER, "", "else"]))
DATES = st.one_of(st.none(), st.just(""), st.dates(date(1900, 1, 1), date(9999, 12, 31)).map(str))
TEXTS = st.one_of(st.none(), st.text(alphabet="aBcÄé ß9½,.-_'\n", max_size=12))


@st.composite
def tables(draw):
    """Columns of all kinds with their settings, 1 to 60 rows."""
    n = draw(st.integers(1, 60))
    number = {"log": draw(st.booleans()), "spline": draw(st.integers(0, 6))}
    columns = {
        "x": (draw(st.sampled_from([NUMBERS, CODED])), kind("x", **number)),
        "c": (WORDS, kind("c", "category", at_most=draw(st.integers(1, 4)))),
        "o": (LEVELS, kind("o", "ordered", order=ORDER)),
        "d": (DATES, kind("d", "date")),
        "t": (TEXTS, kind("t", "text", buckets=draw(st.integers(1, 8)))),
    }
    values = {name: draw(st.lists(each, min_size=n, max_size=n)) for name, (each, _) in columns.items()}
    pairs = draw(st.sampled_from([(), (("x", "c"),), (("c", "o"), ("x", "d"))]))
    settings = FeatureSettings(columns=tuple(each for _, each in columns.values()), interactions=pairs)
    return values, settings


def as_batch(values, settings):
    arrays = [pa.array(values[each.name], type=TYPES.get(each.kind, pa.string())) for each in settings.columns]
    return pa.record_batch(arrays, names=[each.name for each in settings.columns])


def split(rows, cuts):
    edges = [0, *sorted(cut % (rows.num_rows + 1) for cut in cuts), rows.num_rows]
    return [rows.slice(a, b - a) for a, b in pairwise(edges)]


def encoded(rows):
    """Return the same rows with the texts as dictionaries, which also hold words that do not occur."""
    extra = pa.array(["never", "a"])
    columns = []
    for column in rows.columns:
        if pa.types.is_string(column.type):
            longer = pa.concat_arrays([extra, column]).dictionary_encode()
            columns.append(longer.slice(2))
        else:
            columns.append(column)
    return pa.record_batch(columns, names=rows.schema.names)


def check_frozen(values, features, cuts):
    """Check what is frozen against the rules, however the rows are divided."""
    rows = as_batch(values, features)
    recipe = FeatureRecipe.fit(features, split(rows, cuts))
    assert FeatureRecipe.fit(features, [encoded(part) for part in split(rows, cuts)]).to_json() == recipe.to_json()
    content = json.loads(recipe.to_json())
    frozen = {each["column"]: {k: v for k, v in each.items() if k != "kind"} for each in content["columns"]}
    left_out = dict(content["left_out"])
    for each in features.columns:
        expected = plain.FITS[each.kind](values[each.name], each)
        assert (left_out if isinstance(expected, str) else frozen)[each.name] == expected
    assert frozen.keys() | left_out.keys() == {each.name for each in features.columns}
    assert all(set(pair) <= frozen.keys() for pair in content["interactions"])


def check_features(values, features, later, cuts):
    """Check the features of the rows that were fitted, and of others, against those of each value by itself."""
    recipe = FeatureRecipe.fit(features, [as_batch(values, features)])
    content = json.loads(recipe.to_json())
    for these in (values, later):
        rows = as_batch(these, features)
        X = recipe.transform(rows)
        assert X.dtype == np.float32
        assert X.shape == (rows.num_rows, recipe.n_features)
        expected = [plain.row_features(row, content) for row in rows.to_pylist()]
        np.testing.assert_allclose(X, np.array(expected), atol=2e-6)
        assert X.min() >= 0
        assert X.max() <= 1
        again = FeatureRecipe.from_json(recipe.to_json())
        parts = [again.transform(encoded(part)) for part in split(rows, cuts)]
        assert np.concatenate(parts).tobytes() == X.tobytes()
        assert again == recipe


@pytest.mark.slow
@settings(deadline=None, max_examples=80)
@given(tables(), st.lists(st.integers(0, 60), max_size=4))
def test_what_is_frozen_is_what_the_rules_say_however_the_rows_are_divided(table, cuts):
    check_frozen(*table, cuts)


@pytest.mark.slow
@settings(deadline=None, max_examples=80)
@given(tables(), tables(), st.lists(st.integers(0, 60), max_size=4))
def test_features_are_those_of_each_value_by_itself(table, later, cuts):
    check_features(*table, later[0], cuts)


@pytest.mark.parametrize("spline", [0, 4])
@pytest.mark.parametrize("log", [False, True])
def test_a_thousand_rows_are_encoded_as_value_by_value(spline, log):
    rng = np.random.default_rng([spline, log])

    def values(n):
        days = [str(date(2020, 1, 1 + day)) for day in range(31)]
        return {
            "x": rng.choice([math.nan, -1.0, *rng.lognormal(3, 1, 50)], n).tolist(),
            "n": [None if x < -2 else round(x) for x in rng.normal(size=n)],
            "c": rng.choice(np.array([None, "", "other", "missing", "a", "b", "c", "d"]), n).tolist(),
            "o": rng.choice(np.array([None, "?", *ORDER]), n).tolist(),
            "d": rng.choice(np.array([None, "", *days]), n).tolist(),
            "t": rng.choice(np.array([None, "", "two words", "Words, words", "9 o'clock"]), n).tolist(),
        }

    columns = (
        kind("x", log=log, spline=spline),
        kind("n", log=log, spline=spline),
        kind("c", "category", at_most=3),
        kind("o", "ordered", order=ORDER),
        kind("d", "date"),
        kind("t", "text", buckets=4),
    )
    features = FeatureSettings(columns=columns, interactions=(("x", "c"), ("o", "t")))
    these = values(1000)
    check_frozen(these, features, [10, 10, 700])
    check_features(these, features, values(300), [1, 299])


class TestNames:
    def test_each_feature_is_named_after_its_column_and_what_it_stands_for(self):
        rows = batch(
            job=["nurse", "clerk", None, "clerk"],
            age=[20.0, None, 40.0, 60.0],
            level=["low", "top", "?", "low"],
            since=["2020-01-01", "2021-01-01", "", "2022-01-01"],
            notes=["one", "two", "", ""],
        )
        columns = [
            kind("job", "category"),
            kind("age", spline=3),
            kind("level", "ordered", order=("low", "top")),
            kind("since", "date"),
            kind("notes", "text", buckets=2),
        ]
        recipe = fit(columns, rows, interactions=(("level", "notes"),))
        expected = """constant
            job: clerk | job: nurse | job: other | job: missing
            age: spline 1 | age: spline 2 | age: spline 3 | age: missing
            level | level: other | since | since: missing | notes: words 1 | notes: words 2
            level {x} notes: words 1 | level {x} notes: words 2
            level: other {x} notes: words 1 | level: other {x} notes: words 2"""
        lines = expected.format(x="\N{MULTIPLICATION SIGN}").splitlines()
        assert recipe.names == [name.strip() for line in lines for name in line.split("|")]
        assert recipe.n_features == len(recipe.names) == 19
        assert recipe.columns == ["job", "age", "level", "since", "notes"]

    def test_a_logarithm_is_named_so(self):
        assert one([1.0, 10.0], kind("pay", log=True))[0].names == ["pay: log"]

    def test_names_are_unique_even_if_columns_are_called_like_features(self):
        rows = batch(constant=[1.0, 2.0], **{"a": [1.0, None], "a: missing": [1.0, 2.0]})
        recipe = fit([kind("constant"), kind("a"), kind("a: missing")], rows)
        assert recipe.names == ["constant", "constant (2)", "a: missing", "a: missing (2)"]


class TestLeftOut:
    def test_a_column_with_one_value_is_named_with_the_value_and_not_needed_later(self):
        rows = batch(
            month=["may"] * 3,
            rate=[4.5] * 3,
            day=["2026-05-01"] * 3,
            level=["low"] * 3,
            note=["hm"] * 3,
            x=[1.0, 2.0, 3.0],
        )
        columns = [
            kind("month", "category"),
            kind("rate"),
            kind("day", "date"),
            kind("level", "ordered", order=ORDER),
            kind("note", "text"),
            kind("x"),
        ]
        recipe = fit(columns, rows, interactions=(("month", "x"),))
        assert recipe.left_out == (
            ("month", "'may' in every row"),
            ("rate", "4.5 in every row"),
            ("day", "2026-05-01 in every row"),
            ("level", "'low' in every row"),
            ("note", "'hm' in every row"),
        )
        assert recipe.columns == ["x"]
        assert recipe.names == ["constant", "x"]

    def test_a_column_without_any_value_is_left_out(self):
        rows = pa.record_batch([pa.nulls(2), pa.nulls(2), pa.nulls(2), pa.array([1, 2])], names=["a", "b", "c", "x"])
        recipe = fit([kind("a"), kind("b", "category"), kind("c", "date"), kind("x")], rows)
        assert recipe.left_out == tuple((name, "no value in any row") for name in "abc")

    def test_one_value_and_missing_ones_are_told_apart(self):
        recipe, rows = one([5.0, None, 5.0], kind("x"))
        assert recipe.names == ["x: missing"]
        assert unscaled(recipe, rows) == [[0], [1], [0]]

    def test_a_constant_alone_is_a_recipe_and_nothing_is_not(self):
        rows = batch(x=[1.0, 1.0])
        assert fit([kind("x")], rows).names == ["constant"]
        with pytest.raises(ValueError, match="no column is left for the features: 'x'"):
            fit([kind("x")], rows, intercept=False)

    def test_no_rows_are_refused(self):
        with pytest.raises(ValueError, match="fitted on the rows of the first round, got none"):
            fit([kind("x")])
        with pytest.raises(ValueError, match="got none"):
            fit([kind("x")], batch(x=pa.array([], pa.float64())))


class TestNumbers:
    def test_outliers_do_not_squeeze_the_rest_and_count_as_the_bounds(self):
        recipe, _ = one([*map(float, range(1000)), 1e9], kind("x"))
        assert unscaled(recipe, batch(x=[-50.0, 1e9, 500.0])) == [[0], [1], [pytest.approx(0.5, abs=0.01)]]

    def test_where_nearly_all_are_equal_the_rest_gives_the_bounds(self):
        rare = [*map(float, range(1, 400)), 1e9]
        recipe, _ = one([0.0] * 90_000 + rare, kind("x"))
        assert unscaled(recipe, batch(x=[0.0, 199.0, 398.0, 1e9])) == [[0], [0.5], [1], [1]]

    def test_missing_values_are_the_median_and_marked(self):
        recipe, rows = one([0.0, 5.0, 10.0, None, math.nan, 1e200], kind("x"))
        assert recipe.names == ["x", "x: missing"]
        assert unscaled(recipe, rows) == [[0, 0], [0.5, 0], [1, 0], [0.5, 1], [0.5, 1], [0.5, 1]]

    def test_what_is_missing_later_only_is_the_median(self):
        recipe, _ = one([0.0, 5.0, 10.0], kind("x"))
        assert unscaled(recipe, batch(x=[None, 10.0])) == [[0.5], [1]]

    def test_a_code_for_never_has_a_feature_of_its_own(self):
        recipe, rows = one([999.0] * 20 + [0.0, 5.0, 10.0], kind("days"))
        assert recipe.names == ["days", "days: 999"]
        assert unscaled(recipe, rows)[-4:] == [[0.5, 1], [0, 0], [0.5, 0], [1, 0]]

    def test_the_only_negative_number_is_a_code(self):
        recipe, _ = one([-1.0] * 20 + [float(i) for i in range(300)], kind("days"))
        assert recipe.names == ["days", "days: -1"]

    @pytest.mark.parametrize(
        "values",
        [
            [0.0] * 50 + [1.0] * 50,  # yes and no
            [0.0, 1.0, 2.0] * 5 + [100.0],  # one outlier
            [float(i) for i in range(100)] + [150.0] * 30,  # not far from the rest
            [-2.0, -1.0] * 20 + [0.0, 1.0, 2.0],  # negative ones that differ
        ],
    )
    def test_other_frequent_or_far_numbers_are_no_codes(self, values):
        assert one(values, kind("x"))[0].names == ["x"]

    def test_a_spline_is_one_at_its_knots_and_adds_up_to_one_everywhere(self):
        recipe, _ = one([float(i) for i in range(101)], kind("age", spline=5))
        knots = json.loads(recipe.to_json())["columns"][0]["scale"]["knots"]
        assert unscaled(recipe, batch(age=knots)) == np.eye(5).tolist()
        X = unscaled(recipe, batch(age=np.linspace(-10, 110, 77)))
        np.testing.assert_allclose(np.sum(X, axis=1), 1, atol=1e-5)

    def test_few_values_make_fewer_knots(self):
        assert one([0.0, 0.0, 0.0, 1.0], kind("x", spline=6))[0].n_features == 2

    def test_logarithms_that_are_equal_leave_the_numbers_as_they_are(self):
        low, high = 1e80, np.nextafter(1e80, np.inf)
        recipe, rows = one([low, high], kind("x", log=True))
        assert unscaled(recipe, rows) == [[0], [1]]

    @pytest.mark.parametrize("type", [pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.decimal128(9, 2)])
    def test_every_type_of_numbers_gives_the_same_features(self, type):
        numbers = [Decimal(3), None, Decimal(7)] if pa.types.is_decimal(type) else [3, None, 7]
        if pa.types.is_floating(type):
            numbers = np.array([3, np.nan, 7], dtype="f2" if type == pa.float16() else "f4")
        recipe, rows = one(numbers, kind("x"), type)
        expected, plain_rows = one([3.0, None, 7.0], kind("x"))
        assert recipe == expected
        assert unscaled(recipe, rows) == unscaled(expected, plain_rows)

    def test_true_is_one(self):
        recipe, rows = one([True, False, True], kind("x"))
        assert unscaled(recipe, rows) == [[1], [0], [1]]


class TestCategories:
    def test_unknown_categories_are_other_ones_and_missing_ones_too_if_none_was(self):
        recipe, _ = one(["a", "b"], kind("c", "category"))
        assert recipe.names == ["c: a", "c: b", "c: other"]
        assert unscaled(recipe, batch(c=["b", "z", None, ""])) == [[0, 1, 0]] + [[0, 0, 1]] * 3

    def test_the_most_frequent_are_kept(self):
        recipe, _ = one(["x", "b", "a", "x", "c"], kind("c", "category", at_most=2))
        assert recipe.names == ["c: a", "c: x", "c: other"]

    def test_only_so_many_are_counted_those_that_come_first(self, monkeypatch):
        monkeypatch.setattr(fitting, "MOST_DISTINCT", 3)
        words = ["z", "y", "x", "w", "w", "w", "w", "y"]
        expected = one(words, kind("c", "category", at_most=2))[0]
        assert expected.names == ["c: x", "c: y", "c: other"]
        for size in (1, 2, 3, 5):
            parts = [batch(c=words[i : i + size]) for i in range(0, 8, size)]
            assert fit([kind("c", "category", at_most=2)], *parts, intercept=False) == expected
            dictionaries = [batch(c=pa.array(part.column(0)[::-1]).dictionary_encode()[::-1]) for part in parts]
            assert fit([kind("c", "category", at_most=2)], *dictionaries, intercept=False) == expected

    @pytest.mark.parametrize(
        "values", [[1, 2, 1], [1.0, 2.0, 1.0], ["1", "2", "1"], pa.array(["1", "2", "1"]).dictionary_encode()]
    )
    def test_codes_are_the_same_as_numbers_and_as_text(self, values):
        recipe, _ = one([1, 2, None], kind("c", "category"))
        assert unscaled(recipe, batch(c=values)) == [[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0]]

    def test_true_is_the_same_however_it_is_written(self):
        recipe, _ = one(["True", "False"], kind("c", "category"))
        assert recipe.names == ["c: False", "c: True", "c: other"]
        assert unscaled(recipe, batch(c=[True, False, None])) == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]

    def test_not_a_number_is_missing(self):
        recipe, rows = one([1.0, math.nan, None, 2.5], kind("c", "category"))
        assert recipe.names == ["c: 1", "c: 2.5", "c: other", "c: missing"]
        assert unscaled(recipe, rows)[1:3] == [[0, 0, 0, 1]] * 2

    @pytest.mark.parametrize(
        "type", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
    )
    def test_every_type_of_text_gives_the_same_features(self, type):
        recipe, rows = one(["a", None, "b"], kind("c", "category"), type)
        expected, plain_rows = one(["a", None, "b"], kind("c", "category"))
        assert recipe == expected
        assert unscaled(recipe, rows) == unscaled(expected, plain_rows)


class TestOrdered:
    def test_positions_are_from_0_to_1_and_what_is_not_in_the_order_is_the_median(self):
        recipe, rows = one(["low", "high", "middle", None, "?"], kind("o", "ordered", order=("low", "middle", "high")))
        assert recipe.names == ["o", "o: other"]
        assert unscaled(recipe, rows) == [[0, 0], [1, 0], [0.5, 0], [0.5, 1], [0.5, 1]]

    def test_an_order_of_one_value_is_refused(self):
        with pytest.raises(ValueError, match="'o' needs an order of two or more different values"):
            one(["a", "b"], kind("o", "ordered", order=("a", "a")))


class TestDates:
    def test_days_are_from_0_to_1_however_they_are_written(self):
        recipe, rows = one(["2020-01-01", "2020-01-03", "2020-01-05", None], kind("d", "date"))
        expected = [[0, 0], [0.5, 0], [1, 0], [0.5, 1]]
        assert unscaled(recipe, rows) == expected
        days = [date(2020, 1, 1), date(2020, 1, 3), date(2020, 1, 5), None]
        for type in (pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("ms", "UTC")):
            assert unscaled(recipe, batch(d=pa.array(days).cast(type))) == expected
        assert unscaled(recipe, batch(d=["2020-01-03T12:00:00", "2020-01-03 12:00"])) == [[0.625, 0]] * 2
        assert unscaled(recipe, batch(d=["2020-01-03T14:00:00+02:00"])) == [[0.625, 0]]
        assert unscaled(recipe, batch(d=[datetime(2020, 1, 3, 12, tzinfo=UTC)])) == [[0.625, 0]]

    def test_days_with_dots_are_read_as_the_first_round_wrote_them(self):
        recipe, rows = one(["", "01.02.2020", "3.2.2020"], kind("d", "date"))
        assert unscaled(recipe, rows) == [[0, 1], [0, 0], [1, 0]]
        with pytest.raises(ValueError, match=r"column 'd' should hold dates like 31.12.2026, got '2020-02-03'"):
            recipe.transform(batch(d=["01.02.2020", "2020-02-03"]))

    def test_a_day_in_the_far_future_for_never_is_a_code(self):
        recipe, _ = one(["9999-12-31"] * 20 + ["2020-01-01", "2020-01-02", "2020-01-03"], kind("d", "date"))
        assert recipe.names == ["d", "d: 9999-12-31"]

    @pytest.mark.parametrize("wrong", ["12/31/2026", "yesterday", "2026-02-30"])
    def test_what_is_no_date_is_named(self, wrong):
        with pytest.raises(ValueError, match=f"column 'd' should hold dates like 2026-12-31.*, got '{wrong}'"):
            one(["2026-01-01", wrong], kind("d", "date"))


class TestText:
    def test_the_same_words_in_another_order_give_the_same_features(self):
        recipe, _ = one(["likes tea", ""], kind("t", "text", buckets=64))
        X = recipe.transform(batch(t=["Likes tea!", "tea, likes: tea", "  ", None])) * 8
        assert X[0].tolist() == X[1].tolist()
        assert np.count_nonzero(X[0]) == 2
        assert (X**2).sum(axis=1).round(5).tolist() == [1, 1, 0, 0]


class TestColumnsThatChanged:
    @pytest.fixture
    def recipe(self):
        columns = [kind("x"), kind("c", "category"), kind("n", "category"), kind("d", "date")]
        rows = batch(x=[1.0, 2.0], c=["a", "b"], n=[1, 2], d=["2026-01-01", "2026-01-02"])
        return fit(columns, rows)

    def good(self, **changed):
        return batch(**{"x": [1.0], "c": ["a"], "n": [2], "d": ["2026-01-01"]} | changed)

    @pytest.mark.parametrize(
        ("changed", "sentence"),
        [
            ({"x": ["", "ten"]}, "column 'x' should hold numbers, got text like 'ten'"),
            ({"x": [date(2026, 1, 1)] * 2}, r"column 'x' should hold numbers, got date32\[day\]"),
            ({"c": [1, 2]}, r"column 'c' should hold text like 'a', got numbers \(int64\)"),
            ({"n": ["1", "gold"]}, "column 'n' should hold numbers like 1, got text like 'gold'"),
            ({"c": [[1], [2]]}, "column 'c' should hold texts or numbers, got list"),
            ({"d": [5, 6]}, "column 'd' should hold dates, got int64"),
        ],
    )
    def test_another_type_is_named_with_what_was_expected(self, recipe, changed, sentence):
        rows = {"x": [1.0] * 2, "c": ["a"] * 2, "n": [2] * 2, "d": ["2026-01-01"] * 2} | changed
        with pytest.raises(ValueError, match=sentence):
            recipe.transform(batch(**rows))

    def test_columns_that_vanished_are_all_named(self, recipe):
        with pytest.raises(
            ValueError, match="column 'x', 'd' is needed for the features and is not there; the columns are 'c'"
        ):
            recipe.transform(self.good().select(["c", "n"]))

    def test_further_columns_and_another_order_do_not_matter(self, recipe):
        rows = self.good(more=["?"]).select(["more", "d", "n", "c", "x"])
        assert recipe.transform(rows).tolist() == recipe.transform(self.good()).tolist()

    def test_no_rows_give_no_features(self, recipe):
        assert recipe.transform(self.good().slice(0, 0)).shape == (0, recipe.n_features)

    def test_a_column_without_values_is_all_missing(self, recipe):
        rows = pa.record_batch([pa.nulls(1)] * 4, names=["x", "c", "n", "d"])
        assert recipe.transform(rows).shape == (1, recipe.n_features)


class TestFile:
    def test_it_is_readable(self):
        recipe = fit([kind("c", "category"), kind("m", "category")], batch(c=["Müller", "b"], m=["may", "may"]))
        content = json.loads(recipe.to_json())
        assert content["columns"][0]["categories"] == ["Müller", "b"]
        assert "Müller" in recipe.to_json()
        assert content["left_out"] == [["m", "'may' in every row"]]

    @pytest.mark.parametrize("text", ["", "[]", "{}", '"x"', '{"format": "armful feature recipe", "version": 1}'])
    def test_anything_else_is_refused(self, text):
        with pytest.raises(FileFormatError, match="the feature recipe cannot be read"):
            FeatureRecipe.from_json(text)

    def test_parts_that_it_does_not_know_are_refused(self):
        text = fit([kind("x")], batch(x=[1.0, 2.0])).to_json()
        for change in (("number", "colour"), ('"median"', '"mean"')):
            with pytest.raises(FileFormatError, match="cannot be read"):
                FeatureRecipe.from_json(text.replace(*change))

    def test_a_later_version_is_refused(self):
        text = fit([kind("x")], batch(x=[1.0, 2.0])).to_json().replace('"version": 1', '"version": 2')
        with pytest.raises(FileFormatError, match="has version 2, this armful reads version 1: update armful"):
            FeatureRecipe.from_json(text)


def test_ready_features_are_used_as_they_are():
    features = FeatureSettings(columns=(), ready=("a", "b"), intercept=False)
    recipe = FeatureRecipe.fit(features, ())
    assert recipe.names == recipe.columns == ["a", "b"]
    rows = pa.record_batch({"b": [0.1, -3.0], "c": ["x", "y"], "a": [7, 2]})
    expected = np.array([[7.0, 0.1], [2.0, -3.0]], dtype=np.float32)
    again = FeatureRecipe.from_json(recipe.to_json())
    assert again == recipe
    for each in (recipe, again):
        np.testing.assert_array_equal(each.transform(rows), expected)


@pytest.mark.parametrize("value", [None, math.nan, 1e31, 1.1e6])
def test_ready_features_have_a_number_in_every_row(value):
    recipe = FeatureRecipe.fit(FeatureSettings(columns=(), ready=("a",), intercept=False), ())
    with pytest.raises(
        ValueError, match="column 'a' is a ready feature: every row needs a number of at most 1,000,000; scale it"
    ):
        recipe.transform(pa.record_batch({"a": pa.array([1.0, value])}))
