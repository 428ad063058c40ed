"""The estimate, with now and then a round at random."""

import numpy as np

from armful import checks
from armful.arms import Arms
from armful.policies.policy import Policy
from armful.policies.scores import Scores
from armful.randomness import Seed, arm_normals, draw_key


class EpsilonGreedy(Policy):
    """One coin a round: with probability `epsilon` every arm scores an independent N(0, 1), else `theta.x`.

    Both go through the constraint, so that a round at random is an allowed one. Where rewards are minus a cost (under
    `Path(costs=True)`) so are the draws: minus the size of a N(0, 1). The paper's experiments use `epsilon=0.05`.

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

    def score(self, arms: Arms, k: int) -> Scores:
        """The estimate, or noise in an exploring round."""
        explore = np.asarray(self.rng.random() < self.epsilon)  # (...)
        noise = arm_normals(draw_key(self.rng, where=explore), arms.places)
        value = np.where(explore[..., None], -np.abs(noise) if arms.only_costs else noise, arms.mean)
        return Scores.uncapped(arms.mean, value - arms.mean, value)
