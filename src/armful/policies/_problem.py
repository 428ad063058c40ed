"""The optimisation problem of one round: arms, scores, constraint, objective; and solving it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from armful import objectives
from armful.arms import Arms
from armful.checks import FloatArray, IntArray
from armful.constraints.base import Constraint, checked_best
from armful.constraints.selection import Selection
from armful.objectives import Objective
from armful.policies.scores import Scores

NUDGE = 1e-9
"""What is added to the scores of arms that were chosen already, relative to the largest score, to prefer them."""

SAME = 1e-12
"""Values whose relative difference is at most this are taken to be equal."""


@dataclass(frozen=True, eq=False)
class Problem:
    """All arms of a round, their scores, which sets are allowed, and the value of a set (by default, the sum)."""

    arms: Arms
    scores: Scores
    constraint: Constraint
    objective: Objective | None = None

    def solve(self, constraint: Constraint, rng: Generator) -> Selection:
        """Return the best set under this or another constraint."""
        return self._solve(self.scores.value, constraint, rng)

    def solve_near(self, chosen: IntArray, constraint: Constraint, rng: Generator) -> Selection:
        """Return the best set under another constraint; of equally good ones, one that shares most with `chosen`."""
        best = self.solve(constraint, rng)
        nudged = self.scores.value.copy()
        nudged[chosen] += NUDGE * np.abs(nudged).max()
        near = self._solve(nudged, constraint, rng).indices
        difference = abs(self._value(near) - self._value(best.indices))
        equal = difference <= SAME * float(np.abs(self.scores.value[near]).sum())
        return Selection(near, best.value, best.ratio) if equal else best

    def names(self, indices: IntArray) -> list[Any]:
        """Return what some arms are called: their ids, else what the constraint calls them, else their indices."""
        ids = self.arms.ids_of(indices)
        names: list[Any] | None = ids if ids is not None else self.constraint.arm_names(indices)
        return indices.tolist() if names is None else names

    def _value(self, indices: IntArray) -> float:
        if self.objective is None:
            return float(self.scores.value[indices].sum())
        return self.objective.value(self.scores.value, self.arms.X, indices)

    def _solve(self, scores: FloatArray, constraint: Constraint, rng: Generator) -> Selection:
        if self.objective is not None:
            return objectives.best(self.objective, scores, self.arms.X, constraint, rng)
        features = self.arms.X if constraint.uses_features else None
        return checked_best(constraint, scores, features, rng)
