"""Made-up environments like the ones that armful is used in: a campaign and slates."""

from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from armful import checks
from armful.constraints import TopK
from armful.environments._shared import ShowsOptions, check_arms, check_size, draw_direction
from armful.environments.round import Round
from armful.objectives import Diverse


class Campaign(ShowsOptions):
    """A customer base in clusters; in every round k of the same customers are contacted.

    There are usually many more customers in a round than rounds. The features of a customer are the centre of a
    cluster plus a normal vector, scaled to a mean squared length of 1. theta* has length 1. Customers and theta* are
    drawn in each repetition. Features are scaled back where the mean reward would be beyond `bound`.

    Parameters
    ----------
    n_arms : int
        The number of customers.
    n_features : int
        The number of features.
    k : int
        How many are contacted in a round.
    n_clusters : int
        The number of clusters.
    noise : float
        The standard deviation of the noise on a reward.
    bound : float
        B: mean rewards are from -B to B.

    Examples
    --------
    >>> environment = Campaign(n_arms=200, n_features=6, k=20)
    >>> shown = next(environment.rounds(10, np.random.default_rng(0)))
    >>> shown.features.shape, bool(abs(shown.mean).max() <= 1.0)
    ((200, 6), True)
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
        self.n_arms, self.n_features = check_arms(n_arms, n_features)
        self.k = check_size(k, n_arms)
        self.n_clusters = checks.count("n_clusters", n_clusters)
        self.noise = checks.at_least_zero("noise", noise)
        self.bound = checks.positive("bound", bound)

    def rounds(self, n_rounds: int, rng: Generator) -> Iterator[Round]:
        """Yield rounds with the same customers."""
        theta = draw_direction(rng, self.n_features)
        centres = rng.standard_normal((self.n_clusters, self.n_features))
        own = rng.standard_normal((self.n_arms, self.n_features))
        features = centres[rng.integers(self.n_clusters, size=self.n_arms)] + 0.5 * own
        features /= np.sqrt(np.mean(np.sum(features**2, axis=1)))
        features /= np.maximum(np.abs(features @ theta) / self.bound, 1.0)[:, None]
        mean = features @ theta
        for _ in range(n_rounds):
            yield Round(features, TopK(self.k), mean, self.noise)


class Slates(ShowsOptions):
    """Slates of k items out of new ones in every round; each item of a slate is clicked or not.

    The first feature is 1, the others lie on the unit sphere. The probability of a click is `0.5 + 0.4 w.x` with
    `|w| = 1`, w drawn in each repetition: linear in the features, and from 0.1 to 0.9.

    Parameters
    ----------
    n_arms : int
        The number of items.
    n_features : int
        The number of features with the constant one, at least 2.
    k : int
        How many items are on a slate.
    variety : float
        With more than 0, the value of a slate is its clicks plus this weight times its diversity (`Diverse`). The best
        slate is then found by enumeration, so there must be few arms.

    Examples
    --------
    >>> environment = Slates(n_arms=30, n_features=5, k=4)
    >>> next(environment.rounds(10, np.random.default_rng(0))).features.shape
    (30, 5)
    """

    def __init__(self, *, n_arms: int = 100, n_features: int = 10, k: int = 5, variety: float = 0.0) -> None:
        self.variety = checks.at_least_zero("variety", variety)
        self.n_arms, self.n_features = check_arms(n_arms, n_features, least_features=2)
        self.k = check_size(k, n_arms)

    def rounds(self, n_rounds: int, rng: Generator) -> Iterator[Round]:
        """Yield rounds with new items."""
        theta = np.concatenate([[0.5], 0.4 * draw_direction(rng, self.n_features - 1)])
        objective = Diverse(weight=self.variety) if self.variety else None
        for _ in range(n_rounds):
            taste = rng.standard_normal((self.n_arms, self.n_features - 1))
            taste /= np.linalg.norm(taste, axis=1, keepdims=True)
            features = np.hstack([np.ones((self.n_arms, 1)), taste])
            yield Round(features, TopK(self.k), features @ theta, noise="bernoulli", objective=objective)
