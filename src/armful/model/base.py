"""What a policy needs of a model: the seam between `model/` and everything that uses it."""

import os
from typing import Any, Protocol, Self

from numpy.typing import ArrayLike, NDArray

from armful.checks import FloatArray
from armful.files._npz_format import Arrays


class Model(Protocol):
    """What was learned, as a value: every method returns a new model and leaves this one as it is.

    The mean of an arm is `theta.x`, its uncertainty `width(x) = |x R^-1|`. A batch of models has leading axes `(...)`,
    and so has every array below. `armful.testing.ModelContract` checks a class of your own.

    Parameters
    ----------
    n_features : int
        d, the length of a feature vector.
    ridge : float, default 1.0
        lambda > 0, the pull of the estimate to zero.
    batch : int or tuple of int, default ()
        The leading axes, `()` for one learner.

    Attributes
    ----------
    n_features, ridge, batch
        As above.
    n : float or ndarray of shape (...)
        The sum of the weights of what was learned, discounted.
    theta : ndarray of shape (..., n_features)
        The estimate.
    root : ndarray of shape (..., n_features, n_features)
        R, triangular.
    inverse_root : ndarray of shape (..., n_features, n_features)
        `R^-1`.
    residual : ndarray of shape (...)
        The weighted squared error of the estimate on what was learned, with the penalty; for estimates of the noise.
    squared_norms : ndarray of shape (...)
        The weighted sum of the squared lengths of the features that were learned; for the radius `"theory"`.
    log_det_gain : ndarray of shape (...)
        `log det(R'R / ridge)`, 0 before anything is learned; for the radius `"logdet"`.
    """

    n_features: int
    ridge: float

    def __init__(self, *, n_features: int, ridge: float = 1.0, batch: int | tuple[int, ...] = ()) -> None: ...

    @property
    def batch(self) -> tuple[int, ...]: ...

    @property
    def n(self) -> FloatArray | float: ...

    @property
    def theta(self) -> FloatArray: ...

    @property
    def root(self) -> FloatArray: ...

    @property
    def inverse_root(self) -> FloatArray: ...

    @property
    def residual(self) -> FloatArray: ...

    @property
    def squared_norms(self) -> FloatArray: ...

    @property
    def log_det_gain(self) -> FloatArray: ...

    def __hash__(self) -> int: ...

    def mean_and_width(self, X: ArrayLike, *, some_of_many: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return mean and width of each row of `X` `(..., n, n_features)`, both `(..., n)`; equal for equal rows.

        `some_of_many`: the rows are a subset of many arms, and get the same bits as among all of them.
        """
        ...

    def project(self, X: ArrayLike, theta: FloatArray, *, some_of_many: bool = False) -> FloatArray:
        """Return the mean of each row, `(..., n)`, as if the estimate were `theta` `(..., n_features)`."""
        ...

    def sample(self, standard_normals: FloatArray) -> FloatArray:
        """Return `theta` plus noise of covariance `(R'R)^-1`, from standard normals `(..., n_features)`."""
        ...

    def learn(self, X: ArrayLike, rewards: ArrayLike, *, weights: ArrayLike | None = None, shock: float = 0.0) -> Self:
        """Return the model after also learning `rewards` `(..., k)` of the rows of `X` `(..., k, n_features)`."""
        ...

    def __add__(self, other: Self, /) -> Self:
        """Return the model of all observations of both."""
        ...

    def discount(self, factor: float) -> Self:
        """Return the model in which everything learned counts `factor` (0 to 1) times as much."""
        ...

    def empty(self) -> Self:
        """Return a model of the same features, ridge and batch that has learned nothing."""
        ...

    def overlaps(self, other: Self, /) -> bool:
        """Return whether both are known to hold the same observations, which would count twice in their sum."""
        ...

    def as_one_source(self) -> Self:
        """Return the same as a single source for `overlaps`: for a sum whose parts are not used any more."""
        ...

    def refuse_unlike(self, other: Self, /) -> None:
        """Raise `ValueError` unless `other` has the same features, ridge and batch."""
        ...

    def __getitem__(self, index: int) -> Self:
        """Return one learner of a batch."""
        ...

    def repeat(self, times: int) -> Self:
        """Return a batch of learners that all know what this one knows."""
        ...

    def folded(self) -> Self:
        """Return the same in as little memory as possible, for sending it."""
        ...

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to an open format."""
        ...

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return what `save` wrote."""
        ...

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that are saved with a policy."""
        ...

    @classmethod
    def from_arrays(cls, ridge: object, arrays: Arrays, path: str | os.PathLike[str]) -> Self:
        """Return the model of these arrays, which were read from `path`; `FileFormatError` if they do not fit."""
        ...
