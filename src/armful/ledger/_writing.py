"""Writing rounds, rewards and snapshots on a given connection, so that one transaction may hold several."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import repeat
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Row, delete, func, insert, select, update

from armful.checks import FloatArray, IntArray
from armful.errors import LedgerError
from armful.ledger._engine import Store
from armful.ledger._records import SHARES, ChosenArms, RewardCounts, RoundInfo
from armful.ledger._schema import campaigns, chosen, rewards, rounds, snapshots

AT_A_TIME = 1000
"""How many ids one query asks for."""
LONGEST_NAME = 2000
"""In bytes: an entry of an index has at most 2,704 in PostgreSQL."""
Value = TypeVar("Value")


def lock_campaign(connection: Connection, campaign_id: int) -> Row[Any]:
    """Return the row of the campaign; no other transaction writes to the campaign until this one ends."""
    query = select(campaigns).where(campaigns.c.id == campaign_id).with_for_update()
    return connection.execute(query).one()


def write_round(
    store: Store,
    connection: Connection,
    campaign_id: int,
    *,
    number: int,
    key: str | None,
    chosen_at: datetime,
    closes_at: datetime,
    details: Mapping[str, Any],
    arms: ChosenArms,
    settings: str,
    recipe: str | None,
) -> RoundInfo:
    """Add a round with its arms, and return it; raise LedgerError if its number or its key is taken."""
    cursor = store.cursor(connection)
    store.check_durable(cursor)
    order = _checked_order(arms)
    check_texts([key or "", settings, recipe or ""])
    campaign = lock_campaign(connection, campaign_id)
    _check_number(connection, campaign_id, number, key)
    if recipe is not None and campaign.recipe not in (None, recipe):
        raise LedgerError("the recipe of the features was frozen at the first round, and the one given is another")
    news = {"settings": settings, "recipe": recipe or campaign.recipe}
    if (campaign.settings, campaign.recipe) != tuple(news.values()):
        connection.execute(update(campaigns).where(campaigns.c.id == campaign_id).values(news))
    values: dict[str, Any] = {"campaign_id": campaign_id, "number": number, "key": key}
    values |= {"chosen_at": aware("chosen_at", chosen_at), "closes_at": aware("closes_at", closes_at)}
    values |= {"n_features": arms.features.shape[1], "details": _as_json(details)}
    round_id = connection.execute(insert(rounds).values(values).returning(rounds.c.id)).scalar_one()
    columns = ("round_id", "arm", "position", "share", "predicted", "bonus", "capped", "probability", "features")
    store.insert(cursor, chosen, [*columns, "groups"], _chosen_rows(round_id, arms, order))
    cursor.close()
    return RoundInfo(
        id=round_id,
        number=number,
        key=key,
        chosen_at=values["chosen_at"],
        closes_at=values["closes_at"],
        details=json.loads(values["details"]),
    )


def _check_number(connection: Connection, campaign_id: int, number: int, key: str | None) -> None:
    if key is not None:
        query = select(rounds.c.number).where(rounds.c.campaign_id == campaign_id, rounds.c.key == key)
        same = connection.execute(query).scalar()
        if same is not None:
            raise LedgerError(f"the key {key!r} is that of round {same} already: nothing was changed, give another key")
    last = (
        connection.execute(select(func.max(rounds.c.number)).where(rounds.c.campaign_id == campaign_id)).scalar() or 0
    )
    if number <= last:
        raise LedgerError(
            f"round {number} was chosen by another command meanwhile: nothing was changed, run this one again"
        )
    if number != last + 1:
        raise LedgerError(f"rounds are numbered one by one: the next is {last + 1}, got {number}")


def _checked_order(arms: ChosenArms) -> IntArray:
    """Return the arms in the order of the primary key, in which pages fill one after another; check them."""
    unknown = set(np.unique(arms.shares).tolist()) - set(SHARES)
    if unknown:
        raise LedgerError(f"a share must be one of {', '.join(SHARES)}, got {sorted(unknown)[0]!r}")
    if not np.isfinite(arms.features).all():
        raise LedgerError("features must be finite, and within the range of float32")
    order: IntArray = np.argsort(arms.ids, kind="stable")
    ids = arms.ids[order]
    repeated = ids[1:][ids[1:] == ids[:-1]]
    if repeated.size:
        raise LedgerError(f"an arm can be chosen once in a round, and {str(repeated[0])!r} is there twice")
    check_ids(arms.ids.tolist())
    for values in arms.groups.values():
        check_texts(np.unique(values).tolist())
    return order


def check_ids(ids: Sequence[str]) -> None:
    """Raise LedgerError if an id is empty or no database can hold it."""
    if "" in ids:
        raise LedgerError("an id must not be empty")
    check_texts(ids)


def check_texts(texts: Iterable[str]) -> None:
    """Raise LedgerError if there is a text that no database can hold."""
    joined = "".join(texts)
    if "\0" in joined:
        raise LedgerError("a text must not hold the character NUL")
    try:
        joined.encode()
    except UnicodeEncodeError as error:
        raise LedgerError(f"a text is no valid Unicode: it holds {error.object[error.start]!r}") from None


def check_lengths(names: Iterable[str]) -> None:
    """Raise LedgerError if a name is longer than an index of PostgreSQL takes."""
    for name in names:
        if 4 * len(name) > LONGEST_NAME and len(name.encode()) > LONGEST_NAME:
            raise LedgerError(f"a key, a unit or an id has at most {LONGEST_NAME} bytes, got {name[:20]!r}...")


def _chosen_rows(round_id: int, arms: ChosenArms, order: IntArray) -> Iterator[tuple[Any, ...]]:
    width = 4 * arms.features.shape[1]
    for begin in range(0, len(order), AT_A_TIME):
        some = order[begin : begin + AT_A_TIME]
        features = arms.features[some].astype("<f4", copy=False)
        yield from zip(
            repeat(round_id),
            arms.ids[some].tolist(),
            arms.positions[some].tolist(),
            arms.shares[some].tolist(),
            _none_for_nan(arms.predicted[some]),
            _none_for_nan(arms.bonus[some]),
            arms.capped[some].tolist(),
            _none_for_nan(arms.probabilities[some]),
            features.view(f"V{width}").ravel().tolist() if width else repeat(b""),
            _group_texts(arms.groups, some),
            strict=False,
        )


def _none_for_nan(values: FloatArray) -> Iterable[float | None]:
    numbers: list[float] = values.tolist()
    missing = np.isnan(values)
    if not missing.any():
        return numbers
    return repeat(None) if missing.all() else [None if value != value else value for value in numbers]  # noqa: PLR0124


def _group_texts(groups: Mapping[str, NDArray[np.str_]], some: IntArray) -> Iterable[str | None]:
    """Return each arm's groups as JSON, None if there are no quotas."""
    if not groups:
        return repeat(None, len(some))
    rows = list(zip(*(values[some].tolist() for values in groups.values()), strict=True))
    texts = {row: json.dumps(dict(zip(groups, row, strict=True)), ensure_ascii=False) for row in set(rows)}
    return [texts[row] for row in rows]


