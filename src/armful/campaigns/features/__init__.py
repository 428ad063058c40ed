"""`FeatureRecipe`: how the columns of a file become features, frozen at the first round."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any, Self

import numpy as np
import pyarrow as pa

from armful.campaigns.features._fitting import OneValue, columns_named, fit_of, gathered
from armful.campaigns.features._kinds import Features, Part, Target, unique_names
from armful.campaigns.features._numbers import Ready
from armful.campaigns.features._packed_product import Layout
from armful.campaigns.features._packed_rows import PackedRows, Written
from armful.campaigns.features._recipe_json import recipe_content, recipe_text
from armful.campaigns.features._texts import Category
from armful.campaigns.features._transformers import TransformerFeatures
from armful.campaigns.settings import FeatureSettings
from armful.tables._columns import name_list

CONSTANT = "constant"
TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True)
class FeatureRecipe:
    """How the columns of a file become features: categories, medians, bounds and knots, frozen at the first round.

    Parameters
    ----------
    parts : tuple of Part
        What was frozen of each column, or a transformer.
    interactions : tuple of pairs of str
        Pairs of columns: every feature of the one times every feature of the other is a feature too.
    intercept : bool
        Whether there is a constant feature.
    left_out : tuple of pairs of str
        Columns that are not used, each with the reason.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from armful.campaigns.settings import ColumnSettings, FeatureSettings
    >>> people = pa.record_batch({"age": [20.0, 40.0, None], "job": ["clerk", "nurse", "nurse"], "month": ["may"] * 3})
    >>> columns = (
    ...     ColumnSettings(name="age", kind="number"),
    ...     ColumnSettings(name="job", kind="category"),
    ...     ColumnSettings(name="month", kind="category"),
    ... )
    >>> recipe = FeatureRecipe.fit(FeatureSettings(columns=columns), [people])
    >>> recipe.names
    ['constant', 'age', 'age: missing', 'job: clerk', 'job: nurse', 'job: other']
    >>> recipe.left_out
    (('month', "'may' in every row"),)
    >>> recipe.transform(people).shape
    (3, 6)
    >>> FeatureRecipe.from_json(recipe.to_json()) == recipe
    True
    """

    parts: tuple[Part, ...]
    interactions: tuple[tuple[str, str], ...] = ()
    intercept: bool = True
    left_out: tuple[tuple[str, str], ...] = ()

    @classmethod
    def fit(cls, settings: FeatureSettings, batches: Iterable[pa.RecordBatch]) -> Self:
        """Return the recipe of the first round's rows, in one pass over them.

        Counts are exact. Medians, bounds and knots come from a uniform sample of 100,000 rows, which is the same
        however the rows are divided into batches. A column with one value in all rows is left out.

        Parameters
        ----------
        settings : FeatureSettings
            The columns, and the kind of each; or ready features, for which no rows are read.
        batches : iterable of pyarrow.RecordBatch
            The rows.

        Returns
        -------
        FeatureRecipe

        Raises
        ------
        ValueError
            There are no rows, a column is not there or holds something else than its kind, or nothing is left to use.
        """
        if settings.ready:
            return cls((Ready(columns=settings.ready),), intercept=False)
        fits = [fit_of(column) for column in settings.columns]
        names = [column.name for column in settings.columns]
        sample = gathered(names, fits, batches)
        if not sample.n_rows:
            raise ValueError("the features are fitted on the rows of the first round, got none")
        drawn, parts, left_out = sample.rows(), [], []
        for name, fit in zip(names, fits, strict=True):
            try:
                parts.append(fit.finish(drawn.column(name).to_numpy() if name in drawn.column_names else None))
            except OneValue as reason:
                left_out.append((name, str(reason)))
        used = {part.columns[0] for part in parts}
        pairs = tuple(pair for pair in settings.interactions if set(pair) <= used)
        recipe = cls(tuple(parts), pairs, settings.intercept, tuple(left_out))
        if not recipe.n_features:
            raise ValueError(f"no column is left for the features: {name_list(names)} have one value each: add columns")
        return recipe

    @classmethod
    def from_transformer(
        cls,
        transformer: Any,
        columns: Sequence[str],
        batches: Iterable[pa.RecordBatch] | None = None,
        *,
        names: Sequence[str] | None = None,
        intercept: bool = True,
        trusted: Sequence[str] = (),
    ) -> Self:
        """Return a recipe that uses a transformer of scikit-learn.

        The transformer is given a `pyarrow.Table` of its columns, some rows at a time. What it returns is divided by
        the square root of the number of features, like all features.

        It is kept with [skops](https://skops.readthedocs.io), not with pickle: reading a recipe runs no code but
        scikit-learn's. Types of other packages, and functions of your own in a `FunctionTransformer`, are refused
        unless you name them in `trusted`; a campaign never does.

        Parameters
        ----------
        transformer : object
            With `fit` and `transform`. One that is not fitted yet is copied and fitted on a uniform sample of at most
            100,000 of the rows.
        columns : sequence of str
            The columns of the file that it needs.
        batches : iterable of pyarrow.RecordBatch, optional
            The rows of the first round; not needed if it is fitted and names its features.
        names : sequence of str, optional
            The names of the features; by default those of `get_feature_names_out`.
        intercept : bool
            Whether to add a constant feature.
        trusted : sequence of str
            Types that it may hold besides scikit-learn's own.

        Returns
        -------
        FeatureRecipe

        Raises
        ------
        ValueError
            It is not fitted and there are no rows, does not give one finite number for each row and feature, or holds
            types that are not trusted.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from sklearn.preprocessing import MinMaxScaler
        >>> people = pa.record_batch({"age": [20.0, 40.0, 60.0]})
        >>> recipe = FeatureRecipe.from_transformer(MinMaxScaler(), ["age"], [people])
        >>> recipe.names
        ['constant', 'age']
        >>> (recipe.transform(people) * 2**0.5).round(3).tolist()
        [[1.0, 0.0], [1.0, 0.5], [1.0, 1.0]]
        """
        part = TransformerFeatures.of(transformer, columns, batches, names, trusted)
        return cls((part,), intercept=intercept)

    @property
    def columns(self) -> list[str]:
        """The columns of the file that are needed."""
        return list(dict.fromkeys(column for part in self.parts for column in part.columns))

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return list(self._names)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        own = {part.columns[0]: part.names for part in self.parts}
        crossed = [
            f"{a} {TIMES} {b}" for first, second in self.interactions for a, b in product(own[first], own[second])
        ]
        names = (name for part in self.parts for name in part.names)
        return tuple(unique_names([*[CONSTANT] * self.intercept, *names, *crossed]))

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return len(self._names)

    def transform(self, batch: pa.RecordBatch) -> Features:
        """Return the features of some rows.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            Rows with at least the columns of the recipe, in any order.

        Returns
        -------
        array of float32, `(n_rows, n_features)`
            Numbers are from 0 to 1, then all are divided by the square root of `n_features`.

        Raises
        ------
        ValueError
            A column is missing, or holds something else than at the first round.
        """
        return self.unpack(self.pack(batch))

    def pack(self, batch: pa.RecordBatch) -> PackedRows:
        """Return the features of some rows in a fraction of the memory, with the errors of `transform`."""
        columns = dict(zip(self.columns, columns_named(batch, self.columns), strict=True))
        written: list[Written] = []
        for part, place in zip(self.parts, self._places, strict=True):
            part.write([columns[name] for name in part.columns], Target(written, place.start, self._one))
        return PackedRows(n=batch.num_rows, written=tuple(written))

    def unpack(self, rows: PackedRows) -> Features:
        """Return the features of packed rows, as `transform` does."""
        one = np.float32(self._one)
        X = np.zeros((rows.n, self.n_features), dtype=np.float32)
        X[:, : self.intercept] = one
        rows.spread(X, one)
        places = {part.columns[0]: place for part, place in zip(self.parts, self._places, strict=True)}
        first = max([self.intercept, *(place.stop for place in self._places)])
        for pair in self.interactions:
            left, right = X[:, places[pair[0]]], X[:, places[pair[1]]]
            width = left.shape[1] * right.shape[1]
            crossed = left[:, :, None] * (right[:, None, :] / one)
            X[:, first : first + width] = crossed.reshape(len(X), width)
            first += width
        return X

    @cached_property
    def layout(self) -> Layout:
        """Which features packed rows have, without interactions."""
        places = zip(self.parts, self._places, strict=True)
        categories = tuple(place for part, place in places if isinstance(part, Category))
        return Layout(n_features=self.n_features, one=self._one, intercept=self.intercept, categories=categories)

    @property
    def _one(self) -> float:
        """What stands for 1 in the features."""
        return float(1.0 / np.sqrt(self.n_features))

    @cached_property
    def _places(self) -> list[slice]:
        """The features of each part."""
        ends = np.cumsum([int(self.intercept), *(len(part.names) for part in self.parts)]).tolist()
        return [slice(begin, end) for begin, end in pairwise(ends)]

    def to_json(self) -> str:
        """Return all that was frozen, as JSON that people can read."""
        return recipe_text(self.parts, self.interactions, self.intercept, self.left_out)

    @classmethod
    def from_json(cls, text: str, *, trusted: Sequence[str] = ()) -> Self:
        """Return the recipe that `to_json` wrote.

        Parameters
        ----------
        text : str
            What `to_json` returned.
        trusted : sequence of str
            Types that a transformer of your own may hold besides scikit-learn's, as in `from_transformer`.

        Returns
        -------
        FeatureRecipe

        Raises
        ------
        FileFormatError
            The text is no recipe, or one of a later version.
        """
        return cls(*recipe_content(text, trusted))
