"""Upper confidence bounds: the estimate plus a number of widths."""

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
    """Score every arm by its upper confidence bound, `theta.x + alpha_t width(x)`.

    With one arm a round it is LinUCB. The paper's experiments use `ridge=d, radius=sqrt(d)`.

    Parameters
    ----------
    n_features : int
        The length of a feature vector.
    ridge : float or "theory", optional
        lambda, 1 if not given; `"theory"` is the paper's `R^2 S^-2 d`.
    radius : float or str, default "pointwise"
        alpha_t: a number; `"pointwise"`, `"noise"` or `"sampling"`, heuristics that do well (docs/defaults.md);
        `"logdet"`, a guarantee if noise and norm are given; or `"theory"`, the paper's larger beta_t.
    noise : float or "auto", default "auto"
        R, the sub-Gaussian scale of the noise; `"auto"` estimates it from the residuals, a heuristic.
    norm : float, optional
        S, a bound on the length of the true coefficients; 1 if not given.
    delta : float, default 0.1
        The probability with which the radius may fail.
    length : float, optional
        L, a bound on the length of a feature vector; only `radius="theory"` uses it.
    seed : int, SeedSequence or Generator, optional
        For ties.

    References
    ----------
    Takemura et al. 2021, Algorithm 1, Theorems 2 and 3; first by Qin et al. 2014.

    Examples
    --------
    >>> policy = C2UCB(n_features=2, ridge=2.0, radius=1.0, seed=0)
    >>> policy.scores([[2.0, 0.0], [0.0, 1.0]], k=1).round(3)
    array([1.414, 0.707])
    """

    armwise = True
    randomised = False

    def score(self, arms: Arms, k: int) -> Scores:
        """Return the estimates plus `alpha_t` widths."""
        mean, width = arms.mean_and_width
        return Scores.uncapped(mean, self._bonus(width, k))

    def lowest_score(self, low: Arms, high: Arms, k: int) -> FloatArray:
        """Return the scores at `low`: they grow with mean and width."""
        return self.score(low, k).value

    def highest_score(self, low: Arms, high: Arms, k: int) -> FloatArray:
        """Return the scores at `high`: they grow with mean and width."""
        return self.score(high, k).value

    def _bonus(self, width: FloatArray, k: int) -> FloatArray:
        alpha = self._alpha(self.state, k)
        return alpha * width if isinstance(alpha, float) else alpha[..., None] * width


