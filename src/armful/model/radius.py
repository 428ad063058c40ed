"""Confidence radii: how many widths the truth may lie from the estimate.

`"logdet"` and `"theory"`: with probability at least `1 - delta`, `|theta* - theta|_V <= alpha` at all times, so that no
arm's true mean is above `mean + alpha * width`. `docs/theory.md` derives both. `"pointwise"` and `"noise"` are smaller
and without a guarantee; `docs/defaults.md` says when to use which.
"""

import math
from typing import Literal, Protocol

import numpy as np

from armful import checks
from armful.checks import FloatArray
from armful.model.base import Model

Noise = float | Literal["auto"]

GUESSED_NOISE, GUESSED_NORM = 0.5, 1.0
"""R and S if neither they nor a cap are given."""

GUESS_COUNTS_FOR = 20
"""`noise="auto"` starts from a guess, which counts as this many observations."""

STANDARD_ERRORS = 2.0
"""The radius `"noise"` in standard errors."""

SAMPLING_SHARE = 0.5
"""The fraction of R with which samplers draw by default. The best draws of many arms are two and more standard
deviations above their means, so that all of R is more exploration than pays off (docs/defaults.md)."""


class Radius(Protocol):
    """Returns `alpha` for a round of at most `k` arms: a number, or `(...)` for a batch."""

    def __call__(self, state: Model, k: int) -> FloatArray | float: ...


def estimated_noise(state: Model, guess: float = GUESSED_NOISE) -> FloatArray:
    """Return `R` from the residuals: `R^2 = (20 R0^2 + residual) / (20 + n)`, R0 the `guess`.

    A heuristic: it voids the guarantee.
    """
    variance = (GUESS_COUNTS_FOR * guess**2 + state.residual) / (GUESS_COUNTS_FOR + state.n)
    return np.sqrt(variance)


def pointwise_radius(*, noise: FloatArray | float, norm: float, ridge: float, delta: float) -> FloatArray | float:
    """Return `alpha` with `alpha^2 = 2 R^2 log(1 / delta) + lambda S^2`: the log-det radius without its log det.

    Right for one arm fixed in advance, not for all arms and rounds at once: a heuristic.

    >>> float(round(pointwise_radius(noise=1, norm=1, ridge=4, delta=0.1), 3))
    2.933
    """
    return np.sqrt(2 * math.log(1 / delta) * noise**2 + ridge * norm**2)


def noise_radius(*, noise: FloatArray | float, k: int, n_features: int) -> FloatArray | float:
    """Return `alpha = 2 R / sqrt(1 + k / d)`: two standard errors, fewer the more arms a round teaches. A heuristic.

    >>> float(round(noise_radius(noise=1, k=3, n_features=1), 3))
    1.0
    """
    return STANDARD_ERRORS * noise / math.sqrt(1 + k / n_features)


def theory_radius(
    *,
    noise: FloatArray | float,
    norm: float,
    ridge: float,
    n_features: int,
    log_growth: FloatArray | float,
    delta: float,
) -> FloatArray | float:
    """Return the paper's `beta_t(delta) = R sqrt(d log((1 + L^2 k t / lambda) / delta)) + S sqrt(lambda)`.

    `log_growth` is `log(1 + L^2 k t / lambda)`, a logarithm because L^2 may overflow; any other upper bound on the sum
    of `|x|^2` over the learned arms may replace `L^2 k t`.
    For d = 1 it covers less often than 1 - delta (docs/theory.md); `log_det_radius` does not have this flaw.

    >>> float(round(theory_radius(noise=1, norm=1, ridge=4, n_features=4, log_growth=math.log(101), delta=0.1), 3))
    7.26
    """
    spread: FloatArray = np.sqrt(n_features * (log_growth - math.log(delta)))
    return noise * spread + norm * math.sqrt(ridge)


def log_det_radius(
    *, noise: FloatArray | float, norm: float, ridge: float, log_det_gain: FloatArray | float, delta: float
) -> FloatArray | float:
    """Return `alpha` with `alpha^2 = R^2 [log det(V / lambda) + 2 log(1 / delta)] + lambda S^2`: method of mixtures.

    >>> float(round(log_det_radius(noise=1, norm=1, ridge=4, log_det_gain=10, delta=0.1), 3))
    4.313
    """
    return np.sqrt(noise**2 * (log_det_gain + 2 * math.log(1 / delta)) + ridge * norm**2)


