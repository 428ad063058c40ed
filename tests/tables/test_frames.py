"""Names of columns; pandas and polars by what they have in common with these small stand-ins."""

import copy
import pickle
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import armful
from armful import C2UCB, FileFormatError, Table, TopK
from armful.policies._repetitions import repeated
from armful.tables._frames import features_and_names

NAMES = ["age", "visits", "price"]
X = np.random.default_rng(0).standard_normal((8, 3))


class NAType:
    """What pandas puts where nothing is."""


class Polars:
    """Columns by name."""

    def __init__(self, columns):
        self._data = {name: np.asarray(values) for name, values in columns.items()}

    @property
    def columns(self):
        return list(self._data)

    def __getitem__(self, name):
        return self._data[name]

    def head(self, n_rows):
        part = copy.copy(self)
        part._data = {name: values[:n_rows] for name, values in self._data.items()}
        return part

    def __len__(self):
        return len(next(iter(self._data.values())))

    def __array__(self, dtype=None, copy=None):
        """Of dates it makes numbers, as polars does."""
        columns = [values.astype(np.int64) if values.dtype.kind == "M" else values for values in self._data.values()]
        same = len({values.dtype for values in columns}) == 1
        return np.stack(columns if same else [values.astype(object) for values in columns], axis=1)


class Pandas(Polars):
    """Columns by position; names may be anything, and repeated."""

    def __init__(self, names, values):
        super().__init__(dict(enumerate(values)))
        self._names = names

    @property
    def columns(self):
        return np.array(self._names, dtype=object)

    @property
    def iloc(self):
        return self

    def __getitem__(self, where):
        return self._data[where[1]]


def arrow(names=NAMES, values=X):
    return pa.table([pa.array(column) for column in values.T], names=list(names))


MAKE = {
    "polars": lambda names=NAMES, values=X: Polars(dict(zip(names, values.T, strict=True))),
    "pandas": lambda names=NAMES, values=X: Pandas(list(names), list(values.T)),
    "arrow": arrow,
    "batch": lambda names=NAMES, values=X: arrow(names, values).to_batches()[0],
    "stream": lambda names=NAMES, values=X: pa.RecordBatchReader.from_batches(
        arrow(names, values).schema, arrow(names, values).to_batches()
    ),
    "table": lambda names=NAMES, values=X: Table.wrap(arrow(names, values)),
}


@pytest.fixture(params=list(MAKE))
def frame(request):
    return MAKE[request.param]


def policy(**options):
    return C2UCB(n_features=3, seed=0, **options)


def refusal(action, *arguments):
    with pytest.raises(ValueError) as refused:
        action(*arguments)
    assert "\n" not in str(refused.value)
    return str(refused.value)


# -- names -----------------------------------------------------------------------------------------


def test_a_choice_knows_its_columns_and_is_not_learned_by_others(frame):
    first, second = policy(), policy()
    choice = first.choose(frame(), TopK(2))
    assert choice.columns == tuple(NAMES)
    second.learn(arrow(NAMES[::-1]), np.zeros(len(X)))
    assert "columns must be those that the policy knows" in refusal(second.learn, choice, [1.0, 2.0])
    assert second.state.n == len(X)
    assert first.choose(X, TopK(2)).columns is None


def test_columns_that_another_thread_learned_meanwhile_are_kept(frame):
    shared = policy()

    class Meanwhile(TopK):
        def best(self, *arguments):
            shared.learn(arrow(NAMES[::-1]), np.zeros(len(X)))
            return super().best(*arguments)

    assert "columns must be those that the policy knows" in refusal(shared.choose, frame(), Meanwhile(2))
    assert shared.columns == NAMES[::-1]


# -- numbers ---------------------------------------------------------------------------------------


def test_a_frame_is_chosen_from_as_its_array_is(frame):
    plain, named = policy(), policy()
    for _ in range(3):
        expected, found = plain.choose(X, TopK(3)), named.choose(frame(), TopK(3))
        assert found.indices.tolist() == expected.indices.tolist()
        assert type(found.features) is np.ndarray
        assert np.array_equal(found.features, expected.features)
        plain.learn(expected, [1.0, 2.0, 3.0])
        named.learn(found, [1.0, 2.0, 3.0])
    assert named.columns == NAMES
    assert plain.columns is None
    assert np.array_equal(named.scores(frame(), k=2), plain.scores(X, k=2))


def test_many_rows_of_a_frame_are_chosen_from_as_the_array_is():
    many = np.random.default_rng(1).standard_normal((17_000, 3))
    expected = policy().choose(many, TopK(5))
    for make in MAKE.values():
        assert policy().choose(make(values=many), TopK(5)).indices.tolist() == expected.indices.tolist()


