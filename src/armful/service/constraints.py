"""Which sets of candidates may be chosen: the campaign's settings, or what the request asks for instead."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, vstack

from armful.campaigns.settings import QuotaSettings, ServiceSettings, Settings
from armful.campaigns.settings._checking import did_you_mean
from armful.checks import FloatArray, IntArray
from armful.constraints import Constraint, Knapsack, Linear, NestedQuotas, Quotas, Requiring, TopK, overlapping_quotas
from armful.constraints._groups import Groups
from armful.errors import InfeasibleError
from armful.service._quota_requests import QuotaRequest, requested_quotas

GroupsOf = Callable[[str], Sequence[str]]
CostsOf = Callable[[str], Sequence[float]]
SOLVES = 8
"""The time of a request is divided by this: one decision may need several integer programs, one after the other."""


class ConstraintRequest(Protocol):
    """What a request asks for instead of the settings: k and quotas replace them, exclude and require add to them."""

    @property
    def k(self) -> int | None:
        """How many arms."""

    @property
    def quotas(self) -> Sequence[QuotaRequest] | None:
        """Bounds on groups."""

    @property
    def exclude(self) -> Sequence[str]:
        """Arms that must not be chosen."""

    @property
    def require(self) -> Sequence[str]:
        """Arms that must be chosen."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Allowed:
    """Which sets may be chosen.

    Attributes
    ----------
    constraint : Constraint
        On all candidates if `rows` is None, else on these.
    rows : ndarray of int or None
        The candidates that may be chosen.
    notes : tuple of str
        What the caller should know, such as that fewer than k candidates were there.
    """

    constraint: Constraint
    rows: IntArray | None = None
    notes: tuple[str, ...] = ()


class Constraints:
    r"""The constraints of a campaign's decisions.

    Parameters
    ----------
    settings : Settings
        For `k`, quotas and budget, and for the time that a request may take.
    exclude, require : collection of str
        The ids in the campaign's files of those who are never chosen, and of those who are chosen wherever they are
        candidates.

    Examples
    --------
    >>> from armful.campaigns.settings import parse_settings
    >>> text = "name = 'shop'\nid = 'item'\nchoose.k = 2\npolicy.cap = 1.0\noutcomes.reward = 'bought'"
    >>> settings = parse_settings(f"{text}\nfeatures.ready = 2", None)
    >>> Constraints(settings).build(["a", "b", "c"]).constraint
    TopK(k=2)
    """

    def __init__(self, settings: Settings, *, exclude: Sequence[str] = (), require: Sequence[str] = ()) -> None:
        self.choose = settings.choose
        self.exclude, self.require = frozenset(exclude), frozenset(require)
        features, service = settings.features, settings.service or ServiceSettings()
        self._seconds = service.timeout.total_seconds() / SOLVES
        listed = [*(column.name for column in features.columns), *features.ready, *features.leave_out]
        self._columns = [name for name in listed if name not in service.context]
        is_plain = not (self.choose.quotas or self.choose.budget or self.exclude or self.require)
        self._all = Allowed(constraint=top(self.choose.k)) if is_plain else None

    def build(
        self,
        ids: Sequence[str],
        groups: GroupsOf | None = None,
        costs: CostsOf | None = None,
        request: ConstraintRequest | None = None,
    ) -> Allowed:
        """Return which sets of some candidates may be chosen.

        Parameters
        ----------
        ids : sequence of str
            The candidates.
        groups : callable, optional
            Returns the group of each candidate in a column, for quotas.
        costs : callable, optional
            Returns the cost of each candidate in a column, for a budget.
        request : ConstraintRequest, optional
            What the request asks for.

        Returns
        -------
        Allowed

        Raises
        ------
        ValueError
            If the request contradicts itself.
        InfeasibleError
            If no set is allowed; the message names the group.
        """
        if request is None and len(ids) >= self.choose.k and self._all is not None:
            return self._all
        k, quotas = self.choose.k, self.choose.quotas
        if request is not None:
            k = k if request.k is None else request.k
            quotas = quotas if request.quotas is None else self._requested(request.quotas)
        rows, required = self._eligible(ids, request)
        n = len(ids) if rows is None else rows.size
        size = min(k, n)
        if len(required) > k:
            raise InfeasibleError(f"{len(required)} arms are required, and k is {k}")
        names = _Names(ids if rows is None else [ids[i] for i in rows.tolist()])
        if quotas or self.choose.budget:
            columns = {quota.column: _groups(quota.column, groups, rows) for quota in quotas}
            constraint = self._bounded(quotas, columns, size, rows, costs, names.indices_of(required))
        else:
            constraint = top(size)
        if required:
            constraint = Requiring(constraint, ids=required).on(names)
        reached = min(constraint.k, k) if self.choose.budget is None else k if size == k else size
        notes = () if reached == k else (f"k is {k}, and {reached} of {n} candidates are all that may be chosen",)
        return Allowed(constraint=constraint, rows=rows, notes=notes)

    def _requested(self, quotas: Sequence[QuotaRequest]) -> tuple[QuotaSettings, ...]:
        for quota in quotas:
            if quota.column not in self._columns:
                hint = did_you_mean(quota.column, self._columns) or "list it in features.leave_out if it is no feature"
                raise ValueError(f"a quota needs a column of the candidates, got {quota.column!r}; {hint}")
        return requested_quotas(quotas)

    def _eligible(self, ids: Sequence[str], request: ConstraintRequest | None) -> tuple[IntArray | None, list[str]]:
        """Return the candidates that may be chosen, None for all, and the ids of those that must be."""
        asked = [] if request is None else list(dict.fromkeys(request.require))
        excluded = self.exclude if request is None or not request.exclude else self.exclude.union(request.exclude)
        if asked:
            there = set(ids)
            for id in asked:
                if id in excluded:
                    raise ValueError(f"arm {id!r} is required by the request, and it is excluded")
                if id not in there:
                    raise ValueError(f"arm {id!r} is required by the request, and it is not among the candidates")
        if self.require:
            asked += [id for id in ids if id in self.require and id not in excluded and id not in asked]
        if not excluded or excluded.isdisjoint(ids):
            return None, asked
        rows = np.array([i for i, id in enumerate(ids) if id not in excluded], dtype=np.int64)
        if not rows.size:
            raise InfeasibleError(f"no candidate may be chosen: all {len(ids)} are excluded")
        return rows, asked

    def _bounded(
        self,
        quotas: Sequence[QuotaSettings],
        columns: Mapping[str, Any],
        k: int,
        rows: IntArray | None,
        costs: CostsOf | None,
        required: IntArray,
    ) -> Constraint:
        """Return quotas, a budget or both, for k arms or as many as the upper bounds allow."""
        least: dict[str, Any] = {}
        most: dict[str, Any] = {}
        for quota in quotas:
            labels = [str(label) for label in columns[quota.column].labels]
            least[quota.column], most[quota.column] = quota.bounds(labels, k)
        _refuse_nothing(columns, most)
        budget = self.choose.budget
        if budget is not None:
            if costs is None:
                raise ValueError(f"the budget needs column {budget.column!r} of every candidate")
            cost = np.array(costs(budget.column), dtype=np.float64)
            cost = cost if rows is None else cost[rows]
            if not quotas:
                return Knapsack(cost, budget.limit, at_most=k, time_limit=self._seconds)
            return _within_budget(columns, least, most, k, cost, budget.limit, self._seconds)
        if len(quotas) == 1:
            ((name, groups),) = columns.items()
            upper = groups.counts("at_most", most[name], groups.sizes)
            return Quotas(groups, at_least=least[name], at_most=most[name], total=min(k, _sum(upper, groups)))
        if all(quota.nested for quota in quotas[1:]):
            try:
                nested = NestedQuotas(columns, at_least=least, at_most=most)
            except InfeasibleError:
                raise
            except ValueError as error:
                raise ValueError(f"{str(error).partition(';')[0]}; groups that cross must not be nested") from None
            return nested.with_(total=min(k, nested.k))
        crossing = overlapping_quotas(columns, at_least=least, at_most=most, total=(0, k), time_limit=self._seconds)
        largest = crossing.best_given(np.ones(crossing.n_arms), required=required)
        size = largest.indices.size
        return overlapping_quotas(columns, at_least=least, at_most=most, total=size, time_limit=self._seconds)


