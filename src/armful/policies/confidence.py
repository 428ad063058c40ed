"""What the policies with a confidence radius share."""

from armful import checks
from armful.policies.policy import Policy
from armful.radius import Noise, make_radius
from armful.randomness import Seed


class ConfidencePolicy(Policy):
    """A policy whose bonus is `alpha_t` widths.

    radius: `alpha_t`: a number, `"theory"` (the paper's beta_t) or `"logdet"` (smaller, and needs no `length`).
    noise: R, the sub-Gaussian scale of the noise, or `"auto"` to estimate it from the residuals, a heuristic.
    norm: S, which |theta*| does not exceed; 1 if not given.
    delta: how often the radius may fail. length: L, which no feature vector exceeds; only `"theory"` uses it.
    ridge: lambda, or `"theory"` for the paper's `R^2 S^-2 d`.
    """

    def __init__(
        self,
        *,
        n_features: int,
        ridge: float | str = 1.0,
        radius: float | str = "logdet",
        noise: Noise = "auto",
        norm: float | None = None,
        delta: float = 0.1,
        length: float | None = None,
        seed: Seed = None,
    ) -> None:
        if isinstance(noise, str):
            checks.one_of("noise", noise, ("auto",))
        else:
            checks.moderate("noise", checks.at_least_zero("noise", noise))
        if norm is not None:
            checks.moderate("norm", checks.positive("norm", norm))
        if length is not None:
            checks.positive("length", length)
        checks.probability("delta", delta)
        self.radius, self.noise, self.norm, self.delta, self.length = radius, noise, norm, delta, length
        bound = 1.0 if norm is None else norm
        self._alpha = make_radius(radius, noise=noise, norm=bound, delta=delta, length=length)
        super().__init__(n_features=n_features, ridge=_ridge(ridge, noise, bound, n_features), seed=seed)


def _ridge(ridge: float | str, noise: Noise, norm: float, n_features: int) -> float:
    if not isinstance(ridge, str):
        return ridge
    checks.one_of("ridge", ridge, ("theory",))
    if isinstance(noise, str):
        raise ValueError("ridge='theory' is R^2 S^-2 d and needs noise (R) as a number, got noise='auto'")
    return checks.positive("noise", noise) ** 2 / norm**2 * checks.count("n_features", n_features)
