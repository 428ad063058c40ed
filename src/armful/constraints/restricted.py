"""Eligibility and must-haves on top of any constraint."""

from collections.abc import Callable, Iterable, Iterator, Set
from typing import Any, Protocol, Self
from weakref import ref

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from armful.checks import FloatArray, IntArray
from armful.constraints._checks import NO_ARMS, check_indices, repeated
from armful.constraints._incremental import Growth
from armful.constraints.base import Constraint, Limit, UnmetRestriction, refuse_no_constraint
from armful.constraints.selection import Selection

IdsOf = Callable[[IntArray], "NDArray[Any] | None"]


class TableOfIds(Protocol):
    """Arms that have ids: a `Table`."""

    def indices_of(self, ids: ArrayLike) -> IntArray:
        """Return the indices of the arms with these ids, `(k,)`."""

    def ids_of(self, indices: IntArray) -> NDArray[Any] | None:
        """Return the ids of these arms, `(k,)`; None if they have none."""


class _Restricted(Constraint):
    """A constraint with arms that must be (`_requires`), or must not be, in the set."""

    _requires: bool

    def __init__(
        self, constraint: Constraint, arms: ArrayLike | None = None, *, ids: Iterable[int | str] | None = None
    ) -> None:
        name = type(self).__name__
        refuse_no_constraint(constraint, f"{name} needs a constraint,")
        if (arms is None) == (ids is None):
            raise ValueError(f"{name} needs arms, by their indices or a mask, or ids of a Table, and not both")
        if isinstance(ids, str):
            raise ValueError(f"ids must be a list of ids, got {ids!r}; for this one alone, [{ids!r}]")
        self.constraint, self.only_costs = constraint, constraint.only_costs
        self.uses_features = constraint.uses_features
        self.ids = None if ids is None else list(dict.fromkeys(ids))
        self._arms, self._mask_size = _distinct(NO_ARMS if arms is None else arms)
        self._ids_of: IdsOf | None = None
        self._resolved: tuple[ref[TableOfIds], Self] | None = None
        given = None if arms is None else self._arms if self._mask_size is None else np.array(arms)
        self.options = {"constraint": constraint, "arms": given, "ids": self.ids}

    @property
    def arms(self) -> IntArray:
        """The indices of the arms; ids have them only in a choice from a `Table`."""
        if self.ids is not None:
            raise ValueError(
                f"{type(self).__name__} names ids, which only a Table has: choose from one by "
                "policy.choose(table, constraint), or give table.indices_of(ids) instead"
            )
        return self._arms

    def on(self, table: TableOfIds) -> Self:
        """Return the same constraint with the indices that the ids have in a table; errors then name ids.

        The last answer is cached: finding ids takes a pass over all ids of the table.

        Parameters
        ----------
        table : Table
            The arms.

        Raises
        ------
        ValueError
            If an id is not in the table.
        """
        if self._resolved is not None and self._resolved[0]() is table:
            return self._resolved[1]
        arms = self.options["arms"]
        if self.ids is not None:
            try:
                arms = table.indices_of(self.ids)
            except ValueError as error:
                raise ValueError(f"{type(self).__name__}: {error}") from None
        resolved = type(self)(on_table(self.constraint, table), arms)
        resolved._ids_of = table.ids_of
        self._resolved = ref(table), resolved
        return resolved

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_resolved": None}

    def arm_names(self, indices: ArrayLike) -> list[str] | None:
        """Return the ids of arms, else their names in the constraint; None if they have neither."""
        arms = check_indices(indices)
        ids = None if self._ids_of is None else self._ids_of(arms)
        return self.constraint.arm_names(arms) if ids is None else [repr(each) for each in ids.tolist()]

    @property
    def k(self) -> int:
        """The size of the largest set that the constraint allows; with the restriction it may be smaller."""
        return self.constraint.k

    def best(self, scores: ArrayLike, X: FloatArray | None = None, rng: Generator | None = None) -> Selection:
        return self.best_given(scores, rng, X=X)

    def _solve(
        self, scores: FloatArray, rng: Generator, required: IntArray, excluded: IntArray, X: FloatArray | None
    ) -> Selection:
        must, must_not = self._with_own(required, excluded)
        try:
            return self.constraint.best_given(scores, rng, required=must, excluded=must_not, X=X)
        except UnmetRestriction as error:
            raise error.named_by(self) from None

    def growth(self, n_arms: int) -> Growth:
        self.check_n_arms(n_arms)
        grown = self.constraint.growth(n_arms)
        grown.exclude(self._with_own(NO_ARMS, NO_ARMS)[1])
        return grown

    @property
    def must_have(self) -> IntArray:
        """The arms that every set has."""
        return self._with_own(self.constraint.must_have, NO_ARMS)[0]

    def check_n_arms(self, n_arms: int) -> None:
        if self.arms.size and self.arms.max() >= n_arms:
            raise ValueError(f"{type(self).__name__} names arm {self.arms.max()}, {n_arms} are there, from 0")
        if self._mask_size not in (None, n_arms):
            raise ValueError(f"the mask of {type(self).__name__} is for {self._mask_size} arms, got {n_arms}")

    def limits(self, indices: ArrayLike) -> Iterator[Limit]:
        """Return the limits of the constraint itself, loosened under the same restriction."""
        for limit in self.constraint.limits(indices):
            yield Limit(limit.name, self.with_(constraint=limit.loosened))

    def violation(self, indices: ArrayLike) -> float:
        """Return the violation of the constraint, and 1 more for each arm that breaks the restriction."""
        chosen = check_indices(indices)
        return self.constraint.violation(chosen) + float(np.isin(self.arms, chosen, invert=self._requires).sum())

    def _with_own(self, required: IntArray, excluded: IntArray) -> tuple[IntArray, IntArray]:
        """Return the given required and excluded arms together with these."""
        if self._requires:
            return np.union1d(required, self.arms), excluded
        return required, np.union1d(excluded, self.arms)


