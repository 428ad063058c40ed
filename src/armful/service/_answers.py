"""What a client gets back from a service."""

from dataclasses import dataclass, field


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
    """

    decision_id: str
    chosen: list[ChosenArm]
    model_version: int | None = None
    share: str = "chosen"
    repeated: bool = False

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
