"""Optimism in the face of uncertainty: mean plus so many widths."""

import math

import numpy as np

from armful import checks
from armful.arms import Arms
from armful.checks import FloatArray
from armful.model.radius import Noise, NoiseScale
from armful.policies._confidence import ConfidencePolicy, check_noise
from armful.policies.policy import Policy
from armful.policies.scores import Scores
from armful.randomness import Seed


class C2UCB(ConfidencePolicy):
    """The paper's Algorithm 1 (Qin et al. 2014): score `theta.x + alpha_t width(x)`.

    With one arm a round it is LinUCB. The paper's experiments use `ridge=d, radius=sqrt(d)`. For the options see
    `ConfidencePolicy`.

    >>> policy = C2UCB(n_features=2, ridge=2.0, radius=1.0, seed=0)
    >>> policy.scores([[2.0, 0.0], [0.0, 1.0]], k=1).round(3)
    array([1.414, 0.707])

    Takemura et al. 2021, Algorithm 1, Theorems 2 and 3.
    """

    armwise = True

    def score(self, arms: Arms, k: int) -> Scores:
        """Mean plus radius times width."""
        mean, width = arms.mean_and_width
        return Scores.uncapped(mean, self._bonus(width, k))

    def lowest_score(self, low: Arms, high: Arms, k: int) -> FloatArray:
        """The score grows with mean and width."""
        return self.score(low, k).value

    def highest_score(self, low: Arms, high: Arms, k: int) -> FloatArray:
        """The score grows with mean and width."""
        return self.score(high, k).value

    def _bonus(self, width: FloatArray, k: int) -> FloatArray:
        alpha = self._alpha(self.state, k)
        return alpha * width if isinstance(alpha, float) else alpha[..., None] * width


class CappedC2UCB(C2UCB):
    """C2UCB that is never more optimistic than what is known to be impossible. It needs a cap.

    `cap=1.0` when it is made, a number that no arm's mean reward exceeds (1 for a click, 0 for a cost), or
    `policy.choose(X, constraint, caps=prices)`, one for each arm (the price for a sale), or both.

    rule="clip": score `min(theta.x + alpha_t width(x), caps)` on every arm, with every cap that was given:
        cap: B, which no mean reward exceeds.
        norm: S >= |theta*|, so that S |x| is a cap (and the radius uses it).
        spread: in no round do the mean rewards of two arms differ by more, so that
            spread + the smallest optimistic score is a cap (2B, for |mean| <= B).
        caps: passed to `choose`, one for each arm; infinity where nothing is known.
        Arms at the cap are told apart by their estimates: each scores a millionth of the way from cap to estimate.
    rule="paper": the paper's Algorithm 2 to the letter: score `cap` where `width(x)^2 > 1/k`, else
        `theta.x + alpha_t width(x)`; equal scores are told apart at random.

    Where a cap above 0 is given, `noise="auto"` starts from cap / 2 and `norm`, if not given, is taken to be cap in the
    radius (not for clipping): so rewards and cap in cents and in euros give the same choices. Otherwise these are 0.5
    and 1. For the other options see `ConfidencePolicy`.

    The regret bound of Algorithm 2 holds for both rules, on any constraint, with a radius that has a guarantee
    (docs/theory.md). "clip" is the default because with large k the paper's rule scores nearly every arm alike until
    about d rounds have passed.

    >>> policy = CappedC2UCB(n_features=2, cap=1.0, ridge=2.0, radius=1.0, seed=0)
    >>> policy.scores([[2.0, 0.0], [0.0, 1.0]], k=1).round(3)
    array([1.   , 0.707])

    Takemura et al. 2021, Algorithm 2, Theorem 4.
    """

    takes_caps = True
    armwise = True

    def __init__(
        self,
        *,
        n_features: int,
        cap: float | None = None,
        rule: str = "clip",
        spread: float | None = None,
        ridge: float | str | None = None,
        radius: float | str = "pointwise",
        noise: Noise = "auto",
        norm: float | None = None,
        delta: float = 0.1,
        length: float | None = None,
        seed: Seed = None,
    ) -> None:
        self.rule = checks.one_of("rule", rule, ("clip", "paper"))
        self.cap = None if cap is None else checks.moderate("cap", checks.at_least_zero("cap", cap))
        self.spread = None if spread is None else checks.at_least_zero("spread", spread)
        self.armwise = spread is None
        if rule == "paper" and cap is None:
            raise ValueError("rule='paper' needs cap, the largest mean reward B")
        if rule == "paper" and spread is not None:
            raise ValueError("rule='paper' knows no spread; rule='clip' does")
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
        self._warnings_once.cap = self.cap

    @property
    def needs_caps(self) -> bool:
        """Whether no cap was given when the policy was made, so that `choose` needs `caps`."""
        return self.cap is None and self.norm is None and self.spread is None

    def score(self, arms: Arms, k: int) -> Scores:
        """Mean plus radius times width, capped."""
        mean, width = arms.mean_and_width
        bonus = self._bonus(width, k)
        if self.rule == "clip":
            return Scores.clipped(mean, bonus, self._lowest_cap(arms, mean, bonus))
        if arms.caps is not None:
            raise ValueError("rule='paper' knows no caps of single arms; rule='clip' does")
        capped, cap = width**2 > 1 / k, np.asarray(self.cap, dtype=np.float64)
        return Scores(mean, bonus, np.where(capped, cap, mean + bonus), capped, np.where(capped, cap, np.inf))

    def lowest_score(self, low: Arms, high: Arms, k: int) -> FloatArray:
        """The score grows with mean and width; by the paper's rule an arm may be on either side of the limit."""
        lowest = super().lowest_score(low, high, k)
        if self.rule == "clip":
            return lowest
        cap = np.asarray(self.cap, dtype=np.float64)
        return np.where(high.mean_and_width[1] ** 2 > 1 / k, np.minimum(lowest, cap), lowest)

    def highest_score(self, low: Arms, high: Arms, k: int) -> FloatArray:
        """The score grows with mean and width; by the paper's rule an arm may be on either side of the limit."""
        highest = super().highest_score(low, high, k)
        if self.rule == "clip":
            return highest
        mean, width = high.mean_and_width
        most = mean + self._bonus(np.minimum(width, np.nextafter(math.sqrt(1 / k), np.inf)), k)
        return np.where(low.mean_and_width[1] ** 2 <= 1 / k, np.maximum(highest, most), highest)

    def _guessed_noise_and_norm(self) -> tuple[float, float]:
        return (self.cap / 2, self.cap) if self.cap else super()._guessed_noise_and_norm()

    def _lowest_cap(self, arms: Arms, mean: FloatArray, bonus: FloatArray) -> FloatArray | float:
        caps: list[FloatArray | float] = []
        if self.cap is not None:
            caps.append(self.cap)
        if self.norm is not None:
            caps.append(self.norm * arms.norm)
        if self.spread is not None:
            caps.append(self.spread + (mean + bonus).min(axis=-1, keepdims=True))
        if arms.caps is not None:
            caps.append(arms.caps)
        if not caps:
            raise ValueError(
                "CappedC2UCB needs a cap, a number that no mean reward exceeds: CappedC2UCB(..., cap=1.0), or "
                "choose(X, constraint, caps=...) with one for each arm; C2UCB needs none"
            )
        lowest = caps[0]
        for cap in caps[1:]:
            lowest = np.minimum(lowest, cap)
        return lowest


