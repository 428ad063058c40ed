"""The customers of a round: their features in a table, and what decides who may be chosen."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.campaigns import _column_values as column_values
from armful.campaigns._feature_kinds import ColumnFeatures
from armful.campaigns._row_progress import with_progress
from armful.campaigns._rows import open_rows
from armful.campaigns.features import FeatureRecipe
from armful.campaigns.holdout import SHARES, shares_at, uniforms
from armful.campaigns.settings import Settings
from armful.checks import FloatArray, IntArray
from armful.constraints._groups import Groups
from armful.errors import NoRowsError
from armful.tables import Table
from armful.tables._build import writing
from armful.tables._columns import Block, import_pyarrow

Ids = NDArray[np.str_]

LONGEST_ID = 500
"""In characters: arrays of ids are as wide as the longest one, and the index of a database has its limit."""


class IdSet:
    """A set of ids that finds which of many ids are in it, by their `uniforms` of a key."""

    def __init__(self, ids: Iterable[Ids], key: str) -> None:
        distinct = np.unique(np.concatenate([np.zeros(0, dtype="U1"), *ids]))
        keys = uniforms(distinct, key)
        order = np.argsort(keys, kind="stable")
        self._keys, self._ids = keys[order], distinct[order]

    def __len__(self) -> int:
        return self._ids.size

    def holds(self, ids: Ids, keys: FloatArray) -> NDArray[np.bool_]:
        """Return which of some ids are in the set, `(n,)`; keys: their `uniforms` of the set's key."""
        if not self._ids.size:
            return np.zeros(ids.size, dtype=bool)
        place = np.minimum(np.searchsorted(self._keys, keys), self._ids.size - 1)
        found: NDArray[np.bool_] = self._keys[place] == keys
        found[found] = self._ids[place[found]] == ids[found]
        return found


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
    groups : mapping of str to Groups
        For each column with a quota the group of each customer.
    costs, scores : ndarray, shape (n,), or None
        The columns of the budget and of the house rule.
    population : mapping of str to mapping
        For each share the number of people and the mean of their features.
    """

    table: Table
    ids: Any
    shares: NDArray[np.uint8]
    excluded: NDArray[np.bool_]
    required: NDArray[np.bool_]
    groups: Mapping[str, Groups]
    costs: FloatArray | None
    scores: FloatArray | None
    population: Mapping[str, Mapping[str, Any]]

    def ids_at(self, indices: IntArray) -> Ids:
        """Return the ids of some customers, `(m,)`."""
        return np.asarray(self.ids.take(import_pyarrow().array(indices)).to_numpy(), dtype=np.str_)


def columns_of(settings: Settings, recipe: FeatureRecipe | None) -> tuple[list[str], list[str]]:
    """Return the columns of the file that a round reads, and which of these are read as text.

    recipe: None before the first round; its kinds count, whatever the settings say by now.
    """
    choose, holdout = settings.choose, settings.holdout
    kinds = {each.name: each.kind for each in settings.features.columns} | frozen_kinds(recipe)
    numbers = [choose.budget.column] if choose.budget else []
    numbers += [holdout.score] if holdout.rule == "score" and holdout.score else []
    quotas = [quota.column for quota in choose.quotas]
    features = [each.name for each in settings.features.columns] if recipe is None else recipe.columns
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
    names = [each.name for each in settings.features.columns]
    columns, texts = columns_of(settings, None)
    reader = open_rows(source, columns=columns, text=texts, delimiter=settings.delimiter)
    batches = with_progress(reader, "looking at the columns", show=progress)
    if transformer is not None:
        return FeatureRecipe.from_transformer(transformer, names, batches)
    return FeatureRecipe.fit(settings.features, batches)


def read_customers(
    source: Any,
    settings: Settings,
    recipe: FeatureRecipe,
    path: Path,
    *,
    excluded: IdSet,
    required: IdSet,
    progress: bool = False,
) -> Customers:
    """Read a file of customers once, a batch at a time, and write their features as a table at `path`.

    Besides a batch it holds the ids and about 40 bytes for each customer.

    Raises
    ------
    ValueError
        If there are no customers, one has no id, or two have the same.
    """
    columns, texts = columns_of(settings, recipe)
    reader = open_rows(source, columns=columns, text=texts, delimiter=settings.delimiter)
    passes = _Columns(settings, excluded, required)
    with writing(path, recipe.n_features, recipe.names, dtype="float32", total=reader.n_rows) as append:
        for batch in with_progress(reader, "reading customers", show=progress):
            if not batch.num_rows:
                continue
            X = recipe.transform(batch)
            passes.add(batch, X)
            append(Block(X, None))
        if not passes.n:
            raise NoRowsError(
                "there are no customers to read; a stream can be read once, and the first round reads it twice"
            )
    return passes.customers(Table.open(path))


class _Columns:
    """The columns of all customers so far, but for their features."""

    def __init__(self, settings: Settings, excluded: IdSet, required: IdSet) -> None:
        self._settings, self._excluded_ids, self._required_ids = settings, excluded, required
        self._ids: list[Any] = []
        self._keys: list[FloatArray] = []
        self._shares: list[NDArray[np.uint8]] = []
        self._excluded: list[NDArray[np.bool_]] = []
        self._required: list[NDArray[np.bool_]] = []
        self._groups = {quota.column: _GroupCodes(quota.column) for quota in settings.choose.quotas}
        budget, holdout = settings.choose.budget, settings.holdout
        self._costs = None if budget is None else _Numbers(budget.column)
        self._scores = _Numbers(holdout.score) if holdout.rule == "score" and holdout.score else None
        self._sums: list[FloatArray | float] = [0.0] * len(SHARES)
        self.n = 0

    def add(self, batch: Any, X: NDArray[np.float32]) -> None:
        """Add the customers of a batch; X: their features."""
        settings = self._settings
        texts = as_ids(batch.column(settings.id), settings.id, self.n)
        ids = np.asarray(texts.to_numpy(zero_copy_only=False), dtype=np.str_)
        keys = uniforms(ids, settings.name)
        shares = shares_at(keys, holdout=settings.holdout.share, no_contact=settings.holdout.no_contact)
        self._ids.append(texts)
        self._keys.append(keys)
        self._shares.append(shares)
        self._excluded.append(self._excluded_ids.holds(ids, keys))
        self._required.append(self._required_ids.holds(ids, keys))
        for column, codes in self._groups.items():
            codes.add(batch.column(column))
        for numbers in (self._costs, self._scores):
            if numbers is not None:
                numbers.add(batch, ids)
        for share in np.unique(shares).tolist():
            self._sums[share] += np.asarray(X[shares == share].sum(axis=0, dtype=np.float64))
        self.n += len(ids)

    def customers(self, table: Table) -> Customers:
        """Return all customers, with their features in a table."""
        ids = import_pyarrow().chunked_array(self._ids)
        _refuse_repeated(ids, np.concatenate(self._keys), self._settings.id)
        shares = np.concatenate(self._shares)
        counts = np.bincount(shares, minlength=len(SHARES)).tolist()
        return Customers(
            table=table,
            ids=ids,
            shares=shares,
            excluded=np.concatenate(self._excluded),
            required=np.concatenate(self._required),
            groups={column: codes.groups() for column, codes in self._groups.items()},
            costs=None if self._costs is None else self._costs.values(at_least_zero=True),
            scores=None if self._scores is None else self._scores.values(),
            population={
                share: {"n": n, "mean": (np.asarray(total) / n).tolist()}
                for share, n, total in zip(SHARES, counts, self._sums, strict=True)
                if n
            },
        )


class _GroupCodes:
    """The group of each customer by one column; a missing value is a group of its own, `(none)`."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._code_of: dict[str, int] = {}
        self._codes: list[IntArray] = []

    def add(self, column: Any) -> None:
        from pyarrow import compute  # noqa: PLC0415 - an extra

        texts = as_texts(column, self._column)
        empty = compute.fill_null(compute.equal(texts, ""), True)
        encoded = compute.if_else(empty, "(none)", texts).dictionary_encode()
        codes = [self._code_of.setdefault(label, len(self._code_of)) for label in encoded.dictionary.to_pylist()]
        self._codes.append(np.array(codes, dtype=np.int32)[encoded.indices.to_numpy()])

    def groups(self) -> Groups:
        return Groups(list(self._code_of), np.concatenate(self._codes).astype(np.int64), kind=self._column)


