"""What the environments share: their repr, checks of sizes, and random draws."""

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.random import Generator

from armful import checks
from armful._signatures import parameters_of
from armful.checks import FloatArray

Signs = Sequence[int] | None


class ShowsOptions:
    """A repr with the options that the environment was made with."""

    def __repr__(self) -> str:
        given = [name for name in parameters_of(type(self)) if name in vars(self)]
        return f"{type(self).__name__}({', '.join(f'{name}={vars(self)[name]!r}' for name in given)})"


def check_arms(n_arms: int, n_features: int, *, least_features: int = 1) -> tuple[int, int]:
    """Return both numbers, or refuse more arms than one round can hold in memory."""
    checks.count("n_arms", n_arms)
    checks.count("n_features", n_features, minimum=least_features)
    checks.fits_in_memory(f"n_arms = {n_arms} with n_features = {n_features}", n_arms * n_features)
    return n_arms, n_features


def check_size(k: int, n_arms: int) -> int:
    """Return the size of a set, or refuse one that is larger than the number of arms."""
    if checks.count("k", k) > n_arms:
        raise ValueError(f"k must be at most the number of arms, {n_arms}, got {k}")
    return k


def check_signs(signs: Signs, n_features: int) -> Signs:
    """Return the signs of theta*, or refuse all but None and `n_features` numbers that are -1 or 1."""
    if signs is not None and (len(signs) != n_features or any(sign not in (-1, 1) for sign in signs)):
        raise ValueError(f"signs must be {n_features} numbers that are -1 or 1, got {signs!r}")
    return signs


def draw_signs(signs: Signs, n_features: int, rng: Generator) -> FloatArray:
    """Return the given signs, or draw them if they are None."""
    return rng.choice(np.array([-1.0, 1.0]), size=n_features) if signs is None else np.array(signs, dtype=np.float64)


def draw_direction(rng: Generator, n_features: int) -> FloatArray:
    """Draw a vector of length 1, `(n_features,)`, every direction alike."""
    vector = rng.standard_normal(n_features)
    return vector / math.sqrt(vector @ vector)


def cube_arms(n_features: int, copies: int) -> FloatArray:
    """Return copies of the cube {-1, 1}^n_features, one after the other: `(copies * 2^n_features, n_features)`."""
    corners = np.array(list(product((-1.0, 1.0), repeat=n_features)))
    return np.tile(corners, (copies, 1))