def write_rewards(
    store: Store,
    connection: Connection,
    campaign_id: int,
    *,
    numbers: IntArray,
    ids: NDArray[np.str_],
    values: FloatArray,
    received_at: datetime,
) -> RewardCounts:
    """Add rewards of arms that were chosen, and count them; raise LedgerError if one was not."""
    cursor = store.cursor(connection)
    store.check_durable(cursor)
    position = lock_campaign(connection, campaign_id).position
    moment = store.moment(aware("received_at", received_at))
    rows: list[tuple[Any, ...]] = []
    counts = {"new": 0, "repeated": 0, "corrected": 0}
    order = np.lexsort((ids, numbers))  # that of the primary key
    numbers, ids, values = numbers[order], ids[order], values[order]
    for number in np.unique(numbers).tolist():
        query = select(rounds.c.id).where(rounds.c.campaign_id == campaign_id, rounds.c.number == number)
        round_id = connection.execute(query).scalar()
        if round_id is None:
            raise LedgerError(f"there is no round {number}: nothing was changed")
        mine = numbers == number
        arms, news = ids[mine].tolist(), values[mine].tolist()
        known = _known_rewards(connection, round_id, arms)
        for arm, reward in zip(arms, news, strict=True):
            if arm not in known:
                raise LedgerError(f"{arm!r} was not chosen in round {number}: nothing was changed")
            before = known[arm]
            if before == reward:
                counts["repeated"] += 1
                continue
            counts["new" if before is None else "corrected"] += 1
            position += 1
            rows.append((round_id, arm, position, reward, moment))
        if rows and rows[-1][0] == round_id:
            connection.execute(update(rounds).where(rounds.c.id == round_id).values(last_reward=position))
    store.insert(cursor, rewards, ("round_id", "arm", "seq", "reward", "received_at"), rows)
    cursor.close()
    move_to(connection, campaign_id, position)
    return RewardCounts(**counts)


