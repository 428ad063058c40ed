"""Exploring by drawing what might be true."""

import numpy as np

from armful import checks
from armful.arms import Arms
from armful.checks import FloatArray
from armful.policies.confidence import ConfidencePolicy
from armful.policies.policy import Policy
from armful.policies.scores import Scores
from armful.randomness import Seed, arm_normals, draw_key


class ArmwiseThompson(ConfidencePolicy):
    """Takemura and Ito (2019): score `theta.x + v_t width(x) z`, z an independent N(0, 1) for each arm.

    radius: `v_t`; the paper's experiments use `ridge=d, radius=sqrt(d)`. For the options see `ConfidencePolicy`.

    >>> policy = ArmwiseThompson(n_features=2, radius=0.0, seed=0)
    >>> policy.learn([[1.0, 0.0]], [1.0])
    >>> policy.scores([[2.0, 0.0]], k=1)
    array([1.])
    """

    samples = True
    armwise = True

    def score(self, arms: Arms, k: int) -> Scores:
        """Mean plus radius times width times a normal draw."""
        mean, width = arms.mean_and_width
        return Scores.uncapped(mean, self._radius(k) * width * self._drawn(arms))

    def lowest_score(self, low: Arms, high: Arms, k: int) -> FloatArray:
        """A width makes the score larger or smaller, as the draw has it."""
        (mean, small), (_, large), drawn = low.mean_and_width, high.mean_and_width, self._drawn(low)
        return mean + self._radius(k) * np.where(drawn < 0, large, small) * drawn

    def highest_score(self, low: Arms, high: Arms, k: int) -> FloatArray:
        """A width makes the score larger or smaller, as the draw has it."""
        (_, small), (mean, large), drawn = low.mean_and_width, high.mean_and_width, self._drawn(low)
        return mean + self._radius(k) * np.where(drawn < 0, small, large) * drawn

    def _drawn(self, arms: Arms) -> FloatArray:
        return arm_normals(draw_key(self.rng), arms.places)

    def _radius(self, k: int) -> FloatArray:
        return np.asarray(self._alpha(self.state, k))[..., None]


class CombLinTS(Policy):
    """Wen et al. (2015): one `theta~ ~ N(theta, sigma^2 V^-1)` a round, score `theta~.x`.

    noise: their sigma. ridge: sigma^2 / lambda^2 for their prior N(0, lambda^2 I). The defaults are the paper's.

    >>> policy = CombLinTS(n_features=2, seed=0)
    >>> float(policy.scores([[1.0, 0.0], [2.0, 0.0]], k=1) @ [2, -1])
    0.0
    """

    samples = True
    armwise = True

    def __init__(self, *, n_features: int, noise: float = 1.0, ridge: float | None = None, seed: Seed = None) -> None:
        super().__init__(n_features=n_features, ridge=ridge, seed=seed)
        self.noise = checks.positive("noise", noise)

    def score(self, arms: Arms, k: int) -> Scores:
        """The mean under one drawn theta."""
        drawn = self.state.sample(self.noise * self.rng.standard_normal(self.n_features))
        value = arms.project(drawn)
        return Scores.uncapped(arms.mean, value - arms.mean, value)
