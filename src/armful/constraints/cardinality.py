"""So many arms, or at most so many: uniform matroids."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from armful import checks
from armful.checks import FloatArray, IntArray
from armful.constraints.growing import CountGrowth
from armful.constraints.selection import Limit, Selection, check_indices, check_scores, repeated
from armful.errors import InfeasibleError


@dataclass(frozen=True)
class TopK:
    """Exactly `k` arms: the bases of a uniform matroid, solved by taking the k largest scores.

    The answer is in falling order of score.

    >>> TopK(2).best([0.3, 0.9, 0.5]).indices
    array([1, 2])
    """

    k: int

    def __post_init__(self) -> None:
        checks.count("k", self.k)

    def with_(self, *, k: int) -> Self:
        """The same with another size."""
        return replace(self, k=k)

    def best(self, scores: ArrayLike, X: FloatArray | None = None, rng: Generator | None = None) -> Selection:
        """The k arms of the largest scores."""
        values = check_scores(scores)
        indices = self.best_each(values[None], [rng or np.random.default_rng()])[0][0]
        return Selection(indices, float(values[indices].sum()))

    def best_each(self, scores: FloatArray, rngs: Sequence[Generator]) -> tuple[IntArray, FloatArray]:
        """The same for each row of `scores` `(repetitions, n_arms)`: indices `(repetitions, k)` and values."""
        if self.k > scores.shape[-1]:
            raise InfeasibleError(f"TopK({self.k}) needs {self.k} arms, {scores.shape[-1]} are there")
        indices = largest(scores, self.k, rngs)
        return indices, scores[np.arange(len(scores))[:, None], indices].sum(axis=-1)

    def violation(self, indices: ArrayLike) -> float:
        """How many arms too many or too few, repeated ones counted."""
        chosen = check_indices(indices)
        return float(abs(np.unique(chosen).size - self.k) + repeated(chosen))

    def growth(self, n_arms: int) -> CountGrowth:
        """For objectives that add arm by arm."""
        if self.k > n_arms:
            raise InfeasibleError(f"TopK({self.k}) needs {self.k} arms, {n_arms} are there")
        return CountGrowth(n_arms, self.k, self.k)

    def limits(self, indices: ArrayLike) -> list[Limit]:
        """The size."""
        return [Limit(f"exactly {self.k}", TopK(self.k + 1))]


@dataclass(frozen=True)
class AtMost:
    """At most `k` arms, and none whose score is negative; an arm that scores exactly 0 is taken while there is room.

    The answer is in falling order of score, and may be empty.

    >>> AtMost(2).best([0.3, -0.9, -0.5]).indices
    array([0])
    """

    k: int

    def __post_init__(self) -> None:
        checks.count("k", self.k)

    def with_(self, *, k: int) -> Self:
        """The same with another size."""
        return replace(self, k=k)

    def best(self, scores: ArrayLike, X: FloatArray | None = None, rng: Generator | None = None) -> Selection:
        """The largest scores that are not negative."""
        values = check_scores(scores)
        indices = largest_not_negative(values, self.k, rng or np.random.default_rng())
        return Selection(indices, float(values[indices].sum()))

    def violation(self, indices: ArrayLike) -> float:
        """How many arms too many, repeated ones counted."""
        chosen = check_indices(indices)
        return float(max(np.unique(chosen).size - self.k, 0) + repeated(chosen))

    def growth(self, n_arms: int) -> CountGrowth:
        """For objectives that add arm by arm."""
        return CountGrowth(n_arms, 0, self.k)

    def limits(self, indices: ArrayLike) -> list[Limit]:
        """The size, if it is reached."""
        full = check_indices(indices).size == self.k
        return [Limit(f"at most {self.k}", AtMost(self.k + 1))] if full else []


def largest_not_negative(scores: FloatArray, k: int, rng: Generator) -> IntArray:
    """The indices of the k largest of `scores` `(n_arms,)`, fewer where fewer are at least 0."""
    candidates = np.flatnonzero(scores >= 0)
    chosen: IntArray = candidates[largest(scores[None, candidates], min(k, candidates.size), [rng])[0]]
    return chosen


def largest(scores: FloatArray, k: int, rngs: Sequence[Generator]) -> IntArray:
    """The indices of the k largest of each row, largest first, equal scores in random order.

    scores: `(repetitions, n_arms)`; the answer: `(repetitions, k)`.
    """
    n_rows, n_arms = scores.shape
    if k == 0:
        return np.zeros((n_rows, 0), dtype=np.int64)
    rows = np.arange(n_rows)[:, None]
    chosen = np.argpartition(scores, n_arms - k, axis=-1)[:, n_arms - k :]
    chosen = chosen[rows, np.argsort(-scores[rows, chosen], axis=-1)]
    values = scores[rows, chosen]
    least = values[:, -1:]
    contested = (scores >= least).sum(axis=-1) > k
    for row in np.flatnonzero(contested | (values[:, 1:] == values[:, :-1]).any(axis=-1)).tolist():
        chosen[row] = _ties_at_random(scores[row], float(least[row, 0]), k, rngs[row])
    return chosen


def _ties_at_random(scores: FloatArray, least: float, k: int, rng: Generator) -> IntArray:
    candidates = rng.permutation(np.flatnonzero(scores >= least))
    return candidates[np.argsort(-scores[candidates], kind="stable")[:k]]