def _known_rewards(connection: Connection, round_id: int, arms: Sequence[str]) -> dict[str, float | None]:
    """Return the present reward of each of these arms, None where none came; arms that were not chosen are left out."""
    known: dict[str, float | None] = {}
    # Of many arms the whole round is read: one pass, whatever a planner makes of a long list.
    lists = [None] if len(arms) > 10 * AT_A_TIME else in_parts(arms)
    for some in lists:
        of_chosen = select(chosen.c.arm).where(chosen.c.round_id == round_id)
        of_rewards = select(rewards.c.arm, rewards.c.reward).where(rewards.c.round_id == round_id)
        if some is not None:
            of_chosen, of_rewards = of_chosen.where(chosen.c.arm.in_(some)), of_rewards.where(rewards.c.arm.in_(some))
        known |= dict.fromkeys(connection.execute(of_chosen).scalars())
        known.update((arm, reward) for arm, reward in connection.execute(of_rewards.order_by(rewards.c.seq)))
    return known


def in_parts(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """Yield the values, as many at a time as one query asks for."""
    for begin in range(0, len(values), AT_A_TIME):
        yield values[begin : begin + AT_A_TIME]


def move_to(connection: Connection, campaign_id: int, position: int) -> None:
    """Note the last number that was taken."""
    connection.execute(update(campaigns).where(campaigns.c.id == campaign_id).values(position=position))


def write_snapshot(
    connection: Connection, campaign_id: int, first: int, last: int, position: int, state: bytes
) -> None:
    """Keep a state in place of an older one; keep nothing if it is older, or somebody was erased from it since."""
    lock_campaign(connection, campaign_id)
    this = (
        (snapshots.c.campaign_id == campaign_id) & (snapshots.c.first_round == first) & (snapshots.c.last_round == last)
    )
    there = connection.execute(select(snapshots.c.position).where(this)).scalar()
    covered = (rounds.c.campaign_id == campaign_id) & rounds.c.number.between(first, last)
    erased = connection.execute(select(func.max(rounds.c.last_erasure)).where(covered)).scalar()
    if position < max(there or 0, erased or 0):
        return
    connection.execute(delete(snapshots).where(this))
    values = {"campaign_id": campaign_id, "first_round": first, "last_round": last, "position": position}
    connection.execute(insert(snapshots).values(**values, state=state, made_at=datetime.now(UTC)))


def aware(name: str, moment: datetime) -> datetime:
    """Return a time in UTC; raise LedgerError if it has no time zone."""
    if moment.tzinfo is None:
        raise LedgerError(f"{name} must have a time zone, got {moment}; datetime.now(UTC) has one")
    return moment.astimezone(UTC)


def _as_json(details: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(details), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise LedgerError(f"details must be plain values that JSON can hold: {error}") from None
