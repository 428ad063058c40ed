"""Erasing people from a campaign, on a given connection."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from armful.ledger._schema import chosen, erasures, rewards, rounds, snapshots
from armful.ledger._writing import in_parts, lock_campaign, move_to


def erase(connection: Connection, campaign_id: int, ids: Sequence[str]) -> int:
    """Delete these people's arms and rewards and the snapshots made with them; return how many were there.

    What stays is a row of `erasures`, without ids. It takes a position, which the rounds note: a snapshot of what was
    read before is then refused.
    """
    position = lock_campaign(connection, campaign_id).position + 1
    both = select(chosen.c.arm, rounds.c.id, rounds.c.number).join(rounds, rounds.c.id == chosen.c.round_id)
    found: list[Any] = []
    for some in in_parts(ids):
        found += connection.execute(both.where(rounds.c.campaign_id == campaign_id, chosen.c.arm.in_(some))).all()
    if not found:
        return 0
    pairs, n_rows = [{"of_round": row.id, "of_arm": row.arm} for row in found], 0
    for table in (rewards, chosen):
        one = (table.c.round_id == bindparam("of_round")) & (table.c.arm == bindparam("of_arm"))
        n_rows += connection.execute(delete(table).where(one), pairs).rowcount
    for round_id, number in {(row.id, row.number) for row in found}:
        connection.execute(update(rounds).where(rounds.c.id == round_id).values(last_erasure=position))
        covers = (snapshots.c.first_round <= number) & (snapshots.c.last_round >= number)
        connection.execute(delete(snapshots).where(snapshots.c.campaign_id == campaign_id, covers))
    n_people = len({row.arm for row in found})
    move_to(connection, campaign_id, position)
    values = {"campaign_id": campaign_id, "position": position, "n_people": n_people, "n_rows": n_rows}
    connection.execute(insert(erasures).values(**values, erased_at=datetime.now(UTC)))
    return n_people
