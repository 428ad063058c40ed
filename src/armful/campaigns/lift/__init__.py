"""Did it work? The lift per contact against the holdout, with intervals, and a sentence that says it.

See docs/lift.md for what is estimated, how, and under which assumptions.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from scipy.special import ndtri, stdtrit

from armful import checks
from armful.campaigns.lift._anytime import anytime_multiplier
from armful.campaigns.lift._clustered import Means, Moments, means, moments_by_round
from armful.campaigns.lift._data import LiftData, describe_pool, lift_data
from armful.campaigns.lift._words import impossible, in_percent, in_words, notes

__all__ = ["Lift", "LiftData", "describe_pool", "estimate_lift", "lift_data", "lift_path"]


@dataclass(frozen=True, kw_only=True)
class Lift:
    """How much more a contact brings in the chosen share than in the one it is compared with.

    What cannot be estimated is None, and the sentence says why.

    Attributes
    ----------
    sentence : str
        The result in plain words: "+12 % (95 % CI 4 .. 21); the holdout cost about 310 visits".
    level : float
        The level of the intervals.
    per_contact : float or None
        The mean over rounds of the difference between the two shares' mean rewards.
    low, high : float or None
        The interval of `per_contact`, if looked at once.
    anytime_low, anytime_high : float or None
        An interval that is valid however often one looks, after every round.
    treated_mean, baseline : float or None
        The mean rewards of the chosen share and of the other, over the same rounds.
    relative : float or None
        `per_contact / baseline`; None if the baseline is not above 0.
    relative_low, relative_high : float or None
        Its interval, if looked at once (Fieller); None if the baseline cannot be told from 0.
    cost_of_holdout : float or None
        `per_contact` times the contacts of the other share.
    last_round : int or None
        The last round that is compared.
    n_rounds, n_contacts, n_holdout, n_holdout_people : int
        How many rounds are compared, how many known rewards they have in the chosen share and in the other, and of how
        many people the other share's are.
    adjusted : bool
        Whether the estimate is adjusted for who happened to be drawn into the holdout's contacts.
    notes : tuple of str
        What to keep in mind.
    """

    sentence: str
    level: float
    per_contact: float | None = None
    low: float | None = None
    high: float | None = None
    anytime_low: float | None = None
    anytime_high: float | None = None
    treated_mean: float | None = None
    baseline: float | None = None
    relative: float | None = None
    relative_low: float | None = None
    relative_high: float | None = None
    cost_of_holdout: float | None = None
    last_round: int | None = None
    n_rounds: int = 0
    n_contacts: int = 0
    n_holdout: int = 0
    n_holdout_people: int = 0
    adjusted: bool = False
    notes: tuple[str, ...] = ()

    @property
    def certainty(self) -> Literal["sure", "likely", "open"]:
        """How sure the sign of the lift is: sure however often one looks, likely if looked at once, or open."""
        if self.anytime_low is not None and self.anytime_high is not None and self.anytime_low * self.anytime_high > 0:
            return "sure"
        return "likely" if self.low is not None and self.high is not None and self.low * self.high > 0 else "open"

    @property
    def known(self) -> bool:
        """Whether a lift could be estimated."""
        return self.per_contact is not None

    def headline(self, chosen: str, others: str) -> str:
        """Return what the lift means in one sentence, for people who look often; the numbers belong beside it.

        Parameters
        ----------
        chosen, others : str
            What the two shares are called, in the plural.
        """
        if self.per_contact is None:
            return self.sentence
        if self.certainty == "open":
            return f"Too early to say whether {chosen[:1].lower()}{chosen[1:]} do better than {others}."
        probably = "" if self.certainty == "sure" else "probably "
        if self.per_contact < 0:
            return f"{chosen} {probably}earn less than {others}."
        percent = "" if probably or self.relative is None else f"{in_percent(self.relative)} "
        return f"{chosen} {probably}earn {percent}more than {others}."

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes by name, for JSON."""
        return asdict(self)