class CappedC2UCB(C2UCB):
    """C2UCB whose scores never exceed what a mean reward can be. It needs a cap: the recommended policy.

    Give `cap`, a number that no arm's mean reward exceeds (1 for a click, 0 for a cost), or `caps` in `choose`, one for
    each arm (the price for a sale), or both.

    - `rule="clip"` scores `min(theta.x + alpha_t width(x), C)`, C the lowest cap of the arm. Ties at the cap are broken
      by the estimate (`Scores.clipped`).
    - `rule="paper"` is the paper's Algorithm 2 to the letter: it scores `cap` where `width(x)^2 > 1/k`, else
      `theta.x + alpha_t width(x)`. Ties are broken at random.

    The regret bound of Algorithm 2 holds for both rules under any constraint, with a radius that has a guarantee
    (docs/theory.md). With large k the paper's rule gives nearly every arm the same score until about d rounds have
    passed.

    Parameters
    ----------
    n_features : int
        The length of a feature vector.
    cap : float, optional
        B, which no mean reward exceeds. Where it is above 0, `noise="auto"` starts from cap / 2 and the norm in the
        radius is cap if not given, so that the unit of rewards and cap does not matter.
    rule : {"clip", "paper"}, default "clip"
        How the cap is used.
    spread : float, optional
        How much the mean rewards of two arms of a round differ at most (2B, for |mean| <= B): then
        `spread + the smallest optimistic score` is a cap too.
    ridge : float or "theory", optional
        lambda, 1 if not given; `"theory"` is the paper's `R^2 S^-2 d`.
    radius : float or str, default "pointwise"
        As for `C2UCB`, and so are noise, delta, length and seed.
    noise : float or "auto", default "auto"
        R, the sub-Gaussian scale of the noise.
    norm : float, optional
        S, a bound on the length of the true coefficients, used in the radius; if given, `S |x|` is a cap too.
    delta : float, default 0.1
        The probability with which the radius may fail.
    length : float, optional
        L, a bound on the length of a feature vector.
    seed : int, SeedSequence or Generator, optional
        For ties.

    References
    ----------
    Takemura et al. 2021, Algorithm 2, Theorem 4.

    Examples
    --------
    >>> policy = CappedC2UCB(n_features=2, cap=1.0, ridge=2.0, radius=1.0, seed=0)
    >>> policy.scores([[2.0, 0.0], [0.0, 1.0]], k=1).round(3)
    array([1.   , 0.707])
    """

    takes_caps = True
    armwise = True
    randomised = False

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
            raise ValueError("rule='paper' takes no spread; rule='clip' does")
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
        """Whether `choose` needs `caps`, since no cap was given when the policy was made."""
        return self.cap is None and self.norm is None and self.spread is None

    def score(self, arms: Arms, k: int) -> Scores:
        """Return the estimates plus `alpha_t` widths, capped."""
        mean, width = arms.mean_and_width
        bonus = self._bonus(width, k)
        if self.rule == "clip":
            return Scores.clipped(mean, bonus, self._lowest_cap(arms, mean, bonus))
        if arms.caps is not None:
            raise ValueError("rule='paper' takes no caps of single arms; rule='clip' does")
        capped, cap = width**2 > 1 / k, np.asarray(self.cap, dtype=np.float64)
        return Scores(mean, bonus, np.where(capped, cap, mean + bonus), capped, np.where(capped, cap, np.inf))

    def lowest_score(self, low: Arms, high: Arms, k: int) -> FloatArray:
        """Return the scores at `low`; by the paper's rule, of both sides of `width^2 = 1/k` that are possible."""
        lowest = super().lowest_score(low, high, k)
        if self.rule == "clip":
            return lowest
        cap = np.asarray(self.cap, dtype=np.float64)
        return np.where(high.mean_and_width[1] ** 2 > 1 / k, np.minimum(lowest, cap), lowest)

    def highest_score(self, low: Arms, high: Arms, k: int) -> FloatArray:
        """Return the scores at `high`; by the paper's rule, of both sides of `width^2 = 1/k` that are possible."""
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
    """Score `theta.x + c sqrt(x' Sigma x)`, Sigma the posterior covariance of the coefficients.

    The Kalman recursion of its authors gives the ridge state: `Sigma = sigma^2 V^-1`. The paper's experiments use
    `ridge=1.0, noise=1.0, radius=sqrt(d)`.

    Parameters
    ----------
    n_features : int
        The length of a feature vector.
    radius : float, default 1.0
        c, the number of posterior standard deviations.
    noise : float or "auto", default "auto"
        sigma, the scale of the noise; `"auto"` estimates it from the residuals.
    ridge : float, optional
        `sigma^2 / lambda^2` for a prior N(0, lambda^2 I); 1 if not given.
    seed : int, SeedSequence or Generator, optional
        For ties.

    References
    ----------
    Wen et al. 2015, "Efficient Learning in Large-Scale Combinatorial Semi-Bandits", CombLinUCB.

    Examples
    --------
    >>> policy = CombLinUCB(n_features=4, noise=1.0, radius=2.0, seed=0)
    >>> policy.scores([[1.0, 0.0, 0.0, 0.0]], k=1)
    array([2.])
    """

    armwise = True
    randomised = False

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

    def score(self, arms: Arms, k: int) -> Scores:
        """Return the estimates plus c posterior standard deviations."""
        mean, width = arms.mean_and_width
        return Scores.uncapped(mean, self.radius * np.asarray(self._sigma(self.state))[..., None] * width)

    def lowest_score(self, low: Arms, high: Arms, k: int) -> FloatArray:
        """Return the scores at `low`: they grow with mean and width."""
        return self.score(low, k).value

    def highest_score(self, low: Arms, high: Arms, k: int) -> FloatArray:
        """Return the scores at `high`: they grow with mean and width."""
        return self.score(high, k).value
