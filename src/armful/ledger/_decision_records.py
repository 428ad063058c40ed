"""The records of the decision service: what goes into a ledger many at a time, and what its updater reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray
from armful.ledger._records import RewardCounts

DecisionRow = tuple[str, int, str, float | None, float | None, bool, float | None, bytes, str | None]
"""An arm of a decision: arm, position, share, predicted, bonus, capped, probability, features, groups."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewDecision:
    """A decision to be added: a round with few arms, whose number the ledger gives.

    Attributes
    ----------
    key : str or None
        The caller's own name for it: if a round has it already, that round is the answer.
    unit : str or None
        Who or what it was for, for example a user.
    model_version : int or None
        The version of the model that chose.
    chosen_at, closes_at : datetime
        When it was chosen, and when its window for rewards closes; with a time zone.
    n_features : int
        The number of features of each arm.
    details : str
        Whatever else is to be kept, as JSON text.
    rows : sequence of tuple
        For each arm (arm, position, share, predicted, bonus, capped, probability, features, groups): features are
        the bytes of little-endian float32, groups is JSON text or None, and numbers that are not known are None.
    """

    key: str | None
    unit: str | None
    model_version: int | None
    chosen_at: datetime
    closes_at: datetime
    n_features: int
    details: str
    rows: Sequence[DecisionRow]


@dataclass(frozen=True, slots=True)
class Decided:
    """What became of a `NewDecision`.

    Attributes
    ----------
    number : int
        The number of its round.
    repeated : bool
        Whether its key was there already: then nothing was added, and the number is that of the round with the key.
    """

    number: int
    repeated: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class NewRewards:
    """One request to add rewards.

    Attributes
    ----------
    rewards : sequence of tuple
        (number of the round, arm, reward), the first one first.
    received_at : datetime
        When they came, with a time zone.
    strict : bool
        Whether nothing is added if one of them cannot be.
    """

    rewards: Sequence[tuple[int, str, float]]
    received_at: datetime
    strict: bool


@dataclass(frozen=True, slots=True)
class RewardsAdded:
    """What became of a `NewRewards`.

    Attributes
    ----------
    counts : RewardCounts
        How many were new, repeated and corrected.
    unmatched : sequence of tuple
        (index into the rewards, one sentence) for each that could not be added.
    """

    counts: RewardCounts
    unmatched: Sequence[tuple[int, str]] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundBlock:
    """Consecutive rounds with their arms and rewards, as flat arrays: r rounds with m arms and d features.

    Attributes
    ----------
    numbers : ndarray of int, shape (r,)
        The numbers of the rounds, increasing.
    chosen_at, closes_at : ndarray of float, shape (r,)
        In seconds since 1970.
    units : ndarray of object, shape (r,)
        Who a decision was for; None where nobody was named.
    model_versions : ndarray of int, shape (r,)
        The version of the model that chose; 0 where there was none.
    of_round : ndarray of int, shape (m,)
        The round of each arm, as an index into `numbers`; increasing.
    ids, shares : ndarray of str, shape (m,)
        The arms, within a round by share and position, as in `Ledger.chosen`.
    positions : ndarray of int, shape (m,)
        The place of each arm.
    predicted, bonus, probabilities : ndarray of float, shape (m,)
        NaN where there was none.
    capped : ndarray of bool, shape (m,)
        Whether the score was at the cap.
    features : ndarray of float32, shape (m, d)
        The features that each arm was chosen on.
    rewards, received_at : ndarray of float, shape (m,)
        The last reward that came and when, in seconds since 1970; NaN where none came.
    corrected : ndarray of bool, shape (m,)
        Whether an earlier reward was another one.
    groups : mapping of str to ndarray of str, shape (m,)
        The group of each arm, for each quota; "" in rounds without that quota.
    position : int
        The position of the campaign that this shows: all rewards up to it are here.
    """

    numbers: IntArray
    chosen_at: FloatArray
    closes_at: FloatArray
    units: NDArray[np.object_]
    model_versions: IntArray
    of_round: IntArray
    ids: NDArray[np.str_]
    positions: IntArray
    shares: NDArray[np.str_]
    predicted: FloatArray
    bonus: FloatArray
    capped: NDArray[np.bool_]
    probabilities: FloatArray
    features: NDArray[np.float32]
    rewards: FloatArray
    received_at: FloatArray
    corrected: NDArray[np.bool_]
    groups: Mapping[str, NDArray[np.str_]]
    position: int

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, kw_only=True)
class KeyInfo:
    """A key of the service, without its secret.

    Attributes
    ----------
    id : str
        The public part of the key.
    label : str
        What it is for, in words.
    roles : tuple of str
        Some of `"decide"`, `"reward"` and `"read"`.
    created_at : datetime
        When it was made.
    expires_at, revoked_at : datetime or None
        When it ends by itself, and when it was revoked.
    """

    id: str
    label: str
    roles: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """A published model, without its state.

    Attributes
    ----------
    version : int
        1 for the first, and one more for each.
    position : int
        The position of the campaign that it was made at: all rewards up to it are in it.
    closed_until : datetime
        The windows that closed until then are closed in it.
    last_round : int
        The last round that it knows of.
    made_at, checked_at : datetime
        When it was made, and when it was last found to be up to date.
    n_observations : float
        How many observations it holds.
    """

    version: int
    position: int
    closed_until: datetime
    last_round: int
    made_at: datetime
    checked_at: datetime
    n_observations: float
