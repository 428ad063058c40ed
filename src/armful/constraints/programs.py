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

from armful.checks import FloatArray, IntArray

SparseMatrix = Any
"""A `scipy.sparse.csr_array`, whose types say less than its name."""

TOLERANCE = 1e-9
"""How far a row may be beyond its bound, relative to the numbers that are summed in it."""

TIES = 1e-10
"""Ties are broken by adding this much of the mean score to each arm, times a random number from 0 to 1."""

PRECISION = 2.0**20
"""The largest score that HiGHS is given: it stops within 1e-6 of the best, which is 1e-12 of this."""

ATTEMPTS = 20


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


@dataclass(frozen=True, eq=False)
class Rows:
    """`lower <= matrix @ x <= upper` over x in {0, 1}^n_arms; `matrix` is sparse `(n_rows, n_arms)`."""

    matrix: SparseMatrix
    lower: FloatArray
    upper: FloatArray
    tolerance: float = TOLERANCE

    def sums(self, chosen: IntArray) -> tuple[FloatArray, FloatArray]:
        """`matrix @ x` when these distinct arms are chosen, and the tolerance of each row, both `(n_rows,)`."""
        x = np.zeros(self.matrix.shape[1])
        x[chosen] = 1.0
        return self.matrix @ x, self.tolerance * (abs(self.matrix) @ x)

    def excess(self, chosen: IntArray) -> FloatArray:
        """How far each row is beyond its bounds; 0 within the tolerance."""
        sums, slack = self.sums(chosen)
        below, above = np.maximum(self.lower - sums, 0.0), np.maximum(sums - self.upper, 0.0)
        below[below <= np.maximum(slack, self.tolerance * np.abs(self.lower))] = 0.0
        above[above <= np.maximum(slack, self.tolerance * np.abs(self.upper))] = 0.0
        return below + above

    def part(self, rows: IntArray) -> "Rows":
        """Some of the rows."""
        return Rows(self.matrix[rows], self.lower[rows], self.upper[rows], self.tolerance)

    def beside(self, others: "Rows") -> "Rows":
        """These rows and the others."""
        from scipy.sparse import vstack  # noqa: PLC0415

        matrix = sparse(vstack([self.matrix, others.matrix]))
        lower, upper = np.append(self.lower, others.lower), np.append(self.upper, others.upper)
        return Rows(matrix, lower, upper, self.tolerance)

    def without(self, chosen: IntArray) -> "Rows":
        """The same, but this one set is forbidden: some other arm is in, or one of these is out."""
        signs = np.ones((1, self.matrix.shape[1]))
        signs[0, chosen] = -1.0
        return self.beside(Rows(sparse(signs), np.array([1.0 - chosen.size]), np.array([math.inf])))

    @cached_property
    def for_highs(self) -> "Rows":
        """Rows of whole numbers get whole bounds; others coefficients up to 2^12, since HiGHS is content with 1e-6."""
        of_entry = np.repeat(np.arange(self.lower.size), np.diff(self.matrix.indptr))
        largest, whole = np.zeros(self.lower.size), np.ones(self.lower.size, dtype=bool)
        np.maximum.at(largest, of_entry, np.abs(self.matrix.data))
        whole[of_entry[self.matrix.data != np.trunc(self.matrix.data)]] = False
        resized = (~whole | (largest > 2**20)) & (largest > 0)
        factor = np.ones(self.lower.size)
        factor[resized] = 2.0 ** (12 - np.floor(np.log2(largest[resized])))
        lower = np.where(whole, np.ceil(self.lower - self.tolerance * np.abs(self.lower)), self.lower)
        upper = np.where(whole, np.floor(self.upper + self.tolerance * np.abs(self.upper)), self.upper)
        entries = (self.matrix.data * factor[of_entry], self.matrix.indices, self.matrix.indptr)
        matrix = sparse(entries, shape=self.matrix.shape)
        return Rows(matrix, lower * factor, upper * factor)


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
        if answer.chosen is None or not rows.excess(answer.chosen).any():
            return Answer(answer.chosen, answer.bound / scale, answer.infeasible, answer.proved)
        kept = kept.without(answer.chosen)  # within the tolerance of HiGHS, beyond ours
    raise ArithmeticError(f"HiGHS gave {ATTEMPTS} sets that are not allowed: coefficients differ too much in size")


def for_highs(scores: FloatArray, rng: Generator | None) -> tuple[FloatArray, float]:
    """Scores of a size that HiGHS is precise for, ties broken, never below `scale * scores`; and the scale."""
    largest = float(np.abs(scores).max(initial=0.0))
    if largest == 0.0:
        return (np.zeros(scores.size) if rng is None else rng.random(scores.size)), 1.0
    exponent = max(math.floor(math.log2(largest)), -1000)
    scaled = np.ldexp(scores, -exponent)
    if rng is not None:
        scaled += TIES * float(np.abs(scaled).mean()) * rng.random(scores.size)
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
