"""The arms of a round, with their means and widths."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armful import checks
from armful.checks import FloatArray, IntArray
from armful.model._blocks import row_norms
from armful.model.base import Model


class Arms:
    """The arms of one round, as a policy's `score` sees them; nothing is computed before it is used.

    Parameters
    ----------
    X : array_like of shape (..., n_arms, n_features)
        The features; the leading axes `(...)` are those of a batched state, or none.
    state : Model
        What was learned so far.
    caps : array_like of shape (n_arms,), optional
        A known upper bound on each arm's mean reward, infinity where none is known.
    arm_indices : ndarray of shape (n_arms,), optional
        The indices of these arms among all arms, if they are some of many. Their means, widths and random numbers
        are then the same to the last bit as among all.

    Attributes
    ----------
    X, state, caps, arm_indices
        As above; `arm_indices` counts from 0 if it is not given.
    some_of_many : bool
        Whether `arm_indices` was given.
    only_costs : bool
        Whether rewards are minus a cost, never above 0 but for noise, as under `Path(costs=True)`.
    """

    only_costs = False

    def __init__(
        self, X: ArrayLike, state: Model, caps: ArrayLike | None = None, arm_indices: IntArray | None = None
    ) -> None:
        self.X = checks.features(X, state.n_features, finite=False)
        if self.n_arms == 0:
            raise ValueError(f"features must have at least one row, got {self.X.shape}")
        self.state = state
        self.caps = None if caps is None else checks.caps(caps, self.n_arms)
        self.some_of_many = arm_indices is not None
        if arm_indices is not None:
            self.arm_indices = arm_indices

    def __repr__(self) -> str:
        caps = "" if self.caps is None else ", with caps"
        return f"{type(self).__name__}(n_arms={self.n_arms}, state={self.state!r}{caps})"

    @cached_property
    def arm_indices(self) -> IntArray:
        """The indices of the arms among all arms, `(n_arms,)`."""
        return np.arange(self.n_arms)

    @property
    def n_arms(self) -> int:
        """The number of arms."""
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
        """Return `theta.x`, `(..., n_arms)`.

        Parameters
        ----------
        theta : ndarray of shape (..., n_features)
            Another estimate than that of the state, like a sample.
        """
        return self.state.project(self.X, theta, some_of_many=self.some_of_many)

    @cached_property
    def norm(self) -> FloatArray:
        """`|x|`, `(..., n_arms)`."""
        return row_norms(np.ascontiguousarray(self.X, dtype=np.float64))

    def ids_of(self, indices: IntArray) -> list[Any] | None:
        """Return the ids of the arms at `indices` `(k,)`, or None if they have no ids."""
        return None

    def rows(self, indices: IntArray) -> FloatArray:
        """Return the features of the arms at `indices` `(k,)`, `(k, n_features)`."""
        return self.X[indices]
