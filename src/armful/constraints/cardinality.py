"""So many arms, or at most so many: uniform matroids."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from armful import checks
from armful.checks import FloatArray, IntArray
from armful.constraints._checks import check_indices, check_scores, repeated
from armful.constraints._incremental import CountGrowth
from armful.constraints._ranks import Ranks, at, largest, largest_of_one
from armful.constraints.base import Limit, RankedConstraint, Selection
from armful.errors import InfeasibleError
from armful.randomness import Keys, Streams, as_generator, draw_key, draw_keys


@dataclass(frozen=True, eq=False, repr=False)
class TopK(RankedConstraint):
    """Exactly `k` arms: the bases of a uniform matroid, solved by taking the k largest scores.

    The answer is in falling order of score.

    >>> TopK(2).best([0.3, 0.9, 0.5]).indices
    array([1, 2])
    """

    always_exact = True
    looks_at_features = False

    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checks.count("k", self.k))
        object.__setattr__(self, "options", {"k": self.k})

    def best(self, scores: ArrayLike, X: FloatArray | None = None, rng: Generator | None = None) -> Selection:
        """The k arms of the largest scores."""
        return self.best_among(check_scores(scores), draw_key(as_generator(rng)))

    def best_among(self, scores: FloatArray, key: Keys, places: IntArray | None = None) -> Selection:
        """The same for some of many arms: those at `places`, ties as `randomness.tie_keys` has it."""
        self.refuse_misfit(scores.size)
        indices = largest_of_one(scores, self.k, key, places)
        return Selection(at(places, indices), float(np.add.reduce(scores[indices])))

    def refuse_misfit(self, n_arms: int) -> None:
        """Raise if there are too few arms."""
        if self.k > n_arms:
            raise InfeasibleError(f"TopK({self.k}) needs {self.k} arms, {n_arms} are there")

    @property
    def ranks(self) -> Ranks:
        """For choosing from more arms than are looked at one by one."""
        return Ranks((), self.k, self.k)

    def best_each(
        self, scores: FloatArray, rngs: Sequence[Generator], X: Sequence[FloatArray] | None = None
    ) -> tuple[IntArray, FloatArray]:
        """The same for each row of `scores` `(repetitions, n_arms)`: indices `(repetitions, k)` and values."""
        self.refuse_misfit(scores.shape[-1])
        indices = largest(scores, self.k, draw_keys(Streams(rngs)))
        return indices, scores[np.arange(len(scores))[:, None], indices].sum(axis=-1)

    def best_values(self, scores: FloatArray, X: Sequence[FloatArray] | None = None) -> FloatArray:
        """What the best set of each row of `scores` is worth: `(repetitions,)`."""
        self.refuse_misfit(scores.shape[-1])
        others = scores.shape[-1] - self.k
        values: FloatArray = np.partition(scores, others, axis=-1)[:, others:].sum(axis=-1)
        return values

    def violation(self, indices: ArrayLike) -> float:
        """How many arms too many or too few, repeated ones counted."""
        chosen = check_indices(indices)
        return float(abs(np.unique(chosen).size - self.k) + repeated(chosen))

    def growth(self, n_arms: int) -> CountGrowth:
        """For objectives that add arm by arm."""
        self.refuse_misfit(n_arms)
        return CountGrowth(n_arms, self.k, self.k)

    def limits(self, indices: ArrayLike) -> list[Limit]:
        """The size."""
        return [Limit(f"exactly {self.k}", TopK(self.k + 1))]


@dataclass(frozen=True, eq=False, repr=False)
class AtMost(RankedConstraint):
    """At most `k` arms, and none whose score is negative; an arm that scores exactly 0 is taken while there is room.

    The answer is in falling order of score, and may be empty.

    >>> AtMost(2).best([0.3, -0.9, -0.5]).indices
    array([0])
    """

    always_exact = True
    looks_at_features = False

    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checks.count("k", self.k))
        object.__setattr__(self, "options", {"k": self.k})

    def best(self, scores: ArrayLike, X: FloatArray | None = None, rng: Generator | None = None) -> Selection:
        """The largest scores that are not negative."""
        return self.best_among(check_scores(scores), draw_key(as_generator(rng)))

    def best_among(self, scores: FloatArray, key: Keys, places: IntArray | None = None) -> Selection:
        """The same for some of many arms: those at `places`, ties as `randomness.tie_keys` has it."""
        candidates = np.flatnonzero(scores >= 0)
        size = min(self.k, candidates.size)
        indices = candidates[largest_of_one(scores[candidates], size, key, at(places, candidates))]
        return Selection(at(places, indices), float(scores[indices].sum()))

    def refuse_misfit(self, n_arms: int) -> None:
        """No number of arms is too small."""

    @property
    def ranks(self) -> Ranks:
        """For choosing from more arms than are looked at one by one."""
        return Ranks((), 0, self.k)

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
