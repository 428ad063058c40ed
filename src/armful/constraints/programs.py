"""0/1 programs by HiGHS, as scipy ships it: what `Linear`, `Knapsack` and `Path` share.

scipy is imported where it is used: its solvers take longer to import than all of armful, and most users need none.
"""

import math
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray
from armful.constraints.covers import cover

SparseMatrix = Any
"""A `scipy.sparse.csr_array`, whose types say less than its name."""

TOLERANCE = 1e-9
"""How far a row may be beyond its bound, relative to the numbers summed in it, unless these are whole numbers."""

ROUNDING = 1e-12
"""How far a bound that should be whole may be from it: 0.3 * 10 is 3."""

TIES = 1e-10
"""Ties are broken by adding this much of the mean score to each arm, times a random number from 0 to 1."""

PRECISION = 2.0**20
"""The largest score that HiGHS is given: it stops within 1e-6 of the best, which is 1e-12 of this."""

EXACT = 2.0**53
"""Sums of whole numbers below this are exact in floats."""

LARGE = 2**16
"""With larger whole coefficients the presolve of HiGHS has lost sets that are allowed, best ones among them."""

ATTEMPTS = 200


def sparse(entries: Any, shape: tuple[int, int] | None = None) -> SparseMatrix:
    """Return a sparse matrix from all that scipy makes one of, with indices of 32 bits where they suffice.

    scipy's solvers and graph algorithms are written for those; not every version converts others by itself.
    """
    from scipy.sparse import csr_array  # noqa: PLC0415

    matrix = csr_array(entries, shape=shape)
    if max(*matrix.shape, matrix.nnz) < 2**31:
        matrix.indices = matrix.indices.astype(np.int32, copy=False)
        matrix.indptr = matrix.indptr.astype(np.int32, copy=False)
    return matrix


def whole_bound(bounds: FloatArray, sign: float) -> FloatArray:
    """The last whole number within each bound, upper (`sign` 1) or lower (-1): whole ones stay exactly as they are."""
    beyond = sign * bounds
    return sign * np.where(np.trunc(bounds) == bounds, beyond, np.floor(beyond + ROUNDING * np.abs(beyond)))


