"""0/1 programs by HiGHS, as scipy ships it: what `Linear`, `Knapsack` and `Path` share."""

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from armful.checks import FloatArray, IntArray
from armful.constraints._alike import worth_asking
from armful.constraints._milp_rows import EXACT, LinearRows

TIES = 1e-10
"""Ties are broken by adding this much of the mean score to each arm, times a random number from 0 to 1."""

PRECISION = 2.0**20
"""The largest score that HiGHS is given: it stops within 1e-6 of the best, which is 1e-12 of this."""

ATTEMPTS = 200


@dataclass(frozen=True, eq=False)
class Answer:
    """An answer of HiGHS.

    `chosen` are the arms, None if no set was found. `bound` is an upper bound on values, infinity if none is known.
    `infeasible`: it is proved that there is no allowed set; `proved`: that there is no better one.
    """

    chosen: IntArray | None
    bound: float = math.inf
    infeasible: bool = False
    proved: bool = False

    def ratio(self, value: float) -> float:
        """Return `a` such that `value / a` is proved to be an upper bound, NaN if nothing is."""
        if self.proved or value >= self.bound:
            return 1.0
        return value / self.bound if value > 0 and math.isfinite(self.bound) else math.nan


def maximise(
    scores: FloatArray,
    rows: LinearRows,
    rng: Generator | None,
    *,
    fixed: FloatArray | None = None,
    gap: float = 0.0,
    time_limit: float | None = None,
    kinds: IntArray | None = None,
) -> Answer:
    """Return the allowed set with the largest sum of `scores` `(n_arms,)`.

    `rng` breaks ties; without it the answer is any best set. `fixed` `(n_arms,)` is 0 or 1 for arms that are out or in,
    NaN for the others. `gap` is how far from the best the answer may be, relative to it. `kinds` `(n_arms,)` says which
    arms have equal columns: then only the best of each kind are given to HiGHS.
    """
    deadline = math.inf if time_limit is None else time.monotonic() + time_limit
    given, scale = for_highs(scores, rng)
    program = _Program(given, rows, rng, fixed, gap, deadline)
    asked = np.arange(given.size) if kinds is None else worth_asking(given, rows, kinds, fixed)
    program = program.among(asked) if 0 < asked.size < given.size else program
    answer = program.asked_twice() if rows.is_large else program.allowed(presolve=True)
    if answer.chosen is not None and program.scores.size < given.size:
        answer = replace(answer, chosen=asked[answer.chosen])
    return _with_bound(answer, scores, answer.bound / scale)


def _with_bound(answer: Answer, scores: FloatArray, bound: float) -> Answer:
    """Return the answer with its bound; proved if the bound tells the best set from the next, for integer scores.

    For others the value of the set must reach the bound but for the noise that breaks ties: what HiGHS calls optimal
    may have 1e-7 of an arm, and the set of its whole arms be worth less.
    """
    proved = answer.proved
    if math.isfinite(bound) and answer.chosen is not None and scores.any():
        value = float(scores[answer.chosen].sum())
        if are_whole(scores):
            bound += TIES * abs(bound)
            proved = bound < value + 1
        else:
            proved = proved and bound <= value + 2 * TIES * float(np.abs(scores).sum())
    return Answer(answer.chosen, bound, answer.infeasible, proved)


def are_whole(scores: FloatArray) -> bool:
    """Return whether scores are integers whose sums are exact."""
    return bool((np.trunc(scores) == scores).all()) and float(np.abs(scores).sum()) < EXACT


def for_highs(scores: FloatArray, rng: Generator | None) -> tuple[FloatArray, float]:
    """Return scores scaled to the precision of HiGHS, with ties broken, never below `scale * scores`; and the scale."""
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


