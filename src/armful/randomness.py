"""Drawing for many repetitions at once, each from a generator of its own."""

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from armful.checks import FloatArray


class Streams:
    """One generator per repetition; a draw has the repetitions as its leading axis.

    What a repetition draws does not depend on the others, so results are the same however they are batched.
    """

    def __init__(self, generators: Sequence[Generator]) -> None:
        self.generators = list(generators)

    def random(self) -> FloatArray:
        """A uniform number for each repetition."""
        return np.array([generator.random() for generator in self.generators])

    def standard_normal(self, size: int, where: FloatArray | None = None) -> FloatArray:
        """`size` standard normals for each repetition, or zeros where a repetition draws none."""
        draws = np.zeros((len(self.generators), size))
        for i, generator in enumerate(self.generators):
            if where is None or where[i]:
                generator.standard_normal(out=draws[i])
        return draws


def standard_normal(rng: Generator | Streams, size: int, where: object = None) -> FloatArray:
    """`size` standard normals from one generator, or for each repetition of `Streams`; zeros where not `where`."""
    if isinstance(rng, Streams):
        return rng.standard_normal(size, None if where is None else np.asarray(where))
    return rng.standard_normal(size) if where is None or where else np.zeros(size)