class Excluding(_Restricted):
    """Another constraint without certain arms: customers who opted out, edges that are closed.

    Parameters
    ----------
    constraint : Constraint
        Any constraint, one of yours too.
    arms : array_like of int or bool, optional
        The indices of the arms, or a mask `(n_arms,)`.
    ids : iterable of int or str, optional
        Instead of `arms`, their ids in the `Table` that is chosen from.

    Raises
    ------
    ValueError
        If there are neither arms nor ids, or both, or these are not distinct indices.

    Examples
    --------
    >>> from armful.constraints import TopK
    >>> Excluding(TopK(2), [0]).best([9.0, 1.0, 2.0]).indices
    array([2, 1])
    >>> Excluding(TopK(2), ids=["ann", "bob"])
    Excluding(constraint=TopK(k=2), ids=['ann', 'bob'])
    """

    _requires = False


class Requiring(_Restricted):
    """Another constraint with certain arms in every set: promised contacts, an item that must be shown.

    Parameters
    ----------
    constraint : Constraint
        Any constraint, one of yours too.
    arms : array_like of int or bool, optional
        The indices of the arms, or a mask `(n_arms,)`.
    ids : iterable of int or str, optional
        Instead of `arms`, their ids in the `Table` that is chosen from.

    Raises
    ------
    ValueError
        If there are neither arms nor ids, or both, or these are not distinct indices.

    Examples
    --------
    >>> from armful.constraints import TopK
    >>> Requiring(TopK(2), [1]).best([9.0, 1.0, 2.0]).indices
    array([1, 0])
    """

    _requires = True


def on_table(constraint: Constraint, table: TableOfIds) -> Constraint:
    """Return the constraint for a choice from a table: with indices instead of ids."""
    return constraint.on(table) if isinstance(constraint, _Restricted) else constraint


def _distinct(arms: ArrayLike) -> tuple[IntArray, int | None]:
    """Return the arms, and the length of the mask if they came as one."""
    if isinstance(arms, list) and not all(isinstance(arm, int | np.integer | np.bool_) for arm in arms):
        raise ValueError(f"arms must be whole numbers, or a mask, got {arms!r}; ids of a Table go by ids=[...]")
    array = np.asarray(list(arms) if isinstance(arms, Set) else arms)
    if array.dtype == np.bool_ and array.ndim == 1:
        return np.flatnonzero(array), array.size
    indices = check_indices(array)
    if repeated(indices) or (indices.size and indices.min() < 0):
        raise ValueError(f"arms must be distinct indices counted from 0, or a mask, got {arms!r}")
    return indices, None
