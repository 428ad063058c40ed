"""`ServiceView`: what the decision service reads from a ledger."""

from datetime import datetime

import numpy as np
from sqlalchemy import func, select, union

from armful.checks import IntArray
from armful.ledger._decision_records import KeyInfo, ModelInfo, RoundBlock
from armful.ledger._models import COLUMNS, as_model, newest
from armful.ledger._registry import as_key, find_key, last_change
from armful.ledger._round_blocks import read_block
from armful.ledger._schema import arms, erasures, keys, models, rounds, snapshots
from armful.ledger._view import LedgerView
from armful.ledger._writing import check_texts


class ServiceView(LedgerView):
    """What can be read from a ledger, with what the decision service needs."""

    def block(self, first: int, last: int) -> RoundBlock:
        """Return the rounds `first` to `last`, both included, with their arms and rewards at one moment.

        Rounds that are not there are left out. All rounds with arms must have as many features.
        """
        with self._store.reading() as connection:
            return read_block(self._store, connection, self._id, first, last)

    def last_number(self) -> int:
        """Return the number of the last round; 0 before the first."""
        with self._store.reading() as connection:
            query = select(func.max(rounds.c.number)).where(rounds.c.campaign_id == self._id)
            return connection.execute(query).scalar() or 0

    def has_decisions(self) -> bool:
        """Return whether one of the rounds is a single decision of the service."""
        query = select(rounds.c.id).where(rounds.c.campaign_id == self._id, rounds.c.model_version.is_not(None))
        with self._store.reading() as connection:
            return connection.execute(query.limit(1)).first() is not None

    def changed_rounds(self, after: int) -> IntArray:
        """Return the numbers of rounds with a reward or an erasure after this position, increasing."""
        number, mine = select(rounds.c.number), rounds.c.campaign_id == self._id
        query = union(
            number.where(mine, rounds.c.last_reward > after), number.where(mine, rounds.c.last_erasure > after)
        )
        with self._store.reading() as connection:
            return np.sort(np.array(connection.execute(query).scalars().all(), dtype=np.int64))

    def last_changes(self, size: int) -> dict[int, int]:
        """Return the position of the last reward or erasure in each `size` consecutive rounds, counted from 0.

        Those without any are left out. A snapshot with this position or a later one holds all that is known of them.
        """
        part = ((rounds.c.number - 1) // size).label("part")
        columns = (part, func.max(rounds.c.last_reward), func.max(rounds.c.last_erasure))
        query = select(*columns).where(rounds.c.campaign_id == self._id).group_by(part).order_by(part)
        with self._store.reading() as connection:
            rows = connection.execute(query).all()
        last = {int(index): max(reward or 0, erasure or 0) for index, reward, erasure in rows}
        return {index: position for index, position in last.items() if position}

    def closed_rounds(self, after: datetime, until: datetime) -> IntArray:
        """Return the numbers of rounds whose window closed after `after` and not after `until`, increasing."""
        query = select(rounds.c.number).where(rounds.c.campaign_id == self._id)
        query = query.where(rounds.c.closes_at > after, rounds.c.closes_at <= until)
        with self._store.reading() as connection:
            return np.sort(np.array(connection.execute(query).scalars().all(), dtype=np.int64))

    def last_erasure(self) -> int:
        """Return the position of the last erasure; 0 before the first."""
        with self._store.reading() as connection:
            query = select(func.max(erasures.c.position)).where(erasures.c.campaign_id == self._id)
            return connection.execute(query).scalar() or 0

    def size(self) -> int:
        """Return how many bytes the store takes on the disk, with all campaigns in it."""
        return self._store.size()

    # -- models --------------------------------------------------------------------------------------

    def newest_model(self, *, state: bool = True) -> tuple[ModelInfo, bytes, str] | None:
        """Return the newest model with its state and its summary.

        None before the first, and after somebody was erased until the next one is published: the state could hold
        that person.

        Parameters
        ----------
        state : bool
            Whether to read the state; else it is empty.
        """
        columns = [*COLUMNS, models.c.summary, *([models.c.state] if state else [])]
        query = select(*columns).where(models.c.campaign_id == self._id, models.c.state.is_not(None))
        with self._store.reading() as connection:
            row = connection.execute(query.order_by(models.c.version.desc()).limit(1)).one_or_none()
        return None if row is None else (as_model(row), bytes(row.state) if state else b"", row.summary)

    def model_version(self) -> int:
        """Return the version of the newest model; 0 before the first."""
        with self._store.reading() as connection:
            version: int | None = connection.execute(newest(self._id)).scalar()
        return version or 0

    def models(self) -> list[ModelInfo]:
        """Return the last 100 models, the oldest first."""
        query = select(*COLUMNS).where(models.c.campaign_id == self._id).order_by(models.c.version)
        with self._store.reading() as connection:
            return [as_model(row) for row in connection.execute(query)]

    def segments(self, first: int = 1, last: int | None = None) -> dict[tuple[int, int], tuple[int, bytes]]:
        """Return position and state of each snapshot, by its first and last round.

        Parameters
        ----------
        first, last : int, optional
            Only of those that begin at `first` or later and end at `last` or earlier.
        """
        columns = (snapshots.c.first_round, snapshots.c.last_round, snapshots.c.position, snapshots.c.state)
        query = select(*columns).where(snapshots.c.campaign_id == self._id, snapshots.c.first_round >= first)
        if last is not None:
            query = query.where(snapshots.c.last_round <= last)
        with self._store.reading() as connection:
            rows = connection.execute(query).all()
        return {(first, last): (position, bytes(state)) for first, last, position, state in rows}

    # -- arms and keys -------------------------------------------------------------------------------

    def arms_since(self, change: int) -> tuple[int, list[tuple[str, bytes | None]]]:
        """Return the number of the last change, and the registered arms that changed after `change`.

        The content of an arm that was withdrawn is None. An arm that was erased by `forget` is gone: when
        `last_erasure` says another number than before, read all of them anew (`arms_since(0)`).
        """
        query = select(arms.c.arm, arms.c.content).where(arms.c.campaign_id == self._id, arms.c.change > change)
        with self._store.reading() as connection:
            rows = connection.execute(query.order_by(arms.c.change, arms.c.arm)).all()
            newest_change = last_change(connection, self._id)
        return newest_change, [(arm, None if content is None else bytes(content)) for arm, content in rows]

    def keys(self) -> list[KeyInfo]:
        """Return all keys, the oldest first."""
        query = select(keys).where(keys.c.campaign_id == self._id).order_by(keys.c.created_at, keys.c.id)
        with self._store.reading() as connection:
            return [as_key(row) for row in connection.execute(query)]

    def find_key(self, id: str) -> tuple[KeyInfo, bytes] | None:
        """Return a key and the hash of its secret; None if there is none."""
        check_texts([id])
        with self._store.reading() as connection:
            row = find_key(connection, self._id, id)
        return None if row is None else (as_key(row), bytes(row.hash))
