"""The requests and answers of the service: msgspec reads, checks and writes them, and describes them in OpenAPI."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from armful.checks import LARGEST
from armful.service._values import LARGEST_WHOLE

MOST_CHARACTERS = 200
"""The length of the longest id, key or unit."""

Id = Annotated[str, Meta(min_length=1, max_length=MOST_CHARACTERS)]
Label = Annotated[str, Meta(min_length=1, max_length=MOST_CHARACTERS, pattern=r"^[^\x00]*$")]
# More than 64 bits can be neither stored nor compared with what came before under the same key.
Scalar = str | Annotated[int, Meta(ge=-LARGEST_WHOLE, le=LARGEST_WHOLE)] | float | bool | None
Columns = dict[str, Scalar]
Features = Annotated[list[float], Meta(min_length=1)]
Reward = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Bound = Annotated[float, Meta(ge=0)] | dict[str, Annotated[float, Meta(ge=0)]] | None
DecisionId = Annotated[str, Meta(pattern="^[1-9][0-9]{0,17}$", description="The number of a decision, as text.")]


class Candidate(Struct, forbid_unknown_fields=True, gc=False):
    """An arm that may be chosen: raw columns as in the recipe, ready features, or neither for a registered arm."""

    id: Id
    columns: Columns | None = None
    features: Features | None = None


class Quota(Struct, forbid_unknown_fields=True):
    """Bounds on the arms of each group of a column; a whole number is a count, a fraction a share of k."""

    column: Id
    at_least: Bound = None
    at_most: Bound = None
    nested: bool = False


class ConstraintRequest(Struct, forbid_unknown_fields=True):
    """What may be chosen, where it differs from the campaign's settings."""

    k: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None
    quotas: list[Quota] | None = None
    exclude: list[Id] = []
    require: list[Id] = []


class DecisionRequest(Struct, forbid_unknown_fields=True):
    """A set of arms is asked for; without `candidates`, all registered arms are candidates."""

    candidates: Annotated[list[Candidate | Id], Meta(min_length=1)] | None = None
    context: Columns | None = None
    constraint: ConstraintRequest | None = None
    key: Label | None = None
    unit: Label | None = None


def decision_decoder(n_ready: int | None = None) -> msgspec.json.Decoder[DecisionRequest]:
    """Return a decoder of requests whose candidates have so many ready features if any; None for any number.

    With a number it is faster: msgspec makes a tuple of a known length at once, and a list longer and longer.
    """
    if n_ready is None:
        return msgspec.json.Decoder(DecisionRequest)

    class ReadyCandidate(Candidate):
        features: tuple[(float,) * n_ready] | None = None  # type: ignore[assignment, valid-type]

    class ReadyRequest(DecisionRequest):
        candidates: Annotated[list[ReadyCandidate | Id], Meta(min_length=1)] | None = None  # type: ignore[assignment]

    return msgspec.json.Decoder(ReadyRequest)


class ChosenArm(Struct, gc=False):
    """An arm of the answer, with why it was chosen."""

    id: str
    position: Annotated[int, Meta(ge=1)]
    predicted: float | None
    bonus: float | None
    capped: bool
    probability: Annotated[float, Meta(ge=0, le=1)] | None


class DecisionAnswer(Struct):
    """What was decided; it is in the ledger."""

    decision_id: DecisionId
    chosen: list[ChosenArm]
    model_version: int | None
    share: Literal["chosen", "holdout"]
    repeated: bool
    notes: Annotated[list[str], Meta(description="What the caller should know, as that fewer than k were allowed.")]


class ArmReward(Struct, forbid_unknown_fields=True, gc=False):
    """The reward of one arm."""

    id: Id
    reward: Reward


class RewardsRequest(Struct, forbid_unknown_fields=True):
    """The rewards of some or all arms of one decision, as a list or by id; none where nothing is to be said yet."""

    rewards: list[ArmReward] | dict[Id, Reward]


class RewardsAnswer(Struct):
    """What was done: a repeated reward changes nothing, a corrected one replaces another."""

    new: int
    repeated: int
    corrected: int


class DecisionReward(Struct, forbid_unknown_fields=True, gc=False):
    """The reward of one arm of one decision."""

    decision_id: Id
    id: Id
    reward: Reward


class ManyRewardsRequest(Struct, forbid_unknown_fields=True):
    """Rewards of many decisions."""

    rewards: list[DecisionReward]


class Unmatched(Struct):
    """A reward that belongs to no decision, by its index in the request."""

    index: int
    decision_id: str
    id: str
    why: str


class ManyRewardsAnswer(Struct):
    """What was done, and which rewards could not be used."""

    new: int
    repeated: int
    corrected: int
    unmatched: list[Unmatched]


class RegisteredArm(Struct, forbid_unknown_fields=True, gc=False):
    """An arm to keep: raw columns as in the recipe, or ready features."""

    id: Id
    columns: Columns | None = None
    features: Features | None = None


class ArmsRequest(Struct, forbid_unknown_fields=True):
    """Arms to register, in place of those of the same id, and ids to withdraw."""

    arms: list[RegisteredArm] = []
    withdraw: list[Id] = []


class ArmsAnswer(Struct):
    """How many arms were registered and withdrawn, and how many there are now."""

    registered: int
    withdrawn: int
    total: int


class RunnerUp(Struct):
    """The arm with the best score among those that were not chosen."""

    id: str
    predicted: float | None
    bonus: float | None
    score: float | None


class StoredArm(Struct):
    """An arm of a stored decision, with why it was chosen and the last reward that came."""

    id: str
    position: int
    share: str
    predicted: float | None
    bonus: float | None
    cap: float | None
    capped: bool
    score: float | None
    probability: float | None
    reward: float | None
    corrected: bool


class StoredDecision(Struct):
    """A decision as the ledger has it."""

    decision_id: DecisionId
    key: str | None
    unit: str | None
    share: Literal["chosen", "holdout"]
    decided_at: str
    closes_at: str
    model_version: int | None
    n_candidates: int | None
    constraint: Annotated[
        dict[str, Any] | None,
        Meta(
            description="k and the quotas, as the request gave them or else the settings, below 1 as shares of k; how "
            "many arms the request excluded and required."
        ),
    ]
    draws: int
    chosen: list[StoredArm]
    runner_up: RunnerUp | None
    notes: list[str]


class ModelAge(Struct):
    """Which model decides at present."""

    version: int
    made_at: str | None
    checked_at: str | None
    n_observations: float
    update_every_seconds: float
    suggested_seconds: float | None = None


class StatusAnswer(Struct):
    """Where the campaign stands; rewards and outstanding are as of the newest model."""

    campaign: str
    decisions: int
    rewards: int
    outstanding: int
    registered_arms: int
    model: ModelAge
    notes: list[str]


class Coefficient(Struct):
    """What the model believes of a feature, with an interval of about 95 %."""

    name: str
    value: float
    low: float
    high: float


class ModelAnswer(Struct):
    """The model that decides at present."""

    campaign: str
    policy: str
    n_features: int
    model: ModelAge
    coefficients: list[Coefficient]


class Health(Struct):
    """Whether the service is alive, or ready."""

    status: Literal["ok"]


class Problem(Struct, omit_defaults=True):
    """An error, as problem details (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    instance: str | UnsetType = UNSET


encode = msgspec.json.Encoder().encode
"""Write any answer as JSON."""
