"""Thompson sampling: scores are samples from what might be true."""

import numpy as np

from armful.arms import Arms
from armful.checks import FloatArray
from armful.model.radius import ConstantRadius, Noise, NoiseScale, Radius, SamplingRadius
from armful.policies._confidence import ConfidencePolicy, check_noise
from armful.policies.policy import Policy
from armful.policies.scores import Scores
from armful.randomness import Seed, arm_normals, draw_key


class ArmwiseThompson(ConfidencePolicy):
    """Score `theta.x + v_t width(x) z`, z an independent sample of N(0, 1) for each arm.

    The paper's experiments use `ridge=d, radius=sqrt(d)`.

    Parameters
    ----------
    n_features : int
        The length of a feature vector.
    ridge : float or "theory", optional
        lambda, 1 if not given; `"theory"` is the paper's `R^2 S^-2 d`.
    radius : float or str, default "sampling"
        v_t: a number, `"sampling"` for R / 2, or another radius of `C2UCB`.
    noise : float or "auto", default "auto"
        As for `C2UCB`, and so are norm, delta and length.
    norm : float, optional
        S, a bound on the length of the true coefficients.
    delta : float, default 0.1
        The probability with which the radius may fail.
    length : float, optional
        L, a bound on the length of a feature vector.
    seed : int, SeedSequence or Generator, optional
        For the samples and for ties.

    References
    ----------
    Takemura and Ito 2019, "An Arm-Wise Randomization Approach to Combinatorial Linear Semi-Bandits", Thompson sampling.

    Examples
    --------
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
        """Return the estimates plus `v_t` widths times a normal sample."""
        mean, width = arms.mean_and_width
        return Scores.uncapped(mean, self._radius(k) * width * self._samples(arms))

    def lowest_score(self, low: Arms, high: Arms, k: int) -> FloatArray:
        """Return the scores at the lowest means: a wider arm scores lower where its sample is negative."""
        (mean, small), (_, large), samples = low.mean_and_width, high.mean_and_width, self._samples(low)
        return mean + self._radius(k) * np.where(samples < 0, large, small) * samples

    def highest_score(self, low: Arms, high: Arms, k: int) -> FloatArray:
        """Return the scores at the highest means: a wider arm scores higher where its sample is positive."""
        (_, small), (mean, large), samples = low.mean_and_width, high.mean_and_width, self._samples(low)
        return mean + self._radius(k) * np.where(samples < 0, small, large) * samples

    def _samples(self, arms: Arms) -> FloatArray:
        return arm_normals(draw_key(self.rng), arms.arm_indices)

    def _radius(self, k: int) -> FloatArray:
        return np.asarray(self._alpha(self.state, k))[..., None]


class CombLinTS(Policy):
    """Sample one `theta~ ~ N(theta, sigma^2 V^-1)` a round and score `theta~.x`.

    The paper's experiments use `ridge=1.0, noise=1.0`.

    Parameters
    ----------
    n_features : int
        The length of a feature vector.
    noise : float or "auto", default "auto"
        sigma; `"auto"` is half of the noise that the residuals show.
    ridge : float, optional
        `sigma^2 / lambda^2` for a prior N(0, lambda^2 I); 1 if not given.
    seed : int, SeedSequence or Generator, optional
        For the samples and for ties.

    References
    ----------
    Wen et al. 2015, "Efficient Learning in Large-Scale Combinatorial Semi-Bandits", CombLinTS.

    Examples
    --------
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
        """Return the means under one sampled theta."""
        sigma = np.asarray(self._sigma(self.state, k))[..., None]
        sample = self.state.sample(sigma * self.rng.standard_normal(self.n_features))
        value = arms.project(sample)
        return Scores.uncapped(arms.mean, value - arms.mean, value)
