"""Published models and the states of segments, on a given connection."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, Select, delete, func, insert, select, update

from armful.ledger._decision_records import ModelInfo
from armful.ledger._schema import erasures, models, snapshots
from armful.ledger._writing import lock_campaign, write_snapshot

N_KEPT = 100
"""How many models are listed; only the newest has its state."""
COLUMNS = [models.c[name] for name in ModelInfo.__dataclass_fields__]


def as_model(row: Row[tuple[object, ...]]) -> ModelInfo:
    """Return the record of a row of `models`."""
    return ModelInfo(**{name: getattr(row, name) for name in ModelInfo.__dataclass_fields__})


def newest(campaign_id: int) -> Select[Any]:
    """Return the query of the version of the newest model."""
    return select(func.max(models.c.version)).where(models.c.campaign_id == campaign_id)


def write_model(connection: Connection, campaign_id: int, info: ModelInfo, state: bytes, summary: str) -> bool:
    """Publish a model and return True; return False if another one came first or somebody was erased since."""
    lock_campaign(connection, campaign_id)
    last = select(models.c.version, models.c.position).where(models.c.campaign_id == campaign_id)
    row = connection.execute(last.order_by(models.c.version.desc()).limit(1)).one_or_none()
    version, position = (0, 0) if row is None else (row.version, row.position)
    erased = select(func.max(erasures.c.position)).where(erasures.c.campaign_id == campaign_id)
    position = max(position, connection.execute(erased).scalar() or 0)
    if info.version != version + 1 or info.position < position:
        return False
    of_campaign = models.c.campaign_id == campaign_id
    connection.execute(delete(models).where(of_campaign, models.c.version <= version + 1 - N_KEPT))
    connection.execute(update(models).where(of_campaign, models.c.version == version).values(state=None, summary=None))
    values = {"campaign_id": campaign_id, "state": state, "summary": summary}
    connection.execute(insert(models).values(**values, **vars(info)))
    return True


def write_segments(
    connection: Connection, campaign_id: int, states: Mapping[tuple[int, int], bytes], position: int
) -> None:
    """Keep the states of segments; one that has grown replaces the shorter one that begins at the same round."""
    for (first, last), state in states.items():
        write_snapshot(connection, campaign_id, first, last, position, state)
        shorter = (snapshots.c.first_round == first) & (snapshots.c.last_round < last)
        connection.execute(delete(snapshots).where(snapshots.c.campaign_id == campaign_id, shorter))
