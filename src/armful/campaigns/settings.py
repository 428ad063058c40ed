"""The settings of a campaign, as `campaign.toml` states them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

Kind = Literal["number", "category", "ordered", "date", "text"]
Bound = int | float | Mapping[str, int | float] | None
"""A number for every group, or one by group: a whole number is a count, a fraction is a share of k."""


@dataclass(frozen=True, kw_only=True)
class ColumnSettings:
    """How one column becomes features."""

    name: str
    kind: Kind
    log: bool = False
    spline: int = 0
    at_most: int = 30
    order: tuple[str, ...] = ()
    buckets: int = 32


@dataclass(frozen=True, kw_only=True)
class FeatureSettings:
    """Which columns become features."""

    columns: tuple[ColumnSettings, ...]
    leave_out: tuple[str, ...] = ()
    interactions: tuple[tuple[str, str], ...] = ()
    intercept: bool = True


@dataclass(frozen=True, kw_only=True)
class QuotaSettings:
    """Bounds on the contacts of each group of a column."""

    column: str
    at_least: Bound = None
    at_most: Bound = None
    nested: bool = False


@dataclass(frozen=True, kw_only=True)
class BudgetSettings:
    """A column of costs, and the limit of their sum in a round."""

    column: str
    limit: float


@dataclass(frozen=True, kw_only=True)
class ChooseSettings:
    """Which sets of customers may be chosen in a round."""

    k: int
    rest: int = 0
    exclude: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    quotas: tuple[QuotaSettings, ...] = ()
    budget: BudgetSettings | None = None


@dataclass(frozen=True, kw_only=True)
class PolicySettings:
    """A policy by its class, with its options."""

    kind: str = "CappedC2UCB"
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class OutcomeSettings:
    """Where outcomes are found, and when they are learned."""

    reward: str
    id: str
    round: str | None = None
    time: str | None = None
    window: timedelta = timedelta(days=14)
    missing: float | None = 0.0
    learn_at_once: bool = False
    repeats: Literal["refuse", "last", "sum", "max"] = "refuse"


@dataclass(frozen=True, kw_only=True)
class HoldoutSettings:
    """The shares of people that are not chosen by the policy."""

    share: float = 0.05
    rule: Literal["random", "score"] = "random"
    score: str | None = None
    no_contact: float = 0.0


@dataclass(frozen=True, kw_only=True)
class LearningSettings:
    """How rounds count in the model."""

    discount: float = 1.0
    shock: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings of a campaign."""

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
