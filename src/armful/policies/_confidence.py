"""The options that policies with a confidence radius share."""

from armful import checks
from armful.model.radius import GUESSED_NOISE, GUESSED_NORM, Noise, NoiseScale, make_radius
from armful.policies.policy import Policy
from armful.randomness import Seed


class ConfidencePolicy(Policy):
    """A policy whose bonus is a number of widths, `alpha_t`; the options are those of `C2UCB`."""

    def __init__(
        self,
        *,
        n_features: int,
        ridge: float | str | None = None,
        radius: float | str = "pointwise",
        noise: Noise = "auto",
        norm: float | None = None,
        delta: float = 0.1,
        length: float | None = None,
        seed: Seed = None,
    ) -> None:
        check_noise(noise)
        if norm is not None:
            checks.moderate("norm", checks.positive("norm", norm))
        if length is not None:
            checks.positive("length", length)
        checks.probability("delta", delta)
        self.radius, self.noise, self.norm, self.delta, self.length = radius, noise, norm, delta, length
        guess, bound = self._guessed_noise_and_norm()
        bound = bound if norm is None else norm
        self._alpha = make_radius(radius, noise=noise, norm=bound, delta=delta, length=length, guess=guess)
        super().__init__(n_features=n_features, ridge=_ridge(ridge, noise, bound, n_features), seed=seed)
        self._warnings_once.noise = NoiseScale(noise, guess)

    def _guessed_noise_and_norm(self) -> tuple[float, float]:
        """Return the first guess of R for `noise="auto"`, and S if it is not given."""
        return GUESSED_NOISE, GUESSED_NORM


def check_noise(noise: Noise, *, positive: bool = False) -> Noise:
    """Return the scale of the noise: `"auto"`, or a number."""
    if isinstance(noise, str):
        checks.one_of("noise", noise, ("auto",), or_number=True)
        return "auto"
    check = checks.positive if positive else checks.at_least_zero
    return checks.moderate("noise", check("noise", noise))


def _ridge(ridge: float | str | None, noise: Noise, norm: float, n_features: int) -> float | None:
    if not isinstance(ridge, str):
        return ridge
    checks.one_of("ridge", ridge, ("theory",), or_number=True)
    if isinstance(noise, str):
        raise ValueError("ridge='theory' is R^2 S^-2 d and needs noise (R) as a number, got noise='auto'")
    return checks.positive("noise", noise) ** 2 / norm**2 * checks.count("n_features", n_features)
