import errno
import os

import numpy as np
import pyarrow as pa
import pytest
from sklearn.preprocessing import StandardScaler

from armful.campaigns.features import FeatureRecipe, _packed_product
from armful.campaigns.rounds._feature_file import FeatureFile, estimator
from armful.campaigns.settings import ColumnSettings, FeatureSettings
from armful.model import RidgeState
from armful.scan._rounding import Rounding
from armful.tables import Table

COLUMNS = (
    ColumnSettings(name="age", kind="number", spline=3),
    ColumnSettings(name="income", kind="number", log=True),
    ColumnSettings(name="job", kind="category"),
    ColumnSettings(name="grade", kind="ordered", order=("low", "middle", "high")),
    ColumnSettings(name="notes", kind="text", buckets=4),
    ColumnSettings(name="town", kind="category"),
)


def people(n, seed):
    rng = np.random.default_rng(seed)
    words = np.array(["red", "green", "blue"])
    return pa.record_batch(
        {
            "age": pa.array(rng.uniform(18, 90, n), mask=rng.random(n) < 0.2),
            "income": rng.lognormal(10, 1, n),
            "job": pa.array([f"job {i}" for i in rng.integers(0, 12, n)]),
            "grade": pa.array(np.array(["low", "middle", "high", "none"])[rng.integers(0, 4, n)]),
            "town": pa.array([f"town {i}" for i in rng.integers(0, 5, n)]),
            "notes": pa.array([" ".join(pair) for pair in words[rng.integers(0, 3, (n, 2))]]),
        }
    )


def recipes():
    rows = people(400, 1)
    yield FeatureRecipe.fit(FeatureSettings(columns=COLUMNS), [rows])
    yield FeatureRecipe.fit(FeatureSettings(columns=COLUMNS, interactions=(("job", "grade"),), intercept=False), [rows])
    yield FeatureRecipe.from_transformer(StandardScaler(), ["age", "income"], [rows.drop_null()])


@pytest.fixture(params=range(3))
def recipe(request):
    return list(recipes())[request.param]


@pytest.fixture
def written(tmp_path, recipe):
    """Return a table whose batches were written in another order, and the features of all rows."""
    batches = [people(n, seed).drop_null() for seed, n in enumerate([5000, 1, 70, 4200])]
    begins = np.cumsum([0, *(batch.num_rows for batch in batches)]).tolist()
    file = FeatureFile(tmp_path / "features", recipe)
    for i in (2, 0, 3, 1):
        file.write(begins[i], recipe.pack(batches[i]))
    return Table(file), np.concatenate([recipe.transform(batch) for batch in batches])


def test_a_table_of_packed_rows_gives_the_features_of_the_recipe(written):
    table, X = written
    assert (table.n_arms, table.n_features, table.dtype) == (*X.shape, np.float32)
    blocks = [table.rows(block.start, block.stop) for block in table.blocks]
    np.testing.assert_array_equal(np.concatenate(blocks), X, strict=True)


@pytest.mark.parametrize("seed", range(5))
def test_any_rows_may_be_read_and_taken(written, seed):
    table, X = written
    rng = np.random.default_rng(seed)
    for _ in range(10):
        begin, end = np.sort(rng.integers(0, len(X) + 1, 2)).tolist()
        np.testing.assert_array_equal(table.rows(begin, end), X[begin:end], strict=True)
        indices = rng.integers(0, len(X), rng.integers(0, 200))
        np.testing.assert_array_equal(table.take(indices), X[indices].astype(np.float64), strict=True)


SIZES = ((180_000, 1024), (300, 20), (1, 1))
"""Numbers that are computed at a time, and combinations of categories that are looked up as one."""


@pytest.mark.parametrize("seed", range(3))
def test_estimates_err_by_no_more_than_is_said(recipe, monkeypatch, seed):
    rng = np.random.default_rng(seed)
    batch = people(700, seed).drop_null()
    X = recipe.transform(batch).astype(np.float64)
    theta = rng.standard_normal(X.shape[1]) * 10.0 ** rng.uniform(-3, 3, X.shape[1])
    unit = (X.shape[1] + 4) * float(np.finfo(np.float32).eps) / 2
    for chunk, together in SIZES:
        monkeypatch.setattr(_packed_product, "CHUNK_NUMBERS", chunk)
        monkeypatch.setattr(_packed_product, "GROUP_ROWS", together)
        estimates = estimator(recipe, theta)(recipe.pack(batch))
        assert estimates.dtype == np.float32
        assert (np.abs(estimates - X @ theta) <= unit * (np.abs(X) @ np.abs(theta))).all()
    assert not estimator(recipe, np.zeros_like(theta))(recipe.pack(batch)).any()


@pytest.mark.parametrize("seed", range(3))
def test_quick_widths_err_by_no_more_than_the_scan_allows_for(written, monkeypatch, seed):
    table, X = written
    X = X.astype(np.float64)
    rng = np.random.default_rng(seed)
    learned = X[rng.integers(0, len(X), 3000)] * 10.0 ** rng.uniform(-1, 1, (3000, 1))
    state = RidgeState(n_features=X.shape[1], ridge=10.0 ** rng.uniform(-1, 1)).learn(learned, rng.random(3000))
    for chunk, together in SIZES:
        monkeypatch.setattr(_packed_product, "CHUNK_NUMBERS", chunk)
        monkeypatch.setattr(_packed_product, "GROUP_ROWS", together)
        quick = table.quick_widths(state.inverse_root, state.theta)
        if quick is None:
            assert table._store._recipe.interactions
            return
        begin, end = np.sort(rng.integers(0, len(X) + 1, 2)).tolist()
        mean, width = quick.compute(begin, end)
        exact = state.width(X[begin:end])
        rounding = Rounding.of(state, np.float32, quick.matrix)
        assert rounding.width < 0.05
        assert (np.abs(mean - state.mean(X[begin:end])) <= rounding.mean * exact + rounding.tiny).all()
        assert (np.abs(width - exact) <= rounding.width * exact + rounding.tiny).all()


def test_categories_take_a_byte(tmp_path):
    recipe = next(recipes())
    rows = recipe.pack(people(1000, 3))
    assert rows.n_bytes < 0.6 * recipe.transform(people(1000, 3)).nbytes
    categories = FeatureRecipe.fit(FeatureSettings(columns=COLUMNS[2:3]), [people(1000, 3)])
    assert categories.pack(people(1000, 3)).n_bytes == 1000


def test_without_positioned_writes_the_same_is_written(tmp_path, recipe, monkeypatch):
    rows = people(300, 4).drop_null()
    monkeypatch.delattr(os, "pwrite", raising=False)
    file = FeatureFile(tmp_path / "features", recipe)
    file.write(0, recipe.pack(rows))
    np.testing.assert_array_equal(file.rows(0, rows.num_rows), recipe.transform(rows))


def test_a_full_disk_is_said_in_a_sentence(tmp_path, recipe, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(FeatureFile, "_write_all", full)
    file = FeatureFile(tmp_path / "features", recipe)
    with pytest.raises(OSError, match=r"features could not be written: .*; it needs at least .*, its disk has .* free"):
        file.write(0, recipe.pack(people(300, 4).drop_null()))
