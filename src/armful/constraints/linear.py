"""Any 0/1 program, and quotas that overlap."""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from armful import checks
from armful.checks import FloatArray, IntArray
from armful.constraints._checks import check_indices, repeated
from armful.constraints._groups import Counts, Groups, Total
from armful.constraints._milp import Answer, maximise
from armful.constraints._milp_rows import Rows, SparseMatrix, sparse
from armful.constraints._restrictable import RestrictableConstraint
from armful.constraints.base import Limit, Selection
from armful.errors import InfeasibleError

MOST_LIMITS = 100
MOST_ROWS_EXPLAINED = 200


class Linear(RestrictableConstraint):
    """Any set of arms x in {0, 1}^n_arms with `lower <= matrix @ x <= upper`: a 0/1 program, solved by HiGHS.

    matrix: `(n_rows, n_arms)`, dense or scipy sparse. lower, upper: a number for all rows or `(n_rows,)`; infinity
        where there is no bound. A row of whole numbers is kept exactly, any other to within 1e-9 of the numbers summed.
    gap: stop when the answer is proved to be within this share of the best; 0 for the best.
    time_limit: seconds for one answer, then the best set found so far; answers then depend on the machine.
    names: a name for each row, for messages and limits.

    `ratio` of an answer is what HiGHS proved. Without gap and time limit the answer is exact up to the solver's
    tolerance (some 1e-10 of the scores) and the ratio 1; whole-number scores too large for that tolerance to tell the
    best set from the next have a ratio just below 1. Where a row of whole numbers above 65,536 has two bounds HiGHS
    may be wrong: it is asked in two ways, and the ratio is what the relaxation of the program proves. Otherwise the
    ratio is value / bound, NaN where the value is not positive or no bound is known yet. Ties are broken at random, and
    arms that score 0 are taken where they fit.

    HiGHS keeps rows to within 1e-6. A set that breaks one is cut off, with all others that break it in the same way,
    and the program solved again, up to 200 times; then an `ArithmeticError` says so.

    `k` is the size of the largest allowed set, found by HiGHS at first use (a bound on it if the time limit is
    reached). A program without any allowed set is refused at first use; up to 200 rows, the message names rows that
    conflict, none of which could be left out.

    >>> pairs = Linear([[1, 1, 0, 0], [0, 1, 1, 1]], 1, [1, 2])
    >>> pairs.best([1.0, 5.0, 3.0, 2.0]).indices, pairs.k
    (array([1, 2]), 3)
    """

    _arms_are = "columns"

    def __init__(
        self,
        matrix: ArrayLike | SparseMatrix,
        lower: ArrayLike = -math.inf,
        upper: ArrayLike = math.inf,
        *,
        time_limit: float | None = None,
        gap: float = 0.0,
        names: Sequence[str] | None = None,
    ) -> None:
        rows = _sparse(matrix)
        n_rows, self.n_arms = int(rows.shape[0]), int(rows.shape[1])
        self.time_limit = None if time_limit is None else checks.positive("time_limit", time_limit, "it is in seconds")
        self.gap = checks.at_least_zero("gap", gap)
        self.names = [str(i) for i in range(n_rows)] if names is None else [str(name) for name in names]
        if len(self.names) != n_rows:
            raise ValueError(f"names must be one for each of the {n_rows} rows, got {len(self.names)}")
        self._rows = Rows(rows, _bounds("lower", lower, n_rows), _bounds("upper", upper, n_rows))
        for i in np.flatnonzero(self._rows.lower > self._rows.upper).tolist():
            least, most = self._rows.lower[i], self._rows.upper[i]
            raise InfeasibleError(f"row {self.names[i]} must be at least {least:g} and at most {most:g}")
        self.options = {
            "matrix": rows,
            "lower": self._rows.lower,
            "upper": self._rows.upper,
            "time_limit": time_limit,
            "gap": gap,
            "names": names,
        }

    @cached_property
    def k(self) -> int:
        """The size of the largest allowed set."""
        answer = maximise(np.ones(self.n_arms), self._rows, None, time_limit=self.time_limit)
        if answer.infeasible:
            raise InfeasibleError(self._conflict())
        largest = answer.chosen.size if answer.proved and answer.chosen is not None else self._bound_on_k(answer)
        if largest == 0:
            raise ValueError("Linear allows the empty set only; loosen a row")
        return largest

    def _solve(self, scores: FloatArray, rng: Generator, required: IntArray, excluded: IntArray) -> Selection:
        fixed = np.full(self.n_arms, np.nan)
        fixed[excluded] = 0.0
        fixed[required] = 1.0
        answer = maximise(scores, self._rows, rng, fixed=fixed, gap=self.gap, time_limit=self.time_limit)
        if answer.infeasible:
            anyway = required.size + excluded.size == 0 or self._infeasible(np.arange(len(self.names)))
            raise InfeasibleError(self._conflict(None if anyway else fixed))
        if answer.chosen is None:
            raise TimeoutError(f"HiGHS found no allowed set within {self.time_limit:g} seconds; raise time_limit")
        value = float(scores[answer.chosen].sum())
        return Selection(answer.chosen, value, answer.ratio(value))

    def violation(self, indices: ArrayLike) -> float:
        """By how much the rows are beyond their bounds in all, and how many arms are repeated."""
        chosen = check_indices(indices, self.n_arms)
        return float(self._rows.excess(np.unique(chosen)).sum() + repeated(chosen))

    def limits(self, indices: ArrayLike) -> Iterator[Limit]:
        """The rows that have reached a bound, loosened by one; the first hundred."""
        return islice(self._limits(check_indices(indices)), MOST_LIMITS)

    def _limits(self, chosen: IntArray) -> Iterator[Limit]:
        rows = self._rows
        sums, slack = rows.sums(chosen)
        full, least = np.abs(sums - rows.upper) <= slack, np.abs(sums - rows.lower) <= slack
        for i in np.flatnonzero(full | least).tolist():
            upper, lower = _raised(rows.upper, i, 1.0), _raised(rows.lower, i, -1.0)
            if full[i] and least[i]:
                yield Limit(f"{self.names[i]} exactly {rows.upper[i]:g}", self.with_(lower=lower, upper=upper))
            elif full[i]:
                yield Limit(f"{self.names[i]} at most {rows.upper[i]:g}", self.with_(upper=upper))
            else:
                yield Limit(f"{self.names[i]} at least {rows.lower[i]:g}", self.with_(lower=lower))

    def _bound_on_k(self, answer: Answer) -> int:
        return min(self.n_arms, math.floor(answer.bound + 1e-6)) if math.isfinite(answer.bound) else self.n_arms

    def _conflict(self, fixed: FloatArray | None = None) -> str:
        """What to say when there is no allowed set, or none with some arms fixed."""
        no_set = "no set" if fixed is None else "no set with all the required arms and none of the excluded"
        if len(self.names) > MOST_ROWS_EXPLAINED:
            return f"{no_set} meets all {len(self.names)} rows"
        rows = [self.names[i] for i in self._conflicting_rows(fixed)]
        if len(rows) == 1:
            return f"{no_set} meets row {rows[0]}"
        return f"rows {', '.join(rows[:-1])} and {rows[-1]} conflict: {no_set} meets them all"

    def _conflicting_rows(self, fixed: FloatArray | None) -> list[int]:
        """Rows that no set meets together, though it would if any one were left out: by deletion, halves first."""
        kept = list(range(len(self.names)))
        size = len(kept)
        while size > 1:
            size = (size + 1) // 2
            start = 0
            while start < len(kept):
                rest = kept[:start] + kept[start + size :]
                if rest and self._infeasible(np.array(rest), fixed):
                    kept = rest
                else:
                    start += size
        return kept

    def _infeasible(self, rows: IntArray, fixed: FloatArray | None = None) -> bool:
        """Whether it is proved that no set meets these rows."""
        part, nothing = self._rows.part(rows), np.zeros(self.n_arms)
        return maximise(nothing, part, None, fixed=fixed, time_limit=self.time_limit).infeasible