@dataclass(frozen=True, eq=False)
class Rows:
    """`lower <= matrix @ x <= upper` over x in {0, 1}^n_arms; `matrix` is sparse `(n_rows, n_arms)`.

    Rows of whole numbers are kept exactly, others to within `TOLERANCE`.
    """

    matrix: SparseMatrix
    lower: FloatArray
    upper: FloatArray

    @cached_property
    def _sizes(self) -> SparseMatrix:
        return abs(self.matrix)

    @cached_property
    def whole(self) -> NDArray[np.bool_]:
        """The rows whose coefficients are whole numbers, `(n_rows,)`."""
        whole = np.ones(self.lower.size, dtype=bool)
        whole[self._row_of_entry[self.matrix.data != np.trunc(self.matrix.data)]] = False
        return whole

    @cached_property
    def _row_of_entry(self) -> IntArray:
        return np.repeat(np.arange(self.lower.size), np.diff(self.matrix.indptr))

    @cached_property
    def least(self) -> FloatArray:
        """The lower bounds as they are kept: whole where the row is."""
        return np.where(self.whole, whole_bound(self.lower, -1.0), self.lower)

    @cached_property
    def most(self) -> FloatArray:
        """The upper bounds as they are kept: whole where the row is."""
        return np.where(self.whole, whole_bound(self.upper, 1.0), self.upper)

    def sums(self, chosen: IntArray) -> tuple[FloatArray, FloatArray]:
        """`matrix @ x` when these distinct arms are chosen, and the tolerance of each row, both `(n_rows,)`."""
        x = np.zeros(self.matrix.shape[1])
        x[chosen] = 1.0
        return self.matrix @ x, np.where(self.whole, ROUNDING, TOLERANCE) * (self._sizes @ x)

    def excess(self, chosen: IntArray) -> FloatArray:
        """How far each row is beyond its bounds; 0 if it is kept."""
        sums, slack = self.sums(chosen)
        below, above = np.maximum(self.lower - sums, 0.0), np.maximum(sums - self.upper, 0.0)
        real = ~self.whole
        below[real & (below <= np.maximum(slack, TOLERANCE * np.abs(self.lower)))] = 0.0
        above[real & (above <= np.maximum(slack, TOLERANCE * np.abs(self.upper)))] = 0.0
        below[self.whole & (sums >= self.least)] = 0.0
        above[self.whole & (sums <= self.most)] = 0.0
        for i in np.flatnonzero(self.whole & (slack >= ROUNDING * EXACT / 2)).tolist():
            entries = self._entries(i, chosen)
            below[i], above[i] = (
                max(math.fsum([sign * bound, *(-sign * entries).tolist()]), 0.0) if math.isfinite(bound) else 0.0
                for sign, bound in ((1.0, self.least[i]), (-1.0, self.most[i]))
            )
        return below + above

    def part(self, rows: IntArray) -> "Rows":
        """Some of the rows."""
        return Rows(self.matrix[rows], self.lower[rows], self.upper[rows])

    def beside(self, others: "Rows") -> "Rows":
        """These rows and the others."""
        from scipy.sparse import vstack  # noqa: PLC0415

        matrix = sparse(vstack([self.matrix, others.matrix]))
        return Rows(matrix, np.append(self.lower, others.lower), np.append(self.upper, others.upper))

    def without(self, chosen: IntArray) -> "Rows":
        """The same, but this set, which breaks a row, is forbidden, and all others that break it in the same way."""
        i = int(np.argmax(self.excess(chosen)))
        if self.whole[i]:
            signs, least = cover(self._entries(i, np.arange(self.matrix.shape[1])), self.least[i], self.most[i], chosen)
        else:
            signs, least = np.ones(self.matrix.shape[1]), 1.0 - chosen.size  # another arm is in, or one of these out
            signs[chosen] = -1.0
        return self.beside(Rows(sparse(signs[None, :]), np.array([least]), np.array([math.inf])))

    def _entries(self, i: int, chosen: IntArray) -> FloatArray:
        row = np.zeros(self.matrix.shape[1])
        begin, end = self.matrix.indptr[i : i + 2]
        np.add.at(row, self.matrix.indices[begin:end], self.matrix.data[begin:end])
        return row[chosen]

    @cached_property
    def is_large(self) -> bool:
        """Whether coefficients of rows of whole numbers are so large that HiGHS makes mistakes."""
        return bool((self.whole & (self._largest > LARGE)).any())

    @cached_property
    def _largest(self) -> FloatArray:
        largest = np.zeros(self.lower.size)
        np.maximum.at(largest, self._row_of_entry, np.abs(self.matrix.data))
        return largest

    @cached_property
    def for_highs(self) -> "Rows":
        """Rows of whole numbers get whole bounds; large or other coefficients become 2^12, since HiGHS allows 1e-6."""
        largest = self._largest
        resized = (~self.whole | (largest > 2**20)) & (largest > 0)
        factor = np.ones(self.lower.size)
        factor[resized] = 2.0 ** (12 - np.floor(np.log2(largest[resized])))
        entries = (self.matrix.data * factor[self._row_of_entry], self.matrix.indices, self.matrix.indptr)
        return Rows(sparse(entries, shape=self.matrix.shape), self.least * factor, self.most * factor)


@dataclass(frozen=True, eq=False)
class Answer:
    """What HiGHS says.

    chosen: the arms; None if no set is known. bound: no allowed set is worth more; infinity if that is not known.
    infeasible: proved that there is no allowed set. proved: proved that there is no better one.
    """

    chosen: IntArray | None
    bound: float = math.inf
    infeasible: bool = False
    proved: bool = False

    def ratio(self, value: float) -> float:
        """What is proved about a set of this value: `a` such that no set is worth more than `value / a`, or NaN."""
        if self.proved or value >= self.bound:
            return 1.0
        return value / self.bound if value > 0 and math.isfinite(self.bound) else math.nan


