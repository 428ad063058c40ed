"""Exploring by drawing what might be true."""

import numpy as np

from armful.arms import Arms
from armful.checks import FloatArray
from armful.model.radius import ConstantRadius, Noise, NoiseScale, Radius, SamplingRadius
from armful.policies._confidence import ConfidencePolicy, check_noise
from armful.policies.policy import Policy
from armful.policies.scores import Scores
from armful.randomness import Seed, arm_normals, draw_key


class ArmwiseThompson(ConfidencePolicy):
    """Takemura and Ito (2019): score `theta.x + v_t width(x) z`, z an independent N(0, 1) for each arm.

    radius: `v_t`; `"sampling"`, half of the noise R, if not given. The paper's experiments use
    `ridge=d, radius=sqrt(d)`. For the other options see `ConfidencePolicy`.

    >>> policy = ArmwiseThompson(n_features=2, radius=0.0, seed=0)
    >>> policy.learn([[1.0, 0.0]], [1.0])
    >>> policy.scores([[2.0, 0.0]], k=1)
    array([1.])
    """

    is_thompson = True
    armwise = True

    def __init__(
        self,
        *,
        n_features: int,
        ridge: float | str | None = None,
        radius: float | str = "sampling",
        noise: Noise = "auto",
        norm: float | None = None,
        delta: float = 0.1,
        length: float | None = None,
        seed: Seed = None,
    ) -> None:
        super().__init__(
            n_features=n_features,
            ridge=ridge,
            radius=radius,
            noise=noise,
            norm=norm,
            delta=delta,
            length=length,
            seed=seed,
        )

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

    noise: their sigma; `"auto"`, half of the noise that the residuals show, if not given. ridge: sigma^2 / lambda^2 for
    their prior N(0, lambda^2 I); 1 if not given. The paper's experiments use `ridge=1.0, noise=1.0`.

    >>> policy = CombLinTS(n_features=2, seed=0)
    >>> float(policy.scores([[1.0, 0.0], [2.0, 0.0]], k=1) @ [2, -1])
    0.0
    """

    is_thompson = True
    armwise = True

    def __init__(
        self, *, n_features: int, noise: Noise = "auto", ridge: float | None = None, seed: Seed = None
    ) -> None:
        super().__init__(n_features=n_features, ridge=ridge, seed=seed)
        self.noise = check_noise(noise, positive=True)
        self._sigma: Radius = SamplingRadius(noise=NoiseScale("auto")) if noise == "auto" else ConstantRadius(noise)

    def score(self, arms: Arms, k: int) -> Scores:
        """The mean under one drawn theta."""
        sigma = np.asarray(self._sigma(self.state, k))[..., None]
        drawn = self.state.sample(sigma * self.rng.standard_normal(self.n_features))
        value = arms.project(drawn)
        return Scores.uncapped(arms.mean, value - arms.mean, value)
