"""The instances of the paper's lower bounds, in which every policy has regret."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.random import Generator

from armful import checks
from armful.checks import FloatArray
from armful.constraints import TopK
from armful.environments._shared import ShowsOptions, Signs, check_signs, cube_arms, draw_signs
from armful.environments.round import Round


class NoiseLowerBound(ShowsOptions):
    """The instance of Theorem 5: a theta* so small that the noise nearly hides it.

    Arms are k copies of the cube {-1, 1}^d, any k of them are allowed, and rewards have N(0, R^2) noise:

        theta* in {-R / sqrt(k T), R / sqrt(k T)}^d.

    For every policy there is a theta* with a regret of Omega(R d sqrt(k T)).

    Parameters
    ----------
    n_features : int
        d, at most 16.
    k : int
        The size of a set.
    noise : float
        R, the standard deviation of the noise.
    signs : sequence of int, optional
        The signs of theta*, `n_features` numbers -1 or 1; drawn in each repetition if not given.

    References
    ----------
    Takemura et al. (2021), Theorem 5.

    Examples
    --------
    >>> environment = NoiseLowerBound(n_features=2, k=3)
    >>> next(environment.rounds(10, np.random.default_rng(0))).features.shape
    (12, 2)
    """

    def __init__(self, *, n_features: int, k: int, noise: float = 1.0, signs: Signs = None) -> None:
        self.n_features = checks.count("n_features", n_features)
        if n_features > 16:
            raise ValueError(f"n_features must be at most 16, since a cube has 2^n_features corners, got {n_features}")
        self.k = checks.count("k", k)
        checks.fits_in_memory(f"k = {k} with n_features = {n_features}", k * n_features * 2**n_features)
        self.noise = checks.positive("noise", noise)
        self.signs = check_signs(signs, n_features)

    def rounds(self, n_rounds: int, rng: Generator) -> Iterator[Round]:
        """Yield rounds with the same arms."""
        theta = draw_signs(self.signs, self.n_features, rng) * self.noise / math.sqrt(self.k * n_rounds)
        mean = self._features @ theta
        for _ in range(n_rounds):
            yield Round(self._features, TopK(self.k), mean, self.noise)

    @cached_property
    def _features(self) -> FloatArray:
        return cube_arms(self.n_features, self.k)


class LearningLowerBound(ShowsOptions):
    """The instance of Theorem 6: no noise, but arms of which nothing can be known when they first appear.

    Rounds are divided into d / 2 groups. Group j has 2k arms, any k of them are allowed:

        arms 1..k are B sqrt(d) e_{2j-1}, arms k+1..2k are B sqrt(d) e_{2j}, theta* in {-1 / sqrt(d), 1 / sqrt(d)}^d.

    Averaged over theta*, the regret of the first round of each group is exactly B k / 2 for every policy.

    Parameters
    ----------
    n_features : int
        d, an even number.
    k : int
        The size of a set.
    bound : float
        B: mean rewards are -B or B.
    signs : sequence of int, optional
        The signs of theta*, `n_features` numbers -1 or 1; drawn in each repetition if not given.

    References
    ----------
    Takemura et al. (2021), Theorem 6.

    Examples
    --------
    >>> environment = LearningLowerBound(n_features=6, k=3, bound=2.0)
    >>> next(environment.rounds(10, np.random.default_rng(0))).features.shape
    (6, 6)
    """

    def __init__(self, *, n_features: int, k: int, bound: float = 1.0, signs: Signs = None) -> None:
        self.n_features = checks.count("n_features", n_features, minimum=2)
        if n_features % 2:
            raise ValueError(f"n_features must be even, two for each group of rounds, got {n_features}")
        self.k = checks.count("k", k)
        checks.fits_in_memory(f"k = {k} with n_features = {n_features}", k * n_features**2)
        self.bound = checks.positive("bound", bound)
        self.signs = check_signs(signs, n_features)

    def rounds(self, n_rounds: int, rng: Generator) -> Iterator[Round]:
        """Yield the rounds, group by group."""
        theta = draw_signs(self.signs, self.n_features, rng) / math.sqrt(self.n_features)
        for j, length in enumerate(self.group_lengths(n_rounds)):
            features = self._groups[j]
            mean = features @ theta
            for _ in range(length):
                yield Round(features, TopK(self.k), mean, noise=0.0)

    def group_lengths(self, n_rounds: int) -> list[int]:
        """Return how many rounds each of the `min(d / 2, n_rounds)` groups has: as equal as possible."""
        n_groups = min(self.n_features // 2, n_rounds)
        return [len(part) for part in np.array_split(np.arange(n_rounds), n_groups)]

    @cached_property
    def _groups(self) -> list[FloatArray]:
        basis = self.bound * math.sqrt(self.n_features) * np.eye(self.n_features)
        return [np.repeat(basis[2 * j : 2 * j + 2], self.k, axis=0) for j in range(self.n_features // 2)]


class CombinedLowerBound(ShowsOptions):
    """The instance of Theorem 7: `NoiseLowerBound` in the first half, `LearningLowerBound` in the second.

    Each has its half of the rounds and of the features.

    Parameters
    ----------
    n_features : int
        d, a multiple of 4.
    k : int
        The size of a set.
    noise : float
        R, the standard deviation of the noise in the first half.
    bound : float
        B: mean rewards in the second half are -B or B.
    signs : sequence of int, optional
        The signs of theta*, `n_features` numbers -1 or 1; drawn in each repetition if not given.

    References
    ----------
    Takemura et al. (2021), Theorem 7.

    Examples
    --------
    >>> environment = CombinedLowerBound(n_features=4, k=2)
    >>> [shown.features.shape for shown in environment.rounds(2, np.random.default_rng(0))]
    [(8, 4), (4, 4)]
    """

    def __init__(self, *, n_features: int, k: int, noise: float = 1.0, bound: float = 1.0, signs: Signs = None) -> None:
        self.n_features = checks.count("n_features", n_features, minimum=4)
        if n_features % 4:
            raise ValueError(f"n_features must be a multiple of 4, got {n_features}")
        self.k = checks.count("k", k)
        self.noise, self.bound = noise, bound
        self.signs = check_signs(signs, n_features)
        half = n_features // 2
        first, second = (None, None) if signs is None else (signs[:half], signs[half:])
        self._halves = (
            NoiseLowerBound(n_features=half, k=k, noise=noise, signs=first),
            LearningLowerBound(n_features=half, k=k, bound=bound, signs=second),
        )

    def rounds(self, n_rounds: int, rng: Generator) -> Iterator[Round]:
        """Yield the rounds of the first instance, then those of the second."""
        first = n_rounds // 2
        noise, learning = self._halves
        for rounds, length in ((noise.rounds, first), (learning.rounds, n_rounds - first)):
            for shown in rounds(length, rng) if length else ():
                yield replace(shown, features=self._embedded[id(shown.features)])

    @cached_property
    def _embedded(self) -> dict[int, FloatArray]:
        """By id, the arms of each half with zeros for the features of the other half."""
        noise, learning = self._halves
        d = self.n_features // 2
        first = {id(noise._features): np.pad(noise._features, ((0, 0), (0, d)))}
        return first | {id(group): np.pad(group, ((0, 0), (d, 0))) for group in learning._groups}
