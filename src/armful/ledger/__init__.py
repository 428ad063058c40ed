"""The ledger: what was chosen and what came of it, append-only, in SQLite or PostgreSQL."""

from armful.ledger._records import ChosenArms, RewardCounts, RoundInfo, RoundOutcomes
from armful.ledger.ledger import Ledger

__all__ = ["ChosenArms", "Ledger", "RewardCounts", "RoundInfo", "RoundOutcomes"]
