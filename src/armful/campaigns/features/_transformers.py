"""A user's own transformer of scikit-learn as a part of the recipe, kept by skops."""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armful.campaigns.features._kinds import Target
from armful.campaigns.features._row_sample import RowSample
from armful.errors import FileFormatError
from armful.tables._columns import name_list, refuse_column_choice

HARMLESS = ("numpy.dtype", "scipy._lib.array_api_compat.numpy._aliases.asarray", "scipy.interpolate._bsplines.BSpline")
"""What scikit-learn's own transformers hold, and skops does not trust by itself."""

ONE_AT_A_TIME = Lock()
"""Batches are transformed in threads, and a transformer of somebody else may not allow that."""


@dataclass(frozen=True, kw_only=True)
class TransformerFeatures:
    """The features that a fitted transformer makes of an Arrow table of its columns.

    skops: the transformer as skops writes it, in base64: no pickle, and reading it runs no code of types that are not
    trusted.
    """

    kind: ClassVar[str] = "transformer"

    columns: tuple[str, ...]
    features: tuple[str, ...]
    skops: str = field(repr=False)
    transformer: Any = field(compare=False, repr=False)

    @classmethod
    def of(
        cls,
        transformer: Any,
        columns: Sequence[str],
        batches: Iterable[pa.RecordBatch] | None,
        names: Sequence[str] | None,
        trusted: Sequence[str],
    ) -> Self:
        """Return the features of a transformer, which is fitted on a sample of the rows if it is not fitted yet."""
        if not (callable(getattr(transformer, "fit", None)) and callable(getattr(transformer, "transform", None))):
            raise ValueError(
                f"transformer must have fit and transform, like those of scikit-learn, got {type(transformer).__name__}"
            )
        sample = None if batches is None else _sample(batches, columns)
        fitted = transformer if _is_fitted(transformer) else _fitted(transformer, sample)
        features = _names(fitted, sample) if names is None else tuple(names)
        written = _written(fitted, trusted)
        made = cls(columns=tuple(columns), features=features, skops=written, transformer=_loaded(written, trusted))
        if sample is not None:
            made.transformed(sample.slice(0, 1))
        return made

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return list(self.features)

    def write(self, columns: Sequence[pa.Array], target: Target) -> None:
        """Write the features of its columns."""
        X = self.transformed(pa.table(dict(zip(self.columns, map(_plain, columns), strict=True))))
        for i in range(X.shape[1]):
            target.write(i, X[:, i])

    def transformed(self, table: pa.Table) -> NDArray[Any]:
        """Return what the transformer makes of a table; raise ValueError if it is not one finite number each."""
        with ONE_AT_A_TIME:
            X = _dense(self.transformer.transform(table))
        if X.shape != (table.num_rows, len(self.features)):
            raise ValueError(
                f"the transformer must give {len(self.features)} features for each row, got {X.shape} for "
                f"{table.num_rows} rows"
            )
        wrong = np.flatnonzero(~np.isfinite(X).all(axis=0))
        if wrong.size:
            raise ValueError(
                f"the transformer must give finite numbers, and {self.features[wrong[0]]!r} has others: let it fill in "
                "missing values, with SimpleImputer for example"
            )
        return X

    def to_dict(self) -> dict[str, Any]:
        """Return what is kept of it."""
        return {"kind": self.kind, "columns": self.columns, "features": self.features, "skops": self.skops}

    @classmethod
    def from_dict(cls, entry: dict[str, Any], trusted: Sequence[str]) -> Self:
        """Return what `to_dict` returned."""
        columns, features, written = tuple(entry["columns"]), tuple(entry["features"]), entry["skops"]
        return cls(columns=columns, features=features, skops=written, transformer=_loaded(written, trusted))


def _sample(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> pa.Table:
    sample = RowSample()
    for batch in batches:
        refuse_column_choice("the file", batch.schema.names, list(columns))
        chosen = batch.select(list(columns)).take(pa.array(sample.select(batch.num_rows)))
        sample.add(pa.record_batch([_plain(column) for column in chosen.columns], names=list(columns)))
    if not sample.n_rows:
        raise ValueError("the transformer is fitted on the rows of the first round, got none")
    return sample.rows()


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _is_fitted(transformer: Any) -> bool:
    from sklearn.exceptions import NotFittedError  # noqa: PLC0415 - an extra
    from sklearn.utils.validation import check_is_fitted  # noqa: PLC0415

    try:
        check_is_fitted(transformer)
    except NotFittedError:
        return False
    return True


def _fitted(transformer: Any, sample: pa.Table | None) -> Any:
    from sklearn.base import clone  # noqa: PLC0415

    if sample is None:
        raise ValueError("the transformer is not fitted: fit it, or give the rows to fit it on as batches=...")
    return clone(transformer).fit(sample)


def _names(transformer: Any, sample: pa.Table | None) -> tuple[str, ...]:
    """Return the names that the transformer gives its features; numbers if it gives none."""
    try:
        return tuple(map(str, transformer.get_feature_names_out()))
    except (AttributeError, ValueError):
        if sample is None:
            raise ValueError("the transformer does not name its features: name them by names=[...]") from None
    width = _dense(transformer.transform(sample.slice(0, 1))).shape[1]
    return tuple(f"feature {i + 1}" for i in range(width))


def _dense(X: Any) -> NDArray[Any]:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def _written(transformer: Any, trusted: Sequence[str]) -> str:
    import skops.io  # noqa: PLC0415

    data = skops.io.dumps(transformer)
    foreign = sorted(set(skops.io.get_untrusted_types(data=data)) - {*HARMLESS, *trusted})
    if foreign:
        raise ValueError(
            f"the transformer holds {name_list(foreign)}, which is not scikit-learn's own: if you trust it, name it in "
            "trusted=[...], here and when the recipe is read again"
        )
    return base64.b64encode(data).decode()


def _loaded(written: str, trusted: Sequence[str]) -> Any:
    import skops.io  # noqa: PLC0415

    try:
        data = base64.b64decode(written, validate=True)
        foreign = sorted(set(skops.io.get_untrusted_types(data=data)) - {*HARMLESS, *trusted})
        if not foreign:
            return skops.io.loads(data, trusted=[*HARMLESS, *trusted])
    except Exception as error:
        raise FileFormatError(f"the transformer of the feature recipe cannot be read: {error}") from error
    raise FileFormatError(
        f"the transformer of the feature recipe holds {name_list(foreign)}, which is not scikit-learn's own: if you "
        "trust it, name it in trusted=[...]"
    )
