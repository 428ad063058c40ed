"""What is known of one round: who was chosen, on which features, and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundRecord:
    """One round of a campaign with its outcomes so far; arrays have one entry for each of n people.

    Attributes
    ----------
    number : int
        1 for the first round.
    chosen_at, closes_at : datetime
        When the round was chosen, and when the window of its outcomes closes.
    closed : bool
        Whether the window has closed.
    ids : ndarray of str, shape (n,)
    shares : ndarray of str, shape (n,)
        `chosen`, `holdout` or `no-contact`.
    features : ndarray of float32, shape (n, n_features)
    rewards : ndarray, shape (n,)
        Once the window is closed, what `missing` says where no outcome came; NaN where it is unknown.
    came : ndarray of bool, shape (n,)
        Whether an outcome came.
    received_at : ndarray, shape (n,)
        When it came, in seconds since 1970; NaN where none did.
    predicted, bonus : ndarray, shape (n,)
        The estimate at the time of choosing, and what was added to it to explore.
    capped : ndarray of bool, shape (n,)
        Where a cap decided the score.
    probabilities : ndarray, shape (n,)
        The probability of being chosen; NaN where it is not known.
    groups : mapping of str to ndarray of str
        The group of each person, for each quota.
    details : mapping
        What else was recorded when the round was chosen.
    """

    number: int
    chosen_at: datetime
    closes_at: datetime
    closed: bool
    ids: NDArray[np.str_]
    shares: NDArray[np.str_]
    features: NDArray[np.float32]
    rewards: FloatArray
    came: NDArray[np.bool_]
    received_at: FloatArray
    predicted: FloatArray
    bonus: FloatArray
    capped: NDArray[np.bool_]
    probabilities: FloatArray
    groups: Mapping[str, NDArray[np.str_]]
    details: Mapping[str, Any]

    @property
    def exploring(self) -> float:
        """The fraction of the chosen that the estimate alone would not have chosen; NaN if that was not recorded."""
        return float(self.details.get("exploring", float("nan")))

    def is_share(self, share: str) -> NDArray[np.bool_]:
        """Return which people are in a share, `(n,)`."""
        return np.asarray(self.shares == share)
