"""A policy's scores of one round, computed for some of the arms at a time."""

import copy
from collections.abc import Iterator
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
from armful.tables._array_store import ArrayRows
from armful.tables.rows import Rows

CHUNK = 1024
"""Rows of float32 that are multiplied at a time: they and the product stay in the processor's cache."""


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


class Block:
    """The rows of the arms from index `start` up to `stop`, read when they are used."""

    def __init__(self, rows: Rows, arms: slice) -> None:
        self.arms, self.start, self.stop = arms, arms.start, arms.stop
        self._rows = rows

    @cached_property
    def X(self) -> NDArray[Any]:
        """The features, float32 or float64, `(n_arms, n_features)`."""
        return self._rows.rows(self.start, self.stop)

    @cached_property
    def X32(self) -> NDArray[Any]:
        """The features in float32 if such a copy is kept, else as in `X`."""
        copy = self._rows.rows_float32(self.start, self.stop)
        return self.X if copy is None else copy


def float32_products(X: NDArray[Any], matrix: NDArray[np.float32]) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """Yield `X @ matrix` in float32, some rows at a time; each product is valid until the next is asked for."""
    converted = np.empty((CHUNK, X.shape[1]), np.float32)
    product = np.empty((CHUNK, matrix.shape[1]), np.float32)
    for begin in range(0, len(X), CHUNK):
        rows = slice(begin, min(begin + CHUNK, len(X)))
        here = slice(0, rows.stop - begin)
        if X.dtype != np.float32:
            np.copyto(converted[here], X[rows], casting="same_kind")
        np.matmul(X[rows] if X.dtype == np.float32 else converted[here], matrix, out=product[here])
        yield rows, product[here]


class AssumedArms(Arms):
    """The arms of a block with means and widths that are bounds, not computed ones; features are read if used."""

    def __init__(
        self, block: "Block", state: Model, caps: FloatArray | None, mean: FloatArray, width: FloatArray
    ) -> None:
        self.state, self.caps, self.some_of_many = state, caps, True
        self.mean_and_width = mean, width
        self._block = block

    @property
    def X(self) -> NDArray[Any]:  # type: ignore[override]
        return self._block.X

    @property
    def n_arms(self) -> int:
        return int(self._block.stop - self._block.start)

    @cached_property
    def arm_indices(self) -> IntArray:
        """The indices of the arms among all arms, `(n_arms,)`."""
        return np.arange(self._block.start, self._block.stop)


class Scoring:
    """The scores of one round. The policy draws the same random numbers whichever arms are scored.

    caps: `(n_arms,)`, if any; in a partition those of the arms from index `begin` on.
    """

    def __init__(self, policy: Scorer, k: int, caps: FloatArray | None) -> None:
        self.state, self.k, self.begin = policy.state, k, 0
        self.caps = None if caps is None else caps.copy()  # the caller may change them before asking for an explanation
        self.key: Keys = 0
        self._policy = copy.copy(policy)
        self._generator_at_start = policy.rng.bit_generator.state
        self._per_thread = local()
        self.bounds_scores = policy.bounds_scores

    def arms(self, X: NDArray[Any], arm_indices: IntArray) -> Arms:
        """Return the arms at these indices, whose features are X."""
        caps = None if self.caps is None else self.caps[arm_indices - self.begin]
        return Arms(X, self.state, caps, arm_indices)

    def score(self, X: NDArray[Any], arm_indices: IntArray) -> Any:
        """Return the exact scores of the arms at these indices, whose features are X."""
        return self.score_arms(self.arms(X, arm_indices))

    def score_arms(self, arms: Arms) -> Any:
        return self._rewound_policy()._score_arms(arms, self.k)

    def lowest(self, low: Arms, high: Arms) -> FloatArray:
        """Return lower bounds on the scores of arms whose means and widths lie between `low` and `high`."""
        lowest: FloatArray = self._rewound_policy().lowest_score(low, high, self.k)
        return lowest

    def highest(self, low: Arms, high: Arms) -> FloatArray:
        """Return upper bounds on the scores of arms whose means and widths lie between `low` and `high`."""
        highest: FloatArray = self._rewound_policy().highest_score(low, high, self.k)
        return highest

    def assume(self, block: Block, mean: FloatArray, width: FloatArray) -> Arms:
        """Return the arms of a block with these means and widths."""
        caps = None if self.caps is None else self.caps[block.start - self.begin : block.stop - self.begin]
        return AssumedArms(block, self.state, caps, mean, width)

    def for_partition(self, caps: FloatArray | None, begin: int) -> Self:
        """Return the same for the arms from index `begin` on, which have these caps."""
        partition = copy.copy(self)
        partition.caps, partition.begin = caps, begin
        return partition

    def key_for_ties(self, rng: Generator, row: FloatArray) -> Keys:
        """Advance `rng` as scoring all arms at once would, then draw and return the key for ties.

        row: `(1, n_features)`, any arm.
        """
        scored = self._rewound_policy()
        first = Block(ArrayRows(row), slice(0, 1))
        scored._score_arms(self.assume(first, np.zeros(1), np.zeros(1)), self.k)  # draws the same
        rng.bit_generator.state = scored.rng.bit_generator.state
        self.key = draw_key(rng)
        return self.key

    def _rewound_policy(self) -> Any:
        """Return the policy with the generator rewound to the start of the round; each thread has its own copy."""
        policy = getattr(self._per_thread, "policy", None)
        if policy is None:
            policy = self._per_thread.policy = copy.copy(self._policy)
            policy.rng = copy.deepcopy(self._policy.rng)
        policy.rng.bit_generator.state = self._generator_at_start
        return policy

    def __getstate__(self) -> dict[str, Any]:
        policy = copy.copy(self._policy)
        policy.state = self.state.folded()
        attributes = {name: value for name, value in vars(self).items() if name != "_per_thread"}
        return {**attributes, "state": policy.state, "_policy": policy}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _per_thread=local())
