"""Any 0/1 program."""

import math
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from armful import checks
from armful.checks import FloatArray, IntArray
from armful.constraints._alike import kinds_of
from armful.constraints._checks import check_indices, repeated
from armful.constraints._milp import maximise
from armful.constraints._milp_rows import LinearRows, SparseMatrix, sparse
from armful.constraints._restrictable import RestrictableConstraint
from armful.constraints.base import Limit
from armful.constraints.selection import Selection
from armful.errors import InfeasibleError

MOST_LIMITS = 100
MOST_ROWS_EXPLAINED = 200


class Linear(RestrictableConstraint):
    """Any sets x in {0, 1}^n_arms with `lower <= matrix @ x <= upper`: a 0/1 program, solved by HiGHS.

    Without gap and time limit the answer is exact up to the solver's tolerance (some 1e-10 of the scores) and the ratio
    1; where integer scores are so large that it cannot tell the best set from the next, the ratio may be just below 1.
    Where a row has integers above 65,536 HiGHS may be wrong: it is asked in two ways, and the better set is the answer.
    Where the two contradict each other, or such a row has two bounds, the ratio is what the relaxation of the program
    proves. Otherwise the ratio is value / bound, NaN where the value is not positive or no bound is known yet. Ties are
    broken at random, arms that score 0 are chosen where they fit, and the answer is in rising order of index.

    HiGHS keeps rows to within 1e-6. A set that breaks one is cut off, with all others that break it in the same way,
    and the program solved again, up to 200 times; then an `ArithmeticError` says so.

    `k` is found by HiGHS at first use (an upper bound if the time limit is reached). A program without any allowed set
    is refused at first use; up to 200 rows, the message names rows that conflict, none of which could be left out.

    Parameters
    ----------
    matrix : array_like or sparse matrix of shape (n_rows, n_arms)
        The coefficients. A row of integers is kept exactly, any other to within 1e-9 of the numbers summed. Integers
        that float64 does not hold (some above 2^53) are refused, in bounds too.
    lower : array_like of shape (n_rows,) or float, default -inf
        What each row adds up to at least.
    upper : array_like of shape (n_rows,) or float, default inf
        What each row adds up to at most.
    time_limit : float, optional
        Seconds for one answer, which is then the best set found so far; answers then depend on the machine.
    gap : float
        Stop when the answer is proved to be within this fraction of the best; 0 for the best.
    names : sequence of str, optional
        A name for each row, for messages and limits.

    Raises
    ------
    ValueError
        If shapes do not match, or numbers are not finite.
    InfeasibleError
        If a lower bound is above its upper bound.

    Examples
    --------
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
        self._rows = LinearRows(rows, _bounds("lower", lower, n_rows), _bounds("upper", upper, n_rows))
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
        answer = maximise(np.ones(self.n_arms), self._rows, None, time_limit=self.time_limit, kinds=self._kinds)
        if answer.infeasible:
            raise InfeasibleError(self._conflict())
        if answer.proved and answer.chosen is not None:
            largest = answer.chosen.size
        else:
            largest = math.floor(min(self.n_arms, answer.bound + 1e-6))
        if largest == 0:
            raise ValueError("Linear allows the empty set only; loosen a row")
        return largest

    @cached_property
    def _kinds(self) -> IntArray | None:
        kinds = kinds_of(self._rows)
        return None if kinds is None or int(kinds.max()) + 1 == self.n_arms else kinds

    def _solve(
        self, scores: FloatArray, rng: Generator, required: IntArray, excluded: IntArray, X: FloatArray | None
    ) -> Selection:
        fixed = np.full(self.n_arms, np.nan)
        fixed[excluded] = 0.0
        fixed[required] = 1.0
        answer = maximise(
            scores, self._rows, rng, fixed=fixed, gap=self.gap, time_limit=self.time_limit, kinds=self._kinds
        )
        if answer.infeasible:
            anyway = required.size + excluded.size == 0 or self._infeasible(np.arange(len(self.names)))
            raise InfeasibleError(self._conflict(None if anyway else fixed))
        if answer.chosen is None:
            raise TimeoutError(f"HiGHS found no allowed set within {self.time_limit:g} seconds; raise time_limit")
        value = float(scores[answer.chosen].sum())
        return Selection(answer.chosen, value, answer.ratio(value))

    def violation(self, indices: ArrayLike) -> float:
        """Return by how much the rows are beyond their bounds in all, and how many arms are repeated."""
        chosen = check_indices(indices, self.n_arms)
        return float(self._rows.excess(np.unique(chosen)).sum() + repeated(chosen))

    def limits(self, indices: ArrayLike) -> Iterator[Limit]:
        """Return the rows that have reached a bound, loosened by one; the first hundred."""
        rows = self._rows
        sums, slack = rows.sums(check_indices(indices))
        full, least = np.abs(sums - rows.upper) <= slack, np.abs(sums - rows.lower) <= slack
        for i in np.flatnonzero(full | least)[:MOST_LIMITS].tolist():
            words = "exactly" if full[i] and least[i] else "at most" if full[i] else "at least"
            bound = rows.upper[i] if full[i] else rows.lower[i]
            upper, lower = rows.upper.copy(), rows.lower.copy()
            upper[i] += full[i]
            lower[i] -= least[i]
            name = f"row {i}" if self.options["names"] is None else self.names[i]
            yield Limit(f"{name} {words} {bound:g}", self.with_(lower=lower, upper=upper))

    def _conflict(self, fixed: FloatArray | None = None) -> str:
        """Return the message for no allowed set, or none with some arms fixed."""
        no_set = "no set" if fixed is None else "no set with all the required arms and none of the excluded"
        if len(self.names) > MOST_ROWS_EXPLAINED:
            return f"{no_set} meets all {len(self.names)} rows"
        rows = [self.names[i] for i in self._conflicting_rows(fixed)]
        if len(rows) == 1:
            return f"{no_set} meets row {rows[0]}"
        return f"rows {', '.join(rows[:-1])} and {rows[-1]} conflict: {no_set} meets them all"

    def _conflicting_rows(self, fixed: FloatArray | None) -> list[int]:
        """Return rows that no set meets together, though one does if any is left out: by deletion, halves first."""
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
        """Return whether it is proved that no set meets these rows."""
        part, nothing = self._rows.part(rows), np.zeros(self.n_arms)
        return maximise(nothing, part, None, fixed=fixed, time_limit=self.time_limit).infeasible


def _sparse(matrix: ArrayLike | SparseMatrix) -> SparseMatrix:
    from scipy.sparse import issparse  # noqa: PLC0415

    if issparse(matrix):
        rows = sparse(matrix)
        checks.exact_floats("matrix", rows.data)
        rows = rows.astype(np.float64)
    else:
        dense = checks.exact_floats("matrix", matrix)
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
    array = checks.exact_floats(name, values)
    if array.shape not in ((), (n_rows,)):
        raise ValueError(f"{name} must be a number or have shape ({n_rows},), one for each row, got {array.shape}")
    array = np.array(np.broadcast_to(array, n_rows))
    if np.isnan(array).any() or (array == (math.inf if name == "lower" else -math.inf)).any():
        raise ValueError(
            f"{name} must be numbers, {'-' if name == 'lower' else ''}infinity for no bound, got {values!r}"
        )
    return array
