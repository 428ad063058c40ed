"""The instances behind the paper's lower bounds: worlds in which every policy must pay."""

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product

import numpy as np
from numpy.random import Generator

from armful import checks
from armful.checks import FloatArray
from armful.constraints import TopK
from armful.environments.round import Round

Signs = Sequence[int] | None


class NoiseLowerBound:
    """Theorem 5: k copies of the cube {-1, 1}^d, any k arms, and a theta* that noise all but hides.

        theta* in {-R/sqrt(kT), R/sqrt(kT)}^d, N(0, R^2) noise; some theta* costs every policy Omega(R d sqrt(kT)).

    signs: of theta*, `(n_features,)` of -1 and 1; drawn in each repetition if not given.

    >>> world = NoiseLowerBound(n_features=2, k=3)
    >>> next(world.rounds(10, np.random.default_rng(0))).features.shape
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
        """The same arms in every round."""
        theta = draw_signs(self.signs, self.n_features, rng) * self.noise / math.sqrt(self.k * n_rounds)
        mean = self._features @ theta
        for _ in range(n_rounds):
            yield Round(self._features, TopK(self.k), mean, self.noise)

    @cached_property
    def _features(self) -> FloatArray:
        return cube_arms(self.n_features, self.k)


class LearningLowerBound:
    """Theorem 6: without noise, every group of rounds opens with two kinds of arms of which nothing is known.

        d = 2d'; in group j arms 1..k are B sqrt(d) e_{2j-1}, arms k+1..2k are B sqrt(d) e_{2j};
        theta* in {-1/sqrt(d), 1/sqrt(d)}^d.

    Averaged over theta*, the first round of each group costs exactly B k / 2, whatever the policy.

    signs: of theta*, `(n_features,)` of -1 and 1; drawn in each repetition if not given.
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
        """`min(d', n_rounds)` groups of rounds, as equal in length as can be."""
        theta = draw_signs(self.signs, self.n_features, rng) / math.sqrt(self.n_features)
        for j, length in enumerate(self.group_lengths(n_rounds)):
            features = self._groups[j]
            mean = features @ theta
            for _ in range(length):
                yield Round(features, TopK(self.k), mean, noise=0.0)

    def group_lengths(self, n_rounds: int) -> list[int]:
        """How many rounds each group has."""
        n_groups = min(self.n_features // 2, n_rounds)
        return [len(part) for part in np.array_split(np.arange(n_rounds), n_groups)]

    @cached_property
    def _groups(self) -> list[FloatArray]:
        basis = self.bound * math.sqrt(self.n_features) * np.eye(self.n_features)
        return [np.repeat(basis[2 * j : 2 * j + 2], self.k, axis=0) for j in range(self.n_features // 2)]


class CombinedLowerBound:
    """Theorem 7: the noise instance in the first half of rounds and dimensions, the learning instance in the second.

    n_features: a multiple of 4, half of it for each instance. signs: of theta*; drawn in each repetition if not given.
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
        """One instance after the other."""
        first = n_rounds // 2
        lengths = (first, n_rounds - first)
        for half, length in enumerate(lengths):
            for shown in self._halves[half].rounds(length, rng) if length else ():
                features = next(whole for part, whole in self._embedded if part is shown.features)
                yield Round(features, shown.constraint, shown.mean, shown.noise)

    @cached_property
    def _embedded(self) -> list[tuple[FloatArray, FloatArray]]:
        """Each array of arms that a half shows, and the same with zeros in the dimensions of the other half."""
        noise, learning = self._halves
        return [(noise._features, np.hstack([noise._features, np.zeros_like(noise._features)]))] + [
            (group, np.hstack([np.zeros_like(group), group])) for group in learning._groups
        ]


def cube_arms(n_features: int, copies: int) -> FloatArray:
    """The corners of {-1, 1}^n_features, one whole cube after the other: `(copies * 2^n_features, n_features)`."""
    corners = np.array(list(product((-1.0, 1.0), repeat=n_features)))
    return np.tile(corners, (copies, 1))


def check_signs(signs: Signs, n_features: int) -> Signs:
    """Signs as `n_features` numbers that are -1 or 1, or None."""
    if signs is not None and (len(signs) != n_features or any(sign not in (-1, 1) for sign in signs)):
        raise ValueError(f"signs must be {n_features} numbers that are -1 or 1, got {signs!r}")
    return signs


def draw_signs(signs: Signs, n_features: int, rng: Generator) -> FloatArray:
    """The given signs, or drawn ones."""
    return rng.choice(np.array([-1.0, 1.0]), size=n_features) if signs is None else np.array(signs, dtype=np.float64)
