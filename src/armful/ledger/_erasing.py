"""Erasing people from a campaign, on a given connection."""

import json
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from armful.ledger._schema import arms, chosen, erasures, models, rewards, rounds, snapshots
from armful.ledger._writing import in_parts, lock_campaign, move_to


def erase(connection: Connection, campaign_id: int, ids: Sequence[str]) -> int:
    """Delete these people's arms and rewards and the snapshots made with them; return how many were there.

    What stays is a row of `erasures`, without ids. It takes a position, which the rounds note: a snapshot of what was
    read before is then refused.
    """
    position = lock_campaign(connection, campaign_id).position + 1
    both = select(chosen.c.arm, rounds.c.id, rounds.c.number).join(rounds, rounds.c.id == chosen.c.round_id)
    of_unit = select(rounds.c.unit, rounds.c.id, rounds.c.number)
    found, made_for, registered = list[Any](), list[Any](), list[str]()
    for some in in_parts(ids):
        found += connection.execute(both.where(rounds.c.campaign_id == campaign_id, chosen.c.arm.in_(some))).all()
        made_for += connection.execute(
            of_unit.where(rounds.c.campaign_id == campaign_id, rounds.c.unit.in_(some))
        ).all()
        registered += connection.execute(
            select(arms.c.arm).where(arms.c.campaign_id == campaign_id, arms.c.arm.in_(some))
        ).scalars()
    if not (found or made_for or registered):
        _delete_runners_up(connection, campaign_id, set(ids))
        return 0
    n_rows = _delete_arms(connection, found) + _delete_decisions(connection, made_for)
    _delete_runners_up(connection, campaign_id, set(ids))
    for some in in_parts(registered):
        this = (arms.c.campaign_id == campaign_id) & arms.c.arm.in_(some)
        n_rows += connection.execute(delete(arms).where(this)).rowcount
    for round_id, number in {(row.id, row.number) for row in [*found, *made_for]}:
        connection.execute(update(rounds).where(rounds.c.id == round_id).values(last_erasure=position))
        covers = (snapshots.c.first_round <= number) & (snapshots.c.last_round >= number)
        connection.execute(delete(snapshots).where(snapshots.c.campaign_id == campaign_id, covers))
    connection.execute(update(models).where(models.c.campaign_id == campaign_id).values(state=None, summary=None))
    n_people = len({row.arm for row in found} | {row.unit for row in made_for} | set(registered))
    move_to(connection, campaign_id, position)
    values = {"campaign_id": campaign_id, "position": position, "n_people": n_people, "n_rows": n_rows}
    connection.execute(insert(erasures).values(**values, erased_at=datetime.now(UTC)))
    return n_people


def _delete_arms(connection: Connection, found: Sequence[Any]) -> int:
    """Delete arms of rounds with their rewards; return how many rows these were."""
    if not found:
        return 0
    pairs, n_rows = [{"of_round": row.id, "of_arm": row.arm} for row in found], 0
    for table in (rewards, chosen):
        one = (table.c.round_id == bindparam("of_round")) & (table.c.arm == bindparam("of_arm"))
        n_rows += connection.execute(delete(table).where(one), pairs).rowcount
    return n_rows


def _delete_runners_up(connection: Connection, campaign_id: int, ids: Collection[str]) -> None:
    """Take these arms out of what decisions say of the best arm that they did not choose."""
    query = select(rounds.c.id, rounds.c.details).where(
        rounds.c.campaign_id == campaign_id, rounds.c.details.like('%"runner_up"%')
    )
    changed = []
    for row in connection.execute(query):
        details = json.loads(row.details)
        if (details.get("runner_up") or {}).get("id") in ids:
            del details["runner_up"]
            changed.append({"of_round": row.id, "kept": json.dumps(details, ensure_ascii=False)})
    if changed:
        connection.execute(
            update(rounds).where(rounds.c.id == bindparam("of_round")).values(details=bindparam("kept")), changed
        )


def _delete_decisions(connection: Connection, made_for: Sequence[Any]) -> int:
    """Delete all arms and rewards of these rounds, and what else they say of their unit; return how many rows."""
    if not made_for:
        return 0
    these, n_rows = [{"of_round": row.id} for row in made_for], 0
    for table in (rewards, chosen):
        n_rows += connection.execute(delete(table).where(table.c.round_id == bindparam("of_round")), these).rowcount
    nothing = {"unit": None, "key": None, "details": "{}"}
    connection.execute(update(rounds).where(rounds.c.id == bindparam("of_round")).values(nothing), these)
    return n_rows
