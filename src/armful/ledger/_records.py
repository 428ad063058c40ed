"""The records that go into a ledger and come out of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray
from armful.errors import LedgerError

SHARES = ("chosen", "explored", "holdout", "no-contact")
"""Who chose an arm: the policy, its exploration slots, the house rule, or nobody; arms come in this order."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ChosenArms:
    """The arms of one round, with what was known of each when it was chosen.

    Attributes
    ----------
    ids : ndarray of str, shape (n,)
        The arms, all different.
    positions : ndarray of int, shape (n,)
        The place of an arm within its share; 0 is the first.
    shares : ndarray of str, shape (n,)
        `"chosen"`, `"explored"` (drawn at random by an exploration slot), `"holdout"` or `"no-contact"`.
    predicted, bonus : ndarray of float, shape (n,)
        The estimated reward and the bonus for uncertainty; NaN where there was none.
    capped : ndarray of bool, shape (n,)
        Whether the score was at the cap.
    probabilities : ndarray of float, shape (n,)
        The probability with which the arm was included; NaN where it is unknown.
    features : ndarray of float32, shape (n, d)
        The features that the arm was chosen on.
    groups : mapping of str to ndarray of str, shape (n,)
        The group of each arm, for each quota.
    """

    ids: NDArray[np.str_]
    positions: IntArray
    shares: NDArray[np.str_]
    predicted: FloatArray
    bonus: FloatArray
    capped: NDArray[np.bool_]
    probabilities: FloatArray
    features: NDArray[np.float32]
    groups: Mapping[str, NDArray[np.str_]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        types = {"ids": np.str_, "positions": np.int64, "shares": np.str_, "predicted": np.float64}
        types |= {"bonus": np.float64, "capped": np.bool_, "probabilities": np.float64, "features": np.float32}
        for name, dtype in types.items():
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=dtype))
        groups = {name: np.asarray(values, dtype=np.str_) for name, values in self.groups.items()}
        object.__setattr__(self, "groups", groups)
        if self.features.ndim != 2:
            raise LedgerError(f"features must have the shape (n, d), got {self.features.shape}")
        arrays = {name: getattr(self, name).shape for name in types if name != "features"}
        arrays |= {f"groups[{name!r}]": values.shape for name, values in groups.items()}
        for name, shape in arrays.items():
            if shape != (len(self.features),):
                raise LedgerError(f"{name} must have the shape ({len(self.features)},), like features, got {shape}")

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, kw_only=True)
class RoundInfo:
    """One round, without its arms.

    Attributes
    ----------
    id : int
        Its number among all rounds in the store.
    number : int
        Its number within the campaign, from 1.
    key : str or None
        The caller's own name for it: no other round of the campaign has the same.
    chosen_at, closes_at : datetime
        When it was chosen, and when its window for outcomes closes; in UTC.
    details : dict
        Whatever else was kept with it, as JSON allows.
    unit : str or None
        Who or what a decision of the service was for.
    model_version : int or None
        The version of the model that chose, of a decision of the service.
    """

    id: int
    number: int
    key: str | None
    chosen_at: datetime
    closes_at: datetime
    details: dict[str, Any]
    unit: str | None = None
    model_version: int | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundOutcomes:
    """The outcomes of one round that have come so far, corrections applied.

    Attributes
    ----------
    ids : ndarray of str, shape (n,)
        The arms, in the order of `Ledger.chosen`.
    rewards : ndarray of float, shape (n,)
        The last reward that came; NaN where none came.
    received_at : ndarray of float, shape (n,)
        When that reward was received, in seconds since 1970; NaN where none came.
    corrected : ndarray of bool, shape (n,)
        Whether an earlier reward was another one.
    position : int
        The position of the campaign that this shows: all rewards up to it are here.
    """

    ids: NDArray[np.str_]
    rewards: FloatArray
    received_at: FloatArray
    corrected: NDArray[np.bool_]
    position: int


@dataclass(frozen=True, kw_only=True)
class RewardCounts:
    """What `Ledger.add_rewards` did.

    Attributes
    ----------
    new : int
        Rewards of arms that had none.
    repeated : int
        Rewards that were known already: nothing was added.
    corrected : int
        Rewards that replace another one.
    """

    new: int
    repeated: int
    corrected: int
