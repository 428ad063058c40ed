"""The columns of Arrow data that a table is built from: which are read, and their values as blocks of rows."""

import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray
from armful.model._blocks import WIDE_BLOCK
from armful.tables._row_blocks import rows_per_block

Ids = NDArray[np.int64] | list[str]


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows: `X` `(m, n_features)`, not yet checked, and the ids of the arms, if they have any."""

    X: NDArray[Any]
    ids: Ids | None


@dataclass(frozen=True, eq=False)
class ColumnSelection:
    """The columns to read: the one that names the arms, if there is one, and the features."""

    id: str | None
    columns: list[str]

    @classmethod
    def of(
        cls, schema: Any, name: str, id: str | None, columns: Sequence[str] | None, *, may_be_empty: bool = False
    ) -> Self:
        """Return the selection from the columns of `schema`, that of the source called `name`.

        may_be_empty: whether features may be of type null: a CSV file with no value in its first block.
        """
        if id is None and "id" in schema.names:
            id = "id"
        selection = cls(
            id, [each for each in feature_columns(schema) if each != id] if columns is None else list(columns)
        )
        if id is not None and id in selection.columns:
            raise ValueError(f"column {id!r} is the id, so it cannot be a feature too: leave it out of columns=[...]")
        if not selection.columns:
            raise ValueError(f"{name} has no column left for the features; its columns are {name_list(schema.names)}")
        selection.refuse_types(schema, name, like=schema, may_be_empty=may_be_empty)
        suspect = _likely_id_column(schema, selection.columns) if id is None and columns is None else None
        if suspect is not None:
            warnings.warn(
                f"column {suspect!r} is taken as a feature; if it names the arms, say id={suspect!r}",
                stacklevel=_outside_armful(),
            )
        return selection

    @property
    def names(self) -> list[str]:
        """The id, if any, and the features."""
        return self.columns if self.id is None else [self.id, *self.columns]

    @property
    def batch_rows(self) -> int:
        """How many rows to read at a time: fewer than a block of a table, since pages, columns and rows are copies."""
        return max(WIDE_BLOCK, rows_per_block(len(self.columns)) // 4)

    def refuse_types(self, schema: Any, name: str, *, like: Any, may_be_empty: bool = False) -> None:
        """Raise ValueError for features that are not numbers, and ids that are neither whole numbers nor strings.

        like: the schema of the first file, whose ids are of the same type.
        """
        types = import_pyarrow().types
        refuse_column_choice(name, schema.names, self.names)
        is_number = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
        kinds = {column: schema.field(column).type for column in self.columns}
        wrong = [
            f"{column!r} ({kind})"
            for column, kind in kinds.items()
            if not any(is_one(kind) for is_one in is_number) and not (may_be_empty and types.is_null(kind))
        ]
        if wrong:
            suspect = _likely_id_column(schema, self.columns) if self.id is None else None
            hint = "" if suspect is None else f"; if {suspect!r} names the arms, say id={suspect!r}"
            raise ValueError(
                f"features must be numbers, and {name} has {_first_ten(wrong)}: encode them as numbers, or leave "
                f"them out with columns=[...]{hint}"
            )
        if self.id is None:
            return
        kind = schema.field(self.id).type
        if _id_kind(kind) != _id_kind(like.field(self.id).type):
            raise ValueError(
                f"ids must be all whole numbers or all strings, and {name} has another kind than the first file"
            )
        if _id_kind(kind) is None:
            raise ValueError(
                f"ids must be whole numbers or strings, and {name} has {self.id!r} ({kind}): cast it to one"
            )

    def blocks(self, batches: Iterable[Any]) -> Iterator[Block]:
        """Yield the rows of Arrow record batches, some at a time."""
        begin = 0
        for batch in batches:
            for first in range(0, batch.num_rows, self.batch_rows):
                part = batch.slice(first, self.batch_rows)
                ids = None if self.id is None else id_values(part.column(self.id), self.id, begin)
                yield Block(_as_rows([_numbers(part.column(name)) for name in self.columns]), ids)
                begin += part.num_rows


def feature_columns(schema: Any) -> list[str]:
    """Return the columns without those that pandas makes of an index without a name."""
    return [name for name in schema.names if not re.fullmatch(r"__index_level_\d+__", name)]


def _likely_id_column(schema: Any, columns: list[str]) -> str | None:
    """Return the first column whose name and type are like those of ids."""
    likely = (name for name in columns if name.lower() == "id" or name.lower().endswith("_id"))
    return next((name for name in likely if _id_kind(schema.field(name).type) is not None), None)


def _outside_armful() -> int:
    """Return the stacklevel of the code that called armful, for a warning by the caller of this."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("armful."):
        frame, level = frame.f_back, level + 1
    return level


