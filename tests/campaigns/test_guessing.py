"""Guesses at columns, on made files that hold one thing each."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from armful.campaigns.init._guessing import changes_rarely, guess_column, leaks
from armful.campaigns.init._names import id_score, known_afterwards, reward_rank
from armful.campaigns.init._profiles import profile_file
from armful.campaigns.init._roles import round_above
from armful.campaigns.reading._delimiter import guess_delimiter

N = 400
RNG = np.random.default_rng(0)


@pytest.fixture(params=["csv", "parquet"])
def profile(request, tmp_path):
    """A function from columns to the profile of a file that holds them."""

    def profile(**columns):
        n_rows = len(next(iter(columns.values())))
        table, path = pa.table({"id": np.arange(n_rows), **columns}), tmp_path / f"customers.{request.param}"
        if request.param == "csv":
            pa.csv.write_csv(table, path)
        else:
            pa.parquet.write_table(table, path)
        return {column.name: column for column in profile_file(path, ",").columns[1:]}

    return profile


def kind_of(column):
    """Return the kind that is guessed, with "log" where it is, or None if the column is left out."""
    settings = guess_column(column).settings
    return None if settings is None else f"{settings.kind}{' log' * settings.log}"


WORDS = np.array(["garden", "sport", "books", "cooking", "travel", "music"])
COLUMNS = {
    "age": (RNG.integers(18, 95, N), "number"),
    "score": (RNG.normal(size=N).round(3), "number"),
    "flag01": (RNG.integers(0, 2, N), "number"),
    "balance": (np.exp(RNG.normal(5, 2, N)).round(2), "number log"),
    "revenue_2024": (np.where(RNG.random(N) < 0.4, 0, np.exp(RNG.normal(3, 2.5, N)).round(2)), "number log"),
    "orders": (RNG.poisson(1.0, N), "number"),
    "days_ago": (np.where(RNG.random(N) < 0.5, 999, RNG.integers(0, 30, N)), "number"),
    "net": (np.where(RNG.random(N) < 0.5, -1, 1) * np.exp(RNG.normal(5, 2, N)).round(2), "number"),
    "region": (RNG.choice(["north", "south", "west"], N), "category"),
    "segment": (RNG.integers(1, 9, N), "category"),
    "product_id": (RNG.integers(1, 5, N), "category"),
    "zip_code": (RNG.integers(10000, 99999, N), None),
    "city": (np.char.add("city", np.minimum(RNG.geometric(0.1, N), 120).astype(str)), "category"),
    "newsletter": (RNG.random(N) < 0.5, "category"),
    "signup": (np.datetime64("2024-01-01") + RNG.integers(0, 700, N), "date"),
    "notes": ([" ".join(RNG.choice(WORDS, 3)) for _ in range(N)], "text"),
    "likes": ([" ".join(word for word in WORDS if RNG.random() < 0.4) for _ in range(N)], "text"),
    "name": ([f"name{i} surname{i}" for i in range(N)], None),
    "token": ([f"x{i:05d}" for i in range(N)], None),
    "row": (np.arange(N), None),
    "constant": (np.full(N, 7), None),
    "always": (["yes"] * N, None),
    "blank": (pa.nulls(N, pa.string()), None),
    "duration": (RNG.integers(0, 900, N), None),
    "converted": (RNG.integers(0, 2, N), None),
    "sometimes": (pa.array([1.0, None] * (N // 2)), "number"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_each_sort_of_column_gets_its_kind(profile, name):
    values, kind = COLUMNS[name]
    if name == "likes":  # with few words there are few sets of them, and sets that repeat are categories
        values = [f"{text} {text[:1]}{i % 40}" for i, text in enumerate(values)]
    guess = guess_column(profile(**{name: values})[name])
    assert kind_of(guess.profile) == kind, guess.why
    assert guess.why


def test_a_column_known_only_afterwards_is_asked_about(profile):
    guess = guess_column(profile(duration=np.arange(9) % 4)["duration"])
    assert guess.settings is None
    assert guess.question.startswith("is duration known before a contact?")


@pytest.mark.parametrize(
    ("values", "kind", "words"),
    [
        (["1,5", "2,25", "3,0"], None, "comma"),
        (["1.234,50", "7,2", "9,1"], None, "comma"),
        (["1,234", "5,678", "9,012"], None, "comma"),
        (["12/31/2026", "01/02/2026", "05/06/2025"], None, "dates are not written like 2026-12-31"),
        (["31.12.2026", "01.02.2026", "05.06.2025"], "date", "different"),
        (["2026-12-31T10:00:00", "2026-12-30T10:00:00", "2026-12-29T11:00:00"], "date", "different"),
        (["007", "012", "007"], "category", "2 values"),
        (["NA", "5", "7"], "number", "5"),
        (["5", "many", "5"], "category", "2 values"),
    ],
)
def test_the_way_values_are_written_decides(tmp_path, values, kind, words):
    path = tmp_path / "customers.csv"
    path.write_text("\n".join(["x", *(f'"{value}"' for value in values * 40)]))
    guess = guess_column(profile_file(path, ",").columns[0])
    assert kind_of(guess.profile) == kind
    assert words in (guess.why if kind is None else guess.why + " different")


def test_a_column_that_turns_decimal_or_text_late_is_seen_as_such(tmp_path):
    path = tmp_path / "customers.csv"
    rows = [f"{i % 50},{i % 50}" for i in range(30_000)] + [f"{i}.5,unknown" for i in range(300)]
    path.write_text("\n".join(["rate,code", *rows]))
    rate, code = profile_file(path, ",").columns
    assert rate.looks == "numbers"
    assert not rate.are_whole
    assert kind_of(code) == "category"


def test_types_that_are_no_features_are_left_out(tmp_path):
    path = tmp_path / "customers.parquet"
    table = pa.table({"tags": [["a"], ["b", "c"]] * 9, "raw": [b"\xff", b"x"] * 9, "age": [1, 2] * 9})
    pa.parquet.write_table(table, path)
    guesses = [guess_column(column) for column in profile_file(path, ",").columns]
    assert [guess.settings is None for guess in guesses] == [True, True, False]
    assert "list" in guesses[0].why


def test_what_tells_the_reward_is_found_and_noise_is_not(profile):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 2000).astype(float)
    columns = profile(
        copy=y,
        words=np.where(y > 0, "signed", "open"),
        amount=np.where(y > 0, rng.uniform(10, 90, 2000), 0.0),
        noise=rng.normal(size=2000),
        hint=y + rng.normal(size=2000),
        strong_hint=y + 0.5 * rng.normal(size=2000),
        name=[f"n{i}" for i in range(2000)],
        fair=rng.choice(["a", "b"], 2000),
    )
    assert [name for name, column in columns.items() if leaks(column, y)] == ["copy", "words", "amount"]
    assert not leaks(columns["copy"], np.full(2000, np.nan))
    assert not leaks(columns["copy"], np.ones(2000))


def test_what_changes_from_time_to_time_is_told_from_what_the_file_is_sorted_by(profile):
    columns = profile(
        rate=np.repeat([4.1, 1.3, 2.2, 4.0], 500),
        month=np.repeat(["may", "jun", "jul", "may"], 500),
        sorted_words=np.repeat(["a", "b", "c", "d"], 500),
        falling=np.repeat([40, 30, 9, 2], 500),
        mixed=np.tile([1, 2, 3, 4], 500),
    )
    assert [name for name, column in columns.items() if changes_rarely(column)] == ["rate", "month"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_the_one_that_divides_all_lines_alike(tmp_path, delimiter):
    path = tmp_path / "customers.csv"
    rows = [["id", "a;b,c|d", "x"], ["1", "one, two; three", "1"], ["2", 'a "quoted" | word', "2"]]
    lines = [delimiter.join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    path.write_text(
        "\ufeff" + "\n".join([*lines, *[delimiter.join(["3", "x", "1,5" if delimiter != "," else "1"])] * 9])
    )
    assert guess_delimiter(path) == delimiter


def test_a_file_of_one_column_has_a_comma(tmp_path):
    path = tmp_path / "customers.csv"
    path.write_text("id\n1\n2\n")
    assert guess_delimiter(path) == ","


@pytest.mark.parametrize("name", ["customer_id", "CustomerID", "id", "client id", "userid", "Person-Id"])
def test_names_of_ids_are_known(name):
    assert id_score(name) == 4


@pytest.mark.parametrize("name", ["paid", "video", "width", "age", "valid", "ideas", ""])
def test_other_names_are_not_taken_for_ids(name):
    assert id_score(name) == 0


@pytest.mark.parametrize(
    "name", ["poutcome", "previous_response", "days_since_click", "orders_12m", "duration_prev", ""]
)
def test_what_is_known_before_is_not_taken_for_what_comes_later(name):
    assert not known_afterwards(name)
    assert reward_rank(name) is None


def test_a_reward_is_preferred_by_its_name():
    ranks = [reward_rank(name) for name in ("reward", "y", "is_converted", "campaign_response", "revenue")]
    assert ranks == sorted(ranks)
    assert reward_rank("call_duration") is None


@pytest.mark.parametrize("number", [1e-9, 0.999, 1.0, 1.01, 49.0, 73.0, 12345.0, 9.99e12])
def test_a_cap_is_a_round_number_just_above(number):
    assert number <= round_above(number) <= 2.5 * number
    assert f"{round_above(number):e}"[0] in "125"
