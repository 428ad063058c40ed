"""What an environment is, and what it shows in a round."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal, Protocol

import numpy as np
from numpy.random import Generator

from armful import checks, objectives
from armful.checks import FloatArray, IntArray
from armful.constraints import Constraint
from armful.constraints.base import checked_best
from armful.objectives import Objective
from armful.randomness import Keys, arm_normals, arm_uniforms, draw_key

Noise = float | Literal["bernoulli"]

_TOLERANCE = 1e-9
"""How far beyond 0 and 1 a mean may be by rounding."""


@dataclass(frozen=True, eq=False)
class Round:
    """One round: what the policy sees, and the true mean rewards, which it does not see.

    Parameters
    ----------
    features : ndarray of shape (n_arms, n_features)
        The arms; the array is made read-only.
    constraint : Constraint
        Which sets are allowed.
    mean : ndarray of shape (n_arms,)
        The true mean rewards; the array is made read-only.
    noise : float or "bernoulli"
        The standard deviation of the Gaussian noise on a reward, or "bernoulli" for rewards 0 and 1.
    objective : Objective, optional
        The value of a set, if it is not the sum of its rewards.

    Examples
    --------
    >>> from armful import TopK
    >>> shown = Round(np.eye(3), TopK(2), np.array([0.1, 0.5, 0.3]))
    >>> round(shown.best_value() - shown.value(np.array([0, 1])), 3)
    0.2
    """

    features: FloatArray
    constraint: Constraint
    mean: FloatArray
    noise: Noise = 1.0
    objective: Objective | None = None

    def __post_init__(self) -> None:
        for name in ("features", "mean"):
            if not isinstance(getattr(self, name), np.ndarray):  # an array stays the very same
                object.__setattr__(self, name, checks.floats(name, getattr(self, name)))
        if self.features.ndim != 2 or self.mean.shape != self.features.shape[:1]:
            raise ValueError(
                "a round needs features (n_arms, n_features) and a mean reward for each arm, got shapes "
                f"{self.features.shape} and {self.mean.shape}"
            )
        if isinstance(self.noise, str):
            checks.one_of("noise", self.noise, ("bernoulli",), or_number=True)
            if not ((self.mean > -_TOLERANCE) & (self.mean < 1 + _TOLERANCE)).all():
                lowest, highest = self.mean.min(), self.mean.max()
                raise ValueError(f"with noise 'bernoulli' means must be from 0 to 1, got {lowest:g} to {highest:g}")
        else:
            checks.at_least_zero("noise", self.noise)
        self.features.flags.writeable = self.mean.flags.writeable = False  # the simulation may keep them

    def rewards(self, rng: Generator, indices: IntArray | None = None) -> FloatArray:
        """Draw the rewards of some arms.

        The noise of an arm depends on one draw from `rng` and on the arm's index alone, so that all policies see the
        same noise, whichever arms they choose.

        Parameters
        ----------
        rng : Generator
            Drawn from once.
        indices : ndarray of shape (k,), optional
            The arms; all, if it is not given.

        Returns
        -------
        ndarray of shape (k,)
        """
        chosen = np.arange(self.mean.size) if indices is None else indices
        return draw_rewards(self.mean[chosen], self.noise, draw_key(rng), chosen)

    def value(self, indices: IntArray) -> float:
        """Return the value of a set by the true mean rewards.

        Parameters
        ----------
        indices : ndarray of shape (k,)
            The arms of the set.
        """
        if self.objective is None:
            return float(self.mean[indices].sum())
        return self.objective.value(self.mean, self.features, indices)

    def best_value(self) -> float:
        """Return the value that regret is measured against: ratio times the value of the best set.

        The best set is found by the constraint, or by enumeration under an objective. The ratio is the one that is
        guaranteed for the answer; an unknown one counts as 1. Where the constraint is approximate, the value of its
        answer is used: it is at least ratio times the best.
        """
        if self.objective is None:
            return checked_best(self.constraint, self.mean, self.features).value
        problem = (self.objective, self.mean, self.features, self.constraint)
        ratio = objectives.best(*problem, np.random.default_rng(0)).ratio
        largest = objectives.best_by_enumeration(*problem).value
        return largest if math.isnan(ratio) else ratio * largest


def draw_rewards(mean: FloatArray, noise: Noise, key: Keys, arms: IntArray) -> FloatArray:
    """Return rewards of `arms` `(..., k)` with these means, for one key or a key for each repetition `(...)`."""
    if noise == "bernoulli":
        return (arm_uniforms(key, arms) < mean).astype(np.float64)
    return mean if noise == 0 else mean + noise * arm_normals(key, arms)


def checked_rounds(environment: "Environment", n_rounds: int, rng: Generator) -> Iterator[Round]:
    """Yield exactly `n_rounds` rounds of an environment, or raise if it has fewer."""
    count = 0
    for count, shown in enumerate(islice(environment.rounds(n_rounds, rng), n_rounds), start=1):  # noqa: B007
        yield shown if isinstance(shown, Round) else _round(shown)
    if count < n_rounds:
        raise ValueError(f"{type(environment).__name__} gave {count} rounds where {n_rounds} were asked for")


def _round(shown: object) -> Round:
    if isinstance(shown, tuple) and len(shown) in (3, 4, 5):
        return Round(*shown)
    raise ValueError(
        f"an environment must give rounds as Round(features, constraint, mean), got {type(shown).__name__}"
    )


class Environment(Protocol):
    """What a policy is simulated in: any class with `n_features` and `rounds`.

    Features and means that stay the same, from round to round or between repetitions, should be the same array object:
    the simulation then does its work once. Arrays must not change afterwards and are made read-only.

    Attributes
    ----------
    n_features : int
        The length of a feature vector.
    """

    @property
    def n_features(self) -> int:
        """The length of a feature vector."""

    def rounds(self, n_rounds: int, rng: Generator) -> Iterator[Round]:
        """Yield the rounds of one repetition.

        Parameters
        ----------
        n_rounds : int
            How many rounds to yield.
        rng : Generator
            Everything random is drawn from it, in particular what differs between repetitions.
        """
