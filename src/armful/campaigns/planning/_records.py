"""What a plan says of a campaign."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class PlannedRound:
    """What to expect of one round.

    Attributes
    ----------
    number : int
        1 for the first.
    at_cap : int
        Customers whose score is the cap, since too little is known of them.
    exploring : float
        The fraction of the chosen whom the estimate alone would not choose.
    lift : float
        The relative lift over customers drawn at random.
    """

    number: int
    at_cap: int
    exploring: float
    lift: float


@dataclass(frozen=True, kw_only=True)
class HoldoutPower:
    """What a holdout of one size shows.

    Attributes
    ----------
    share : float
        Of people.
    contacts : int
        Of a round.
    smallest_lift : float or None
        The smallest relative lift that is seen in 80 of 100 campaigns; None if the share is too small for any.
    power : dict of str to float
        The probability of seeing a lift, by lift in percent.
    """

    share: float
    contacts: int
    smallest_lift: float | None
    power: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class PlanResult:
    """What a campaign can learn and show, with the assumptions it was computed under.

    Attributes
    ----------
    sentences : tuple of str
        All of it in plain words.
    k, rounds, n_customers, n_sampled : int
        Contacts of a round, rounds, customers in all, and how many of them were simulated.
    window_rounds : int
        How many rounds pass before the outcomes of one are known.
    holdout, base_rate, noise, spread : float
        The share of people held out; the assumed mean reward, its standard deviation around a person's mean, and by
        which fraction the means of people differ (standard deviation).
    cap : float or None
        What no mean reward exceeds.
    cadence : float
        The contacts between two updates up to which the regret does not suffer (`armful.theory.cadence`).
    per_round : tuple of PlannedRound
    rounds_to_learn : int or None
        The first round that knows outcomes and has fewer than k customers at the cap; None if there is none.
    lift, best_lift : float
        The relative lift over random choice in all rounds, expected and best possible.
    smallest_lift : float or None
        The smallest relative lift that the planned holdout shows in 80 of 100 campaigns.
    holdouts : tuple of HoldoutPower
        What holdouts of other sizes show.
    needed : dict of str to float or None
        The share of people to hold out to see a lift, by lift in percent; None if no share is enough.
    """

    sentences: tuple[str, ...] = ()
    k: int
    rounds: int
    n_customers: int
    n_sampled: int
    window_rounds: int
    holdout: float
    base_rate: float
    noise: float
    spread: float
    cap: float | None
    cadence: float
    per_round: tuple[PlannedRound, ...]
    rounds_to_learn: int | None
    lift: float
    best_lift: float
    smallest_lift: float | None
    holdouts: tuple[HoldoutPower, ...]
    needed: dict[str, float | None]

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes by name, for JSON."""
        return asdict(self)