def overlapping_quotas(
    columns: Mapping[str, Iterable[Hashable]],
    *,
    at_least: Mapping[str, Counts] | None = None,
    at_most: Mapping[str, Counts] | None = None,
    total: Total = None,
    **options: Any,
) -> Linear:
    """Bounds on how many arms come from each group of several columns at once, such as by region and by age.

    columns: for each name, a label for each arm. at_least, at_most: for each column that is to be bounded, one number
    for all its groups or a mapping from label to number. total: how many in all, a number or a pair `(low, high)`.
    options: of `Linear`. For groups within groups (region, city) `NestedQuotas` does the same and is much faster.

    >>> people = {"region": ["north", "north", "south", "south"], "age": ["young", "old", "young", "old"]}
    >>> quotas = overlapping_quotas(people, at_least={"region": 1}, at_most={"age": {"old": 1}}, total=2)
    >>> quotas.best([1.0, 5.0, 2.0, 4.0]).indices
    array([1, 2])
    """
    for option, given in (("columns", columns), ("at_least", at_least), ("at_most", at_most)):
        if given is not None and not isinstance(given, Mapping):
            raise ValueError(f"{option} must be a mapping by column, like {{'region': ...}}, got {given!r}")
    found = {name: _groups(name, labels) for name, labels in columns.items()}
    if not found:
        raise ValueError("columns must hold at least one column of labels")
    n_arms = next(iter(found.values())).of_arm.size
    for name, groups in found.items():
        if groups.of_arm.size != n_arms:
            raise ValueError(f"columns must have one length, {name!r} has {groups.of_arm.size} labels, not {n_arms}")
    least, most = dict(at_least or {}), dict(at_most or {})
    for name in [*least, *most]:
        if name not in found:
            raise ValueError(f"a quota names column {name!r}; the columns are {', '.join(map(repr, found))}")
    members: list[IntArray] = []
    bounds: list[tuple[float, float]] = []
    names: list[str] = []
    for name, groups in found.items():
        for i, low, high in _group_bounds(name, groups, least.get(name), most.get(name)):
            members.append(np.flatnonzero(groups.of_arm == i))
            bounds.append((low, high))
            names.append(f"{name} {groups.labels[i]!r}")
    if total is not None:
        members.append(np.arange(n_arms))
        bounds.append(_total(total))
        names.append("total")
    if not names:
        raise ValueError("overlapping_quotas needs at_least, at_most or total")
    ends = np.cumsum([0, *(arms.size for arms in members)])
    arms = np.concatenate(members)
    matrix = sparse((np.ones(arms.size), arms, ends), shape=(len(members), n_arms))
    lower, upper = np.array(bounds, dtype=np.float64).T
    return Linear(matrix, lower, upper, names=names, **options)