@dataclass(frozen=True, eq=False)
class _Program:
    """A 0/1 program with scaled scores; the other fields are as in `maximise`, `deadline` is on the monotonic clock."""

    scores: FloatArray
    rows: LinearRows
    rng: Generator | None
    fixed: FloatArray | None
    gap: float
    deadline: float

    def among(self, arms: IntArray) -> "_Program":
        """Return the program over some of the arms."""
        fixed = None if self.fixed is None else self.fixed[arms]
        return replace(self, scores=self.scores[arms], rows=self.rows.columns(arms), fixed=fixed)

    def allowed(self, *, presolve: bool) -> Answer:
        """Return the answer of HiGHS, asked until its set keeps all rows: its tolerance is larger than ours."""
        program = self
        for _ in range(ATTEMPTS):
            answer = program.ask(presolve=presolve)
            if answer.chosen is None or not program.rows.excess(answer.chosen).any():
                return answer
            program = replace(program, rows=program.rows.without(answer.chosen))
        raise ArithmeticError(f"HiGHS gave {ATTEMPTS} sets that are not allowed: coefficients differ too much in size")

    def asked_twice(self) -> Answer:
        """Return the better of the answers without and with presolve: of rows of large integers HiGHS errs in both.

        A set that is worth more than the other answer says is possible shows that HiGHS erred. Then, and where a row
        has two bounds, only the bound of the relaxation is trusted. Past the deadline there is one answer.
        """
        answers = [self.allowed(presolve=False)]
        if time.monotonic() < self.deadline:
            answers.append(self.allowed(presolve=True))
        found = [(float(self.scores[a.chosen].sum()), i) for i, a in enumerate(answers) if a.chosen is not None]
        if not found:
            return Answer(None, infeasible=all(answer.infeasible for answer in answers))
        value, i = max(found)
        least = value - TIES * float(np.abs(self.scores).sum())
        if self.rows.is_window or any(answer.infeasible or answer.bound < least for answer in answers):
            return Answer(answers[i].chosen, self.ask(presolve=False, fractions=True).bound)
        return answers[i]

    def ask(self, *, presolve: bool, fractions: bool = False) -> Answer:
        """Return the answer of HiGHS; for the relaxation (with `fractions`), only the bound.

        With `presolve` HiGHS simplifies the program first. Where it fails it is asked again in the other way, as it is
        where the answer is not one to the question: some presolves leave out an arm that is fixed to be in.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415

        rows, rng = self.rows.for_highs, self.rng
        n_rows, n_arms = rows.matrix.shape
        arms = np.arange(n_arms) if rng is None else rng.permutation(n_arms)
        rows = rows if rng is None else rows.part(rng.permutation(n_rows))
        free = np.full(n_arms, np.nan) if self.fixed is None else self.fixed[arms]
        options: Any = {"mip_rel_gap": max(self.gap, TIES / 10)}
        if self.deadline < math.inf:
            options["time_limit"] = max(self.deadline - time.monotonic(), 1e-3)
        for simplified in (presolve, not presolve):
            result = milp(
                -self.scores[arms],
                integrality=np.full(n_arms, 0 if fractions else 1),
                bounds=Bounds(np.where(free == 1, 1.0, 0.0), np.where(free == 0, 0.0, 1.0)),
                constraints=LinearConstraint(rows.matrix[:, arms], rows.lower, rows.upper),
                options=options | {"presolve": simplified},
            )
            keeps_fixed = result.x is None or not (np.abs(result.x - free) > 0.5).any()  # NaN where an arm is free
            if result.status in (0, 1, 2) and keeps_fixed:
                break
        if fractions:
            return Answer(None, bound=-float(result.fun) if result.status == 0 else math.inf)
        if result.status not in (0, 1, 2) or not keeps_fixed:
            reason = result.message if keeps_fixed else "its answer disregards arms that are required or excluded"
            raise ArithmeticError(f"HiGHS failed: {reason}")
        bound = result.mip_dual_bound
        return Answer(
            chosen=None if result.x is None else np.sort(arms[np.asarray(result.x) > 0.5]),
            bound=-float(bound) if bound is not None and math.isfinite(bound) else math.inf,
            infeasible=result.status == 2,
            proved=result.status == 0 and self.gap == 0.0,
        )
