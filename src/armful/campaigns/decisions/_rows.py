"""The arms of a block of decisions as the model sees them: what is known, what is outstanding."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from armful.campaigns.settings import Settings
from armful.checks import FloatArray, IntArray
from armful.ledger import RoundBlock

BoolArray = NDArray[np.bool_]

MICROSECONDS = 1_000_000


def microseconds(seconds: FloatArray | float) -> IntArray:
    """Return moments in whole microseconds, in which they can be compared exactly."""
    return np.asarray(np.rint(np.asarray(seconds) * MICROSECONDS), dtype=np.int64)


@dataclass(frozen=True, eq=False, kw_only=True)
class DecisionRows:
    """The arms of consecutive decisions, with their rewards as they are known at a time.

    Attributes
    ----------
    block : RoundBlock
    closed : ndarray of bool, shape (m,)
        Whether the window of the arm's decision has closed.
    came : ndarray of bool, shape (m,)
        Whether a reward came.
    rewards : ndarray, shape (m,)
        Once the window is closed, what `missing` says where none came; NaN where it is unknown.
    so_far : ndarray, shape (m,)
        The same as if every window had closed: what the rewards will be if none comes any more.
    learned : ndarray of bool, shape (m,)
        Whether the model learns the reward.
    outstanding : ndarray of bool, shape (m,)
        Whether the reward may still come, or has come and is not learned yet.
    """

    block: RoundBlock
    closed: BoolArray
    came: BoolArray
    rewards: FloatArray
    so_far: FloatArray
    learned: BoolArray
    outstanding: BoolArray

    @classmethod
    def of(cls, block: RoundBlock, settings: Settings, now: int) -> Self:
        """Return the arms of a block at a time in microseconds."""
        closed = (microseconds(block.closes_at) <= now)[block.of_round]
        came, contacted = np.isfinite(block.rewards), block.shares != "no-contact"
        missing = settings.outcomes.missing
        so_far = block.rewards if missing is None else np.where(came, block.rewards, missing)
        rewards = np.where(closed, so_far, block.rewards)
        early = came & ~closed & settings.outcomes.learn_at_once
        return cls(
            block=block,
            closed=closed,
            came=came,
            rewards=rewards,
            so_far=so_far,
            learned=contacted & ((closed & np.isfinite(rewards)) | early),
            outstanding=contacted & ~closed & ~early,
        )
