"""What was learned: the mergeable ridge-regression state, kept as a square root."""

import math
import os
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armful import checks
from armful.checks import FloatArray
from armful.errors import FileFormatError
from armful.files import _npz_format as npz_format
from armful.model._blocks import lengths_and_last, multiply, product_of
from armful.model._factor import Factor, refuse_overflow
from armful.model._observations import check_weights, rows_to_learn, total_weight
from armful.model._provenance import NO_SOURCES, Sources, begun, joined
from armful.model._qr import SumOfSquares, diagonal, frozen, ridge_root, stacked_root
from armful.model._saved_state import restored


class RidgeState:
    r"""A sum over observed `(x, r)`, from which the ridge estimate and its uncertainty follow.

        V = ridge * I + sum w x x'      b = sum w r x      theta = V^-1 b      width(x) = sqrt(x' V^-1 x)

    Kept is the triangular square root of `sum w [x r]' [x r]`, updated by QR, so that widths keep their digits where V
    itself would lose them (features whose sizes differ by 2^30): with the ridge, for estimates and widths, and
    without it, so that states merge by `+` in any order. A state is a value: every method returns a new one.

    Batched by leading axes: `batch=(100,)` holds 100 learners, and every array below then has `(100,)` in front.

    Parameters
    ----------
    n_features: d, the length of a feature vector.
    ridge: lambda > 0, the strength of the pull to zero.
    batch: leading axes, `()` for one learner, `(100,)` or 100 for a hundred.

    >>> state = RidgeState(n_features=2, ridge=1.0).learn([[1.0, 0.0], [1.0, 1.0]], [1.0, 3.0])
    >>> state.V
    array([[3., 1.],
           [1., 2.]])
    >>> state.mean([[0.0, 1.0]]).round(3), state.width([[0.0, 1.0]]).round(3)
    (array([1.]), array([0.775]))
    """

    _sources = NO_SOURCES

    def __init__(self, *, n_features: int, ridge: float = 1.0, batch: int | tuple[int, ...] = ()) -> None:
        d = checks.count("n_features", n_features)
        self.n_features = d
        self.ridge = checks.positive("ridge", ridge)
        batch = _axes(batch)
        self._seen = SumOfSquares(frozen(np.zeros((*batch, d + 1, d + 1))))  # rows [x r], without the ridge
        self._solved = Factor(ridge_root(d + 1, self.ridge, batch))
        self._n = frozen(np.zeros(batch))

    # -- learning ------------------------------------------------------------------------------------

    def learn(self, X: ArrayLike, rewards: ArrayLike, *, weights: ArrayLike | None = None, shock: float = 0.0) -> Self:
        """The state after also seeing `rewards` `(..., k)` for the rows of `X` `(..., k, n_features)`.

        `weights` `(..., k)`: an arm of weight w counts as w observations. `shock`: the variance of a noise shared by
        all these arms, relative to the variance of each arm's own; they are then learned with
        `V += X' W X`, `b += X' W r`, `W = (I + shock 11')^-1`, so one call must hold one round.
        """
        X = checks.features(X, self.n_features, finite=False)
        r = checks.floats("rewards", rewards)
        if r.shape != X.shape[:-1]:
            raise ValueError(
                f"rewards must have shape {X.shape[:-1]}, one for each row of features, got {checks.shape_of(r)}"
            )
        if X.shape[:-2] != self.batch:
            raise ValueError(f"features must have the leading axes {self.batch} of the state, got {X.shape[:-2]}")
        w = None if weights is None else check_weights(weights, r.shape)
        shock = checks.at_least_zero("shock", shock)
        if r.shape[-1] == 0:
            return self
        n = np.asarray(self._n + r.shape[-1]) if w is None else total_weight(self._n, w)
        rows = rows_to_learn(X, r, w, shock)
        if not checks.all_finite(rows):  # they show what is not finite in either
            checks.refuse_not_finite("features", X)
            checks.refuse_not_finite("rewards", r)
        seen = self._seen.add(rows)
        return self._with(seen, self._solved.after(rows, seen, self.ridge), n, begun(self._sources))

    def __add__(self, other: "RidgeState") -> Self:
        """Everything either of the two has seen; the ridge counts once. What both have seen counts twice."""
        if not isinstance(other, RidgeState):
            return NotImplemented
        self.refuse_unlike(other)
        root = stacked_root(self._seen.root, other._seen.root, triangle=True)
        n = total_weight(self._n, other._n[..., None])
        return self._with_root(root, n, joined(self._sources, other._sources))

    def __radd__(self, other: object) -> Self:
        """So that `sum(states)` merges them: it begins at 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def discount(self, factor: float) -> Self:
        """Forget a little: `V <- g V + (1 - g) ridge I`, `b <- g b`, for a world that drifts."""
        g = checks.probability("discount factor", factor, zero_and_one=True)
        sources = self._sources if g > 0 else NO_SOURCES
        return self._with_root(math.sqrt(g) * self._seen.root, np.asarray(g * self._n), sources)

    def empty(self) -> Self:
        """A state of the same features, ridge and batch that has seen nothing yet."""
        return type(self)(n_features=self.n_features, ridge=self.ridge, batch=self.batch)

    def overlaps(self, other: "RidgeState") -> bool:
        """Whether both are known to hold the same observations, in part at least: then their sum counts them twice."""
        return not self._sources.isdisjoint(other._sources) or (self is other and bool(self._n.any()))

    def as_one_source(self) -> Self:
        """The same, as `overlaps` sees it one part: for a sum whose parts nobody holds any more."""
        return self._with(self._seen, self._solved, self._n, begun(NO_SOURCES))

    # -- what is known -------------------------------------------------------------------------------

    def mean(self, X: ArrayLike) -> FloatArray:
        """`theta.x` for each row: `(..., n)`."""
        return self.project(X, self.theta)

    def width(self, X: ArrayLike) -> FloatArray:
        """`sqrt(x' V^-1 x)` for each row: `(..., n)`."""
        return self.mean_and_width(X)[1]

    def mean_and_width(self, X: ArrayLike, *, some_of_many: bool = False) -> tuple[FloatArray, FloatArray]:
        """Both in one pass over `X`. some_of_many: to the last bit as among many other rows (see `blocks`)."""
        rows = checks.features(X, self.n_features, finite=False)
        mean, width = multiply(rows, self._solved.inverse, lengths_and_last, some_of_many=some_of_many)
        refuse_overflow(rows, mean, width)
        return mean, width

    def project(self, X: ArrayLike, theta: FloatArray, *, some_of_many: bool = False) -> FloatArray:
        """`theta.x` for each row and a `theta` `(..., n_features)` of the caller's: `(..., n)`."""
        rows = checks.features(X, self.n_features, finite=False)
        twice = np.stack([theta, theta], axis=-1)
        (values,) = multiply(rows, twice, _first_column, some_of_many=some_of_many)
        refuse_overflow(rows, values)
        return values

    def sample(self, standard_normals: FloatArray) -> FloatArray:
        """`theta` plus noise of covariance `V^-1`, made from `(..., n_features)` standard normals.

        The root is taken with a positive diagonal, the only such one, so that the same normals give the same sample
        in whatever order and grouping the state was learned.
        """
        signs = np.sign(diagonal(self.root))
        return self.theta + (self.inverse_root @ (signs * standard_normals)[..., None])[..., 0]

    @property
    def root(self) -> FloatArray:
        """A triangular R with `R'R = V`, `(..., n_features, n_features)`; `width(x) = |x R^-1|`."""
        return self._solved.root

    @property
    def inverse_root(self) -> FloatArray:
        """`R^-1`."""
        return self._solved.inverse[..., :-1]

    @property
    def theta(self) -> FloatArray:
        """The ridge estimate, `(..., n_features)`."""
        return self._solved.inverse[..., -1]

    @property
    def V(self) -> FloatArray:
        """`ridge I + sum w x x'`, `(..., n_features, n_features)`."""
        data = self._seen.root[..., :-1]
        V: FloatArray = self.ridge * np.eye(self.n_features) + np.swapaxes(data, -1, -2) @ data
        return V

    @property
    def b(self) -> FloatArray:
        """`sum w r x`, `(..., n_features)`."""
        root = self._seen.root
        b: FloatArray = (np.swapaxes(root[..., :-1], -1, -2) @ root[..., -1:])[..., 0]
        return b

    @property
    def n(self) -> FloatArray | float:
        """How much was observed: the sum of the weights, discounted; without either the number of arms."""
        return self._n if self.batch else float(self._n)

    @property
    def squared_rewards(self) -> FloatArray:
        """`sum w r^2`, `(...)`."""
        return np.asarray(np.sum(self._seen.root[..., -1] ** 2, axis=-1))

    @property
    def squared_norms(self) -> FloatArray:
        """`sum w |x|^2`, the trace of what was added to V, `(...)`."""
        return np.asarray(np.sum(self._seen.root[..., :-1] ** 2, axis=(-1, -2)))

    @property
    def residual(self) -> FloatArray:
        """`sum w r^2 - b.theta`, what the estimate leaves unexplained (with the price of its size), `(...)`."""
        return self._solved.triangle[..., -1, -1][()] ** 2  # a number rather than an array of shape (): faster

    @property
    def log_det(self) -> FloatArray:
        """`log det V`, `(...)`."""
        return np.asarray(2 * np.log(np.abs(diagonal(self.root))).sum(axis=-1))

    @property
    def log_det_gain(self) -> FloatArray:
        """`log det(V / ridge)`: 0 before anything is learned, `(...)`."""
        lengths = np.abs(diagonal(self.root))
        return np.asarray(np.maximum(2 * np.log(lengths / math.sqrt(self.ridge)).sum(axis=-1), 0.0))

    # -- the batch -----------------------------------------------------------------------------------

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes: `()` for one learner."""
        return self._n.shape

    def __getitem__(self, index: int | slice) -> Self:
        """One learner, or some, of a batch."""
        if not self.batch:
            raise TypeError("this state is of one learner and cannot be indexed")
        return self._map(lambda array: array[index])

    def repeat(self, times: int) -> Self:
        """A batch of learners that all know what this one knows."""
        return self._map(lambda array: np.repeat(array[None], times, axis=0))

    def folded(self) -> Self:
        """The same in the least room, for sending it: no rows wait any more. What comes later may differ in a bit."""
        return self._with(SumOfSquares(self._seen.root), self._solved, self._n, self._sources)

    # -- files ---------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to an open format: .npz with a JSON header."""
        npz_format.write(path, "ridge state", {"ridge": self.ridge}, self.to_arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote."""
        header, arrays = npz_format.read(path, "ridge state")
        return cls.from_arrays(header.get("ridge"), arrays, path)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of a file: `root`, `rows` and `n` hold what was learned, `solved` the same with the ridge."""
        seen = self._seen
        known = {"root": seen.folded_root, "rows": seen.waiting, "solved": self._solved.triangle, "n": self._n}
        return {**known, "sources": np.array(sorted(self._sources), dtype=np.int64)}

    @classmethod
    def from_arrays(cls, ridge: object, arrays: npz_format.Arrays, path: str | os.PathLike[str]) -> Self:
        """A state from the arrays of the file at `path`, refused if they do not fit together."""
        parts = restored(ridge, arrays)
        if parts is None:
            raise FileFormatError(f"{path} does not hold a ridge state that fits together")
        known_ridge, seen, solved, n, sources = parts
        return cls(n_features=seen.folded_root.shape[-1] - 1, ridge=known_ridge)._with(seen, solved, n, sources)

    def refuse_unlike(self, other: "RidgeState") -> None:
        """Raise unless `other` could be merged with this state."""
        if other.n_features != self.n_features:
            raise ValueError(f"expected a state of {self.n_features} features, got one of {other.n_features}")
        if other.ridge != self.ridge:
            raise ValueError(f"expected a state of ridge {self.ridge}, got one of ridge {other.ridge}")
        if other.batch != self.batch:
            raise ValueError(f"expected a state with leading axes {self.batch}, got {other.batch}")

    def __repr__(self) -> str:
        batch = f", batch={self.batch}" if self.batch else ""
        return f"RidgeState(n_features={self.n_features}, ridge={self.ridge}{batch}, n={self.n})"

    # -- inside --------------------------------------------------------------------------------------

    def _with(self, seen: SumOfSquares, solved: Factor, n: FloatArray, sources: Sources) -> Self:
        solved.refuse_lost_ridge(self.ridge)
        new = object.__new__(type(self))
        new.n_features, new.ridge = self.n_features, self.ridge
        new._seen, new._solved, new._n, new._sources = seen, solved, frozen(n), sources
        return new

    def _with_root(self, root: FloatArray, n: FloatArray, sources: Sources) -> Self:
        seen = SumOfSquares(frozen(root))
        return self._with(seen, Factor.of(seen, self.ridge), n, sources)

    def _map(self, change: Callable[[FloatArray], FloatArray]) -> Self:
        """The same for a part of the batch, or for many."""
        return self._with(self._seen.map(change), self._solved.map(change), np.asarray(change(self._n)), NO_SOURCES)


def _axes(batch: int | tuple[int, ...]) -> tuple[int, ...]:
    axes = batch if isinstance(batch, tuple | list) else (batch,)
    return tuple(checks.count("batch", axis, minimum=0) for axis in axes)


def _first_column(columns: FloatArray, rows: FloatArray) -> tuple[FloatArray]:
    return (product_of(columns, rows)[..., 0, :].copy(),)
