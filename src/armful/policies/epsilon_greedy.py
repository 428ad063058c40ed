"""Greedy choices, with a random round now and then."""

import numpy as np

from armful import checks
from armful.arms import Arms
from armful.policies.policy import Policy
from armful.policies.scores import Scores
from armful.randomness import Seed, arm_normals, draw_key


class EpsilonGreedy(Policy):
    """Score `theta.x`; with probability `epsilon` a round, an independent sample of N(0, 1) for every arm instead.

    Random scores go through the constraint too, so that an exploring round is allowed. Where rewards are minus a cost
    (`Path(costs=True)`) the scores are `-|N(0, 1)|`. The paper's experiments use `epsilon=0.05, ridge=1.0`.

    Parameters
    ----------
    n_features : int
        The length of a feature vector.
    epsilon : float, default 0.02
        The probability of an exploring round, from 0 (greedy) to 1 (random).
    ridge : float, optional
        lambda, 1 if not given.
    seed : int, SeedSequence or Generator, optional
        For exploring rounds and for ties.

    References
    ----------
    Takemura et al. 2021, Table 2.

    Examples
    --------
    >>> policy = EpsilonGreedy(n_features=2, epsilon=0.0, seed=0)
    >>> policy.learn([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0])
    >>> policy.scores([[1.0, 0.0], [0.0, 1.0]], k=1)
    array([ 0.5, -0.5])
    """

    armwise = True

    def __init__(
        self, *, n_features: int, epsilon: float = 0.02, ridge: float | None = None, seed: Seed = None
    ) -> None:
        self.epsilon = checks.probability("epsilon", epsilon, zero_and_one=True)
        super().__init__(n_features=n_features, ridge=ridge, seed=seed)
        self.randomised = epsilon > 0

    def score(self, arms: Arms, k: int) -> Scores:
        """Return the estimates, or random scores in an exploring round."""
        explore = np.asarray(self.rng.random() < self.epsilon)  # (...)
        noise = arm_normals(draw_key(self.rng, where=explore), arms.arm_indices)
        value = np.where(explore[..., None], -np.abs(noise) if arms.only_costs else noise, arms.mean)
        return Scores.uncapped(arms.mean, value - arms.mean, value)
