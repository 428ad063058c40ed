"""The customers of a round: their features in a table, and what decides who may be chosen."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.campaigns.features import FeatureRecipe
from armful.campaigns.features._kinds import ColumnFeatures
from armful.campaigns.features._packed_rows import PackedRows
from armful.campaigns.holdout import shares_at
from armful.campaigns.reading import _column_values as column_values
from armful.campaigns.reading._person_ids import (
    Ids,
    IdSet,
    as_ids,
    as_texts,
    ids_at,
    refuse_repeated,
    short_keys,
    uniforms_of_texts,
)
from armful.campaigns.reading._row_progress import with_progress
from armful.campaigns.reading._rows import open_rows
from armful.campaigns.rounds._feature_file import FeatureFile, estimator
from armful.campaigns.settings import Settings
from armful.checks import FloatArray, IntArray
from armful.constraints._groups import Groups
from armful.errors import NoRowsError
from armful.scan._threads import in_threads_as_read
from armful.tables import Table
from armful.tables._columns import import_pyarrow


@dataclass(frozen=True, eq=False, kw_only=True)
class Customers:
    """All customers of a file; arrays have one entry for each of n customers, in the order of the file.

    Attributes
    ----------
    table : Table
        Their features.
    ids : pyarrow.ChunkedArray
        Their ids, as text.
    shares : ndarray of uint8, shape (n,)
        Positions in `SHARES`.
    excluded, required : ndarray of bool, shape (n,)
        Who may not be chosen, and who must be.
    estimates : ndarray of float32, shape (n,)
        Their estimated rewards.
    groups : mapping of str to Groups
        For each column with a quota the group of each customer.
    costs, scores : ndarray, shape (n,), or None
        The columns of the budget and of the house rule.
    strangers : tuple of str
        The files of excluded or required ids of which none is that of a customer.
    """

    table: Table
    ids: Any
    shares: NDArray[np.uint8]
    excluded: NDArray[np.bool_]
    required: NDArray[np.bool_]
    estimates: NDArray[np.float32]
    groups: Mapping[str, Groups]
    costs: FloatArray | None
    scores: FloatArray | None
    strangers: tuple[str, ...] = ()

    def ids_at(self, indices: IntArray) -> Ids:
        """Return the ids of some customers, `(m,)`."""
        return ids_at(self.ids, indices)


def columns_of(settings: Settings, recipe: FeatureRecipe | None) -> tuple[list[str], list[str]]:
    """Return the columns of the file that a round reads, and which of these are read as text.

    recipe: None before the first round; its kinds count, whatever the settings say by now.
    """
    choose, holdout = settings.choose, settings.holdout
    kinds = {each.name: each.kind for each in settings.features.columns} | frozen_kinds(recipe)
    numbers = [choose.budget.column] if choose.budget else []
    numbers += [holdout.score] if holdout.rule == "score" and holdout.score else []
    quotas = [quota.column for quota in choose.quotas]
    listed = [*(each.name for each in settings.features.columns), *settings.features.ready]
    features = listed if recipe is None else recipe.columns
    columns = list(dict.fromkeys([settings.id, *features, *quotas, *numbers]))
    are_numbers = {*numbers, *(name for name, kind in kinds.items() if kind == "number")}
    texts = {settings.id, *kinds, *quotas} - are_numbers
    return columns, [name for name in columns if name in texts]


def frozen_kinds(recipe: FeatureRecipe | None) -> dict[str, str]:
    """Return the kind of each column as it was frozen; none of a transformer's columns."""
    parts = () if recipe is None else recipe.parts
    return {part.columns[0]: part.kind for part in parts if isinstance(part, ColumnFeatures)}


def fit_recipe(source: Any, settings: Settings, transformer: Any = None, *, progress: bool = False) -> FeatureRecipe:
    """Return the recipe of the features, fitted to a file of customers; transformer: one of scikit-learn, if used."""
    names = [*(each.name for each in settings.features.columns), *settings.features.ready]
    columns, texts = columns_of(settings, None)
    reader = open_rows(source, columns=columns, text=texts, delimiter=settings.delimiter, read=names or None)
    batches = with_progress(reader, "looking at the columns", show=progress)
    if transformer is not None:
        return FeatureRecipe.from_transformer(transformer, names, batches)
    return FeatureRecipe.fit(settings.features, batches)


def read_customers(
    source: Any,
    settings: Settings,
    recipe: FeatureRecipe,
    theta: FloatArray,
    path: Path,
    *,
    excluded: Future[IdSet],
    required: IdSet,
    progress: bool = False,
) -> Customers:
    """Read a file of customers once, a batch at a time, and write their features to a new file at `path`.

    Besides some batches it holds the ids and about 40 bytes for each customer. theta: what the estimates are made with,
    `(n_features,)`.

    Raises
    ------
    ValueError
        If there are no customers, one has no id, or two have the same.
    """
    columns, texts = columns_of(settings, recipe)
    reader = open_rows(source, columns=columns, text=texts, delimiter=settings.delimiter)
    file = FeatureFile(path, recipe)
    prepare = _Preparation(settings, recipe, estimator(recipe, theta), excluded, required, file)
    batches = _numbered(with_progress(reader, "reading customers", show=progress))
    prepared = list(in_threads_as_read(prepare, batches))
    if not prepared:
        raise NoRowsError(
            "there are no customers to read; a stream can be read once, and the first round reads it twice"
        )
    return _joined(prepared, settings, Table(file))


