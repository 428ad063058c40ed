"""How well a holdout of a given size can show a lift."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

LEVEL, POWER = 0.95, 0.8
"""A lift is seen if the 95 % interval excludes 0, which should happen in 80 of 100 campaigns."""

LARGEST_SHARE = 0.5


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A campaign as far as it decides how exactly the lift can be measured.

    `noise` is the standard deviation of a reward around a person's mean; `variance0` and `variance1` are the variances
    of the means among all people and among those whom the policy chooses.
    """

    k: int
    rounds: int
    n_customers: int
    noise: float
    variance0: float
    variance1: float

    def standard_error(self, share: float) -> float:
        """Return the standard error of the lift per contact with this share of people in the holdout.

        Held-out people are drawn at random in each round, and some come back. In the chosen share the same people may
        come back in every round, which is the worst case.
        """
        T, held, chosen = self.rounds, share * self.k, (1 - share) * self.k
        others = self.noise**2 / (held * T) + self.variance0 * (
            1 / (held * T) + (1 - 1 / T) / (share * self.n_customers)
        )
        return math.sqrt(others + self.noise**2 / (chosen * T) + self.variance1 / chosen)

    def power(self, share: float, lift: float) -> float:
        """Return the probability that a lift per contact is seen."""
        if share * self.k < 2:
            return 0.0
        return float(ndtr(lift / self.standard_error(share) - self._quantile(share)))

    def smallest_lift(self, share: float) -> float:
        """Return the smallest lift per contact that is seen in 80 of 100 campaigns; infinite for too small a share."""
        if share * self.k < 2:
            return math.inf
        return (self._quantile(share) + float(ndtri(POWER))) * self.standard_error(share)

    def smallest_share(self, lift: float) -> float | None:
        """Return the smallest share of people with which a lift per contact is seen; None if half is not enough."""
        for share in np.geomspace(0.001, LARGEST_SHARE, 300).tolist():
            if self.power(share, lift) >= POWER:
                return float(share)
        return None

    def _quantile(self, share: float) -> float:
        people = share * self.n_customers
        seen = people * -math.expm1(self.rounds * math.log1p(-min(self.k / self.n_customers, 1 - 1e-12)))
        return float(stdtrit(max(seen - 1, 1), (1 + LEVEL) / 2))
