"""The state of a ridge regression, kept as a square root: it learns, merges and forgets."""

import math
import os
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armful import checks
from armful.checks import FloatArray
from armful.files import _npz_format as npz_format
from armful.model._blocks import first_column, lengths_and_last, multiply
from armful.model._factor import Factor, refuse_overflow
from armful.model._observations import check_rewards, check_weights, rows_to_learn, total_weight
from armful.model._provenance import NO_SOURCES, Sources, begun, joined
from armful.model._qr import SumOfSquares, diagonal, frozen, ridge_root, stacked_root
from armful.model._saved_state import restored


class RidgeState:
    r"""A sum over observations `(x, r)`, from which the ridge estimate and its uncertainty follow.

        V = ridge * I + sum w x x'      b = sum w r x      theta = V^-1 b      width(x) = sqrt(x' V^-1 x)

    It is kept as the triangular square root of `sum w [x r]' [x r]`, updated by QR, so that widths keep their digits
    where V would lose them (features whose sizes differ by 2^30): with the ridge for estimates and widths, and
    without it, so that states merge by `+` in any order. A state is a value: every method returns a new one.

    Parameters
    ----------
    n_features : int
        d, the length of a feature vector.
    ridge : float, default 1.0
        lambda > 0, the pull of the estimate to zero.
    batch : int or tuple of int, default ()
        The leading axes: `()` for one learner, `(100,)` or 100 for a hundred. Every array then has them in front.

    Examples
    --------
    >>> state = RidgeState(n_features=2, ridge=1.0).learn([[1.0, 0.0], [1.0, 1.0]], [1.0, 3.0])
    >>> state.V
    array([[3., 1.],
           [1., 2.]])
    >>> state.mean([[0.0, 1.0]]).round(3), state.width([[0.0, 1.0]]).round(3)
    (array([1.]), array([0.775]))
    """

    _sources = NO_SOURCES

    def __init__(self, *, n_features: int, ridge: float = 1.0, batch: int | tuple[int, ...] = ()) -> None:
        self.n_features = d = checks.count("n_features", n_features)
        self.ridge = checks.positive("ridge", ridge)
        axes = batch if isinstance(batch, tuple | list) else (batch,)
        axes = tuple(checks.count("batch", axis, minimum=0) for axis in axes)
        self._sum = SumOfSquares(frozen(np.zeros((*axes, d + 1, d + 1))))  # of rows [x r], without the ridge
        self._factor = Factor(ridge_root(d + 1, self.ridge, axes))
        self._n = frozen(np.zeros(axes))

    def learn(self, X: ArrayLike, rewards: ArrayLike, *, weights: ArrayLike | None = None, shock: float = 0.0) -> Self:
        """Return the state after also learning some observations.

        Parameters
        ----------
        X : array_like of shape (..., k, n_features)
            The features of the observed arms.
        rewards : array_like of shape (..., k)
            Their rewards.
        weights : array_like of shape (..., k), optional
            An arm of weight w counts as w observations.
        shock : float, default 0.0
            The variance of a noise that these arms share, relative to the variance of each arm's own noise. They
            are then learned with `V += X' W X`, `b += X' W r`, `W = (I + shock 11')^-1`: one call is one round.

        Raises
        ------
        ValueError
            If shapes do not fit or a number is not finite; `PrecisionError` if float64 does not hold the result.
        """
        X = checks.features(X, self.n_features, finite=False)
        r = check_rewards(X, rewards, self.batch)
        w = None if weights is None else check_weights(weights, r.shape)
        shock = checks.at_least_zero("shock", shock)
        if r.shape[-1] == 0:
            return self
        n = np.asarray(self._n + r.shape[-1]) if w is None else total_weight(self._n, w)
        rows = rows_to_learn(X, r, w, shock)
        if not checks.all_finite(rows):  # as they are not if X or r is not
            checks.refuse_not_finite("features", X)
            checks.refuse_not_finite("rewards", r)
        total = self._sum.add(rows)
        return self._with(total, self._factor.after(rows, total, self.ridge), n, begun(self._sources))

    def __add__(self, other: "RidgeState") -> Self:
        """Return the state of all observations of both; what both hold counts twice, the ridge counts once."""
        if not isinstance(other, RidgeState):
            return NotImplemented
        self.refuse_unlike(other)
        root = stacked_root(self._sum.root, other._sum.root, triangle=True)
        n = total_weight(self._n, other._n[..., None])
        return self._with_root(root, n, joined(self._sources, other._sources))

    def __radd__(self, other: object) -> Self:
        """Let `sum(states)` merge them: it begins at 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def discount(self, factor: float) -> Self:
        """Return the state after forgetting by a factor g from 0 to 1: `V <- g V + (1 - g) ridge I`, `b <- g b`."""
        g = checks.probability("discount factor", factor, zero_and_one=True)
        sources = self._sources if g > 0 else NO_SOURCES
        return self._with_root(math.sqrt(g) * self._sum.root, np.asarray(g * self._n), sources)

    def empty(self) -> Self:
        """Return a state of the same features, ridge and batch that has learned nothing."""
        return type(self)(n_features=self.n_features, ridge=self.ridge, batch=self.batch)

    def overlaps(self, other: "RidgeState") -> bool:
        """Return whether both are known to hold the same observations, which would count twice in their sum."""
        return not self._sources.isdisjoint(other._sources) or (self is other and bool(self._n.any()))

    def as_one_source(self) -> Self:
        """Return the same state as a single source for `overlaps`: for a sum whose parts are not used any more."""
        return self._with(self._sum, self._factor, self._n, begun(NO_SOURCES))

    def mean(self, X: ArrayLike) -> FloatArray:
        """Return `theta.x` for each row of `X` `(..., n, n_features)`, `(..., n)`."""
        return self.project(X, self.theta)

    def width(self, X: ArrayLike) -> FloatArray:
        """Return `sqrt(x' V^-1 x)` for each row of `X` `(..., n, n_features)`, `(..., n)`."""
        return self.mean_and_width(X)[1]

    def mean_and_width(self, X: ArrayLike, *, some_of_many: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return mean and width of each row, both `(..., n)`, in one pass.

        Parameters
        ----------
        X : array_like of shape (..., n, n_features)
            The features; leading axes are those of the state, or none.
        some_of_many : bool, default False
            Whether the rows are a subset of many arms, and get the same bits as among all of them.
        """
        rows = checks.features(X, self.n_features, finite=False)
        mean, width = multiply(rows, self._factor.inverse, lengths_and_last, some_of_many=some_of_many)
        refuse_overflow(rows, mean, width)
        return mean, width

    def project(self, X: ArrayLike, theta: FloatArray, *, some_of_many: bool = False) -> FloatArray:
        """Return `theta.x` for each row, `(..., n)`.

        Parameters
        ----------
        X : array_like of shape (..., n, n_features)
            The features, as for `mean_and_width`.
        theta : ndarray of shape (..., n_features)
            Another estimate than that of the state, like a sample.
        some_of_many : bool, default False
            As for `mean_and_width`.
        """
        rows = checks.features(X, self.n_features, finite=False)
        twice = np.stack([theta, theta], axis=-1)
        (values,) = multiply(rows, twice, first_column, some_of_many=some_of_many)
        refuse_overflow(rows, values)
        return values

    def sample(self, standard_normals: FloatArray) -> FloatArray:
        """Return `theta` plus noise of covariance `V^-1`, made from `(..., n_features)` standard normals.

        The same normals give the same sample, however the state was learned: the root with a positive diagonal is used,
        which is unique.
        """
        signs = np.sign(diagonal(self.root))
        return self.theta + (self.inverse_root @ (signs * standard_normals)[..., None])[..., 0]

    @property
    def root(self) -> FloatArray:
        """A triangular R with `R'R = V`, `(..., n_features, n_features)`; `width(x) = |x R^-1|`."""
        return self._factor.root

    @property
    def inverse_root(self) -> FloatArray:
        """`R^-1`."""
        return self._factor.inverse[..., :-1]

    @property
    def theta(self) -> FloatArray:
        """The ridge estimate, `(..., n_features)`."""
        return self._factor.inverse[..., -1]

    @property
    def V(self) -> FloatArray:
        """`ridge I + sum w x x'`, `(..., n_features, n_features)`."""
        data = self._sum.root[..., :-1]
        return np.asarray(self.ridge * np.eye(self.n_features) + np.swapaxes(data, -1, -2) @ data)

    @property
    def b(self) -> FloatArray:
        """`sum w r x`, `(..., n_features)`."""
        root = self._sum.root
        return np.asarray((np.swapaxes(root[..., :-1], -1, -2) @ root[..., -1:])[..., 0])

    @property
    def n(self) -> FloatArray | float:
        """The sum of the weights of all observations, discounted; without either their number."""
        return self._n if self.batch else float(self._n)

    @property
    def squared_rewards(self) -> FloatArray:
        """`sum w r^2`, `(...)`."""
        return np.asarray(np.sum(self._sum.root[..., -1] ** 2, axis=-1))

    @property
    def squared_norms(self) -> FloatArray:
        """`sum w |x|^2`, the trace of what was added to V, `(...)`."""
        return np.asarray(np.sum(self._sum.root[..., :-1] ** 2, axis=(-1, -2)))

    @property
    def residual(self) -> FloatArray:
        """`sum w r^2 - b.theta`: the squared error of the estimate plus `ridge |theta|^2`, `(...)`."""
        return self._factor.triangle[..., -1, -1][()] ** 2  # [()]: a scalar is faster than an array of shape ()

    @property
    def log_det(self) -> FloatArray:
        """`log det V`, `(...)`."""
        return np.asarray(2 * np.log(np.abs(diagonal(self.root))).sum(axis=-1))

    @property
    def log_det_gain(self) -> FloatArray:
        """`log det(V / ridge)`: 0 before anything is learned, `(...)`."""
        lengths = np.abs(diagonal(self.root))
        return np.asarray(np.maximum(2 * np.log(lengths / math.sqrt(self.ridge)).sum(axis=-1), 0.0))

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes: `()` for one learner."""
        return self._n.shape

    def __getitem__(self, index: int | slice) -> Self:
        """Return one learner, or some, of a batch."""
        if not self.batch:
            raise TypeError("this state is of one learner and cannot be indexed")
        return self._map(lambda array: array[index])

    def repeat(self, times: int) -> Self:
        """Return a batch of learners that all know what this one knows."""
        return self._map(lambda array: np.repeat(array[None], times, axis=0))

    def folded(self) -> Self:
        """Return the same without buffered rows, for sending it; what is learned later may differ in the last bit."""
        return self._with(SumOfSquares(self._sum.root), self._factor, self._n, self._sources)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to `path` in an open format: .npz with a JSON header."""
        npz_format.write(path, "ridge state", {"ridge": self.ridge}, self.to_arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the state that `save` wrote; `FileFormatError` if the file does not hold one."""
        header, arrays = npz_format.read(path, "ridge state")
        return cls.from_arrays(header.get("ridge"), arrays, path)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays: `root` and buffered `rows` of the sum, `solved` with the ridge, `n`, `sources`."""
        arrays = {"root": self._sum.folded, "rows": self._sum.buffered, "solved": self._factor.triangle, "n": self._n}
        return {**arrays, "sources": np.array(sorted(self._sources), dtype=np.int64)}

    @classmethod
    def from_arrays(cls, ridge: object, arrays: npz_format.Arrays, path: str | os.PathLike[str]) -> Self:
        """Return the state of the arrays of the file at `path`, or raise `FileFormatError` if they are inconsistent."""
        known_ridge, total, factor, n, sources = restored(ridge, arrays, path)
        return cls(n_features=total.folded.shape[-1] - 1, ridge=known_ridge)._with(total, factor, n, sources)

    def refuse_unlike(self, other: "RidgeState") -> None:
        """Raise `ValueError` unless `other` has the same features, ridge and batch."""
        if other.n_features != self.n_features:
            raise ValueError(f"expected a state of {self.n_features} features, got one of {other.n_features}")
        if other.ridge != self.ridge:
            raise ValueError(f"expected a state of ridge {self.ridge}, got one of ridge {other.ridge}")
        if other.batch != self.batch:
            raise ValueError(f"expected a state with leading axes {self.batch}, got {other.batch}")

    def __repr__(self) -> str:
        batch = f", batch={self.batch}" if self.batch else ""
        return f"RidgeState(n_features={self.n_features}, ridge={self.ridge}{batch}, n={self.n})"

    def _with(self, total: SumOfSquares, factor: Factor, n: FloatArray, sources: Sources) -> Self:
        factor.refuse_lost_ridge(self.ridge)
        new = object.__new__(type(self))
        new.n_features, new.ridge = self.n_features, self.ridge
        new._sum, new._factor, new._n, new._sources = total, factor, frozen(n), sources
        return new

    def _with_root(self, root: FloatArray, n: FloatArray, sources: Sources) -> Self:
        total = SumOfSquares(frozen(root))
        return self._with(total, Factor.of(total, self.ridge), n, sources)

    def _map(self, change: Callable[[FloatArray], FloatArray]) -> Self:
        return self._with(self._sum.map(change), self._factor.map(change), np.asarray(change(self._n)), NO_SOURCES)
