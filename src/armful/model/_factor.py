"""The factor of the ridge regression: a triangle and its inverse, which give estimates and widths."""

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from armful import checks
from armful.checks import FloatArray
from armful.errors import PrecisionError
from armful.model._blocks import row_norms
from armful.model._qr import SumOfSquares, diagonal, frozen, inverted, product_of_squares, ridge_root, stacked_root

EPSILON = float(np.finfo(np.float64).eps)

LARGEST_WIDTH_ERROR = 1e-6
"""A state whose widths may have a larger relative error is refused."""

BoolArray = NDArray[np.bool_]

SAME = 1e-6
"""Triangles that differ by no more than this, relative to their columns, are taken to be the same."""

STEADY = 1e7
"""The largest squared condition number at which rows may be appended to the triangle, see `Factor.after`."""


class Factor:
    """`triangle`: `[[R, z], [0, rho]]` with `R'R = V`, `R theta = z` and the residual `rho^2`; batched by leading axes.

    `inverse`: `[[R^-1, theta], [0, -1]]`, computed if it is not given; the inverse of V would lose digits.
    """

    def __init__(self, triangle: FloatArray, inverse: FloatArray | None = None) -> None:
        self.triangle = frozen(triangle)
        if inverse is None:
            inverse = triangle.copy(order="K")
            inverse[..., -1, -1] = -1.0
            inverse = inverted(inverse)
        self._inverse = frozen(inverse)
        self.squared_condition = product_of_squares(self.triangle[..., :-1], self._inverse[..., :-1])
        """An upper bound on the squared condition number of R with columns scaled to length 1, `(...)`."""
        self.steady = self.squared_condition <= STEADY
        """Whether rows may be appended, `(...)`; it depends on the features alone, not on the unit of the rewards."""

    @classmethod
    def of(cls, total: SumOfSquares, ridge: float) -> Self:
        """Return the factor of a sum with the ridge, which comes last: then widths err by `(eps * condition)^2`."""
        *batch, _, size = total.root.shape
        return cls(stacked_root(total.root, ridge_root(size, ridge, tuple(batch)), triangle=True))

    def after(self, rows: FloatArray, total: SumOfSquares, ridge: float) -> Self:
        """Return the factor after also learning `rows`, which `total` contains already.

        While the condition number is small and `total` buffers them, they are appended to the triangle. That takes
        half the time of a new factor and errs by only `eps * condition` each time, 2e-10 in all.
        """
        if not (total.n_buffered and _any(self.steady)):
            return self.of(total, ridge)
        quick = type(self)(stacked_root(self.triangle, rows))
        steady = self.steady & quick.steady
        if _all(steady):
            return quick
        exact = self.of(total, ridge)
        return type(self)(np.where(np.asarray(steady)[..., None, None], quick.triangle, exact.triangle))

    def map(self, change: Callable[[FloatArray], FloatArray]) -> Self:
        """Return the factor with both arrays changed, say to a part of its batch."""
        return type(self)(change(self.triangle), change(self._inverse))

    def is_like(self, triangle: FloatArray) -> bool:
        """Return whether another triangle equals this one but for rounding and the signs of rows."""
        lengths = row_norms(np.swapaxes(self.triangle, -1, -2))[..., None, :]
        return bool((np.abs(_rows_positive(triangle) - _rows_positive(self.triangle)) <= SAME * lengths).all())

    @property
    def root(self) -> FloatArray:
        """R."""
        return self.triangle[..., :-1, :-1]

    @property
    def inverse(self) -> FloatArray:
        """`[R^-1 theta]`, `(..., d, d + 1)`."""
        return self._inverse[..., :-1, :]

    def refuse_lost_ridge(self, ridge: float) -> None:
        """Raise `PrecisionError` if rounding errors of the QR have reached the size of the ridge.

        QR errs by eps relative to each column. That tilts every direction by eps * c, with c the condition number after
        scaling the columns to length 1 (so that units do not count), and changes a width by (eps * c)^2. That holds in
        directions that only the ridge determines; one that small rows determine among large ones in the same columns
        errs by up to eps * c, by 1e-3 at worst.
        """
        rewards = self.triangle[..., -1]
        exact = _all(EPSILON**2 * self.squared_condition <= LARGEST_WIDTH_ERROR)
        if exact and math.isfinite(np.vdot(rewards, rewards)):
            return
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = row_norms(np.swapaxes(self.triangle, -1, -2))
            if not np.isfinite(lengths).all():
                raise PrecisionError("the squares of what was observed are beyond the range of float64; scale it down")
            condition = row_norms(lengths[..., :-1] * row_norms(self.inverse[..., :-1]))
            error = (EPSILON * condition) ** 2
        if not (error <= LARGEST_WIDTH_ERROR).all():
            raise PrecisionError(
                f"the ridge {ridge} is lost to rounding: what was observed is larger than it by a factor "
                "that float64 does not hold; scale the features down or raise the ridge"
            )


def refuse_overflow(rows: NDArray[np.floating[Any]], *results: FloatArray) -> None:
    """Raise if a result is not finite, as it is for a NaN or infinite feature; results are fewer than features."""
    if math.isfinite(np.vdot(results[0], results[-1])) or all(checks.all_finite(result) for result in results):
        return
    checks.refuse_not_finite("features", rows)
    raise PrecisionError("a mean or a width is beyond the range of float64; scale the features down")


def _rows_positive(triangle: FloatArray) -> FloatArray:
    """Return the same root with no negative number on its diagonal, which makes it unique."""
    return np.where(diagonal(triangle) < 0, -1.0, 1.0)[..., None] * triangle


def _all(where: BoolArray | bool) -> bool:
    return where if isinstance(where, bool) else bool(where.all())


def _any(where: BoolArray | bool) -> bool:
    return where if isinstance(where, bool) else bool(where.any())
