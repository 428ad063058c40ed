"""Paired comparison of policies: in one run all of them meet the same arms and the same noise."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from armful.experiments.results import Result

CONFIDENCE = 0.95
"""Of all intervals of one table column together."""

FEWEST = 5
"""Fewer runs have no interval: regret takes few values in a short run, so two or three may agree by chance."""


@dataclass(frozen=True)
class Difference:
    """How much more regret one policy had than another in the same runs.

    mean: of the differences. spread: their standard deviation from run to run. runs: how many there are.
    n_pairs: with how many differences the chance of a wrong interval is shared (Bonferroni).
    """

    mean: float
    spread: float
    runs: int
    n_pairs: int = 1

    @property
    def half_width(self) -> float:
        """Half the width of the interval around the mean, by Student's t; infinite for fewer than `FEWEST` runs."""
        return math.inf if self.runs < FEWEST else self._half_width(self.runs)

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.mean + self.half_width

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out 0, so that the runs tell the two policies apart."""
        return abs(self.mean) > self.half_width

    @property
    def runs_needed(self) -> float:
        """About how many runs would tell them apart if mean and spread stayed: infinite where the mean is 0."""
        if self.mean == 0 or self.runs < 2:
            return math.inf
        enough = FEWEST
        while enough < 1e6 and self._half_width(enough) >= abs(self.mean):
            enough = math.ceil(enough * 1.05)
        return enough

    def _half_width(self, runs: int) -> float:
        quantile = float(stdtrit(runs - 1, 1 - (1 - CONFIDENCE) / 2 / self.n_pairs))
        return quantile * self.spread / math.sqrt(runs)


def difference(policy: Result, reference: Result, n_pairs: int = 1) -> Difference:
    """Return how much more `policy` lost than `reference`, run by run.

    Parameters
    ----------
    policy, reference : Result
        Of the same runs under the same seed.
    n_pairs : int
        How many differences are shown together, so that all their intervals hold at once.

    Examples
    --------
    >>> def lost(regret):
    ...     return Result("e", "p", 1, 1, len(regret), 0, 1.0, regret, [0.0], [0.0], 1.0)
    >>> found = difference(lost([3.0, 9.0, 5.0, 7.0, 6.0]), lost([1.0, 6.0, 3.0, 4.0, 3.5]))
    >>> found.mean, round(found.low, 2), round(found.high, 2), found.is_clear
    (2.5, 1.88, 3.12, True)
    """
    each = np.subtract(policy.regret, reference.regret)
    spread = float(each.std(ddof=1)) if each.size > 1 else math.nan
    return Difference(float(each.mean()), spread, each.size, n_pairs)


def behind_the_lowest(results: Sequence[Result]) -> list[Difference | None]:
    """Return how far each result is behind the lowest of them; None for that one itself.

    The intervals hold at once for every pair of the results, so it does not matter that the lowest is found from
    the same runs.
    """
    lowest = min(results, key=lambda result: result.mean)
    n_pairs = max(1, len(results) * (len(results) - 1) // 2)
    return [None if result is lowest else difference(result, lowest, n_pairs) for result in results]


def rough(runs: float) -> str:
    """Return a number of runs to two digits, in words for a sentence.

    Examples
    --------
    >>> rough(1234), rough(86), rough(math.inf)
    ('about 1,200', 'about 86', 'more than a million')
    """
    if runs >= 1e6:
        return "more than a million"
    return f"about {float(f'{runs:.2g}'):,.0f}"
