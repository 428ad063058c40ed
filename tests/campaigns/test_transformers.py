import base64
import json

import numpy as np
import pyarrow as pa
import pytest
import skops.io  # noqa: F401 - takes a second
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, SplineTransformer, StandardScaler

from armful.campaigns.features import FeatureRecipe, _transformers
from armful.campaigns.features._row_sample import RowSample
from armful.errors import FileFormatError

COLUMNS = ["job", "age", "pay"]
OWN = f"{__name__}.Doubled"
SPARSE = ["scipy.sparse._csr.csr_array"]


class Doubled(TransformerMixin, BaseEstimator):
    """A transformer of a user's own, without names for its features."""

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        return 2.0 * np.column_stack([X.column(name).to_numpy() for name in X.column_names])


def people(n=50, seed=0, **changed):
    rng = np.random.default_rng(seed)
    columns = {
        "job": rng.choice(["clerk", "nurse", "pilot"], n),
        "age": rng.integers(18, 80, n).astype(float),
        "pay": pa.array(rng.lognormal(3, 1, n), mask=rng.random(n) < 0.2),
    }
    return pa.RecordBatch.from_pydict(columns | changed)


def usual():
    return ColumnTransformer(
        [
            ("category", OneHotEncoder(handle_unknown="ignore"), ["job"]),
            ("spline", SplineTransformer(n_knots=3), ["age"]),
            ("number", make_pipeline(SimpleImputer(), StandardScaler()), ["pay"]),
        ]
    )


def test_the_features_are_those_of_the_transformer_divided_by_the_square_root():
    rows, later = people(), people(seed=1, job=["acrobat"] * 50)
    recipe = FeatureRecipe.from_transformer(usual(), COLUMNS, [rows.slice(0, 20), rows.slice(20)])
    alone = usual().fit(pa.table(rows))
    assert recipe.names == ["constant", *alone.get_feature_names_out()]
    assert recipe.columns == COLUMNS
    for each in (rows, later):
        expected = np.column_stack([np.ones(50), alone.transform(pa.table(each))]) / np.sqrt(recipe.n_features)
        np.testing.assert_allclose(recipe.transform(each), expected, rtol=1e-6)


def test_it_is_the_same_after_writing_and_reading_and_in_any_batches():
    rows = people()
    recipe = FeatureRecipe.from_transformer(usual(), COLUMNS, [rows])
    again = FeatureRecipe.from_json(recipe.to_json())
    assert again == recipe
    assert again.to_json() == recipe.to_json()
    parts = np.concatenate([again.transform(rows.slice(i, 7)) for i in range(0, 50, 7)])
    assert parts.tobytes() == recipe.transform(rows).tobytes()


def test_texts_may_be_dictionaries():
    rows = people()
    encoded = rows.set_column(0, "job", rows.column("job").dictionary_encode())
    recipe = FeatureRecipe.from_transformer(usual(), COLUMNS, [encoded])
    assert recipe.transform(encoded).tobytes() == recipe.transform(rows).tobytes()


def test_a_fitted_transformer_is_taken_as_it_is():
    fitted = MinMaxScaler().fit(pa.table({"age": [0.0, 10.0]}))
    recipe = FeatureRecipe.from_transformer(fitted, ["age"], names=["age / 10"], intercept=False)
    rows = pa.RecordBatch.from_pydict({"age": [5.0]})
    assert recipe.names == ["age / 10"]
    assert recipe.transform(rows).tolist() == [[0.5]]
    assert FeatureRecipe.from_transformer(fitted, ["age"], [people()], intercept=False).transform(rows).tolist() == [
        [0.5]
    ]


def test_the_users_own_object_is_not_changed():
    transformer = usual()
    FeatureRecipe.from_transformer(transformer, COLUMNS, [people()])
    assert not hasattr(transformer, "transformers_")


def test_of_many_rows_a_sample_is_fitted(monkeypatch):
    monkeypatch.setattr(_transformers, "RowSample", lambda: RowSample(5))
    rows = people(n=1000)
    sample = RowSample(5)
    sample.add(rows.take(pa.array(sample.select(1000))))
    recipe = FeatureRecipe.from_transformer(
        MinMaxScaler(), ["age"], [rows.slice(0, 300), rows.slice(300)], intercept=False
    )
    expected = MinMaxScaler().fit(sample.rows().select(["age"])).transform(pa.table(rows).select(["age"]))
    np.testing.assert_allclose(recipe.transform(rows), expected, rtol=1e-6)