def test_numbers_of_every_kind_are_taken():
    frame = Polars(
        {
            "whole": [1, 2],
            "flag": [True, False],
            "decimal": [Decimal("1.5"), Decimal(2)],
            "half": np.array([0.5, 1], dtype=np.float16),
            "object": np.array([1, 2.5], dtype=object),
        }
    )
    array, names = features_and_names(frame)
    assert array.dtype == np.float64
    assert array.tolist() == [[1, 1, 1.5, 0.5, 1], [2, 0, 2, 1, 2.5]]
    assert names == ("whole", "flag", "decimal", "half", "object")


@pytest.mark.parametrize("missing", [None, NAType(), float("nan")])
def test_a_number_that_is_missing_is_refused_by_its_row_and_column(missing):
    frame = Polars({"a": [1.0, 2.0], "b": np.array([1.0, missing], dtype=object), "c": [1, 2]})
    message = "features must be finite, got nan in row 1, column 'b'"
    assert refusal(policy().choose, frame, TopK(1)) == message
    assert refusal(policy().learn, frame, [1, 2]) == message
    assert refusal(Table.wrap, frame) == message


def test_whole_numbers_of_pandas_some_of_which_are_missing_are_refused_by_row_and_column():
    class Nullable(Pandas):
        """As pandas' Int64: a column of no rows is of int64, and the whole of objects where a number is missing."""

        def head(self, n):
            return Pandas(self.columns, [np.zeros(0, dtype=np.int64) for _ in self.columns])

    frame = Nullable(["a", "b", "c"], [np.array([1, 2]), np.array([1, NAType()], dtype=object), np.array([3, 4])])
    assert refusal(policy().choose, frame, TopK(1)) == "features must be finite, got nan in row 1, column 'b'"


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_an_infinite_number_of_a_frame_is_refused_by_its_row_and_column(dtype):
    values = np.full((3, 3), 200, dtype=dtype)  # the squares are beyond float16, which is no reason to refuse
    assert features_and_names(MAKE["pandas"](values=values))[0].shape == (3, 3)
    values[2, 0] = np.inf
    assert refusal(policy().choose, MAKE["pandas"](values=values), TopK(1)) == (
        f"features must be finite, got inf in row 2, column {NAMES[0]!r}"
    )


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["Oslo", "Rome"], "<U4"),
        (np.array(["Oslo", 1.0], dtype=object), "like 'Oslo'"),
        (np.array(["1.5", "2.5"], dtype=object), "like '1.5'"),
        (np.array(["2024-01-01", "2024-01-02"], dtype="M8[D]"), "datetime64[D]"),
        (np.array([1j, 2j]), "complex128"),
        (np.array([[1], [2, 3]], dtype=object), "like '[1]'"),
    ],
)
def test_a_column_that_is_no_number_is_named(values, kind):
    one = policy()
    for frame in (
        Polars({"age": [1.0, 2.0], "city": values, "price": [3, 4]}),
        Pandas(["age", "city", "price"], [np.ones(2), values, np.ones(2)]),
    ):
        for action in (lambda f=frame: one.choose(f, TopK(1)), lambda f=frame: one.learn(f, [1, 2])):
            assert refusal(action) == (
                f"features must be numbers, and the {type(frame).__name__} has 'city' ({kind}): encode them as "
                "numbers, or leave them out"
            )
    assert one.columns is None
    assert one.state.n == 0


def test_arrow_columns_that_are_no_numbers_are_named():
    table = pa.table({"age": [1, 2], "city": ["Oslo", "Rome"], "day": pa.array([1, 2], pa.date32())})
    message = refusal(policy().choose, table, TopK(1))
    assert message.startswith("features must be numbers, and the Table has 'city' (like 'Oslo'), 'day' (datetime64[D])")
    coded = table.set_column(1, "city", table["city"].dictionary_encode())
    assert "'city' (like 'Oslo')" in refusal(policy().choose, coded, TopK(1))
    many = pa.table({f"word {i}": ["a"] for i in range(30)})
    assert "'word 9' (like 'a') and 20 more: encode" in refusal(policy().choose, many, TopK(1))


def test_dates_among_whole_numbers_are_not_numbers():
    frame = Polars({"age": [1, 2], "visits": [3, 4], "day": np.array(["2024-01-01", "2024-01-02"], dtype="M8[D]")})
    assert "'day' (datetime64[D])" in refusal(policy().choose, frame, TopK(1))


def test_what_is_not_there_yet_is_refused():
    class LazyFrame:
        pass

    assert refusal(policy().choose, LazyFrame(), TopK(1)) == (
        "features must be in memory, got a LazyFrame: pass what its .collect() gives"
    )


# -- names -----------------------------------------------------------------------------------------


