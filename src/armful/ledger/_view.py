"""`LedgerView`: all that can be read from a ledger."""

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from armful.ledger._engine import Store
from armful.ledger._reading import (
    as_round,
    plain_texts,
    read_chosen,
    read_ids,
    read_outcomes,
    read_position,
    read_round,
    select_rounds,
    sorted_once,
)
from armful.ledger._records import ChosenArms, RoundInfo, RoundOutcomes
from armful.ledger._schema import campaigns, chosen, rounds, snapshots
from armful.ledger._writing import in_parts


class LedgerView:
    """What can be read from a ledger; `Ledger` also writes."""

    def __init__(self, store: Store, campaign_id: int, name: str) -> None:
        self._store, self._id, self.name = store, campaign_id, name

    def close(self) -> None:
        """Close the connections to the store."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._store.name!r}, {self.name!r})"

    @property
    def settings(self) -> str:
        """The text of the settings that was kept last."""
        with self._store.reading() as connection:
            return str(connection.execute(select(campaigns.c.settings).where(campaigns.c.id == self._id)).scalar_one())

    @property
    def recipe(self) -> str | None:
        """The recipe of the features, frozen at the first round; None before."""
        with self._store.reading() as connection:
            recipe: str | None = connection.execute(
                select(campaigns.c.recipe).where(campaigns.c.id == self._id)
            ).scalar_one()
        return recipe

    def rounds(self) -> list[RoundInfo]:
        """Return all rounds, the first one first."""
        with self._store.reading() as connection:
            return [as_round(row) for row in connection.execute(select_rounds(self._id).order_by(rounds.c.number))]

    def last_round(self) -> RoundInfo | None:
        """Return the last round; None before the first."""
        query = select_rounds(self._id).order_by(rounds.c.number.desc()).limit(1)
        with self._store.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else as_round(row)

    def round(self, number: int) -> RoundInfo:
        """Return the round with this number; raise UnknownRoundError if there is none."""
        with self._store.reading() as connection:
            return as_round(read_round(connection, self._id, number))

    def round_by_key(self, key: str) -> RoundInfo | None:
        """Return the round with this key; None if there is none."""
        with self._store.reading() as connection:
            row = connection.execute(select_rounds(self._id).where(rounds.c.key == key)).one_or_none()
        return None if row is None else as_round(row)

    def chosen(self, number: int) -> ChosenArms:
        """Return the arms of a round, by share and position."""
        with self._store.reading() as connection:
            return read_chosen(connection, self._id, number)

    def chosen_ids(self, number: int) -> NDArray[np.str_]:
        """Return the ids of a round's arms, in the order of `chosen`."""
        with self._store.reading() as connection:
            return read_ids(connection, read_round(connection, self._id, number).id)

    def ids_chosen(self, numbers: Iterable[int], shares: Sequence[str] = ("chosen", "holdout")) -> NDArray[np.str_]:
        """Return the ids that were in one of these rounds, each once, sorted.

        Parameters
        ----------
        numbers : iterable of int
            The rounds; those that are not there are left out.
        shares : sequence of str
            Only arms of these shares.
        """
        wanted, found = sorted(set(map(int, numbers))), list[str]()
        query = select(chosen.c.arm).join(rounds, rounds.c.id == chosen.c.round_id)
        query = query.where(rounds.c.campaign_id == self._id, chosen.c.share.in_(list(shares)))
        with self._store.reading() as connection:
            for some in in_parts(wanted):
                found.extend(plain_texts(connection.execute(query.where(rounds.c.number.in_(some)))))
        return sorted_once(np.array(found, dtype=np.str_))

    def outcomes(self, number: int) -> RoundOutcomes:
        """Return the last reward of each arm of a round, in the order of `chosen`."""
        with self._store.reading() as connection:
            return read_outcomes(self._store, connection, self._id, number)

    def chosen_and_outcomes(self, number: int) -> tuple[ChosenArms, RoundOutcomes]:
        """Return `chosen` and `outcomes` of a round at the same moment, whatever other processes do."""
        with self._store.reading() as connection:
            arms = read_chosen(connection, self._id, number)
            return arms, read_outcomes(self._store, connection, self._id, number, arms.ids)

    def position(self) -> int:
        """Return the position of the campaign: it grows with every reward and every erasure."""
        with self._store.reading() as connection:
            return read_position(connection, self._id)

    def last_reward_positions(self) -> dict[int, int]:
        """Return for each round with rewards the position of the last one, or of a later erasure from the round.

        A snapshot with this position or a later one holds all that is known of the round.
        """
        columns = (rounds.c.number, rounds.c.last_reward, rounds.c.last_erasure)
        with self._store.reading() as connection:
            rows = connection.execute(select(*columns).where(rounds.c.campaign_id == self._id)).all()
        last = {number: max(reward or 0, erasure or 0) for number, reward, erasure in rows}
        return {number: position for number, position in sorted(last.items()) if position}

    def snapshot(self, first: int, last: int) -> tuple[int, bytes] | None:
        """Return position and state of the snapshot of the rounds `first` to `last`; None if there is none."""
        columns = (snapshots.c.position, snapshots.c.state)
        query = select(*columns).where(
            snapshots.c.campaign_id == self._id, snapshots.c.first_round == first, snapshots.c.last_round == last
        )
        with self._store.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else (row.position, bytes(row.state))
