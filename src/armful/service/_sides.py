"""The columns of the arms and those of the context, as features in one row."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from armful.campaigns.features import FeatureRecipe
from armful.campaigns.features._kinds import Features
from armful.service._column_encoders import Column, Place, column_encoders, refuse_value


class Side:
    """The columns of the arms, or of the context: where their features are, and how they are written."""

    def __init__(self, recipe: FeatureRecipe, columns: Sequence[str]) -> None:
        self.columns = list(columns)
        self._get = itemgetter(*self.columns) if len(self.columns) > 1 else None
        first = int(recipe.intercept)
        features: list[int] = []
        self.places: list[Place] = []
        for part in recipe.parts:
            own = [name for name in part.columns if name in columns]
            if own and len(own) < len(part.columns):
                raise ValueError(f"one transformer reads {own[0]!r} and columns of the context: give each its own")
            if own:
                self.places.append(Place(part, first, tuple(self.columns.index(name) for name in part.columns)))
                features += range(first, first + len(part.names))
            first += len(part.names)
        self.features = np.array(features, dtype=np.int64)
        self._encoders = column_encoders(self.places, float(1.0 / np.sqrt(recipe.n_features)))

    def write(self, rows: Sequence[Mapping[str, Any]], X: Features, who: Any) -> None:
        """Write the features of rows into X; who: names a row in errors."""
        columns = self._table(rows)
        try:
            for encoder in self._encoders:
                encoder.write(columns, X)
        except Exception:  # slowly, to say which value it was, or that each alone can be used
            for i in range(len(rows)):
                self._write_one([column[i : i + 1] for column in columns], X[i : i + 1], who(i))

    def _table(self, rows: Sequence[Mapping[str, Any]]) -> list[Column]:
        """Return the values of each column; None where a row does not have it."""
        if self._get is not None:
            try:
                return list(zip(*map(self._get, rows), strict=True))
            except KeyError:
                pass
        return [tuple([row.get(name) for row in rows]) for name in self.columns]

    def _write_one(self, columns: list[Column], X: Features, who: str) -> None:
        for part, _, own in self.places:
            for i in own:
                try:
                    refuse_value(part, columns[i][0])
                except (ValueError, OverflowError, ArithmeticError, TypeError) as error:
                    sentence = str(error).removeprefix(f"column {self.columns[i]!r} ")
                    raise ValueError(f"{who}: column {self.columns[i]!r} {sentence}") from None
        try:
            for encoder in self._encoders:
                encoder.write(columns, X)
        except (ValueError, TypeError, ArithmeticError) as error:
            raise ValueError(f"{who}: {error}") from None