class _Numbers:
    """A column of numbers that every customer must have."""

    def __init__(self, column: str) -> None:
        self.column = column
        self._values: list[FloatArray] = []

    def add(self, batch: Any, ids: Ids) -> None:
        values = column_values.numbers(batch.column(self.column), self.column)
        bad = np.flatnonzero(np.isnan(values))
        if bad.size:
            who = str(ids[bad[0]])
            raise ValueError(f"column {self.column!r} must hold a number for every customer, {who!r} has none")
        self._values.append(values)

    def values(self, *, at_least_zero: bool = False) -> FloatArray:
        values = np.concatenate(self._values)
        if at_least_zero and values.min() < 0:
            raise ValueError(f"column {self.column!r} must hold costs of at least 0, got {values.min():g}")
        return values


def as_ids(column: Any, name: str, begin: int = 0, where: str = "") -> Any:
    """Return a column of ids as text.

    begin: the number of the rows before, where: the file, both for messages.

    Raises
    ------
    ValueError
        If an id is missing or too long, or if they are no ids.
    """
    from pyarrow import compute  # noqa: PLC0415 - an extra

    pa = import_pyarrow()
    of_file = f" of {where}" if where else ""
    if pa.types.is_floating(column.type):
        raise ValueError(f"ids must be text or whole numbers, and column {name!r}{of_file} holds decimal numbers")
    texts = as_texts(column, name)
    empty = compute.or_kleene(compute.is_null(texts), compute.equal(texts, ""))
    row = compute.index(empty, True).as_py()
    if row >= 0:
        raise ValueError(f"every customer needs an id, and {name!r} is empty in row {begin + row + 1}{of_file}")
    long = compute.index(compute.greater(compute.utf8_length(texts), LONGEST_ID), True).as_py()
    if long >= 0:
        raise ValueError(f"ids have up to {LONGEST_ID} characters, that of row {begin + long + 1}{of_file} has more")
    return texts


def as_texts(column: Any, name: str) -> Any:
    """Return a column of texts, numbers or the like as plain text."""
    pa = import_pyarrow()
    if pa.types.is_integer(column.type):
        return column.cast(pa.string())
    return column_values.texts(column, name).cast(pa.string())


def _refuse_repeated(ids: Any, keys: FloatArray, name: str) -> None:
    """Raise ValueError if an id occurs twice. keys: their `uniforms`, equal for equal ids."""
    order = np.argsort(keys, kind="stable")
    same = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    for i in same.tolist():
        first, second = sorted((int(order[i]), int(order[i + 1])))
        if ids[first].as_py() == ids[second].as_py():
            raise ValueError(
                f"every customer must be in the file once, and {name} {ids[first].as_py()!r} is in rows {first + 1} "
                f"and {second + 1}"
            )
