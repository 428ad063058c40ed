"""Reading rounds and their outcomes on a given connection."""

import json
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, CursorResult, Row, Select, func, select, type_coerce
from sqlalchemy.types import NullType

from armful.errors import LedgerError, UnknownRoundError
from armful.ledger._engine import Store
from armful.ledger._records import ChosenArms, RoundInfo, RoundOutcomes
from armful.ledger._schema import campaigns, chosen, rewards, rounds

BLOCK_ROWS = 10_000
"""How many rows are Python objects at a time."""


def select_rounds(campaign_id: int) -> Select[Any]:
    """Return the query of all rounds of a campaign."""
    return select(rounds).where(rounds.c.campaign_id == campaign_id)


def read_round(connection: Connection, campaign_id: int, number: int) -> Row[Any]:
    """Return the row of a round; raise UnknownRoundError if there is none."""
    row = connection.execute(select_rounds(campaign_id).where(rounds.c.number == number)).one_or_none()
    if row is None:
        raise UnknownRoundError(f"there is no round {number}")
    return row


def as_round(row: Row[Any]) -> RoundInfo:
    """Return the record of a row of `rounds`."""
    return RoundInfo(
        id=row.id,
        number=row.number,
        key=row.key,
        chosen_at=row.chosen_at,
        closes_at=row.closes_at,
        details=json.loads(row.details),
        unit=row.unit,
        model_version=row.model_version,
    )


def read_chosen(connection: Connection, campaign_id: int, number: int) -> ChosenArms:
    """Return the arms of a round, by share and position."""
    row = read_round(connection, campaign_id, number)
    n_arms = connection.execute(select(func.count()).where(chosen.c.round_id == row.id)).scalar_one()
    features = np.empty((n_arms, row.n_features), dtype="<f4")
    names = ("arm", "position", "share", "predicted", "bonus", "capped", "probability", "features", "groups")
    query = select(*(chosen.c[name] for name in names)).where(chosen.c.round_id == row.id)
    blocks, groups, begin = [], [], 0
    for block in _blocks(connection, query):
        arms, positions, shares, predicted, bonus, capped, probabilities, data, texts = block
        joined = np.frombuffer(b"".join(data), dtype="<f4")
        if joined.size != len(arms) * row.n_features:
            raise LedgerError(f"round {number} is damaged: its arms have other features than the round says")
        features[begin : begin + len(arms)] = joined.reshape(len(arms), row.n_features)
        begin += len(arms)
        numbers = [np.array(column, dtype=np.float64) for column in (predicted, bonus, probabilities)]
        blocks.append(
            (np.array(arms), np.array(positions, np.int64), np.array(shares), np.array(capped, bool), *numbers)
        )
        groups.append(group_columns(texts))
    if not blocks:
        return ChosenArms(
            ids=_texts(),
            positions=np.empty(0, np.int64),
            shares=_texts(),
            capped=np.empty(0, bool),
            predicted=np.empty(0),
            bonus=np.empty(0),
            probabilities=np.empty(0),
            features=features,
        )
    ids, order_in_share, share, at_cap, mean, width, inclusion = (
        np.concatenate(parts) for parts in zip(*blocks, strict=True)
    )
    order = np.lexsort((order_in_share, share))
    return ChosenArms(
        ids=ids[order],
        positions=order_in_share[order],
        shares=share[order],
        predicted=mean[order],
        bonus=width[order],
        capped=at_cap[order],
        probabilities=inclusion[order],
        features=features[order],
        groups={name: np.concatenate([part[name] for part in groups])[order] for name in groups[0]},
    )


def _texts() -> NDArray[np.str_]:
    return np.empty(0, dtype=np.str_)


def _blocks(connection: Connection, query: Select[Any]) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the columns of the answer, so many rows at a time."""
    result = connection.execute(query, execution_options={"yield_per": BLOCK_ROWS})
    for rows in result.partitions():
        yield list(zip(*rows, strict=True))


def group_columns(texts: Collection[str | None]) -> dict[str, NDArray[np.str_]]:
    """Return the groups of arms by quota, from the JSON text of each arm."""
    parsed = {text: json.loads(text) if text else {} for text in set(texts)}
    names = dict.fromkeys(name for groups in parsed.values() for name in groups)
    return {name: np.array([parsed[text].get(name, "") for text in texts], dtype=np.str_) for name in names}


def read_ids(connection: Connection, round_id: int) -> NDArray[np.str_]:
    """Return the ids of a round's arms, by share and position."""
    query = select(chosen.c.arm, chosen.c.share, chosen.c.position).where(chosen.c.round_id == round_id)
    blocks = [(np.array(a), np.array(s), np.array(p, np.int64)) for a, s, p in _blocks(connection, query)]
    if not blocks:
        return _texts()
    ids, shares, positions = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    ordered: NDArray[np.str_] = ids[np.lexsort((positions, shares))]
    return ordered


def read_outcomes(
    store: Store, connection: Connection, campaign_id: int, number: int, ids: NDArray[np.str_] | None = None
) -> RoundOutcomes:
    """Return the last reward of each arm of a round; `ids` are those of the round, if they were read already."""
    round_id = read_round(connection, campaign_id, number).id
    if ids is None:
        ids = read_ids(connection, round_id)
    row_of = {arm: row for row, arm in enumerate(ids.tolist())}
    # Very many times are few different ones: they are read as the driver gives them, and each is converted once.
    columns = (rewards.c.arm, rewards.c.seq, rewards.c.reward, type_coerce(rewards.c.received_at, NullType()))
    blocks, seconds = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))], dict[Any, float]()
    for arms, seqs, some, moments in _blocks(connection, select(*columns).where(rewards.c.round_id == round_id)):
        seconds |= {moment: store.seconds(moment) for moment in set(moments) - seconds.keys()}
        rows = np.array([row_of[arm] for arm in arms])
        blocks.append((rows, np.array(seqs), np.array(some), np.array([seconds[moment] for moment in moments])))
    rows, positions, last, times = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    order = np.argsort(positions)
    values, received = np.full(len(ids), np.nan), np.full(len(ids), np.nan)
    values[rows[order]], received[rows[order]] = last[order], times[order]  # of several, the last one stays
    corrected = np.bincount(rows, minlength=len(ids)) > 1
    position = read_position(connection, campaign_id)
    return RoundOutcomes(ids=ids, rewards=values, received_at=received, corrected=corrected, position=position)


def plain_texts(result: CursorResult[Any]) -> Iterator[str]:
    """Yield the first column of an answer, a text, as the driver gives it: much faster than by SQLAlchemy's rows."""
    return (row[0] for row in result.cursor.fetchall()) if result.cursor is not None else iter(())


def sorted_once(texts: NDArray[np.str_]) -> NDArray[np.str_]:
    """Return the texts sorted, each once; those of one round come from its primary key, and are so already."""
    return texts if (texts[1:] > texts[:-1]).all() else np.unique(texts)


def read_position(connection: Connection, campaign_id: int) -> int:
    """Return the number that the last reward or erasure took."""
    position: int = connection.execute(select(campaigns.c.position).where(campaigns.c.id == campaign_id)).scalar_one()
    return position
