"""What a set is chosen from, and finding the best set of it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from armful import objectives
from armful.arms import Arms
from armful.checks import FloatArray, IntArray
from armful.constraints.base import Constraint, Selection, checked_best
from armful.objectives import Objective
from armful.policies.scores import Scores

NUDGE = 1e-9
"""By how much, relative to the largest score, arms are favoured for having been chosen already."""

SAME = 1e-12
"""Worths that differ by less than this, relatively, are the same."""


@dataclass(frozen=True, eq=False)
class Problem:
    """All arms of a round, their scores, which sets are allowed and what a set is worth."""

    arms: Arms
    scores: Scores
    constraint: Constraint
    objective: Objective | None = None

    def solve(self, constraint: Constraint, rng: Generator) -> Selection:
        """Return the best set under this or another constraint."""
        return self._solve(self.scores.value, constraint, rng)

    def solve_near(self, chosen: IntArray, constraint: Constraint, rng: Generator) -> Selection:
        """Return the best set under another constraint; of equally good ones, one that keeps to the `chosen` arms."""
        best = self.solve(constraint, rng)
        nudged = self.scores.value.copy()
        nudged[chosen] += NUDGE * np.abs(nudged).max()
        near = self._solve(nudged, constraint, rng).indices
        same = abs(self._worth(near) - self._worth(best.indices)) <= SAME * float(np.abs(self.scores.value[near]).sum())
        return Selection(near, best.value, best.ratio) if same else best

    def names(self, indices: IntArray) -> list[Any]:
        """Return what some arms are called: their ids, else what the constraint calls them, else their indices."""
        ids = self.arms.ids_of(indices)
        names: list[Any] | None = ids if ids is not None else self.constraint.arm_names(indices)
        return indices.tolist() if names is None else names

    def _worth(self, indices: IntArray) -> float:
        if self.objective is None:
            return float(self.scores.value[indices].sum())
        return self.objective.value(self.scores.value, self.arms.X, indices)

    def _solve(self, scores: FloatArray, constraint: Constraint, rng: Generator) -> Selection:
        if self.objective is not None:
            return objectives.best(self.objective, scores, self.arms.X, constraint, rng)
        features = self.arms.X if constraint.uses_features else None
        return checked_best(constraint, scores, features, rng)
