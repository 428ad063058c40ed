"""A policy's scores for one round, asked for a part of the arms at a time."""

import copy
from functools import cached_property
from threading import local
from typing import Any, Protocol, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from armful.arms import Arms
from armful.checks import FloatArray, IntArray
from armful.model.base import Model
from armful.randomness import Keys, draw_key


class Scored(Protocol):
    """What the scan reads of a policy's scores."""

    @property
    def value(self) -> FloatArray: ...


class Scorer(Protocol):
    """What the scan needs of a policy whose scores are `armwise`.

    With `bounds_scores` it also has `lowest_score(low, high, k)` and `highest_score(low, high, k)`: of arms whose means
    and widths are only known to lie between those of `low` and of `high`.
    """

    rng: Any
    state: Model
    armwise: bool

    @property
    def bounds_scores(self) -> bool: ...

    def _score_arms(self, arms: Arms, k: int) -> Any: ...


class AssumedArms(Arms):
    """The arms of a block with the means and widths that they might have."""

    def __init__(
        self,
        X: NDArray[Any],
        state: Model,
        caps: FloatArray | None,
        block: slice,
        mean: FloatArray,
        width: FloatArray,
    ) -> None:
        self.X, self.state, self.caps, self.some_of_many = X, state, caps, True
        self.mean_and_width = mean, width
        self._block = block

    @cached_property
    def arm_indices(self) -> IntArray:
        """The indices of the arms among all arms, `(n_arms,)`."""
        return np.arange(self._block.start, self._block.stop)


class Scoring:
    """The scores of one round: what the policy draws is the same for every part of the arms.

    caps: `(n_arms,)`, if any; of the arms from place `begin` on, where they are those of a part.
    """

    def __init__(self, policy: Scorer, k: int, caps: FloatArray | None) -> None:
        self.state, self.k, self.begin = policy.state, k, 0
        self.caps = None if caps is None else caps.copy()  # the caller may change them, and ask for reasons later
        self.key: Keys = 0
        self._policy = copy.copy(policy)
        self._before = policy.rng.bit_generator.state
        self._twins = local()
        self.has_range = policy.bounds_scores

    def arms(self, X: NDArray[Any], places: IntArray) -> Arms:
        """The arms at these places, that have these features."""
        caps = None if self.caps is None else self.caps[places - self.begin]
        return Arms(X, self.state, caps, places)

    def score(self, X: NDArray[Any], places: IntArray) -> Any:
        """The exact scores of these arms."""
        return self.score_arms(self.arms(X, places))

    def score_arms(self, arms: Arms) -> Any:
        """The scores of arms that are given with all that is asked of them."""
        return self._as_it_was()._score_arms(arms, self.k)

    def lowest(self, low: Arms, high: Arms) -> FloatArray:
        """The lowest scores of arms that lie between `low` and `high`."""
        lowest: FloatArray = self._as_it_was().lowest_score(low, high, self.k)
        return lowest

    def highest(self, low: Arms, high: Arms) -> FloatArray:
        """The highest scores of arms that lie between `low` and `high`."""
        highest: FloatArray = self._as_it_was().highest_score(low, high, self.k)
        return highest

    def assumed(self, X: NDArray[Any], block: slice, mean: FloatArray, width: FloatArray) -> Arms:
        """The arms of a block, taken to have these means and widths."""
        caps = None if self.caps is None else self.caps[block.start - self.begin : block.stop - self.begin]
        return AssumedArms(X, self.state, caps, block, mean, width)

    def of_part(self, caps: FloatArray | None, begin: int) -> Self:
        """The same for arms from place `begin` on alone, that have these caps."""
        part = copy.copy(self)
        part.caps, part.begin = caps, begin
        return part

    def key_for_ties(self, rng: Generator, row: FloatArray) -> Keys:
        """Move the policy's generator on as scoring all arms at once would have; the key that comes next.

        row: `(1, n_features)`, an arm to score.
        """
        scored = self._as_it_was()
        scored._score_arms(self.assumed(row, slice(0, 1), np.zeros(1), np.zeros(1)), self.k)  # draws the same
        rng.bit_generator.state = scored.rng.bit_generator.state
        self.key = draw_key(rng)
        return self.key

    def _as_it_was(self) -> Any:
        """The policy with its generator where it was before the round; each thread has one of its own."""
        policy = getattr(self._twins, "policy", None)
        if policy is None:
            policy = self._twins.policy = copy.copy(self._policy)
            policy.rng = copy.deepcopy(self._policy.rng)
        policy.rng.bit_generator.state = self._before
        return policy

    def __getstate__(self) -> dict[str, Any]:
        policy = copy.copy(self._policy)
        policy.state = self.state.folded()
        known = {name: value for name, value in vars(self).items() if name != "_twins"}
        return {**known, "state": policy.state, "_policy": policy}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _twins=local())