def refuse_non_names(id: Any, columns: Any) -> None:
    """Raise ValueError for an `id` that is not a name, and `columns` that are not a list of names."""
    if id is not None and not isinstance(id, str):
        raise ValueError(f"id must be the name of a column, got {type(id).__name__}; Table.wrap(X, ids=...) takes ids")
    if isinstance(columns, str):
        raise ValueError(f"columns must be a list of names, got the string {columns!r}; [{columns!r}] is a list of one")


class MissingColumnError(ValueError):
    """A column that was asked for is not there."""


def refuse_column_choice(name: str, available: list[str], chosen: list[str]) -> None:
    """Raise ValueError for chosen columns that are missing, repeated, or chosen more than once."""
    n_available, n_chosen = Counter(available), Counter(chosen)
    missing = [column for column in chosen if column not in n_available]
    if missing:
        raise MissingColumnError(f"{name} has no column {name_list(missing)}; its columns are {name_list(available)}")
    twice = [column for column in n_chosen if n_available[column] > 1 or n_chosen[column] > 1]
    if twice:
        raise ValueError(
            f"column {name_list(twice)} is there twice in {name} or in columns=[...]: each must be there once"
        )


def _id_kind(kind: Any) -> str | None:
    types = import_pyarrow().types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_integer(kind):
        return "numbers"
    return "strings" if str(kind) in ("string", "large_string", "string_view") else None


def _as_rows(columns: list[NDArray[Any]]) -> FloatArray:
    """Return columns as rows, `(m, d)`; some rows at a time, so that what is written stays in the cache."""
    X = np.empty((len(columns[0]), len(columns)))
    for begin in range(0, len(X), WIDE_BLOCK):
        rows = X[begin : begin + WIDE_BLOCK]
        for i, column in enumerate(columns):
            rows[:, i] = column[begin : begin + WIDE_BLOCK]
    return X


def _numbers(column: Any) -> NDArray[Any]:
    """Return a column as an array of numbers, null as NaN."""
    pa = import_pyarrow()
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    numbers: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return numbers


def id_values(column: Any, name: str, begin: int) -> Ids:
    """Return a column of ids; raise ValueError for null. begin: the index of its first row among all."""
    pa = import_pyarrow()
    if column.null_count:
        row = begin + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise ValueError(f"every arm needs an id, and {name!r} is empty in row {row}: fill it in, or drop the row")
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not pa.types.is_integer(column.type):
        strings: list[str] = column.to_numpy(zero_copy_only=False).tolist()
        return strings
    try:
        numbers: NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        raise ValueError(
            f"ids must be at most {np.iinfo(np.int64).max}, and {name!r} has larger ones: make them strings"
        ) from None
    return numbers


def name_list(names: Sequence[str]) -> str:
    """Return names for an error message, at most ten of them."""
    return _first_ten([repr(name) for name in names])


def _first_ten(words: list[str]) -> str:
    return ", ".join(words[:10]) + (f" and {len(words) - 10:,} more" if len(words) > 10 else "")


def import_pyarrow() -> ModuleType:
    """Return pyarrow, an optional dependency that is imported when it is used."""
    try:
        import pyarrow  # noqa: PLC0415
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "pyarrow is needed to read Parquet, CSV and Arrow: install the extra [tables], "
            "in a clone by: pip install '.[tables]'"
        ) from None
    module: ModuleType = pyarrow
    return module
