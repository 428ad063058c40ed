"""Registered arms and keys of the service, on a given connection."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from armful.errors import LedgerError
from armful.ledger._decision_records import KeyInfo
from armful.ledger._engine import Store
from armful.ledger._schema import arms, keys
from armful.ledger._writing import check_ids, check_lengths, check_texts, lock_campaign

ROLES = ("decide", "reward", "read")
PUT = """
INSERT INTO arms (campaign_id, arm, change, content, changed_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (campaign_id, arm) DO UPDATE
SET change = excluded.change, content = excluded.content, changed_at = excluded.changed_at
"""


def last_change(connection: Connection, campaign_id: int) -> int:
    """Return the number of the last change of the registered arms; 0 before the first."""
    query = select(func.max(arms.c.change)).where(arms.c.campaign_id == campaign_id)
    return connection.execute(query).scalar() or 0


def write_arms(
    store: Store, connection: Connection, campaign_id: int, contents: Sequence[tuple[str, bytes | None]]
) -> int:
    """Register arms and withdraw those whose content is None; return the number of this change."""
    check_ids([arm for arm, _ in contents])
    check_lengths(arm for arm, _ in contents)
    lock_campaign(connection, campaign_id)
    change, moment = last_change(connection, campaign_id), store.moment(datetime.now(UTC))
    if not contents:
        return change
    rows = [(campaign_id, arm, change + 1, content, moment) for arm, content in dict(contents).items()]
    cursor = store.cursor(connection)
    cursor.executemany(store.sql(PUT), rows)
    cursor.close()
    return change + 1


def write_key(connection: Connection, campaign_id: int, info: KeyInfo, hashed: bytes) -> None:
    """Add a key; raise LedgerError if its id is taken or a role is none."""
    unknown = set(info.roles) - set(ROLES)
    if unknown or not info.roles:
        raise LedgerError(f"roles must be some of {', '.join(ROLES)}, got {', '.join(info.roles) or 'none'}")
    check_ids([info.id])
    check_lengths([info.id])
    check_texts([info.label])
    lock_campaign(connection, campaign_id)
    if find_key(connection, campaign_id, info.id) is not None:
        raise LedgerError(f"there is a key {info.id!r} already: nothing was changed")
    values: dict[str, Any] = {**vars(info), "roles": ",".join(info.roles), "hash": hashed, "campaign_id": campaign_id}
    connection.execute(insert(keys).values(values))


def find_key(connection: Connection, campaign_id: int, key_id: str) -> Row[Any] | None:
    """Return the row of a key; None if there is none."""
    return connection.execute(select(keys).where(keys.c.campaign_id == campaign_id, keys.c.id == key_id)).one_or_none()


def revoke(connection: Connection, campaign_id: int, key_id: str, moment: datetime) -> bool:
    """Revoke a key, unless it is revoked already; return whether there is such a key."""
    this = (keys.c.campaign_id == campaign_id) & (keys.c.id == key_id)
    connection.execute(update(keys).where(this, keys.c.revoked_at.is_(None)).values(revoked_at=moment))
    return find_key(connection, campaign_id, key_id) is not None


def as_key(row: Row[Any]) -> KeyInfo:
    """Return the record of a row of `keys`."""
    return KeyInfo(
        id=row.id,
        label=row.label,
        roles=tuple(row.roles.split(",")),
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
    )