@lru_cache(maxsize=1000)
def top(k: int) -> TopK:
    """Return the constraint of k arms and nothing else."""
    return TopK(k)


def _groups(column: str, groups: GroupsOf | None, rows: IntArray | None) -> Groups:
    if groups is None:
        raise ValueError(f"the quota of {column!r} needs this column of every candidate")
    labels = groups(column)
    return replace(Groups.of(labels if rows is None else [labels[i] for i in rows.tolist()]), kind=column)


def _sum(upper: IntArray, groups: Groups) -> int:
    return int(np.minimum(upper, groups.sizes).sum())


def _refuse_nothing(columns: Mapping[str, Groups], most: Mapping[str, Mapping[str, int]]) -> None:
    """Raise InfeasibleError if every candidate is in a group of which none may be chosen."""
    if not any(0 in bounds.values() for bounds in most.values()):
        return
    is_barred = [
        np.array([most[name].get(str(label)) == 0 for label in groups.labels])[groups.of_arm]
        for name, groups in columns.items()
    ]
    if np.any(is_barred, axis=0).all():
        raise InfeasibleError("no candidate may be chosen: each is in a group with at_most = 0; raise one of these")


def _within_budget(
    columns: Mapping[str, Any],
    least: Mapping[str, Any],
    most: Mapping[str, Any],
    k: int,
    costs: FloatArray,
    limit: float,
    time_limit: float,
) -> Constraint:
    """Return quotas with a budget as an integer program: at most k arms."""
    quotas = overlapping_quotas(columns, at_least=least, at_most=most, total=(0, k))
    matrix, lower, upper = quotas.options["matrix"], quotas.options["lower"], quotas.options["upper"]
    rows = vstack([csr_array(matrix), csr_array(costs[None])], format="csr")
    names = [*quotas.options["names"], "the budget"]
    return Linear(rows, np.append(lower, 0.0), np.append(upper, limit), names=names, time_limit=time_limit)


class _Names:
    """The ids of candidates, so that errors name them."""

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids = ids

    def indices_of(self, ids: ArrayLike) -> IntArray:
        wanted = np.asarray(ids).tolist()
        place = {id: i for i, id in enumerate(self.ids)} if wanted else {}
        return np.array([place[str(id)] for id in wanted], dtype=np.int64)

    def ids_of(self, indices: IntArray) -> NDArray[Any]:
        return np.array([self.ids[i] for i in indices.tolist()])
