"""What can be chosen from, seen through what was learned so far."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armful import checks
from armful.checks import FloatArray, IntArray
from armful.model._blocks import row_norms
from armful.model.base import Model


class Arms:
    """The arms of one round with what the state says of each; nothing is computed before it is asked for.

    X: `(n_arms, n_features)`, or `(..., n_arms, n_features)` beside a batched state.
    caps: `(n_arms,)`, an upper bound on each arm's mean reward that the user knows, infinity where none is known.
    places: `(n_arms,)`, where the arms stand among all arms, if these are only some of many; what is computed of them
    is then, to the last bit, what it would be among all.
    only_costs: whether rewards are minus a cost, never above 0 but for noise, as under `Path(costs=True)`.
    """

    only_costs = False

    def __init__(
        self, X: ArrayLike, state: Model, caps: ArrayLike | None = None, places: IntArray | None = None
    ) -> None:
        self.X = checks.features(X, state.n_features, finite=False)
        self.refuse_none()
        self.state = state
        self.caps = None if caps is None else checks.caps(caps, self.n_arms)
        self.some_of_many = places is not None
        if places is not None:
            self.places = places

    @cached_property
    def places(self) -> IntArray:
        """Where the arms stand among all arms, `(n_arms,)`."""
        return np.arange(self.n_arms)

    def refuse_none(self) -> None:
        """Raise if there are no arms."""
        if self.n_arms == 0:
            raise ValueError(f"features must have at least one row, got {self.X.shape}")

    @property
    def n_arms(self) -> int:
        """How many arms there are."""
        return int(self.X.shape[-2])

    @cached_property
    def mean(self) -> FloatArray:
        """`theta.x`, `(..., n_arms)`."""
        return self.project(self.state.theta)

    @cached_property
    def mean_and_width(self) -> tuple[FloatArray, FloatArray]:
        """`theta.x` and `sqrt(x' V^-1 x)` in one pass, each `(..., n_arms)`."""
        return self.state.mean_and_width(self.X, some_of_many=self.some_of_many)

    def project(self, theta: FloatArray) -> FloatArray:
        """`theta.x` for a `theta` `(..., n_features)` of the policy's own, `(..., n_arms)`."""
        return self.state.project(self.X, theta, some_of_many=self.some_of_many)

    @cached_property
    def norm(self) -> FloatArray:
        """`|x|`, `(..., n_arms)`."""
        return row_norms(np.ascontiguousarray(self.X, dtype=np.float64))

    def ids_of(self, indices: IntArray) -> list[Any] | None:
        """Return the ids of some arms; None where arms have none."""
        return None

    def rows(self, indices: IntArray) -> FloatArray:
        """The features of some arms, `(k, n_features)`."""
        return self.X[indices]
