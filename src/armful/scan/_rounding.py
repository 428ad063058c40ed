"""How far computed means and widths can be from true ones, so that what is left out is left out for certain."""

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
    two roundings to the type included. Everything is told in widths by `|x| <= |R| w`, R the root of V. `tiny` is for
    what is too small for the type.
    """

    mean: float
    width: float
    tiny: float

    @classmethod
    def of(cls, state: Model, dtype: DTypeLike) -> "Rounding":
        """For products in this type with what the state knows."""
        kind, d = np.finfo(dtype), state.n_features
        unit = (d + 4) * float(kind.eps) / 2
        root, inverse, theta = _sizes(state)
        smallest = d * float(kind.tiny)
        return cls(
            mean=unit * theta * root + smallest * root,
            width=unit * (inverse * root + 1) + smallest * root,
            tiny=2 * math.sqrt(smallest) + smallest * (inverse + theta),
        )


def interval(
    mean: FloatArray, width: FloatArray, rounding: Rounding, plain: Rounding
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Lowest and highest mean, lowest and highest width that the plain computation could give.

    `mean` and `width` were computed with errors of `rounding`, the plain computation has errors of `plain`.
    """
    most = (width + rounding.tiny) / (1 - rounding.width)  # of the true width
    least = np.maximum((width - rounding.tiny) / (1 + rounding.width), 0.0)
    error = (rounding.mean + plain.mean) * most + (rounding.tiny + plain.tiny)
    lowest_width = np.maximum((1 - plain.width) * least - plain.tiny, 0.0)
    return mean - error, mean + error, lowest_width, (1 + plain.width) * most + plain.tiny


def growth(old: FloatArray, state: Model) -> float:
    """By how much widths can be larger than under the root `old`: the largest `|x R^-1| / |x old^-1|`."""
    d, unit = state.n_features, float(np.finfo(np.float64).eps)
    ratio = old @ state.inverse_root
    largest = float(np.linalg.eigvalsh(ratio.T @ ratio)[-1])
    error = d * unit * _norm(old) * _sizes(state)[1]
    return math.sqrt(max(largest, 0.0) + 10 * d * unit * _norm(ratio) ** 2) + error


@lru_cache(maxsize=4)
def _sizes(state: Model) -> tuple[float, float, float]:
    """No less than the norms of R and R^-1, and |theta|: asked for several times a round."""
    return _norm(state.root), _norm(state.inverse_root), float(np.linalg.norm(state.theta))


def _norm(matrix: FloatArray) -> float:
    """No less than the spectral norm of the matrix and of its absolute values, and cheaper."""
    sizes = np.abs(matrix)
    return math.sqrt(float(sizes.sum(axis=0).max()) * float(sizes.sum(axis=1).max()))
