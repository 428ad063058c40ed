"""Warnings about input that is allowed and probably not meant, each given once for a policy and its copies."""

import math
import warnings
from collections.abc import Callable
from typing import Self

import numpy as np

from armful.checks import FloatArray, IntArray
from armful.model.base import Model
from armful.model.radius import NoiseScale

SHORTEST, LONGEST = 0.05, 20.0
"""The mean squared length of arms for which a ridge of 1 is meant."""

SAMPLE = 256
"""Arms whose length is measured."""

FIRST_REWARDS = 1000
"""Rewards whose mean is compared with the cap: a wrong unit shows in the first. Each is also compared by itself."""

FAR_FOR_ONE, FAR_FOR_ALL = 20.0, 10.0
"""How many scales of the noise one reward, and how many standard errors the mean of all rewards, may exceed the cap.
Generous, since noise="auto" knows the scale only after some rounds, and may begin at a quarter of it."""


class WarningsOnce:
    """Warn of arms or rewards in a unit that was probably not meant, each once.

    Parameters
    ----------
    ridge_is_default : bool
        Whether no ridge was given, so that the length of the arms matters.

    Attributes
    ----------
    cap : float or None
        A number that no mean reward exceeds, if the policy knows one.
    noise : NoiseScale
        The scale of the noise, as far as a state knows it.
    """

    def __init__(self, *, ridge_is_default: bool) -> None:
        self.cap: float | None = None
        self.noise = NoiseScale("auto")
        self._check_arms = ridge_is_default
        self._check_rewards = True
        self._under_costs = False
        self._only_gains = True
        self._n, self._total, self._squares = 0, 0.0, 0.0  # of rewards: how many, their sum, the sum of their squares

    def __deepcopy__(self, memo: object) -> Self:
        """Return the same object: what was warned of once is not repeated by every copy."""
        return self

    def chosen_from(
        self, n_arms: int, rows: Callable[[IntArray], FloatArray], *, under_costs: bool = False, stacklevel: int = 3
    ) -> None:
        """Warn if the first arms are so short or so long that a ridge of 1 does not suit them.

        rows: returns the features of arms by index. under_costs: whether their rewards will be minus a cost.
        """
        self._under_costs = under_costs
        if not self._check_arms:
            return
        self._check_arms = False
        sample = (np.arange(min(SAMPLE, n_arms)) + 0.5) * n_arms / min(SAMPLE, n_arms)
        with np.errstate(over="ignore", invalid="ignore"):
            squared = float(np.mean(np.sum(np.asarray(rows(sample.astype(np.int64)), dtype=np.float64) ** 2, axis=-1)))
        if math.isfinite(squared) and not SHORTEST <= squared <= LONGEST:
            same_pull = f" ({squared:.3g} would be the same pull)" if squared > 0 else ""
            warnings.warn(
                f"the arms have a mean squared length of {squared:.3g}, and ridge, 1.0 if not given, is meant for "
                f"about 1: scale the features, or give ridge= in their units{same_pull}",
                stacklevel=stacklevel,
            )

    def learned(self, rewards: FloatArray, before: Model, *, of_costs: bool | None = None) -> None:
        """Warn of rewards `(k,)` far above the cap.

        before: the state before they were learned. of_costs: whether they are minus a cost; None if it is not known,
        and then it is as in the last choice.
        """
        under_costs = self._under_costs if of_costs is None else of_costs
        cap = 0.0 if under_costs else self.cap
        if cap is None or not self._check_rewards or not rewards.size or before.batch:
            return
        if self._n < FIRST_REWARDS:
            self._n += rewards.size
            self._total += float(np.add.reduce(rewards))
            self._squares += float(np.vdot(rewards, rewards))
        largest = float(np.maximum.reduce(rewards))
        if under_costs:
            self._only_gains = self._only_gains and bool(np.minimum.reduce(rewards) > 0)
            if self._only_gains or self._far_above(largest, cap, before):
                self._warn_once(
                    f"a reward of {largest:.3g} was learned after a choice under costs=True, where rewards are minus "
                    "a cost: give costs as negative rewards"
                )
        elif self._far_above(largest, cap, before):
            self._warn_once(
                f"rewards up to {largest:.3g} are far above the cap of {cap:.3g}, which no mean reward should "
                "exceed: give a larger cap=, or rewards in its units"
            )

    def _far_above(self, largest: float, cap: float, before: Model) -> bool:
        """Return whether noise cannot explain the largest reward, or the mean of the first ones."""
        if largest <= cap:
            return False
        scale = float(self.noise(before))
        n, total, squares = self._n, self._total, self._squares
        error = math.sqrt(max(scale**2, squares / n - (total / n) ** 2) / n)
        return largest - cap > FAR_FOR_ONE * scale or total / n - cap > FAR_FOR_ALL * error

    def _warn_once(self, message: str) -> None:
        self._check_rewards = False
        warnings.warn(message, stacklevel=4)
