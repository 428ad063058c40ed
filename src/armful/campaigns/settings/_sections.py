"""`Settings` and the records of its parts, one for each table of `campaign.toml`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, timedelta, tzinfo
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo

from armful import policies
from armful.campaigns.settings._quotas import QuotaSettings
from armful.policies import Policy
from armful.randomness import Seed

Kind = Literal["number", "category", "ordered", "date", "text"]


@dataclass(frozen=True, kw_only=True)
class ColumnSettings:
    """How one column becomes features.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "ordered", "date", "text"}
    log : bool
        Whether a number's logarithm is used.
    spline : int
        The number of knots of a number's spline; 0 for none.
    at_most : int
        The number of categories that have a feature of their own; the rest is "other".
    order : tuple of str
        The values of an ordered column, from the lowest to the highest.
    buckets : int
        The number of features that the words of a text are hashed to.
    """

    name: str
    kind: Kind
    log: bool = False
    spline: int = 0
    at_most: int = 30
    order: tuple[str, ...] = ()
    buckets: int = 32


@dataclass(frozen=True, kw_only=True)
class FeatureSettings:
    """Which columns become features.

    Attributes
    ----------
    columns : tuple of ColumnSettings
    leave_out : tuple of str
        Columns of the file that are no features.
    interactions : tuple of (str, str)
        Pairs of columns whose features are multiplied with each other.
        With `service.context` and no pairs in the file, every other column with every column of the context.
    intercept : bool
        Whether there is a constant feature.
    ready : tuple of str
        The names of features that are used as they are; then there are no columns.
    """

    columns: tuple[ColumnSettings, ...]
    leave_out: tuple[str, ...] = ()
    interactions: tuple[tuple[str, str], ...] = ()
    intercept: bool = True
    ready: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BudgetSettings:
    """A column of costs, and the limit of their sum in a round."""

    column: str
    limit: float


@dataclass(frozen=True, kw_only=True)
class ChooseSettings:
    """Which sets of customers may be chosen in a round.

    Attributes
    ----------
    k : int
        The number of contacts in a round, those of the holdout included.
    rest : int
        For so many rounds after a contact nobody is contacted again.
    exclude, require : tuple of str
        Files with ids that are never, or always, chosen; relative to the campaign's folder.
    quotas : tuple of QuotaSettings
    budget : BudgetSettings, optional
    """

    k: int
    rest: int = 0
    exclude: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    quotas: tuple[QuotaSettings, ...] = ()
    budget: BudgetSettings | None = None


@dataclass(frozen=True, kw_only=True)
class PolicySettings:
    """A policy by its class, with its options.

    Examples
    --------
    >>> PolicySettings(kind="EpsilonGreedy", options={"epsilon": 0.1}).make(n_features=3, seed=0)
    EpsilonGreedy(n_features=3, epsilon=0.1, ridge=1.0)
    """

    kind: str = "CappedC2UCB"
    options: Mapping[str, Any] = field(default_factory=dict)

    def make(self, n_features: int, seed: Seed = None) -> Policy:
        """Return a new policy.

        Parameters
        ----------
        n_features : int
            The number of features that the recipe makes.
        seed : int, SeedSequence or Generator, optional
            For ties, and for policies that explore at random.

        Returns
        -------
        Policy

        Raises
        ------
        ValueError, TypeError
            If the policy refuses its options.
        """
        kind: type[Policy] = getattr(policies, self.kind)
        return kind(n_features=n_features, seed=seed, **self.options)


@dataclass(frozen=True, kw_only=True)
class OutcomeSettings:
    """Where outcomes are found, and when they are learned.

    Attributes
    ----------
    reward, id : str
        Columns of the outcomes file.
    round, time : str, optional
        Columns with the number of the round, and with the time of the outcome.
    timezone : str
        The time zone of times that do not name one.
    window : timedelta
        How long after a round outcomes count.
    missing : float, optional
        What no outcome means once the window is closed; None if that stays unknown.
    learn_at_once : bool
        Whether outcomes are learned before the window closes.
    repeats : {"refuse", "last", "sum", "max"}
        What is done where a file has several rewards for one person and round.
    """

    reward: str
    id: str
    round: str | None = None
    time: str | None = None
    timezone: str = "UTC"
    window: timedelta = timedelta(days=14)
    missing: float | None = 0.0
    learn_at_once: bool = False
    repeats: Literal["refuse", "last", "sum", "max"] = "refuse"

    @property
    def zone(self) -> tzinfo:
        """`timezone` as datetime uses it; UTC needs no database of time zones."""
        return UTC if self.timezone == "UTC" else ZoneInfo(self.timezone)


@dataclass(frozen=True, kw_only=True)
class HoldoutSettings:
    """The shares of people that are not chosen by the policy.

    Attributes
    ----------
    share : float
        The share of people whose contacts the house rule chooses.
    rule : {"random", "score"}
        The house rule.
    score : str, optional
        The column whose largest values are chosen by the rule "score".
    no_contact : float
        The share of people who are never contacted.
    """

    share: float = 0.05
    rule: Literal["random", "score"] = "random"
    score: str | None = None
    no_contact: float = 0.0


@dataclass(frozen=True, kw_only=True)
class LearningSettings:
    """How rounds count in the model: each a `discount` less than the next, with a `shock` that its rewards share."""

    discount: float = 1.0
    shock: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """How decisions are served; a campaign without the table `[service]` is served with these defaults.

    Attributes
    ----------
    update_every : timedelta
        How often new rewards are folded into a new model.
    explore : float
        The share of each slate that is drawn at random.
    draws : int
        How often a randomised policy is asked for the probability with which an arm is chosen.
    context : tuple of str
        Columns that come once with a request and are crossed with the columns of each arm.
    positions : tuple of float, "estimate" or None
        How likely each place of a slate is looked at, the first place first; None: all the same.
    largest_body : int
        The bytes of the largest request.
    most_arms : int
        The candidates of the largest request.
    rate : float
        Requests per second that a key may send, and that an address may send without a valid one; 0 for no limit.
    timeout : timedelta
        How long each of these may take: a request to arrive, a set to be found, the store to answer.
    """

    update_every: timedelta = timedelta(seconds=30)
    explore: float = 0.0
    draws: int = 100
    context: tuple[str, ...] = ()
    positions: tuple[float, ...] | Literal["estimate"] | None = None
    largest_body: int = 8 * 2**20
    most_arms: int = 10_000
    rate: float = 0.0
    timeout: timedelta = timedelta(seconds=10)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings of a campaign.

    Attributes
    ----------
    name : str
    store : str
        The URL of the ledger; a SQLite file in it is relative to the folder.
    id : str
        The column of the customers file that tells people apart.
    choose : ChooseSettings
    features : FeatureSettings
    outcomes : OutcomeSettings
    policy : PolicySettings
    holdout : HoldoutSettings
    learning : LearningSettings
    folder : Path
        The folder of `campaign.toml`.
    text : str
        The file as it was read.
    source : str, optional
        The customers file that `armful init` looked at, relative to the folder.
    seed : int
    delimiter : str
        What separates the columns of CSV files.
    service : ServiceSettings, optional
        None if the file has no table `[service]`.
    """

    name: str
    store: str
    id: str
    choose: ChooseSettings
    features: FeatureSettings
    outcomes: OutcomeSettings
    policy: PolicySettings
    holdout: HoldoutSettings
    learning: LearningSettings
    folder: Path
    text: str
    source: str | None = None
    seed: int = 0
    delimiter: str = ","
    service: ServiceSettings | None = None