def test_another_order_or_other_names_are_refused_with_both_lists(frame):
    for teach in (
        lambda one: one.choose(frame(), TopK(2)),
        lambda one: one.learn(frame_for_learning(frame), np.ones(8)),
    ):
        one = policy()
        teach(one)
        state = one.state
        swapped = frame(["visits", "age", "price"])
        for action in (
            lambda s=swapped, o=one: o.choose(s, TopK(2)),
            lambda o=one: o.scores(frame(["visits", "age", "price"]), 2),
            lambda o=one: o.learn(frame_for_learning(frame, ["visits", "age", "price"]), np.ones(8)),
        ):
            assert refusal(action) == (
                "columns must be those that the policy knows, 'age', 'visits', 'price', got 'visits', 'age', 'price' "
                "(the order differs from column 0 on): pick them in that order, like X[policy.columns]"
            )
        assert "('visits' missing and 'clicks' not known)" in refusal(
            one.choose, frame(["age", "clicks", "price"]), TopK(2)
        )
        assert one.state is state
        assert one.columns == NAMES
        one.choose(frame(), TopK(2))


def frame_for_learning(make, names=NAMES):
    """A `Table` is not learned from; its arrays are."""
    made = make(names)
    return MAKE["arrow"](names) if isinstance(made, Table) else made


def test_more_or_fewer_columns_are_refused_by_name():
    one = policy()
    one.choose(arrow(), TopK(1))
    four = arrow([*NAMES, "more"], np.ones((4, 4)))
    assert "('more' not known)" in refusal(one.choose, four, TopK(1))
    assert "('price' missing)" in refusal(one.choose, arrow(NAMES[:2], np.ones((4, 2))), TopK(1))
    assert refusal(policy().choose, four, TopK(1)) == "features must have shape (n_arms, 3), got (4, 4)"


def test_long_lists_are_shortened_and_the_difference_is_still_said():
    names = [f"x{i}" for i in range(50)]
    one = C2UCB(n_features=50, ridge=1.0, seed=0)
    one.choose(arrow(names, np.ones((2, 50))), TopK(1))
    names[40], names[41] = names[41], names[40]
    message = refusal(one.choose, arrow(names, np.ones((2, 50))), TopK(1))
    assert "'x9' and 40 more (the order differs from column 40 on)" in message
    assert len(message) < 400


def test_plain_arrays_are_free_of_names(frame):
    one = policy()
    one.learn(X, np.ones(8))
    one.choose(X.tolist(), TopK(1))
    assert one.columns is None
    one.choose(frame(), TopK(1))
    for plain in (X, X.tolist(), Table.wrap(X), MAKE["pandas"]([0, 1, 2]), MAKE["pandas"]([("a", "b"), 1, "c"])):
        one.choose(plain, TopK(1))
    one.learn(one.choose(X, TopK(2)), [1.0, 2.0])
    one.learn(X, np.ones(8))
    assert one.columns == NAMES


def test_a_choice_that_is_refused_teaches_no_names():
    one = policy()
    with pytest.raises(armful.InfeasibleError):
        one.choose(arrow(), TopK(100))
    with pytest.raises(ValueError, match="rewards"):
        one.learn(arrow(), np.ones(7))
    one.scores(arrow(), k=1)
    assert one.columns is None


def test_a_table_on_disk_teaches_its_names(tmp_path):
    table = Table.build(arrow(), tmp_path / "table", progress=False)
    one = policy()
    one.choose(table, TopK(1))
    assert one.columns == NAMES
    assert "the order differs" in refusal(one.choose, arrow(NAMES[::-1]), TopK(1))


# -- kept ------------------------------------------------------------------------------------------


def test_names_are_saved_copied_repeated_and_survive_merging(tmp_path):
    one = policy()
    one.choose(arrow(), TopK(1))
    one.save(tmp_path / "policy")
    merged = copy.deepcopy(one)
    merged.merge(policy().state)
    batch = repeated(one, [np.random.default_rng(0)])
    for other in (armful.load(tmp_path / "policy"), copy.copy(one), pickle.loads(pickle.dumps(one)), merged, batch):
        assert other.columns == NAMES
    assert "order differs" in refusal(armful.load(tmp_path / "policy").choose, arrow(NAMES[::-1]), TopK(1))


def test_the_list_of_names_is_a_copy():
    one = policy()
    one.choose(arrow(), TopK(1))
    one.columns.reverse()
    assert one.columns == NAMES


@pytest.mark.parametrize("columns", [["a", "b"], "abc", ["a", "b", 3], {"a": 1}, [["a"], "b", "c"]])
def test_names_that_do_not_fit_are_refused_in_a_file(tmp_path, columns):
    one = policy()
    one._columns = columns if isinstance(columns, list) else [columns]
    one.save(tmp_path / "policy")
    with pytest.raises(FileFormatError, match="does not fit C2UCB of this armful: "):
        armful.load(tmp_path / "policy")


def test_a_wrapped_frame_keeps_its_names():
    table = Table.wrap(arrow(), ids=list(range(8)))
    assert table.columns == NAMES
    assert pickle.loads(pickle.dumps(table)).columns == NAMES
    assert Table.wrap(X).columns is None