def test_sparse_features_and_features_without_names():
    rows = people()
    recipe = FeatureRecipe.from_transformer(FunctionTransformer(sparse.csr_array), ["age"], [rows], trusted=SPARSE)
    assert recipe.names == ["constant", "feature 1"]
    np.testing.assert_allclose(recipe.transform(rows)[:, 1], rows.column("age").to_numpy() / np.sqrt(2), rtol=1e-6)


class TestTrust:
    def test_types_that_are_not_scikit_learns_own_must_be_trusted_by_name(self):
        with pytest.raises(ValueError, match=f"the transformer holds '{OWN}', which is not scikit-learn's own"):
            FeatureRecipe.from_transformer(Doubled(), ["age"], [people()])
        recipe = FeatureRecipe.from_transformer(Doubled(), ["age"], [people()], trusted=[OWN])
        assert recipe.names == ["constant", "feature 1"]
        with pytest.raises(FileFormatError, match=f"holds '{OWN}'"):
            FeatureRecipe.from_json(recipe.to_json())
        assert FeatureRecipe.from_json(recipe.to_json(), trusted=[OWN]) == recipe

    def test_what_is_written_is_not_pickle(self):
        recipe = FeatureRecipe.from_transformer(usual(), COLUMNS, [people()])
        entry = json.loads(recipe.to_json())["columns"][0]
        assert entry["columns"] == COLUMNS
        assert base64.b64decode(entry["skops"]).startswith(b"PK")  # a zip file of JSON and arrays

    def test_what_was_changed_is_refused(self):
        text = FeatureRecipe.from_transformer(MinMaxScaler(), ["age"], [people()]).to_json()
        content = json.loads(text)
        content["columns"][0]["skops"] = base64.b64encode(b"something else").decode()
        with pytest.raises(FileFormatError, match="the transformer of the feature recipe cannot be read"):
            FeatureRecipe.from_json(json.dumps(content))


class TestRefused:
    def test_something_that_is_no_transformer(self):
        with pytest.raises(
            ValueError, match="transformer must have fit and transform, like those of scikit-learn, got int"
        ):
            FeatureRecipe.from_transformer(3, ["age"], [people()])

    def test_one_that_is_not_fitted_without_rows(self):
        with pytest.raises(ValueError, match="the transformer is not fitted: fit it, or give the rows"):
            FeatureRecipe.from_transformer(usual(), COLUMNS)
        with pytest.raises(ValueError, match="fitted on the rows of the first round, got none"):
            FeatureRecipe.from_transformer(usual(), COLUMNS, [])

    def test_one_without_names_and_without_rows(self):
        with pytest.raises(ValueError, match="does not name its features: name them by names="):
            FeatureRecipe.from_transformer(Doubled().fit(None), ["age"], trusted=[OWN])

    def test_columns_that_are_not_there(self):
        with pytest.raises(ValueError, match="the file has no column 'wage'; its columns are 'job'"):
            FeatureRecipe.from_transformer(usual(), ["job", "wage"], [people()])
        recipe = FeatureRecipe.from_transformer(usual(), COLUMNS, [people()])
        with pytest.raises(ValueError, match="column 'age' is needed for the features"):
            recipe.transform(people().select(["job", "pay"]))

    def test_other_features_than_named(self):
        with pytest.raises(ValueError, match=r"must give 2 features for each row, got \(1, 1\) for 1 rows"):
            FeatureRecipe.from_transformer(MinMaxScaler(), ["age"], [people()], names=["a", "b"])

    def test_numbers_that_are_not_finite(self):
        recipe = FeatureRecipe.from_transformer(MinMaxScaler(), ["age"], [people()])
        with pytest.raises(
            ValueError, match="must give finite numbers, and 'age' has others: let it fill in missing values"
        ):
            recipe.transform(pa.RecordBatch.from_pydict({"age": [1.0, None]}))
