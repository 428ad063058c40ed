"""Bounds on the rounding errors of means and widths, so that no arm is pruned because of one."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import DTypeLike

from armful.checks import FloatArray
from armful.model.base import Model


@dataclass(frozen=True)
class Rounding:
    """`|computed mean - mean| <= mean * w + tiny`, `|computed width - w| <= width * w + tiny`, w the true width.

    Products of d numbers err by at most `(d + 4) u |x|.|y|`, u the unit of rounding (Higham 2002, section 3.1), the
    two roundings to the type included. All bounds are multiples of the width, by `|x| <= |R| w`, R the root of V.
    `tiny` covers underflow.
    """

    mean: float
    width: float
    tiny: float

    @classmethod
    def of(cls, state: Model, dtype: DTypeLike, matrix: FloatArray | None = None) -> "Rounding":
        """Return the bounds for products in this type with the root and the estimate of a state.

        matrix: what rows are multiplied with for the widths, if it is not the inverse of the root (`QuickWidths`). The
        rest of the squared width is then a quadratic form in float64.
        """
        kind, d = np.finfo(dtype), state.n_features
        unit = (d + 4) * float(kind.eps) / 2
        root, inverse, theta = _sizes(state)
        multiplied = inverse if matrix is None else _norm(matrix)
        squares = 0.0 if matrix is None else 4 * d * float(np.finfo(np.float64).eps) * (inverse * root) ** 2
        smallest = d * float(kind.tiny)
        return cls(
            mean=unit * theta * root + smallest * root,
            width=unit * (multiplied * root + 1) + squares + smallest * root,
            tiny=2 * math.sqrt(smallest) + smallest * (inverse + theta),
        )


def interval(
    mean: FloatArray, width: FloatArray, rounding: Rounding, plain: Rounding
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the lowest and highest mean, and the lowest and highest width, that float64 could give.

    `mean` and `width` were computed with errors of `rounding`; the computation in float64 has errors of `plain`.
    """
    most = (width + rounding.tiny) / (1 - rounding.width)  # bounds of the exact width
    least = np.maximum((width - rounding.tiny) / (1 + rounding.width), 0.0)
    error = (rounding.mean + plain.mean) * most + (rounding.tiny + plain.tiny)
    lowest_width = np.maximum((1 - plain.width) * least - plain.tiny, 0.0)
    return mean - error, mean + error, lowest_width, (1 + plain.width) * most + plain.tiny


def growth(old: FloatArray, state: Model) -> float:
    """Return the largest factor by which widths can exceed those under the root `old`: `max |x R^-1| / |x old^-1|`."""
    d, unit = state.n_features, float(np.finfo(np.float64).eps)
    ratio = old @ state.inverse_root
    largest = float(np.linalg.eigvalsh(ratio.T @ ratio)[-1])
    error = d * unit * _norm(old) * _sizes(state)[1]
    return math.sqrt(max(largest, 0.0) + 10 * d * unit * _norm(ratio) ** 2) + error


@lru_cache(maxsize=4)
def _sizes(state: Model) -> tuple[float, float, float]:
    """Return upper bounds on the norms of R and R^-1, and |theta|; cached, as a round needs them several times."""
    return _norm(state.root), _norm(state.inverse_root), float(np.linalg.norm(state.theta))


def _norm(matrix: FloatArray) -> float:
    """Return an upper bound on the spectral norm of the matrix and of its absolute values, cheaper than the norm."""
    sizes = np.abs(matrix)
    if not sizes.size:
        return 0.0
    return math.sqrt(float(sizes.sum(axis=0).max()) * float(sizes.sum(axis=1).max()))
