"""The values of an Arrow column as the recipe reads them: numbers, texts and days; a wrong type is one sentence."""

from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from armful.checks import LARGEST, FloatArray

DOTTED = "%d.%m.%Y"
ISO = "ISO 8601"
DAY = 86_400_000_000
"""Microseconds of a day."""


def numbers(column: pa.Array, name: str) -> FloatArray:
    """Return a column of numbers, `(n,)`, NaN where the value is missing, infinite or beyond `checks.LARGEST`."""
    column = _decoded(column)
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise ValueError(f"column {name!r} should hold numbers, got {_example(column)}")
    values = column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    usable = np.abs(values) <= LARGEST
    return values if usable.all() else np.where(usable, values, np.nan)


def texts(column: pa.Array, name: str) -> pa.Array:
    """Return a column as strings, plain or dictionary-encoded: 7 and 7.0 are "7", true is "true"."""
    column = _without_views(column)
    kind = column.type
    if pa.types.is_dictionary(kind):
        words = _strings(column.dictionary, name)
        return column if words is column.dictionary else pa.DictionaryArray.from_arrays(column.indices, words)
    if _is_string(kind):
        return column
    if pa.types.is_null(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.string())
    try:
        return texts(column.dictionary_encode(), name)
    except pa.ArrowNotImplementedError:  # lists and the like
        raise ValueError(f"column {name!r} should hold texts or numbers, got {kind}") from None


def is_number(kind: pa.DataType) -> bool:
    """Return whether a type holds numbers, in a dictionary or not."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def days(column: pa.Array, name: str, written: str = ISO) -> FloatArray:
    """Return a column of dates as days since 1970-01-01, `(n,)`, NaN where it is missing.

    written: how dates are written where they are text, `ISO` or `DOTTED`.
    """
    column = _decoded(column)
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if _is_string(kind):
        column = _parsed(column, name, written)
    elif not (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        raise ValueError(f"column {name!r} should hold dates, got {_example(column)}")
    moments = column.cast(pa.timestamp("us", tz=getattr(column.type, "tz", None)), safe=False)
    values: FloatArray = moments.cast(pa.int64()).to_numpy(zero_copy_only=False) / float(DAY)
    return values


def date_writing(column: pa.Array) -> str | None:
    """Return how the first date of a column is written, `ISO` or `DOTTED`; None if there is none in it."""
    column = _decoded(column)
    if not _is_string(column.type):
        return ISO
    filled = column.filter(pc.greater(pc.utf8_length(column), 0))
    return None if not len(filled) else DOTTED if "." in filled[0].as_py()[:5] else ISO


def _parsed(column: pa.Array, name: str, written: str) -> pa.Array:
    column = pc.replace_with_mask(column, pc.equal(column, ""), pa.scalar(None, column.type))
    parsed = _as_moments(column, written)
    if parsed is None:
        wrong = next(text for text in column.drop_null() if _as_moments(pa.array([text]), written) is None)
        expected = "31.12.2026" if written == DOTTED else "2026-12-31 or 2026-12-31 18:00:00"
        raise ValueError(f"column {name!r} should hold dates like {expected}, got {wrong.as_py()[:40]!r}")
    return parsed


def _as_moments(column: pa.Array, written: str) -> pa.Array | None:
    """Return texts as moments in time, None if one of them is no date."""
    if written == DOTTED:
        moments = pc.strptime(column, format=DOTTED, unit="us", error_is_null=True)
        return moments if moments.null_count == column.null_count else None
    for zone in (None, "UTC"):  # without and with an offset like +02:00
        with suppress(pa.ArrowInvalid):
            return column.cast(pa.timestamp("us", tz=zone))
    return None


def _decoded(column: pa.Array) -> pa.Array:
    return _without_views(column.dictionary_decode() if pa.types.is_dictionary(column.type) else column)


def _without_views(column: pa.Array) -> pa.Array:
    """Return string views, which polars gives and few kernels of pyarrow take, as strings."""
    if str(column.type) != "string_view":
        return column
    try:
        return column.cast(pa.string())
    except pa.ArrowNotImplementedError:  # before pyarrow 18
        return pa.array(column.to_pylist(), type=pa.string())


def _is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _strings(values: pa.Array, name: str) -> pa.Array:
    """Return the distinct values of a column as strings."""
    values = _without_views(values)
    if _is_string(values.type):
        return values
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    try:
        return values.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ValueError(f"column {name!r} should hold texts or numbers, got {values.type}") from None


def _example(column: pa.Array) -> str:
    """Return what a column holds, for an error message: its type, or a text from it."""
    if not _is_string(column.type):
        return str(column.type)
    filled = column.filter(pc.greater(pc.utf8_length(column), 0)).to_pylist()
    word = next((text for text in filled if not _reads_as_number(text)), filled[0] if filled else None)
    return "text" if word is None else f"text like {word[:40]!r}"


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
