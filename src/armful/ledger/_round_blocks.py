"""Reading consecutive rounds as flat arrays, by statements of the driver itself."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from armful.checks import FloatArray
from armful.errors import LedgerError
from armful.ledger._decision_records import RoundBlock
from armful.ledger._engine import Store
from armful.ledger._reading import group_columns, read_position

ROUNDS = """
SELECT id, number, chosen_at, closes_at, unit, model_version, n_features
FROM rounds WHERE campaign_id = ? AND number BETWEEN ? AND ? ORDER BY number
"""
CHOSEN = """
SELECT round_id, arm, chosen.position, share, predicted, bonus, capped, probability, features, groups
FROM rounds JOIN chosen ON round_id = rounds.id WHERE campaign_id = ? AND number BETWEEN ? AND ?
"""
REWARDS = """
SELECT round_id, arm, seq, reward, received_at
FROM rounds JOIN rewards ON round_id = rounds.id WHERE campaign_id = ? AND number BETWEEN ? AND ? ORDER BY seq
"""


def read_block(store: Store, connection: Connection, campaign_id: int, first: int, last: int) -> RoundBlock:
    """Return the rounds `first` to `last`, both included; those that are not there are left out."""
    position = read_position(connection, campaign_id)  # begins the transaction in which all is read
    cursor, of = store.cursor(connection), (campaign_id, first, last)

    def columns(query: str, n: int) -> list[tuple[Any, ...]]:
        cursor.execute(store.sql(query), of)
        return list(zip(*cursor.fetchall(), strict=True)) or [()] * n

    round_ids, numbers, chosen_at, closes_at, units, versions, widths = columns(ROUNDS, 7)
    index = {round_id: i for i, round_id in enumerate(round_ids)}
    in_rounds, ids, positions, shares, predicted, bonus, capped, probabilities, data, texts = columns(CHOSEN, 10)
    of_round = np.array([index[round_id] for round_id in in_rounds], dtype=np.int64)
    share, place = np.array(shares, dtype=np.str_), np.array(positions, dtype=np.int64)
    order = np.lexsort((place, share, of_round))
    rewards, received_at, corrected = _rewards(store, columns(REWARDS, 5), list(zip(in_rounds, ids, strict=True)))
    cursor.close()
    return RoundBlock(
        numbers=np.array(numbers, dtype=np.int64),
        chosen_at=_seconds(store, chosen_at),
        closes_at=_seconds(store, closes_at),
        units=np.array(units, dtype=np.object_),
        model_versions=np.array([version or 0 for version in versions], dtype=np.int64),
        of_round=of_round[order],
        ids=np.array(ids, dtype=np.str_)[order],
        positions=place[order],
        shares=share[order],
        predicted=np.array(predicted, dtype=np.float64)[order],
        bonus=np.array(bonus, dtype=np.float64)[order],
        capped=np.array(capped, dtype=np.bool_)[order],
        probabilities=np.array(probabilities, dtype=np.float64)[order],
        features=_features(data, of_round, np.array(widths, dtype=np.int64))[order],
        rewards=rewards[order],
        received_at=received_at[order],
        corrected=corrected[order],
        groups={name: values[order] for name, values in group_columns(texts).items()},
        position=position,
    )


def _seconds(store: Store, moments: tuple[Any, ...]) -> FloatArray:
    seconds = {moment: store.seconds(moment) for moment in set(moments)}
    return np.array([seconds[moment] for moment in moments], dtype=np.float64)


def _features(data: tuple[bytes, ...], of_round: NDArray[np.int64], widths: NDArray[np.int64]) -> NDArray[np.float32]:
    used = np.unique(widths[of_round]).tolist()
    if len(used) > 1:
        raise LedgerError(f"rounds of one block must have as many features each, got {' and '.join(map(str, used))}")
    n_features = used[0] if used else int(widths.max(initial=0))
    joined = np.frombuffer(b"".join(data), dtype="<f4")
    if not {4 * n_features}.issuperset(map(len, data)):
        raise LedgerError("a round is damaged: its arms have other features than the round says")
    return joined.reshape(len(data), n_features).astype(np.float32, copy=False)


def _rewards(
    store: Store, columns: list[tuple[Any, ...]], chosen: list[tuple[int, str]]
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Return the last reward of each chosen arm, when it came, and whether another one came before."""
    in_rounds, arms, _, values, moments = columns
    row_of = {pair: row for row, pair in enumerate(chosen)} if values else {}
    rows = np.array([row_of[pair] for pair in zip(in_rounds, arms, strict=True)], dtype=np.int64)
    rewards, received_at = np.full(len(chosen), np.nan), np.full(len(chosen), np.nan)
    rewards[rows] = np.array(values, dtype=np.float64)  # of several the last one stays
    received_at[rows] = _seconds(store, moments)
    return rewards, received_at, np.bincount(rows, minlength=len(chosen)) > 1