def _numbered(batches: Iterator[Any]) -> Iterator[tuple[int, Any]]:
    """Yield the batches that have rows, each with the number of rows before it."""
    begin = 0
    for batch in batches:
        if batch.num_rows:
            yield begin, batch
            begin += batch.num_rows


@dataclass(frozen=True, eq=False, kw_only=True)
class _Prepared:
    """What is kept in memory of a batch of m customers.

    keys: the `short_keys` of their ids. groups: for each quota the labels of this batch, and the position of each
    customer's label in these. The others are as in `Customers`.
    """

    ids: Any
    keys: NDArray[np.uint32]
    shares: NDArray[np.uint8]
    excluded: NDArray[np.bool_]
    required: NDArray[np.bool_]
    estimates: NDArray[np.float32]
    groups: list[tuple[list[str], IntArray]]
    costs: FloatArray | None
    scores: FloatArray | None


@dataclass(frozen=True, eq=False)
class _Preparation:
    """Prepares batches, in several threads: makes their features and writes them, and what else a round needs."""

    settings: Settings
    recipe: FeatureRecipe
    estimate: Callable[[PackedRows], NDArray[np.float32]]
    excluded: Future[IdSet]
    required: IdSet
    file: FeatureFile

    def __call__(self, numbered: tuple[int, Any]) -> _Prepared:
        begin, batch = numbered
        settings, (budget, holdout) = self.settings, (self.settings.choose.budget, self.settings.holdout)
        ids = as_ids(batch.column(settings.id), settings.id, begin)
        keys = uniforms_of_texts(ids, settings.name)
        shares = shares_at(keys, holdout=holdout.share, no_contact=holdout.no_contact)
        rows = self.recipe.pack(batch)
        self.file.write(begin, rows)
        score = holdout.score if holdout.rule == "score" else None
        return _Prepared(
            ids=ids,
            keys=short_keys(keys),
            shares=shares,
            excluded=self.excluded.result().holds(ids, keys),
            required=self.required.holds(ids, keys),
            estimates=self.estimate(rows),
            groups=[_labels_and_codes(batch, quota.column) for quota in settings.choose.quotas],
            costs=None if budget is None else _numbers(batch, budget.column, ids, at_least_zero=True),
            scores=None if score is None else _numbers(batch, score, ids),
        )


def _joined(prepared: list[_Prepared], settings: Settings, table: Table) -> Customers:
    """Return the customers of all batches."""

    def joined(values: Callable[[_Prepared], Any]) -> NDArray[Any]:
        return np.concatenate([values(each) for each in prepared])

    ids = import_pyarrow().chunked_array([each.ids for each in prepared])
    refuse_repeated(ids, joined(lambda each: each.keys), settings.id)
    first = prepared[0]
    return Customers(
        table=table,
        ids=ids,
        shares=joined(lambda each: each.shares),
        excluded=joined(lambda each: each.excluded),
        required=joined(lambda each: each.required),
        estimates=joined(lambda each: each.estimates),
        groups={
            quota.column: _groups(quota.column, [each.groups[i] for each in prepared])
            for i, quota in enumerate(settings.choose.quotas)
        },
        costs=None if first.costs is None else joined(lambda each: each.costs),
        scores=None if first.scores is None else joined(lambda each: each.scores),
    )


def _labels_and_codes(batch: Any, column: str) -> tuple[list[str], IntArray]:
    """Return the labels of a column, and the position of each customer's label; no value is the label `(none)`."""
    values = batch.column(column)
    if import_pyarrow().types.is_dictionary(values.type) and not values.null_count:
        labels, codes = _labels_and_codes_of(values.dictionary, column)
        return labels, codes[values.indices.to_numpy()]
    return _labels_and_codes_of(values, column)


def _labels_and_codes_of(values: Any, column: str) -> tuple[list[str], IntArray]:
    from pyarrow import compute  # noqa: PLC0415

    texts = as_texts(values, column)
    empty = compute.fill_null(compute.equal(texts, ""), True)
    encoded = compute.if_else(empty, "(none)", texts).dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy()


def _groups(column: str, parts: list[tuple[list[str], IntArray]]) -> Groups:
    """Return the group of each customer from the labels and codes of the batches."""
    code_of: dict[str, int] = {}
    codes = []
    for labels, positions in parts:
        numbers = np.array([code_of.setdefault(label, len(code_of)) for label in labels], dtype=np.int64)
        codes.append(numbers.astype(np.min_scalar_type(len(code_of)))[positions])
    return Groups(list(code_of), np.concatenate(codes), kind=column)


def _numbers(batch: Any, column: str, ids: Any, *, at_least_zero: bool = False) -> FloatArray:
    """Return a column of numbers that every customer must have."""
    values = column_values.numbers(batch.column(column), column)
    bad = np.flatnonzero(np.isnan(values))
    if bad.size:
        who = ids[int(bad[0])].as_py()
        raise ValueError(f"column {column!r} must hold a number for every customer, {who!r} has none")
    if at_least_zero and values.min() < 0:
        raise ValueError(f"column {column!r} must hold costs of at least 0, got {values.min():g}")
    return values
