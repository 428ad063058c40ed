"""Everything that a report shows, as plain records."""

from dataclasses import dataclass
from datetime import datetime

from armful.campaigns._results import Coefficient
from armful.campaigns.audit._finding import Finding
from armful.campaigns.lift import Lift


@dataclass(frozen=True, kw_only=True)
class Mean:
    """A mean of n rewards with its interval of 95 %; NaN where there are too few."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, kw_only=True)
class RoundLine:
    """One round: its shares, and what has come of it.

    Attributes
    ----------
    number : int
    chosen_at, closes_at : datetime
    closed : bool
        Whether the window of its outcomes has closed.
    chosen, holdout : Mean
        The mean rewards of those shares, as far as they are known.
    n_chosen, n_holdout, n_no_contact : int
        The people in each share.
    predicted : float
        The mean reward that was predicted for the chosen.
    exploring : float
        The fraction of the chosen that the estimate alone would not have chosen; NaN if it was not recorded.
    came, assumed, outstanding, unknown : int
        Of those contacted: whose outcome came; who count as `missing` says; whose outcome may still come; and whose
        outcome will never be known.
    """

    number: int
    chosen_at: datetime
    closes_at: datetime
    closed: bool
    chosen: Mean
    holdout: Mean
    n_chosen: int
    n_holdout: int
    n_no_contact: int
    predicted: float
    exploring: float
    came: int
    assumed: int
    outstanding: int
    unknown: int


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """An upper bound on what was lost against the best allowed lists, after each round.

    Attributes
    ----------
    lost : tuple of float
        The bound after each round, in rewards.
    contacts : tuple of int
        The contacts that the policy chose up to then.
    holds : bool
        Whether it is a proof, and not only an indication.
    reasons : tuple of str
        Why it is none: what would have to be different.
    """

    lost: tuple[float, ...]
    contacts: tuple[int, ...]
    holds: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Bin:
    """People with similar predictions: the mean of these, and of what came."""

    predicted: float
    observed: Mean


@dataclass(frozen=True, kw_only=True)
class QuotaGroup:
    """A group of a quota: contacts in each round, and its bounds in a round, None where there is none."""

    name: str
    counts: tuple[int, ...]
    at_least: int | None
    at_most: int | None


@dataclass(frozen=True, kw_only=True)
class Quota:
    """The groups of a quota."""

    column: str
    groups: tuple[QuotaGroup, ...]


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a limit of a round costs: how much more the list would be worth if it were looser by one."""

    round: int
    limit: str
    price: float


@dataclass(frozen=True, kw_only=True)
class Surprise:
    """Somebody, or a group, whose outcomes are far from the predictions.

    Attributes
    ----------
    name : str
    n : int
        Known outcomes.
    predicted, observed : float
        Mean rewards.
    distance : float
        How far apart they are, in standard errors, compared with the rest of the round.
    chance : float
        The probability that chance alone puts one of all that were looked at as far off; NaN if it is not known.
    """

    name: str
    n: int
    predicted: float
    observed: float
    distance: float
    chance: float


@dataclass(frozen=True, kw_only=True)
class ReportData:
    """Everything that a report shows.

    Attributes
    ----------
    name : str
        The campaign.
    made_at : datetime
    version : str
        Of armful.
    reward : str
        The column of the reward.
    policy : str
        The policy with its options.
    rounds : tuple of RoundLine
    lift : Lift
    lifts : tuple of Lift
        The lift after each closed round from which on it can be estimated.
    lift_rounds : tuple of int
        The numbers of these rounds.
    certificate : Certificate or None
        None if the policy has no certificate.
    coefficients : tuple of Coefficient
        The largest first.
    calibration : tuple of Bin
    quotas : tuple of Quota
    prices : tuple of Price
    groups, people : tuple of Surprise
        The furthest from the predictions.
    n_groups, n_people : int
        How many were looked at.
    findings : tuple of Finding
        The audit.
    """

    name: str
    made_at: datetime
    version: str
    reward: str
    policy: str
    rounds: tuple[RoundLine, ...]
    lift: Lift
    lifts: tuple[Lift, ...]
    lift_rounds: tuple[int, ...]
    certificate: Certificate | None
    coefficients: tuple[Coefficient, ...]
    calibration: tuple[Bin, ...]
    quotas: tuple[Quota, ...]
    prices: tuple[Price, ...]
    groups: tuple[Surprise, ...]
    people: tuple[Surprise, ...]
    n_groups: int
    n_people: int
    findings: tuple[Finding, ...]
