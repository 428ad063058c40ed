"""The names of the columns that a policy chooses and learns from."""

from typing import Any

import numpy as np

from armful.cluster._chunks import is_dask
from armful.tables import Table
from armful.tables._frames import Names, features_and_names, refuse_other_columns


def read_features(X: Any, known: Names | None) -> tuple[Any, Names | None]:
    """Return features as an array or a table, and the names of their columns; refuse names other than the known."""
    if type(X) is np.ndarray or is_dask(X):  # mostly
        return X, None
    names: Names | None
    if isinstance(X, Table):
        names = None if X.columns is None else tuple(X.columns)
    else:
        X, names = features_and_names(X)
    refuse_other_columns(known, names)
    return X, names


def restored_names(columns: object, n_features: int) -> Names | None:
    """Return the names that a file holds; raise if they are not one for each feature."""
    if columns is None:
        return None
    names = columns if isinstance(columns, list) else []
    if len(names) != n_features or not all(isinstance(name, str) for name in names):
        raise ValueError(f"columns must be a list of {n_features} names")
    return tuple(names)
