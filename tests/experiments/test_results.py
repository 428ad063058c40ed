import csv
import math

import numpy as np
import pyarrow.parquet as pq
import pytest

from armful.experiments.results import Result, fit_growth, tidy, write_table


def result(pulled, regret, **other):
    identity = {"environment": "e", "policy": "p", "k": 1, "rounds": 1, "seed": 0, **other}
    return Result(
        pulled=pulled, regret=regret, runs=len(regret), curve=[0.0], curve_stderr=[0.0], seconds=1.0, **identity
    )


def test_growth_finds_the_exponent_of_a_power_law():
    fit = fit_growth([result(x, [3 * x**0.7, 3 * x**0.7]) for x in (10, 40, 160)])
    assert fit.exponent == pytest.approx(0.7)
    assert fit.stderr == 0.0


def test_the_error_of_growth_is_that_of_a_least_squares_slope():
    """Against 20,000 fits of disturbed means: the spread of a spread is 0.5 %, 5 % is allowed."""
    rng = np.random.default_rng(0)
    sizes, means, relative = np.array([10.0, 40.0, 160.0]), np.array([5.0, 11.0, 30.0]), 0.01
    draws = np.log(means * (1 + relative * rng.standard_normal((20000, 3))))
    slopes = np.polyfit(np.log(sizes), draws.T, 1)[0]
    spread = [[m * (1 - relative), m * (1 + relative)] for m in means]  # standard error = relative * m with 2 runs
    fit = fit_growth([result(x, s) for x, s in zip(sizes, spread, strict=True)])
    assert fit.stderr == pytest.approx(slopes.std(), rel=0.05)


def test_growth_needs_two_sizes_and_positive_regret():
    assert fit_growth([result(10, [1.0, 2.0])]) is None
    assert fit_growth([result(10, [0.0]), result(20, [1.0])]) is None


def test_one_run_has_no_standard_error():
    assert math.isnan(result(10, [1.0]).stderr)


def test_the_table_has_no_k_for_an_environment_without_one(tmp_path):
    write_table(tidy([result(20, [1.0], k=0), result(20, [2.0], k=5)], "type"), tmp_path / "regret")
    with (tmp_path / "regret.csv").open() as file:
        assert [row["k"] for row in csv.DictReader(file)] == ["", "5"]
    assert pq.read_table(tmp_path / "regret.parquet")["k"].to_pylist() == [None, 5]
    write_table(tidy([result(20, [1.0], k=0)], "type"), tmp_path / "regret")
    assert str(pq.read_table(tmp_path / "regret.parquet")["k"].type) == "int64"


def test_the_table_is_the_same_in_csv_and_parquet(tmp_path):
    rows = tidy([result(20, [1.0, 3.0], policy="b"), result(20, [2.0, 2.5], policy="a")], "type")
    write_table(rows, tmp_path / "regret")
    with (tmp_path / "regret.csv").open() as file:
        from_csv = list(csv.DictReader(file))
    from_parquet = pq.read_table(tmp_path / "regret.parquet").to_pylist()
    assert list(from_csv[0]) == ["type", "policy", "k", "T", "pulled", "runs", "mean", "stderr"]
    assert from_parquet == rows
    assert [row["policy"] for row in from_csv] == ["a", "b"]
    assert float(from_csv[1]["mean"]) == 2.0
    assert float(from_csv[1]["stderr"]) == pytest.approx(1.0)