class CombLinUCB(Policy):
    """Wen et al. (2015): score `theta.x + c sqrt(x' Sigma x)`, Sigma the posterior covariance of theta.

    radius: c. noise: their sigma, or `"auto"` to estimate it from the residuals. ridge: sigma^2 / lambda^2 for their
    prior N(0, lambda^2 I); 1 if not given. Their Kalman recursion is the ridge state in other words:
    `Sigma = sigma^2 V^-1`. The paper's experiments use `ridge=1.0, noise=1.0, radius=sqrt(d)`.

    >>> policy = CombLinUCB(n_features=4, noise=1.0, radius=2.0, seed=0)
    >>> policy.scores([[1.0, 0.0, 0.0, 0.0]], k=1)
    array([2.])
    """

    def __init__(
        self,
        *,
        n_features: int,
        radius: float = 1.0,
        noise: Noise = "auto",
        ridge: float | None = None,
        seed: Seed = None,
    ) -> None:
        super().__init__(n_features=n_features, ridge=ridge, seed=seed)
        self.radius = checks.at_least_zero("radius", radius)
        self.noise = check_noise(noise, positive=True)
        self._sigma = NoiseScale(noise)

    armwise = True

    def score(self, arms: Arms, k: int) -> Scores:
        """Mean plus c posterior standard deviations."""
        mean, width = arms.mean_and_width
        return Scores.uncapped(mean, self.radius * np.asarray(self._sigma(self.state))[..., None] * width)

    def lowest_score(self, low: Arms, high: Arms, k: int) -> FloatArray:
        """The score grows with mean and width."""
        return self.score(low, k).value

    def highest_score(self, low: Arms, high: Arms, k: int) -> FloatArray:
        """The score grows with mean and width."""
        return self.score(high, k).value
