"""What the methods of a campaign return."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np


class Result:
    """A result that can be written as JSON."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON has them: times in ISO format, paths as text, None for what is not a number."""
        # Every subclass is a dataclass, which the type of this class cannot say.
        return {name: as_json(value) for name, value in asdict(self).items()}  # type: ignore[call-overload]


def as_json(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, Mapping):
        return {str(key): as_json(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [as_json(each) for each in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True, kw_only=True)
class Round(Result):
    """A round that was chosen.

    Attributes
    ----------
    number : int
        1 for the first round.
    key : str or None
        The key that the round was chosen with.
    path : Path or None
        The list of those chosen; None if it was not written.
    chosen_at, closes_at : datetime
        When it was chosen, and when the window of its outcomes closes.
    n_customers, n_excluded : int
        The customers in the file, and how many of them could not be chosen: excluded by a file, or resting.
    n_chosen, n_holdout, n_no_contact : int
        The people on the list, by share.
    predicted : float
        The mean reward that the model predicts for the chosen.
    exploring : float
        The fraction of the chosen that the estimate alone would not have chosen.
    groups : mapping
        For each quota the number of contacts in each group.
    repeated : bool
        Whether a round of this key was there already; then this is that round.
    notes : list of str
        What the user should know.
    """

    number: int
    key: str | None
    path: Path | None
    chosen_at: datetime
    closes_at: datetime
    n_customers: int
    n_excluded: int
    n_chosen: int
    n_holdout: int
    n_no_contact: int
    predicted: float
    exploring: float
    groups: Mapping[str, Mapping[str, int]]
    repeated: bool = False
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Learned(Result):
    """What became of a file of outcomes.

    Attributes
    ----------
    n_rows : int
        The rows of the file.
    matched : int
        The outcomes, one for each person and round, that belong to someone on a list.
    new, repeated, corrected : int
        Of these: known for the first time, known before with the same value, and replaced by another value.
    never_chosen, outside_window, duplicates, empty : int
        The rows of people who were on no list, or on none within the window; further rows of the same person and
        round; and rows without a reward.
    outstanding : int
        The people of open rounds whose outcome has not come.
    rounds_learned : list of int
        The rounds whose window has closed, so that the model has learned them.
    notes : list of str
        What the user should know.
    """

    n_rows: int
    matched: int
    new: int
    repeated: int
    corrected: int
    never_chosen: int
    outside_window: int
    duplicates: int
    empty: int
    outstanding: int
    rounds_learned: list[int]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class RoundStatus(Result):
    """One round as it stands.

    Attributes
    ----------
    number : int
    chosen_at, closes_at : datetime
    closed : bool
        Whether the window has closed.
    n : int
        The people on the list.
    came, outstanding, assumed : int
        Those whose outcome came; those of an open round whose outcome has not; and those of a closed round who
        count as `missing` says, since none came.
    mean_chosen, mean_holdout : float
        The mean reward of those whose reward is known or assumed, once the window has closed; NaN before.
    exploring : float
        The fraction of the chosen that the estimate alone would not have chosen.
    """

    number: int
    chosen_at: datetime
    closes_at: datetime
    closed: bool
    n: int
    came: int
    outstanding: int
    assumed: int
    mean_chosen: float
    mean_holdout: float
    exploring: float


@dataclass(frozen=True, kw_only=True)
class Coefficient(Result):
    """What the model believes of one feature.

    Attributes
    ----------
    name : str
        The feature.
    value : float
        The change of the reward from the lowest to the highest value of the feature.
    low, high : float
        The ends of an interval of about 95 %.
    """

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Status(Result):
    """Where a campaign stands.

    Attributes
    ----------
    name : str
        The campaign.
    rounds : list of RoundStatus
    n_observations : float
        The outcomes in the model.
    outstanding : int
        The outcomes that have not come, of open rounds.
    coefficients : list of Coefficient
        With intervals of about 95 %, the largest first.
    notes : list of str
        What the user should know.
    """

    name: str
    rounds: list[RoundStatus]
    n_observations: float
    outstanding: int
    coefficients: list[Coefficient]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class ServiceStatus(Status):
    """Where a campaign stands whose decisions are served; `rounds` is empty.

    Attributes
    ----------
    sentence : str
        The result in plain words: the lift over the holdout, if it is known.
    decisions, rewards : int
        How many were made, and how many came.
    model_version : int
        The newest model that was published; 0 before the first.
    model_made_at, model_checked_at : datetime or None
        When it was made, and when it was last found to be up to date.
    update_every_seconds : float
        How often the model is updated, by the settings.
    suggested_seconds : float or None
        The interval below which there is little to gain, at the present rate; None if it is not known.
    """

    sentence: str
    decisions: int
    rewards: int
    model_version: int
    model_made_at: datetime | None
    model_checked_at: datetime | None
    update_every_seconds: float
    suggested_seconds: float | None


@dataclass(frozen=True, kw_only=True)
class Forgotten(Result):
    """What was erased.

    Attributes
    ----------
    n_people : int
        The people who were found.
    rounds : list of int
        The rounds they were in.
    notes : list of str
        What the user should know.
    """

    n_people: int
    rounds: list[int]
    notes: list[str] = field(default_factory=list)
