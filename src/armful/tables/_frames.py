"""DataFrames and Arrow tables as arrays of features, and the names of their columns."""

import math
from collections.abc import Iterator
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful import checks
from armful.tables._columns import import_pyarrow, name_list

Names = tuple[str, ...]


def features_and_names(X: Any) -> tuple[Any, Names | None]:
    """Return features, and the names of their columns or None.

    Anything without columns is returned unchanged. A DataFrame (of pandas, polars or alike), an Arrow table or stream
    is returned as an array; names that are not all strings, like the numbers of pandas, count as none.

    Raises
    ------
    ValueError
        A column is not numeric, or has a missing or infinite value; the message names it.
    """
    if isinstance(X, np.ndarray | list | tuple):
        return X, None
    if type(X).__name__ == "LazyFrame":
        raise ValueError("features must be in memory, got a LazyFrame: pass what its .collect() gives")
    origin = type(X).__module__.partition(".")[0]
    if hasattr(X, "__arrow_c_stream__") and not hasattr(X, "column_names") and origin not in ("pandas", "polars"):
        X = import_pyarrow().table(X)
    columns = getattr(X, "column_names", None)
    columns = getattr(X, "columns", None) if columns is None else columns
    if columns is None or np.ndim(columns) != 1:
        return X, None
    names = list(columns)
    known = tuple(names) if all(isinstance(name, str) for name in names) else None
    array = _as_array(X, names)
    _refuse_not_finite(array, names)
    return array, known


def refuse_dask(name: str, X: Any) -> None:
    """Raise for a dask collection, which numpy would compute in the memory of this process."""
    if type(X).__module__.partition(".")[0] == "dask":
        raise ValueError(
            f"{name} must be on one machine, got a dask {type(X).__name__}: choose from a dask array with "
            "policy.choose(..., client=client), or pass what its .compute() gives"
        )


def refuse_other_columns(known: Names | None, names: Names | None) -> None:
    """Raise ValueError for columns with other names, or in another order, than those of the policy."""
    if known is None or names is None or known == names:
        return
    missing, unknown = [name for name in known if name not in names], [name for name in names if name not in known]
    if missing or unknown:
        what = [f"{name_list(missing)} missing"] * bool(missing) + [f"{name_list(unknown)} not known"] * bool(unknown)
        differ = " and ".join(what)
    else:
        i = next((i for i, pair in enumerate(zip(known, names, strict=False)) if pair[0] != pair[1]), len(known))
        differ = f"the order differs from column {i} on"
    raise ValueError(
        f"columns must be those that the policy knows, {name_list(known)}, got {name_list(names)} ({differ}): pick "
        "them in that order, like X[policy.columns]"
    )


def _as_array(X: Any, names: list[Any]) -> NDArray[Any]:
    """Return the columns as a matrix, `(n, d)`."""
    if hasattr(X, "head"):  # pandas or polars: fast if all columns are numeric; dates would become numbers
        kinds = {np.asarray(column).dtype.kind for column in _columns(X.head(0), names)}
        if kinds <= set("biuf"):
            array = np.asarray(X)
            if array.dtype.kind != "O":  # nullable numbers of pandas
                return array
    columns = [np.asarray(column) for column in _columns(X, names)]
    numbers = [_numbers(column) for column in columns]
    wrong = [
        f"{name!r} ({_kind(column)})"
        for name, column, as_numbers in zip(names, columns, numbers, strict=True)
        if as_numbers is None
    ]
    if wrong:
        more = f" and {len(wrong) - 10:,} more" if len(wrong) > 10 else ""
        raise ValueError(
            f"features must be numbers, and the {type(X).__name__} has {', '.join(wrong[:10])}{more}: encode them as "
            "numbers, or leave them out"
        )
    known = [column for column in numbers if column is not None]
    return np.stack(known, axis=1).astype(np.float64, copy=False) if known else np.empty((len(X), 0))


def _refuse_not_finite(array: NDArray[Any], names: list[Any]) -> None:
    """Raise ValueError with the column of the first NaN or infinity, which later checks do not know."""
    if array.dtype.kind != "f" or checks.all_finite(array.ravel(order="K")):
        return
    row, column = np.argwhere(~np.isfinite(array))[0].tolist()
    refusal = f"features must be finite, got {array[row, column]}"
    raise checks.NotFiniteError(refusal, row, f", column {names[column]!r}")


def _columns(X: Any, names: list[Any]) -> Iterator[Any]:
    for i, name in enumerate(names):
        if hasattr(X, "column_names"):  # of pyarrow
            yield X.column(i)
        else:
            yield X.iloc[:, i] if hasattr(X, "iloc") else X[name]


def _numbers(column: NDArray[Any]) -> NDArray[Any] | None:
    """Return a column as numbers, NaN for missing ones; None if it is not numeric."""
    if column.dtype.kind in "biuf":
        return column
    if column.dtype.kind != "O":
        return None
    values = [math.nan if _is_missing(value) else value for value in column.tolist()]
    if not all(isinstance(value, Real | Decimal) for value in values):
        return None
    return np.array([float(value) for value in values])


def _is_missing(value: object) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _kind(column: NDArray[Any]) -> str:
    if column.dtype.kind != "O":
        return f"{column.dtype}"
    example = next((value for value in column.tolist() if not isinstance(value, Real) and not _is_missing(value)), None)
    return "no numbers" if example is None else f"like {str(example)[:40]!r}"
