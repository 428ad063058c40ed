"""What was learned: the mergeable ridge-regression state, kept as a square root."""

import math
import os
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from armful import checks, openfile
from armful.blocks import multiply, row_norms
from armful.checks import FloatArray
from armful.errors import FileFormatError, PrecisionError
from armful.roots import diagonal, inverted, ridge_rows, stacked_root
from armful.weighting import check_weights, whiten

LEARNED_AT_A_TIME = 2048
"""Rows that go into one QR: from a million rows, one of all of them would need several times their memory."""

EPSILON = float(np.finfo(np.float64).eps)
LARGEST_WIDTH_ERROR = 1e-6
"""A state whose widths may be off by more than this, relatively, is refused."""


class RidgeState:
    r"""A sum over observed `(x, r)`, from which the ridge estimate and its uncertainty follow.

        V = ridge * I + sum w x x'      b = sum w r x      theta = V^-1 b      width(x) = sqrt(x' V^-1 x)

    Kept is the triangular square root of `sum w [x r]' [x r]`, updated by QR, without the ridge: so that states
    merge by `+` in any order, and so that widths keep their digits where V itself would lose them (features whose
    sizes differ by 2^30). A state is a value: every method returns a new one.

    Batched by leading axes: `batch=(100,)` holds 100 learners, and every array below then has `(100,)` in front.

    Parameters
    ----------
    n_features: d, the length of a feature vector.
    ridge: lambda > 0, the strength of the pull to zero.
    batch: leading axes, `()` for one learner.

    >>> state = RidgeState(n_features=2, ridge=1.0).learn([[1.0, 0.0], [1.0, 1.0]], [1.0, 3.0])
    >>> state.V
    array([[3., 1.],
           [1., 2.]])
    >>> state.mean([[0.0, 1.0]]).round(3), state.width([[0.0, 1.0]]).round(3)
    (array([1.]), array([0.775]))
    """

    def __init__(self, *, n_features: int, ridge: float = 1.0, batch: tuple[int, ...] = ()) -> None:
        d = checks.count("n_features", n_features)
        self.n_features = d
        self.ridge = checks.positive("ridge", ridge)
        self._root = _frozen(np.zeros((*batch, d + 1, d + 1)))  # of sum w [x r]'[x r]
        self._n = _frozen(np.zeros(batch))

    # -- learning ------------------------------------------------------------------------------------

    def learn(self, X: ArrayLike, rewards: ArrayLike, *, weights: ArrayLike | None = None, shock: float = 0.0) -> Self:
        """The state after also seeing `rewards` `(..., k)` for the rows of `X` `(..., k, n_features)`.

        `weights` `(..., k)`: an arm of weight w counts as w observations. `shock`: the variance of a noise shared by
        all these arms, relative to the variance of each arm's own; they are then learned with
        `V += X' W X`, `b += X' W r`, `W = (I + shock 11')^-1`, so one call must hold one round.
        """
        X = checks.features(X, self.n_features)
        r = checks.floats("rewards", rewards)
        if r.shape != X.shape[:-1]:
            raise ValueError(f"rewards must have shape {X.shape[:-1]}, one for each row of features, got {r.shape}")
        checks.refuse_not_finite("rewards", r)
        if X.shape[:-2] != self.batch:
            raise ValueError(f"features must have the leading axes {self.batch} of the state, got {X.shape[:-2]}")
        w = None if weights is None else check_weights(weights, r.shape)
        shock = checks.at_least_zero("shock", shock)
        seen = r.shape[-1] if w is None else w.sum(axis=-1)
        if shock > 0 and r.size:  # all rows at once: each depends on the others
            rows = whiten(_beside(X, r), np.ones(r.shape) if w is None else w, shock)
            return self._updated(stacked_root(self._root, rows), np.asarray(self._n + seen))
        root = self._root
        for begin in range(0, r.shape[-1], LEARNED_AT_A_TIME):
            part = (..., slice(begin, begin + LEARNED_AT_A_TIME))
            rows = _beside(X[(*part, slice(None))], r[part])
            root = stacked_root(root, rows if w is None else whiten(rows, w[part], 0.0))
        return self._updated(root, np.asarray(self._n + seen))

    def __add__(self, other: "RidgeState") -> Self:
        """Everything either of the two has seen; the ridge counts once."""
        if not isinstance(other, RidgeState):
            return NotImplemented
        self.refuse_unlike(other)
        return self._updated(stacked_root(self._root, other._root, triangle=True), np.asarray(self._n + other._n))

    def discount(self, factor: float) -> Self:
        """Forget a little: `V <- g V + (1 - g) ridge I`, `b <- g b`, for a world that drifts."""
        g = checks.probability("discount factor", factor, zero_and_one=True)
        return self._updated(math.sqrt(g) * self._root, np.asarray(g * self._n))

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
        matrix = np.concatenate([self._inverse_root, self.theta[..., None]], axis=-1)
        mean, width = multiply(
            rows,
            matrix,
            lambda product: (product[..., -1], row_norms(product[..., :-1])),
            some_of_many=some_of_many,
        )
        _refuse_overflow(rows, mean, width)
        return mean, width

    def project(self, X: ArrayLike, theta: FloatArray, *, some_of_many: bool = False) -> FloatArray:
        """`theta.x` for each row and a `theta` `(..., n_features)` of the caller's: `(..., n)`."""
        rows = checks.features(X, self.n_features, finite=False)
        twice = np.stack([theta, theta], axis=-1)
        (values,) = multiply(rows, twice, lambda product: (product[..., 0],), some_of_many=some_of_many)
        _refuse_overflow(rows, values)
        return values

    def sample(self, standard_normals: FloatArray) -> FloatArray:
        """`theta` plus noise of covariance `V^-1`, made from `(..., n_features)` standard normals.

        The root is taken with a positive diagonal, the only such one, so that the same normals give the same sample
        in whatever order and grouping the state was learned.
        """
        signs = np.sign(diagonal(self._solved[..., :-1, :-1]))
        return self.theta + (self._inverse_root @ (signs * standard_normals)[..., None])[..., 0]

    @property
    def root(self) -> FloatArray:
        """A triangular R with `R'R = V`, `(..., n_features, n_features)`; `width(x) = |x R^-1|`."""
        return self._solved[..., :-1, :-1]

    @property
    def inverse_root(self) -> FloatArray:
        """`R^-1`."""
        return self._inverse_root

    @cached_property
    def theta(self) -> FloatArray:
        """The ridge estimate, `(..., n_features)`."""
        return _frozen((self._inverse_root @ self._solved[..., :-1, -1:])[..., 0])

    @property
    def V(self) -> FloatArray:
        """`ridge I + sum w x x'`, `(..., n_features, n_features)`."""
        data = self._root[..., :-1]
        V: FloatArray = self.ridge * np.eye(self.n_features) + np.swapaxes(data, -1, -2) @ data
        return V

    @property
    def b(self) -> FloatArray:
        """`sum w r x`, `(..., n_features)`."""
        b: FloatArray = (np.swapaxes(self._root[..., :-1], -1, -2) @ self._root[..., -1:])[..., 0]
        return b

    @property
    def n(self) -> FloatArray | float:
        """How much was observed: the sum of the weights, discounted; without either the number of arms."""
        return self._n if self.batch else float(self._n)

    @property
    def squared_rewards(self) -> FloatArray:
        """`sum w r^2`, `(...)`."""
        return np.asarray(np.sum(self._root[..., -1] ** 2, axis=-1))

    @property
    def squared_norms(self) -> FloatArray:
        """`sum w |x|^2`, the trace of what was added to V, `(...)`."""
        return np.asarray(np.sum(self._root[..., :-1] ** 2, axis=(-1, -2)))

    @property
    def residual(self) -> FloatArray:
        """`sum w r^2 - b.theta`, what the estimate leaves unexplained (with the price of its size), `(...)`."""
        return self._solved[..., -1, -1] ** 2

    @property
    def log_det(self) -> FloatArray:
        """`log det V`, `(...)`."""
        return np.asarray(2 * np.log(np.abs(diagonal(self._solved[..., :-1, :-1]))).sum(axis=-1))

    @property
    def log_det_gain(self) -> FloatArray:
        """`log det(V / ridge)`: 0 before anything is learned, `(...)`."""
        lengths = np.abs(diagonal(self._solved[..., :-1, :-1]))
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
        part = object.__new__(type(self))
        part.n_features, part.ridge = self.n_features, self.ridge
        part._root, part._n = self._root[index], np.asarray(self._n[index])
        part.__dict__["_solved"], part.__dict__["_inverse_root"] = self._solved[index], self._inverse_root[index]
        return part

    def repeat(self, times: int) -> Self:
        """A batch of learners that all know what this one knows."""
        d = self.n_features
        root = np.broadcast_to(self._root, (times, *self.batch, d + 1, d + 1))
        return self._updated(root.copy(), np.broadcast_to(self._n, (times, *self.batch)).copy())

    # -- files ---------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to an open format: .npz with a JSON header."""
        openfile.write(path, "ridge state", {"ridge": self.ridge}, self.to_arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote."""
        header, arrays = openfile.read(path, "ridge state")
        return cls.from_arrays(header.get("ridge"), arrays, path)

    def to_arrays(self) -> dict[str, FloatArray]:
        """The arrays of a file."""
        return {"root": self._root, "n": self._n}

    @classmethod
    def from_arrays(cls, ridge: object, arrays: openfile.Arrays, path: str | os.PathLike[str]) -> Self:
        """A state from the arrays of the file at `path`, refused if they do not fit together."""
        root, n = arrays.get("root"), arrays.get("n")
        if (
            root is None
            or n is None
            or not isinstance(ridge, float)
            or root.dtype != np.float64
            or n.dtype != np.float64
            or root.ndim < 2
            or root.shape[-1] < 2
            or root.shape[-2] != root.shape[-1]
            or n.shape != root.shape[:-2]
            or not (np.isfinite(root).all() and np.isfinite(n).all() and math.isfinite(ridge) and ridge > 0)
        ):
            raise FileFormatError(f"{path} does not hold a ridge state that fits together")
        return cls(n_features=root.shape[-1] - 1, ridge=ridge)._updated(root, n)

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

    def _updated(self, root: FloatArray, n: FloatArray) -> Self:
        new = object.__new__(type(self))
        new.n_features, new.ridge, new._root, new._n = self.n_features, self.ridge, _frozen(root), _frozen(n)
        new._refuse_lost_ridge()
        return new

    @cached_property
    def _solved(self) -> FloatArray:
        """`[[R, z], [0, rho]]`: R'R = V, R theta = z, rho^2 the residual."""
        return stacked_root(self._root, ridge_rows(self.n_features, self.ridge, self.batch), triangle=True)

    @cached_property
    def _inverse_root(self) -> FloatArray:
        """`R^-1`, so that width(x) = |x R^-1|: the inverse of the triangle, which is as exact as substitution."""
        return inverted(self.root)

    def _refuse_lost_ridge(self) -> None:
        """Raise where rounding in the QR has grown to the size of the ridge.

        QR errs by eps relative to each column, which tilts every direction by eps * c, c the condition number with
        the columns scaled to length 1 (so that mere units do not count), and a width by (eps * c)^2.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = row_norms(np.swapaxes(self._solved, -1, -2))
            if not (np.isfinite(lengths).all() and np.isfinite(self._n).all()):
                raise PrecisionError("the squares of what was observed are beyond the range of float64; scale it down")
            condition = row_norms(lengths[..., :-1] * row_norms(self._inverse_root))
            error = (EPSILON * condition) ** 2
        if not (error <= LARGEST_WIDTH_ERROR).all():
            raise PrecisionError(
                f"the ridge {self.ridge} is lost to rounding: what was observed is larger than it by a factor "
                "that float64 does not hold; scale the features down or raise the ridge"
            )


def _beside(X: FloatArray, rewards: FloatArray) -> FloatArray:
    """Each row of features with its reward."""
    return np.concatenate([X, rewards[..., None]], axis=-1)


def _frozen(array: FloatArray) -> FloatArray:
    """The array, which nobody can change any more: a state is a value."""
    array.flags.writeable = False
    return array


def _refuse_overflow(rows: FloatArray, *results: FloatArray) -> None:
    """A NaN or infinite feature shows in the results, which are fewer to look at than the features."""
    if all(np.isfinite(result).all() for result in results):
        return
    checks.refuse_not_finite("features", rows)
    raise PrecisionError("a mean or a width is beyond the range of float64; scale the features down")
