"""Erasing people from a campaign, on a given connection."""

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import Connection, delete, insert, select

from armful.ledger._schema import chosen, erasures, rewards, rounds, snapshots
from armful.ledger._writing import AT_A_TIME, lock_campaign, move_to


def erase(connection: Connection, campaign_id: int, ids: Sequence[str]) -> int:
    """Delete these people's arms and rewards and the snapshots made with them; return how many were there.

    What stays is a row of `erasures`, without ids. It takes a position, so that a snapshot of a state that was read
    before is refused later.
    """
    campaign = lock_campaign(connection, campaign_id)
    people, touched, n_rows = set(), set(), 0
    mine = select(rounds.c.id).where(rounds.c.campaign_id == campaign_id).scalar_subquery()
    for begin in range(0, len(ids), AT_A_TIME):
        some = list(ids[begin : begin + AT_A_TIME])
        both = select(chosen.c.arm, rounds.c.number).join(rounds, rounds.c.id == chosen.c.round_id)
        found = connection.execute(both.where(rounds.c.campaign_id == campaign_id, chosen.c.arm.in_(some))).all()
        people |= {arm for arm, _ in found}
        touched |= {number for _, number in found}
        for table in (rewards, chosen):
            gone = delete(table).where(table.c.round_id.in_(mine), table.c.arm.in_(some))
            n_rows += connection.execute(gone).rowcount
    if not people:
        return 0
    for number in touched:
        covers = (snapshots.c.first_round <= number) & (snapshots.c.last_round >= number)
        connection.execute(delete(snapshots).where(snapshots.c.campaign_id == campaign_id, covers))
    position = campaign.position + 1
    move_to(connection, campaign_id, position)
    values = {"campaign_id": campaign_id, "position": position, "n_people": len(people), "n_rows": n_rows}
    connection.execute(insert(erasures).values(**values, erased_at=datetime.now(UTC)))
    return len(people)
