"""The ledger: what was chosen and what came of it, append-only, in SQLite or PostgreSQL."""

from armful.errors import NotChosenError, QueueFullError, UnknownRoundError
from armful.ledger._decision_records import (
    Decided,
    KeyInfo,
    ModelInfo,
    NewDecision,
    NewRewards,
    RewardsAdded,
    RoundBlock,
)
from armful.ledger._records import ChosenArms, RewardCounts, RoundInfo, RoundOutcomes
from armful.ledger.group_commit import GroupCommit
from armful.ledger.ledger import Ledger

__all__ = [
    "ChosenArms",
    "Decided",
    "GroupCommit",
    "KeyInfo",
    "Ledger",
    "ModelInfo",
    "NewDecision",
    "NewRewards",
    "NotChosenError",
    "QueueFullError",
    "RewardCounts",
    "RewardsAdded",
    "RoundBlock",
    "RoundInfo",
    "RoundOutcomes",
    "UnknownRoundError",
]
