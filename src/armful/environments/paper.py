"""The paper's experiment."""

import math
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.random import Generator

from armful import checks
from armful.checks import FloatArray
from armful.constraints import Constraint, OneOf, TopK
from armful.environments._shared import ShowsOptions, check_signs, cube_arms
from armful.environments.round import Round


class PaperInstance(ShowsOptions):
    """The instance of the paper's experiments: seven features, and two halves of the rounds.

    Rounds 1 to T/2: the instance of `NoiseLowerBound` in features 1-4, `16 k` arms, any k of them,
    `theta* = +-1 / sqrt(k T / 2)`. Rounds T/2 + 1 to T: features 5-7, `theta* = (0, 0.1, 0.9)`, `2 k` arms. Arm 1 is
    `2^(t mod k) e_5`: it grows, so that its width and its upper confidence bound do too, and its mean reward is 0. Arms
    2..k are `e_6`, arms k+1..2k are `e_7`. Noise is N(0, 1) throughout.

    Parameters
    ----------
    k : int
        The size of a set, at most 500.
    kind : {"grouped", "uniform"}
        In the second half, "grouped" allows arms {1..k} or {k+1..2k}, "uniform" any k arms.
    signs : sequence of int
        The signs of theta* in features 1-4. By the symmetry of the cube all 16 are alike in distribution.

    References
    ----------
    Takemura et al. (2021), numerical experiments.

    Examples
    --------
    >>> environment = PaperInstance(k=2, kind="grouped")
    >>> [shown.features.shape for shown in environment.rounds(4, np.random.default_rng(0))]
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
        """Yield the rounds of the first half, then those with the arm that grows."""
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
        """Return theta*, `(7,)`, for an experiment of `n_rounds` rounds."""
        scale = 1 / math.sqrt(self.k * max(n_rounds // 2, 1))
        return np.concatenate([scale * np.array(self.signs, dtype=np.float64), [0.0, 0.1, 0.9]])

    @property
    def length(self) -> float:
        """L, the largest norm of an arm."""
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
        arms = np.zeros((self.k, 2 * self.k, 7))
        arms[:, 0, 4] = 2.0 ** np.arange(self.k)
        arms[:, 1 : self.k, 5] = 1.0
        arms[:, self.k :, 6] = 1.0
        return list(arms)