def estimate_lift(
    data: LiftData, *, level: float = 0.95, adjust: bool = True, unit: str = "rewards", against: str = "holdout"
) -> Lift:
    """Return the lift per contact over all rounds, with its intervals.

    Parameters
    ----------
    data : LiftData
        From `lift_data`, or arrays of one's own.
    level : float, default 0.95
        The level of the intervals.
    adjust : bool, default True
        Whether to adjust for who happened to be drawn, where `data` has controls.
    unit : str, default "rewards"
        What stands after a number of rewards in the sentence, such as "visits" or "in revenue".
    against : {"holdout", "no-contact"}, default "holdout"
        What the sentence is about: the lift over the holdout, or the effect of being contacted.

    Returns
    -------
    Lift

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> rounds, people = np.repeat([1, 2, 3], 1000), np.tile(np.arange(1000), 3)
    >>> treated = people % 5 != 0
    >>> rewards = (rng.random(3000) < np.where(treated, 0.5, 0.4)).astype(float)
    >>> lift = estimate_lift(LiftData(rounds=rounds, people=people, treated=treated, rewards=rewards), unit="visits")
    >>> lift.sentence
    '+22 % (95 % CI 11 .. 35); the holdout cost about 55 visits'
    """
    path = list(_path(data, level, adjust, unit, against))
    if not path:
        return Lift(sentence=impossible(data, against), level=level)
    return replace(path[-1], notes=notes(data, against))


def lift_path(data: LiftData, *, level: float = 0.95, adjust: bool = True, unit: str = "rewards") -> list[Lift]:
    """Return the lift after each round from which on it can be estimated, each over all rounds so far.

    Parameters
    ----------
    data : LiftData
        From `lift_data`, or arrays of one's own.
    level : float, default 0.95
        The level of the intervals.
    adjust : bool, default True
        Whether to adjust for who happened to be drawn, where `data` has controls.
    unit : str, default "rewards"
        What stands after a number of rewards in the sentences.

    Returns
    -------
    list of Lift
        `n_rounds` of each says how many rounds it is over; rounds without known rewards in both shares do not count.
    """
    return list(_path(data, level, adjust, unit, "holdout"))


def _path(data: LiftData, level: float, adjust: bool, unit: str, against: str) -> Iterator[Lift]:
    checks.probability("level", level)
    checks.one_of("against", against, ("holdout", "no-contact"))
    yield from lifts_of_moments(moments_by_round(data), level=level, adjust=adjust, unit=unit, against=against)


def lifts_of_moments(
    path: Iterable[Moments], *, level: float, adjust: bool, unit: str, against: str = "holdout", per: str = "contact"
) -> Iterator[Lift]:
    """Yield the lift at each of some looks at growing sums, from the first on at which it can be estimated."""
    first_variance = None
    for moments in path:
        found = means(moments, adjust=adjust)
        if found is None:
            continue
        variance_of_sum = found.variance * moments.n_rounds**2
        first_variance = first_variance or variance_of_sum
        multiplier = anytime_multiplier(variance_of_sum, first_variance, level=level)
        yield _lift(moments, found, level=level, anytime=multiplier, unit=unit, against=against, per=per)


def _lift(moments: Moments, found: Means, *, level: float, anytime: float, unit: str, against: str, per: str) -> Lift:
    lift, error = found.treated - found.others, math.sqrt(found.variance)
    quantile = float(stdtrit(found.degrees, (1 + level) / 2))
    # The mixture is of normals: with few people it is widened as the t quantile widens the other interval.
    wide = anytime * quantile / float(ndtri((1 + level) / 2))
    relative = lift / found.others if found.others > 0 else None
    relative_low, relative_high = _fieller(found, quantile) or (None, None)
    cost = lift * moments.n_others
    return Lift(
        sentence=in_words(
            lift=lift,
            low=lift - quantile * error,
            high=lift + quantile * error,
            relative=(relative, relative_low, relative_high),
            cost=cost,
            level=level,
            unit=unit,
            against=against,
            per=per,
        ),
        level=level,
        per_contact=lift,
        low=lift - quantile * error,
        high=lift + quantile * error,
        anytime_low=lift - wide * error,
        anytime_high=lift + wide * error,
        treated_mean=found.treated,
        baseline=found.others,
        relative=relative,
        relative_low=relative_low,
        relative_high=relative_high,
        cost_of_holdout=cost,
        last_round=moments.last_round,
        n_rounds=moments.n_rounds,
        n_contacts=moments.n_treated,
        n_holdout=moments.n_others,
        n_holdout_people=moments.other_people,
        adjusted=found.adjusted,
    )


def _fieller(found: Means, quantile: float) -> tuple[float, float] | None:
    """Return the interval of `treated / others - 1`: all ratios r for which `treated - r others` may be 0.

    It excludes 0 exactly when the interval of the difference does.
    """
    a = found.others**2 - quantile**2 * found.variance0
    if found.others <= 0 or a <= 0:
        return None
    b = found.others * found.treated - quantile**2 * found.covariance
    c = found.treated**2 - quantile**2 * found.variance1
    root = math.sqrt(max(b**2 - a * c, 0.0))
    return (b - root) / a - 1, (b + root) / a - 1
