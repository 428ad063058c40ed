"""What a client gets back from a service."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ChosenArm:
    """One arm of a decision, and why it was chosen.

    Attributes
    ----------
    id : str
    position : int
        Its place, 1 for the first.
    predicted : float or None
        The reward that the model expects.
    bonus : float or None
        What its score has beyond that, to learn more about it.
    capped : bool
        Whether the score was held at the cap.
    probability : float or None
        That the arm is chosen, over the randomness of the policy; None where it is not known.
    """

    id: str
    position: int
    predicted: float | None = None
    bonus: float | None = None
    capped: bool = False
    probability: float | None = None


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What a service decided.

    Attributes
    ----------
    decision_id : str
        For its rewards.
    chosen : list of ChosenArm
        In the order in which to show them.
    model_version : int or None
        The model that chose.
    share : str
        "chosen", or "holdout" if it was chosen at random, to compare with.
    repeated : bool
        Whether the decision was made before, by a request with the same key.
    notes : list of str
        What to know, such as that fewer than k candidates could be chosen.
    """

    decision_id: str
    chosen: list[ChosenArm]
    model_version: int | None = None
    share: str = "chosen"
    repeated: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        """The ids of the chosen arms, in their order."""
        return [arm.id for arm in self.chosen]


@dataclass(frozen=True, kw_only=True)
class Unmatched:
    """A reward that belongs to no decision.

    Attributes
    ----------
    index : int
        Its index among the rewards of the request.
    decision_id, id : str
        As given.
    why : str
        What is not as expected.
    """

    index: int
    decision_id: str = ""
    id: str = ""
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class RewardsAdded:
    """What became of rewards.

    Attributes
    ----------
    new, repeated, corrected : int
        How many were not known before, were the same as before, and replaced another value.
    unmatched : list of Unmatched
        Those that belong to no decision.
    """

    new: int
    repeated: int
    corrected: int
    unmatched: list[Unmatched] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class ArmsPut:
    """What became of registered arms.

    Attributes
    ----------
    registered, withdrawn, total : int
        How many were registered or changed, how many withdrawn, and how many there are now.
    """

    registered: int
    withdrawn: int
    total: int


@dataclass(frozen=True, kw_only=True)
class RunnerUp:
    """The arm with the best score among those that were not chosen.

    Attributes
    ----------
    id : str
    predicted, bonus, score : float or None
    """

    id: str
    predicted: float | None = None
    bonus: float | None = None
    score: float | None = None


@dataclass(frozen=True, kw_only=True)
class StoredArm(ChosenArm):
    """An arm of a stored decision, with its reward so far; the other attributes are those of `ChosenArm`.

    Attributes
    ----------
    share : str
        "chosen", "explored" if it was drawn at random, or "holdout".
    cap, score : float or None
        The cap, and the score that it was chosen by.
    reward : float or None
        The last one that came.
    corrected : bool
        Whether that replaced another.
    """

    share: str = "chosen"
    cap: float | None = None
    score: float | None = None
    reward: float | None = None
    corrected: bool = False


@dataclass(frozen=True, kw_only=True)
class StoredDecision:
    """A decision as it is stored, with why.

    Attributes
    ----------
    decision_id : str
    chosen : list of StoredArm
    decided_at, closes_at : datetime
        When it was made, and when arms without a reward count as missing; later rewards still count.
    key, unit : str or None
    share : str
    model_version, n_candidates : int or None
    constraint : dict or None
        k and the quotas, as the request gave them or else the settings; how many arms the request excluded and
        required.
    draws : int
        How often the policy was asked for the probabilities; 0 where they are exact or not known.
    runner_up : RunnerUp or None
    notes : list of str
        As answered when it was made.
    """

    decision_id: str
    chosen: list[StoredArm]
    decided_at: datetime
    closes_at: datetime
    key: str | None = None
    unit: str | None = None
    share: str = "chosen"
    model_version: int | None = None
    n_candidates: int | None = None
    constraint: dict[str, Any] | None = None
    draws: int = 0
    runner_up: RunnerUp | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class ModelAge:
    """Which model decides at present.

    Attributes
    ----------
    version : int
        0 before the first.
    made_at, checked_at : datetime or None
        When it was made, and when it was last found to be up to date.
    n_observations : float
        The rewards in it.
    update_every_seconds : float
    suggested_seconds : float or None
        The longest time between updates that the theory suggests.
    """

    version: int
    made_at: datetime | None = None
    checked_at: datetime | None = None
    n_observations: float = 0.0
    update_every_seconds: float = 0.0
    suggested_seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class ServiceStatus:
    """Where a campaign stands.

    Attributes
    ----------
    campaign : str
    decisions, registered_arms : int
        How many there are now.
    rewards, outstanding : int
        How many arms had a reward, and how many were waiting for one, when the newest model was made.
    model : ModelAge
    notes : list of str
        What to look at.
    """

    campaign: str
    decisions: int
    rewards: int
    outstanding: int
    registered_arms: int
    model: ModelAge
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class ModelCoefficient:
    """What the model believes of a feature, with an interval of about 95 %.

    Attributes
    ----------
    name : str
    value, low, high : float
    """

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class ServiceModel:
    """The model that decides at present.

    Attributes
    ----------
    campaign, policy : str
    n_features : int
    model : ModelAge
    coefficients : list of ModelCoefficient
    """

    campaign: str
    policy: str
    n_features: int
    model: ModelAge
    coefficients: list[ModelCoefficient] = field(default_factory=list)