def _group_bounds(
    column: str, groups: Groups, at_least: Counts | None, at_most: Counts | None
) -> Iterator[tuple[int, float, float]]:
    """The groups that are bounded, by number, with their bounds."""
    known = set(groups.labels)
    for label, number in at_least.items() if isinstance(at_least, Mapping) else ():
        if label not in known and checks.count(f"at_least of {column} {label!r}", number, minimum=0) > 0:
            raise InfeasibleError(f"{column} {label!r} needs at least {number} arms, none are there")
    lower = groups.counts("at_least", at_least, default=np.zeros_like(groups.sizes))
    upper = groups.counts("at_most", at_most, default=groups.sizes)
    for i, (low, high, size) in enumerate(zip(lower.tolist(), upper.tolist(), groups.sizes.tolist(), strict=True)):
        if low > size:
            raise InfeasibleError(f"{column} {groups.labels[i]!r} needs at least {low} arms, {size} are there")
        if low > high:
            raise InfeasibleError(f"{column} {groups.labels[i]!r} needs at least {low} arms and at most {high}")
        if low > 0 or high < size:
            yield i, low if low > 0 else -math.inf, high if high < size else math.inf


def _groups(name: str, labels: Iterable[Hashable]) -> Groups:
    try:
        return replace(Groups.of(labels), kind=name)
    except ValueError as error:
        raise ValueError(f"column {name!r}: {error}") from None


def _total(total: int | tuple[int, int]) -> tuple[float, float]:
    low, high = total if isinstance(total, tuple | list) and len(total) == 2 else (total, total)
    if checks.count("total", low, minimum=0) > checks.count("total", high, minimum=0):
        raise ValueError(f"total must be a pair (low, high) with low <= high, got {total!r}")
    return float(low), float(high)


def _sparse(matrix: ArrayLike | SparseMatrix) -> SparseMatrix:
    from scipy.sparse import issparse  # noqa: PLC0415

    if issparse(matrix):
        rows = sparse(matrix).astype(np.float64)
    else:
        dense = checks.floats("matrix", matrix)
        if dense.ndim != 2:
            raise ValueError(f"matrix must have shape (n_rows, n_arms), got {dense.shape}")
        rows = sparse(dense)
    if 0 in rows.shape:
        raise ValueError(f"matrix must have at least one row and one arm, got shape {rows.shape}")
    rows.sum_duplicates()
    if not np.isfinite(rows.data).all():
        raise ValueError("matrix must be finite, got a NaN or an infinity")
    return rows


def _bounds(name: str, values: ArrayLike, n_rows: int) -> FloatArray:
    array = checks.floats(name, values)
    if array.shape not in ((), (n_rows,)):
        raise ValueError(f"{name} must be a number or have shape ({n_rows},), one for each row, got {array.shape}")
    array = np.array(np.broadcast_to(array, n_rows))
    if np.isnan(array).any() or (array == (math.inf if name == "lower" else -math.inf)).any():
        raise ValueError(
            f"{name} must be numbers, {'-' if name == 'lower' else ''}infinity for no bound, got {values!r}"
        )
    return array


def _raised(bounds: FloatArray, i: int, by: float) -> FloatArray:
    changed = bounds.copy()
    changed[i] += by
    return changed
