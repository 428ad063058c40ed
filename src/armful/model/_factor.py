"""The ridge regression solved: a triangle and its inverse, off which estimates and widths are read."""

import math
from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import NDArray

from armful import checks
from armful.checks import FloatArray
from armful.errors import PrecisionError
from armful.model._blocks import row_norms
from armful.model._qr import SumOfSquares, diagonal, frozen, inverted, product_of_squares, ridge_root, stacked_root

EPSILON = float(np.finfo(np.float64).eps)

LARGEST_WIDTH_ERROR = 1e-6
"""A state whose widths may be off by more than this, relatively, is refused."""

BoolArray = NDArray[np.bool_]

SAME = 1e-6
"""Triangles that differ by no more than this, relative to their columns, are the same."""

STEADY = 1e7
"""Up to this square of a condition number rows may be added to the triangle itself, see `Factor.after`."""


class Factor:
    """`triangle`: `[[R, z], [0, rho]]`, `R'R = V`, `R theta = z`, `rho^2` the residual; batched by leading axes.

    `inverse`: `[[R^-1, theta], [0, -1]]`, if it is known; the inverse of V would lose digits.
    """

    def __init__(self, triangle: FloatArray, inverse: FloatArray | None = None) -> None:
        self.triangle = frozen(triangle)
        if inverse is None:
            inverse = triangle.copy(order="K")
            inverse[..., -1, -1] = -1.0
            inverse = inverted(inverse)
        self._inverse = frozen(inverse)
        self.squared_condition = product_of_squares(self.triangle[..., :-1], self._inverse[..., :-1])
        """Not less than the square of the condition number of R with its columns scaled to length 1, `(...)`."""
        self.steady = self.squared_condition <= STEADY
        """Where few rows at a time may be added, `(...)`; by the features alone, whatever the unit of the rewards."""

    @classmethod
    def of(cls, seen: SumOfSquares, ridge: float) -> Self:
        """From the rows `[x r]` that were seen, the ridge last: then rounding errs widths by `(eps * condition)^2`."""
        *batch, _, size = seen.root.shape
        return cls(stacked_root(seen.root, ridge_root(size, ridge, tuple(batch)), triangle=True))

    def after(self, rows: FloatArray, seen: SumOfSquares, ridge: float) -> Self:
        """The same after also seeing `rows`; `seen` holds them already.

        They are added to the triangle where its condition number is small and it was made anew not long ago: that errs
        by only `eps * condition` each time, 2e-10 in all, and costs half.
        """
        if not (seen.has_buffered_rows and _any(self.steady)):
            return self.of(seen, ridge)
        quick = type(self)(stacked_root(self.triangle, rows))
        steady = self.steady & quick.steady
        if _all(steady):
            return quick
        exact = self.of(seen, ridge)
        return type(self)(np.where(np.asarray(steady)[..., None, None], quick.triangle, exact.triangle))

    def map(self, change: Callable[[FloatArray], FloatArray]) -> Self:
        """The same for a part of the batch, or for many."""
        return type(self)(change(self.triangle), change(self._inverse))

    def is_like(self, triangle: FloatArray) -> bool:
        """Whether another triangle is this one to rounding; rows may have the other sign."""
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
        """Raise where rounding in the QR has grown to the size of the ridge.

        QR errs by eps relative to each column, which tilts every direction by eps * c, c the condition number with
        the columns scaled to length 1 (so that mere units do not count), and a width by (eps * c)^2. That is so in
        directions that only the ridge holds; one that is held by small rows beside large ones in the same columns
        errs by up to eps * c, so by 1e-3 at the very worst.
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


def refuse_overflow(rows: FloatArray, *results: FloatArray) -> None:
    """A NaN or infinite feature shows in the results, which are fewer to look at than the features."""
    if math.isfinite(np.vdot(results[0], results[-1])) or all(checks.all_finite(result) for result in results):
        return
    checks.refuse_not_finite("features", rows)
    raise PrecisionError("a mean or a width is beyond the range of float64; scale the features down")


def _rows_positive(triangle: FloatArray) -> FloatArray:
    """The same with no negative number on the diagonal: the only such root of what is squared."""
    return np.where(diagonal(triangle) < 0, -1.0, 1.0)[..., None] * triangle


def _all(where: BoolArray | bool) -> bool:
    return where if isinstance(where, bool) else bool(where.all())


def _any(where: BoolArray | bool) -> bool:
    return where if isinstance(where, bool) else bool(where.any())
