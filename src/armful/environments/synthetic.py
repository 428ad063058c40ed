"""Worlds like those armful is used in, made up."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from armful import checks
from armful.checks import FloatArray
from armful.constraints import TopK
from armful.environments.round import Round
from armful.objectives import Diverse


class Campaign:
    """A customer base in clusters; every round k of the same customers are contacted, k usually much larger than T.

    Features are the centre of the customer's cluster plus something of their own, of mean squared length 1; theta* has
    length 1 and is drawn in each repetition, as are the customers. Mean rewards stay within `bound`: customers
    beyond it are scaled back.
    """

    def __init__(
        self,
        *,
        n_arms: int = 5000,
        n_features: int = 20,
        k: int = 500,
        n_clusters: int = 25,
        noise: float = 0.5,
        bound: float = 1.0,
    ) -> None:
        self.n_arms = checks.count("n_arms", n_arms)
        self.n_features = checks.count("n_features", n_features)
        check_memory(n_arms, n_features)
        self.k = check_size(k, n_arms)
        self.n_clusters = checks.count("n_clusters", n_clusters)
        self.noise = checks.at_least_zero("noise", noise)
        self.bound = checks.positive("bound", bound)

    def rounds(self, n_rounds: int, rng: Generator) -> Iterator[Round]:
        """The same customers in every round."""
        theta = _direction(rng, self.n_features)
        centres = rng.standard_normal((self.n_clusters, self.n_features))
        own = rng.standard_normal((self.n_arms, self.n_features))
        features = centres[rng.integers(self.n_clusters, size=self.n_arms)] + 0.5 * own
        features /= np.sqrt(np.mean(np.sum(features**2, axis=1)))
        features /= np.maximum(np.abs(features @ theta) / self.bound, 1.0)[:, None]
        mean = features @ theta
        for _ in range(n_rounds):
            yield Round(features, TopK(self.k), mean, self.noise)


class Slates:
    """Slates of k items out of fresh ones in every round; a click or none on each, with an intercept in the features.

    The first feature is 1, the others lie on the unit sphere; the chance of a click is `0.5 + 0.4 w.x`, |w| = 1, w
    drawn in each repetition: linear in the features, and always between 0.1 and 0.9.

    variety: with more than 0, a slate is worth its clicks and so much variety (`Diverse`); the best slate is then found
    by looking at every one, so there must be few arms.
    """

    def __init__(self, *, n_arms: int = 100, n_features: int = 10, k: int = 5, variety: float = 0.0) -> None:
        self.variety = checks.at_least_zero("variety", variety)
        self.n_arms = checks.count("n_arms", n_arms)
        self.n_features = checks.count("n_features", n_features, minimum=2)
        check_memory(n_arms, n_features)
        self.k = check_size(k, n_arms)

    def rounds(self, n_rounds: int, rng: Generator) -> Iterator[Round]:
        """New items in every round."""
        theta = np.concatenate([[0.5], 0.4 * _direction(rng, self.n_features - 1)])
        objective = Diverse(weight=self.variety) if self.variety else None
        for _ in range(n_rounds):
            taste = rng.standard_normal((self.n_arms, self.n_features - 1))
            taste /= np.linalg.norm(taste, axis=1, keepdims=True)
            features = np.hstack([np.ones((self.n_arms, 1)), taste])
            yield Round(features, TopK(self.k), features @ theta, noise="bernoulli", objective=objective)


def check_size(k: int, n_arms: int) -> int:
    """A size that so many arms allow."""
    if checks.count("k", k) > n_arms:
        raise ValueError(f"k must be at most the number of arms, {n_arms}, got {k}")
    return k


def check_memory(n_arms: int, n_features: int) -> None:
    """Refuse more arms than one round can hold in memory."""
    checks.fits_in_memory(f"n_arms = {n_arms} with n_features = {n_features}", n_arms * n_features)


def _direction(rng: Generator, n_features: int) -> FloatArray:
    vector = rng.standard_normal(n_features)
    return vector / math.sqrt(vector @ vector)