class ConstantRadius:
    """The same number in every round, as in the paper's experiments."""

    def __init__(self, value: float) -> None:
        self.value = checks.at_least_zero("radius", value)

    def __call__(self, state: Model, k: int) -> float:
        """Return the number."""
        return self.value


class NoiseScale:
    """R: the given number, or an estimate from the residuals that starts from a `guess`."""

    def __init__(self, noise: Noise, guess: float = GUESSED_NOISE) -> None:
        self.given = None if isinstance(noise, str) else noise
        self.guess = guess

    def __call__(self, state: Model) -> FloatArray | float:
        """Return R: a number, or `(...)` for a batched state."""
        return estimated_noise(state, self.guess) if self.given is None else self.given


class TheoryRadius:
    """`theory_radius` for what the state has learned.

    `length` is L, an upper bound on the length of feature vectors; without it the sum of the squared lengths that were
    learned replaces `L^2 k t`.
    """

    def __init__(self, *, noise: NoiseScale, norm: float, delta: float, length: float | None) -> None:
        self.noise, self.norm, self.delta, self.length = noise, norm, delta, length

    def __call__(self, state: Model, k: int) -> FloatArray | float:
        """Return `beta_t`: after t - 1 rounds of k arms, `state.n + k` is `k t`."""
        if self.length is None:
            log_growth = np.log1p(state.squared_norms / state.ridge)
        else:
            log_growth = np.logaddexp(0, 2 * math.log(self.length) + np.log((state.n + k) / state.ridge))
        return theory_radius(
            noise=self.noise(state),
            norm=self.norm,
            ridge=state.ridge,
            n_features=state.n_features,
            log_growth=log_growth,
            delta=self.delta,
        )


class LogDetRadius:
    """`log_det_radius` for what the state has learned."""

    def __init__(self, *, noise: NoiseScale, norm: float, delta: float) -> None:
        self.noise, self.norm, self.delta = noise, norm, delta

    def __call__(self, state: Model, k: int) -> FloatArray | float:
        """Return the radius; it does not depend on `k`."""
        return log_det_radius(
            noise=self.noise(state),
            norm=self.norm,
            ridge=state.ridge,
            log_det_gain=state.log_det_gain,
            delta=self.delta,
        )


class PointwiseRadius:
    """`pointwise_radius` for what the state has learned."""

    def __init__(self, *, noise: NoiseScale, norm: float, delta: float) -> None:
        self.noise, self.norm, self.delta = noise, norm, delta

    def __call__(self, state: Model, k: int) -> FloatArray | float:
        """Return the radius; it does not depend on `k`."""
        return pointwise_radius(noise=self.noise(state), norm=self.norm, ridge=state.ridge, delta=self.delta)


class NoiseRadius:
    """`noise_radius` for what the state has learned."""

    def __init__(self, *, noise: NoiseScale) -> None:
        self.noise = noise

    def __call__(self, state: Model, k: int) -> FloatArray | float:
        """Return the radius for a round of at most `k` arms."""
        return noise_radius(noise=self.noise(state), k=k, n_features=state.n_features)


class SamplingRadius:
    """Half of R: the spread with which samplers draw by default."""

    def __init__(self, *, noise: NoiseScale) -> None:
        self.noise = noise

    def __call__(self, state: Model, k: int) -> FloatArray | float:
        """Return the spread; it does not depend on `k`."""
        return SAMPLING_SHARE * self.noise(state)


def make_radius(
    radius: float | str, *, noise: Noise, norm: float, delta: float, length: float | None, guess: float = GUESSED_NOISE
) -> Radius:
    """Return the radius that a policy's options name.

    `radius` is a number or one of the words below, `guess` the value at which an estimate of the noise starts.
    """
    if not isinstance(radius, str):
        return ConstantRadius(radius)
    checks.one_of("radius", radius, ("pointwise", "noise", "sampling", "logdet", "theory"), or_number=True)
    scale = NoiseScale(noise, guess)
    if radius == "pointwise":
        return PointwiseRadius(noise=scale, norm=norm, delta=delta)
    if radius == "noise":
        return NoiseRadius(noise=scale)
    if radius == "sampling":
        return SamplingRadius(noise=scale)
    if radius == "logdet":
        return LogDetRadius(noise=scale, norm=norm, delta=delta)
    return TheoryRadius(noise=scale, norm=norm, delta=delta, length=length)
