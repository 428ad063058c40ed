"""The model of a campaign: a fold over its ledger."""

import io
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.campaigns._records import RoundRecord
from armful.campaigns.settings import Settings
from armful.checks import FloatArray
from armful.errors import FileFormatError, LedgerError
from armful.files._npz_format import read_arrays
from armful.ledger import Ledger, RoundInfo
from armful.model import RidgeState
from armful.scan._threads import blas_at_one_thread


@dataclass(frozen=True, eq=False, kw_only=True)
class Folded:
    """What has been learned, and from which rounds."""

    state: RidgeState
    rounds: list[int]


@blas_at_one_thread()  # several threads take longer for many small factorizations
def fold(ledger: Ledger, settings: Settings, empty: RidgeState, now: datetime) -> Folded:
    """Return the state of all rounds whose window has closed, and of other outcomes if they are learned at once.

    It is a sum over rounds, so each closed round keeps a snapshot of its own part: an outcome that comes or is
    corrected later makes only that round's part anew. Snapshots are a cache; without them the result is the same to
    rounding.

    Parameters
    ----------
    ledger : Ledger
        Where rounds, outcomes and snapshots are.
    settings : Settings
        When outcomes are learned, and how they count.
    empty : RidgeState
        A state of the policy that has learned nothing.
    now : datetime
        A round is closed if its window ends no later.
    """
    positions = ledger.last_reward_positions()
    state, learned = empty, []
    for info in ledger.rounds():
        if settings.learning.discount < 1:
            state = state.discount(settings.learning.discount)
        if info.closes_at <= now:
            part = _closed_round(ledger, settings, empty, info, positions.get(info.number, 0))
        elif settings.outcomes.learn_at_once:
            record = read_round(ledger, settings, info, now)
            part = _learned(record, record.came, settings, empty)
        else:
            continue
        state = state + part
        if part.n:
            learned.append(info.number)
    return Folded(state=state, rounds=learned)


def pending_features(ledger: Ledger, settings: Settings, n_features: int, now: datetime) -> NDArray[np.float32]:
    """Return the features of those whose outcome may still come and is not known or not learned, `(m, n_features)`."""
    parts = [np.zeros((0, n_features), dtype=np.float32)]
    for info in ledger.rounds():
        if info.closes_at <= now:
            continue
        if settings.outcomes.learn_at_once:
            record = read_round(ledger, settings, info, now)
            parts.append(record.features[(record.shares != "no-contact") & ~record.came])
        else:
            arms = ledger.chosen(info.number)
            parts.append(arms.features[arms.shares != "no-contact"])
    return np.concatenate(parts)


def outstanding_outcomes(ledger: Ledger, now: datetime) -> int:
    """Return how many outcomes of open rounds have not come."""
    n = 0
    for info in ledger.rounds():
        if info.closes_at > now:
            outcomes = ledger.outcomes(info.number)
            not_contacted = np.isin(outcomes.ids, ledger.ids_chosen([info.number], ("no-contact",)))
            n += int((np.isnan(outcomes.rewards) & ~not_contacted).sum())
    return n


def read_round(ledger: Ledger, settings: Settings, info: RoundInfo, now: datetime) -> RoundRecord:
    """Return a round with its outcomes as they are known at a time."""
    chosen, outcomes = ledger.chosen_and_outcomes(info.number)
    closed, came = info.closes_at <= now, np.isfinite(outcomes.rewards)
    missing = settings.outcomes.missing
    rewards = outcomes.rewards if missing is None or not closed else np.where(came, outcomes.rewards, missing)
    return RoundRecord(
        number=info.number,
        chosen_at=info.chosen_at,
        closes_at=info.closes_at,
        closed=closed,
        ids=chosen.ids,
        shares=chosen.shares,
        features=chosen.features,
        rewards=rewards,
        came=came,
        received_at=outcomes.received_at,
        predicted=chosen.predicted,
        bonus=chosen.bonus,
        capped=chosen.capped,
        probabilities=chosen.probabilities,
        groups=chosen.groups,
        details=info.details,
    )


def _closed_round(ledger: Ledger, settings: Settings, empty: RidgeState, info: RoundInfo, position: int) -> RidgeState:
    """Return the state of one closed round, from its snapshot if that holds its last outcome."""
    made_with = _made_with(settings, empty)
    kept = ledger.snapshot(info.number, info.number)
    if kept is not None and kept[0] >= position:
        state = _unpacked(kept[1], made_with, empty)
        if state is not None:
            return state
    record = read_round(ledger, settings, info, info.closes_at)
    state = _learned(record, np.isfinite(record.rewards), settings, empty)
    with suppress(LedgerError):  # it only saves time: what was read and learned holds also where it cannot be written
        ledger.add_snapshot(info.number, info.number, position, _packed(state, made_with))
    return state


def _learned(record: RoundRecord, known: NDArray[np.bool_], settings: Settings, empty: RidgeState) -> RidgeState:
    """Return the state of the known outcomes of those who were contacted."""
    rows = known & (record.shares != "no-contact")
    X: FloatArray = record.features[rows].astype(np.float64)
    return empty.learn(X, record.rewards[rows], shock=settings.learning.shock)


def _made_with(settings: Settings, empty: RidgeState) -> FloatArray:
    """Return the settings that a snapshot depends on, `(4,)`."""
    missing = np.nan if settings.outcomes.missing is None else settings.outcomes.missing
    return np.array([empty.n_features, empty.ridge, missing, settings.learning.shock])


def _packed(state: RidgeState, made_with: FloatArray) -> bytes:
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {"made_with": made_with, **state.to_arrays()}
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _unpacked(data: bytes, made_with: FloatArray, empty: RidgeState) -> RidgeState | None:
    """Return the state of a snapshot, or None if it is damaged or was made with other settings."""
    try:
        arrays = read_arrays(data)
        if not np.array_equal(arrays["made_with"], made_with, equal_nan=True):
            return None
        return RidgeState.from_arrays(empty.ridge, arrays, "snapshot")
    except (ValueError, KeyError, FileFormatError):
        return None
