"""The paper's experiment."""

import math
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.random import Generator

from armful import checks
from armful.checks import FloatArray
from armful.constraints import Constraint, OneOf, TopK
from armful.environments.lower_bounds import check_signs, cube_arms
from armful.environments.round import Round


class PaperInstance:
    """Takemura et al. (2021), numerical experiments: seven dimensions, two halves of rounds.

    Rounds 1..T/2: the noise instance in dimensions 1-4, 16k arms, any k of them, theta* = +-1/sqrt(kT/2).
    Rounds T/2+1..T: dimensions 5-7, theta* = (0, 0.1, 0.9), 2k arms: arm 1 is 2^(t mod k) e_5, which looks ever more
    promising and pays nothing; arms 2..k are e_6; arms k+1..2k are e_7. Noise is N(0, 1) throughout.

    kind: `"grouped"` allows arms {1..k} or {k+1..2k} in the second half, `"uniform"` any k.
    signs: of theta* in dimensions 1-4. By the symmetry of the cube all 16 choices are alike in distribution.

    >>> world = PaperInstance(k=2, kind="grouped")
    >>> [shown.features.shape for shown in world.rounds(4, np.random.default_rng(0))]
    [(32, 7), (32, 7), (4, 7), (4, 7)]
    """

    n_features = 7
    bound = 0.9
    noise = 1.0

    def __init__(self, *, k: int, kind: str = "grouped", signs: Sequence[int] = (1, 1, 1, 1)) -> None:
        self.k = checks.count("k", k)
        self.kind = checks.one_of("kind", kind, ("grouped", "uniform"))
        self.signs = check_signs(signs, 4) or (1, 1, 1, 1)
        if k > 500:
            raise ValueError(f"k must be at most 500: arm norms reach 2^(k-1), beyond what float64 holds, got {k}")

    def rounds(self, n_rounds: int, rng: Generator) -> Iterator[Round]:
        """The noise half, then the half with the arm that grows."""
        theta = self.theta(n_rounds)
        first_half = n_rounds // 2
        mean = self._cube @ theta
        any_k = TopK(self.k)
        for _ in range(first_half):
            yield Round(self._cube, any_k, mean, self.noise)
        for t in range(first_half + 1, n_rounds + 1):
            features = self._growing[t % self.k]
            yield Round(features, self._constraint, features @ theta, self.noise)

    def theta(self, n_rounds: int) -> FloatArray:
        """theta*, `(7,)`, for an experiment of so many rounds."""
        scale = 1 / math.sqrt(self.k * max(n_rounds // 2, 1))
        return np.concatenate([scale * np.array(self.signs, dtype=np.float64), [0.0, 0.1, 0.9]])

    @property
    def length(self) -> float:
        """L: the largest norm of an arm."""
        return max(2.0, 2.0 ** (self.k - 1))

    @cached_property
    def _constraint(self) -> Constraint:
        return OneOf([range(self.k), range(self.k, 2 * self.k)]) if self.kind == "grouped" else TopK(self.k)

    @cached_property
    def _cube(self) -> FloatArray:
        cube = cube_arms(4, self.k)
        return np.hstack([cube, np.zeros((len(cube), 3))])

    @cached_property
    def _growing(self) -> list[FloatArray]:
        arms = np.zeros((2 * self.k, 7))
        arms[1 : self.k, 5] = 1.0
        arms[self.k :, 6] = 1.0
        rounds = []
        for exponent in range(self.k):
            features = arms.copy()
            features[0, 4] = 2.0**exponent
            rounds.append(features)
        return rounds