def maximise(
    scores: FloatArray,
    rows: Rows,
    rng: Generator | None,
    *,
    fixed: FloatArray | None = None,
    gap: float = 0.0,
    time_limit: float | None = None,
    presolve: bool = True,
) -> Answer:
    """The allowed set with the largest sum of `scores` `(n_arms,)`.

    rng: for ties; without it the answer is any best set. fixed: `(n_arms,)`, 0 or 1 for arms that are out or in,
    NaN for the others. gap: how far from the best the answer may be, relative to it. presolve: whether HiGHS
    simplifies the program first; where that fails it is asked again without.
    """
    deadline = math.inf if time_limit is None else time.monotonic() + time_limit
    given, scale = for_highs(scores, rng)
    kept = rows
    for _ in range(ATTEMPTS):
        answer = _ask(given, kept, rng, fixed, gap, deadline, presolve)
        if answer.chosen is None or not kept.excess(answer.chosen).any():
            return _judged(answer, scores, answer.bound / scale)
        kept = kept.without(answer.chosen)  # within the tolerance of HiGHS, beyond ours
    raise ArithmeticError(f"HiGHS gave {ATTEMPTS} sets that are not allowed: coefficients differ too much in size")


def _judged(answer: Answer, scores: FloatArray, bound: float) -> Answer:
    """The same; where scores are whole numbers, proved only if HiGHS could tell the best set from the next."""
    proved = answer.proved
    if proved and answer.chosen is not None and scores.any() and are_whole(scores):
        bound += TIES * abs(bound)
        proved = bound < float(scores[answer.chosen].sum()) + 1
    return Answer(answer.chosen, bound, answer.infeasible, proved)


def are_whole(scores: FloatArray) -> bool:
    """Whether scores are whole numbers whose sums are exact."""
    return bool((np.trunc(scores) == scores).all()) and float(np.abs(scores).sum()) < EXACT


def for_highs(scores: FloatArray, rng: Generator | None) -> tuple[FloatArray, float]:
    """Scores of a size that HiGHS is precise for, ties broken, never below `scale * scores`; and the scale."""
    largest = float(np.abs(scores).max(initial=0.0))
    if largest == 0.0:
        return (np.zeros(scores.size) if rng is None else rng.random(scores.size)), 1.0
    exponent = max(math.floor(math.log2(largest)), -1000)
    scaled = np.ldexp(scores, -exponent)
    if rng is not None:
        noise = TIES * float(np.abs(scaled).mean())
        if are_whole(scores):  # in all below 1/4
            noise = min(noise, math.ldexp(0.25 / scores.size, -exponent))
        scaled += noise * rng.random(scores.size)
    return PRECISION * scaled, PRECISION * 2.0**-exponent


def _ask(
    scores: FloatArray,
    rows: Rows,
    rng: Generator | None,
    fixed: FloatArray | None,
    gap: float,
    deadline: float,
    presolve: bool,
) -> Answer:
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415

    presolve = presolve and not rows.is_large
    rows = rows.for_highs
    n_rows, n_arms = rows.matrix.shape
    arms = np.arange(n_arms) if rng is None else rng.permutation(n_arms)
    rows = rows if rng is None else rows.part(rng.permutation(n_rows))
    free = np.full(n_arms, np.nan) if fixed is None else fixed[arms]
    options: Any = {"mip_rel_gap": max(gap, TIES / 10)}
    if deadline < math.inf:
        options["time_limit"] = max(deadline - time.monotonic(), 1e-3)
    for simplified in (True, False) if presolve else (False,):
        result = milp(
            -scores[arms],
            integrality=np.ones(n_arms),
            bounds=Bounds(np.where(free == 1, 1.0, 0.0), np.where(free == 0, 0.0, 1.0)),
            constraints=LinearConstraint(rows.matrix[:, arms], rows.lower, rows.upper),
            options=options | {"presolve": simplified},
        )
        if result.status in (0, 1, 2):
            break
    else:
        raise ArithmeticError(f"HiGHS failed: {result.message}")
    bound = result.mip_dual_bound
    return Answer(
        chosen=None if result.x is None else np.sort(arms[np.asarray(result.x) > 0.5]),
        bound=-float(bound) if bound is not None and math.isfinite(bound) else math.inf,
        infeasible=result.status == 2,
        proved=result.status == 0 and gap == 0.0,
    )
