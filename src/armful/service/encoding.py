"""`Encoder`: the candidates of a request become features, as the campaign's recipe makes them."""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from armful.campaigns.features import FeatureRecipe
from armful.campaigns.features._numbers import Ready
from armful.campaigns.features._size import refuse_too_many
from armful.campaigns.settings import ServiceSettings, Settings
from armful.campaigns.settings._checking import did_you_mean
from armful.service._ready_rows import features_of, packed_rows, ready_rows
from armful.service._sides import Side
from armful.service._values import RawArm, as_number, as_text, shown

Features = NDArray[np.float32]
NO_GROUP = "(none)"
_columns_of = attrgetter("columns")


class Encoder:
    r"""How the candidates of a request become features.

    Parameters
    ----------
    settings : Settings
    recipe : FeatureRecipe
        As it was frozen.

    Attributes
    ----------
    n_features : int
    names : list of str
        The names of the features.

    Raises
    ------
    ValueError
        If the recipe makes more features than can be served.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from armful.campaigns.settings import parse_settings
    >>> text = "name = 'shop'\nid = 'item'\nchoose.k = 1\npolicy.cap = 1.0\noutcomes.reward = 'bought'"
    >>> settings = parse_settings(f"{text}\nfeatures.ready = 2", None)
    >>> encoder = Encoder.of(settings, None)
    >>> encoder.names
    ['x1', 'x2']
    >>> encoder.encode([SimpleNamespace(id="a", columns=None, features=[0.5, 1.0])], None)
    array([[0.5, 1. ]], dtype=float32)
    """

    def __init__(self, settings: Settings, recipe: FeatureRecipe) -> None:
        self.recipe, self.names, self.n_features = recipe, recipe.names, recipe.n_features
        refuse_too_many(recipe)
        service = settings.service or ServiceSettings()
        self.is_ready = any(isinstance(part, Ready) for part in recipe.parts)
        context = [name for name in recipe.columns if name in service.context]
        self._one = np.float32(1.0 / np.sqrt(self.n_features))
        self._arm = Side(recipe, [name for name in recipe.columns if name not in context])
        self._context = Side(recipe, context)
        self._n_own = int(recipe.intercept) + sum(len(part.names) for part in recipe.parts)
        left, right = _crossed_features(recipe)
        self._left, self._right = left, right
        by_context = np.isin(right, self._context.features) & ~np.isin(left, self._context.features)
        self._only_by_context = bool(by_context.all())
        choose = settings.choose
        of_choice = [*(quota.column for quota in choose.quotas), *([choose.budget.column] if choose.budget else [])]
        unused = [*settings.features.leave_out, *of_choice, *(name for name, _ in recipe.left_out)]
        self.ignored = {settings.id, settings.outcomes.reward, *unused}
        self.known = {*self._arm.columns, *self.ignored} - {*service.context}
        self.context_known = {*service.context}
        self._seen: set[tuple[str, ...]] = set()

    @classmethod
    def of(cls, settings: Settings, recipe: FeatureRecipe | None) -> Self:
        """Return the encoder of a campaign.

        Parameters
        ----------
        settings : Settings
            For the columns, and which of them come with the context.
        recipe : FeatureRecipe, optional
            As it was frozen; not needed for ready features.

        Returns
        -------
        Encoder

        Raises
        ------
        ValueError
            If there is no recipe and the features are not ready, or if there are too many features.
        """
        if recipe is None:
            if not settings.features.ready:
                raise ValueError("the features of this campaign are not fitted yet, and without them nothing is served")
            recipe = FeatureRecipe.fit(settings.features, ())
        return cls(settings, recipe)

    def encode(self, arms: Sequence[RawArm], context: Mapping[str, Any] | None = None) -> Features:
        """Return the features of some candidates.

        Parameters
        ----------
        arms : sequence of RawArm
            The candidates.
        context : mapping of str to value, optional
            The columns that all candidates share; one that is not there counts as a missing value.

        Returns
        -------
        ndarray of float32, shape (n, n_features)

        Raises
        ------
        ValueError
            One sentence that names the candidate and the column.
        """
        return self.with_context(self.arm_rows(arms), context)

    def quick_rows(self, arms: Sequence[RawArm | str]) -> Features | None:
        """Return what `arm_rows` returns, where that is quick; None elsewhere, and where it may be an error."""
        return packed_rows(arms, len(self.names)) if self.is_ready else None

    def arm_rows(self, arms: Sequence[RawArm]) -> Features:
        """Return what does not depend on the context, for `with_context`; errors as `encode`."""
        if self.is_ready:
            return ready_rows(arms, self.names, self._refuse_unknown)
        if not arms:
            return np.zeros((0, self._n_own), dtype=np.float32)
        columns: list[Mapping[str, Any]] = list(map(_columns_of, arms))
        if None in columns or any(map(_is_something, map(features_of, arms))):
            self._refuse_kind(arms)
        self._refuse_unknown(arms)
        X = np.zeros((len(arms), self._n_own), dtype=np.float32)
        X[:, : self.recipe.intercept] = self._one
        self._arm.write(columns, X, lambda i: f"candidate {arms[i].id!r}")
        return X

    def with_context(self, rows: Features, context: Mapping[str, Any] | None = None) -> Features:
        """Return the features of candidates, given what `arm_rows` returned; errors as `encode`."""
        if context:
            self._refuse_context(context)
        if not self._context.columns and not self._left.size:
            return rows
        own = np.zeros((1, self._n_own), dtype=np.float32)
        self._context.write([context or {}], own, lambda _: "the context")
        X = np.empty((len(rows), self.n_features), dtype=np.float32)
        base = X[:, : self._n_own]
        base[:] = rows
        base[:, self._context.features] = own[0, self._context.features]
        crossed = X[:, self._n_own :]
        if self._only_by_context:
            np.multiply(np.take(rows, self._left, axis=1), (own[0] / self._one)[self._right], out=crossed)
        else:
            np.multiply(base[:, self._left], (base / self._one)[:, self._right], out=crossed)
        return X

    def groups(self, column: str, arms: Iterable[RawArm]) -> list[str]:
        """Return the group of each candidate in a column, `(none)` where there is no value.

        Parameters
        ----------
        column : str
            A column of a quota.
        arms : iterable of RawArm
            The candidates.

        Returns
        -------
        list of str

        Raises
        ------
        ValueError
            If a value is neither a text nor a number.
        """
        result = []
        for arm in arms:
            try:
                value = (arm.columns or {}).get(column)
                result.append((value if type(value) is str else as_text(value)) or NO_GROUP)
            except ValueError as error:
                raise ValueError(f"candidate {arm.id!r}: column {column!r} {error}") from None
        return result

    def costs(self, column: str, arms: Iterable[RawArm]) -> list[float]:
        """Return the number of each candidate in the column of a budget, at least 0; errors as `groups`."""
        result = []
        for arm in arms:
            try:
                cost = as_number((arm.columns or {}).get(column))
                if not cost >= 0:
                    raise ValueError("must be a cost of at least 0, got " + shown((arm.columns or {}).get(column)))
                result.append(cost)
            except ValueError as error:
                raise ValueError(f"candidate {arm.id!r}: column {column!r} {error}") from None
        return result

    def _refuse_unknown(self, arms: Sequence[RawArm]) -> None:
        """Raise ValueError if a candidate has a column that the campaign does not know."""
        for keys in set(map(tuple, map(_columns_of, arms))) - self._seen:
            unknown = next((key for key in keys if key not in self.known), None)
            if unknown is not None:
                arm = next(arm for arm in arms if unknown in (arm.columns or {}))
                hint = did_you_mean(unknown, self.known) or "if it is no feature, put it into features.leave_out"
                if unknown in self.context_known:
                    hint = "it comes once with the request, in context"
                raise ValueError(f"candidate {arm.id!r}: column {unknown!r} is not known; {hint}")
            if len(self._seen) < 1000:
                self._seen.add(keys)

    def _refuse_context(self, context: Mapping[str, Any]) -> None:
        for name in context:
            if name not in self.context_known:
                if not self.context_known:
                    raise ValueError(
                        f"the context has {name!r}, and this campaign uses none: list it in service.context"
                    )
                hint = did_you_mean(name, self.context_known) or f"known: {', '.join(sorted(self.context_known))}"
                hint = "it is a column of the candidates" if name in self.known else hint
                raise ValueError(f"the context has {name!r}, which is not known there; {hint}")

    def _refuse_kind(self, arms: Sequence[RawArm]) -> None:
        for arm in arms:
            if arm.features is not None:
                raise ValueError(
                    f"candidate {arm.id!r} has features, and this campaign makes them from columns: send these"
                )
            if arm.columns is None:
                raise ValueError(f"candidate {arm.id!r} has no columns, and is not registered")


def _crossed_features(recipe: FeatureRecipe) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the two features that each crossed feature is the product of."""
    place, first = {}, int(recipe.intercept)
    for part in recipe.parts:
        place[part.columns[0]] = np.arange(first, first + len(part.names))
        first += len(part.names)
    none = np.zeros(0, dtype=np.int64)
    left = [np.repeat(place[a], place[b].size) for a, b in recipe.interactions]
    right = [np.tile(place[b], place[a].size) for a, b in recipe.interactions]
    return np.concatenate([none, *left]), np.concatenate([none, *right])


def _is_something(value: Any) -> bool:
    return value is not None
