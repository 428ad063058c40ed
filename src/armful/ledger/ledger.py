"""`Ledger`: what was decided and what came of it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from armful.checks import IntArray
from armful.errors import LedgerError
from armful.ledger._engine import Store, open_store
from armful.ledger._erasing import erase
from armful.ledger._reading import (
    as_round,
    read_chosen,
    read_ids,
    read_outcomes,
    read_position,
    read_round,
    select_rounds,
)
from armful.ledger._records import ChosenArms, RewardCounts, RoundInfo, RoundOutcomes
from armful.ledger._schema import campaigns, chosen, rounds, snapshots
from armful.ledger._writing import check_texts, in_parts, write_rewards, write_round, write_snapshot


class Ledger:
    """The rounds of one campaign: who was chosen, on which features, and which rewards came.

    Rows are only added; a correction of a reward is a further row, and the last one holds. `forget` alone deletes. Each
    method is one transaction: all of it is kept, or nothing. When a method that writes returns, what it wrote
    survives a power cut. Several threads and processes may use the same store at once.

    Open one by `Ledger.open`; it is also a context manager.

    Attributes
    ----------
    name : str
        The name of the campaign.

    Examples
    --------
    >>> import tempfile
    >>> from datetime import UTC, datetime, timedelta
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from armful.ledger import ChosenArms, Ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.open(f"sqlite:///{Path(folder.name, 'ledger.sqlite')}", "autumn", create=True)
    >>> arms = ChosenArms(
    ...     ids=np.array(["ann", "bob"]),
    ...     positions=np.array([0, 1]),
    ...     shares=np.array(["chosen", "chosen"]),
    ...     predicted=np.array([0.5, 0.4]),
    ...     bonus=np.array([0.2, 0.2]),
    ...     capped=np.array([False, False]),
    ...     probabilities=np.array([np.nan, np.nan]),
    ...     features=np.array([[1.0, 0.0], [0.5, 0.5]], dtype=np.float32),
    ... )
    >>> now = datetime.now(UTC)
    >>> window = {"chosen_at": now, "closes_at": now + timedelta(days=14)}
    >>> ledger.add_round(number=1, key="monday", details={}, chosen=arms, settings="", **window).number
    1
    >>> ledger.add_rewards([1], ["bob"], [1.0], received_at=now)
    RewardCounts(new=1, repeated=0, corrected=0)
    >>> ledger.add_rewards([1, 1], ["bob", "ann"], [1.0, 0.0], received_at=now)
    RewardCounts(new=1, repeated=1, corrected=0)
    >>> ledger.outcomes(1).rewards
    array([0., 1.])
    >>> ledger.forget(["ann"])
    1
    >>> ledger.chosen(1).ids
    array(['bob'], dtype='<U3')
    >>> ledger.close()
    >>> folder.cleanup()
    """

    def __init__(self, store: Store, campaign_id: int, name: str) -> None:
        self._store, self._id, self.name = store, campaign_id, name

    @classmethod
    def open(cls, url: str, campaign: str, *, create: bool = False, settings: str = "") -> Self:
        """Open the ledger of a campaign; a store of an older version is brought up to date.

        Parameters
        ----------
        url : str
            `sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/DATABASE`.
        campaign : str
            The name of the campaign.
        create : bool
            Whether to begin the campaign, and the store, if it is not there.
        settings : str
            The settings of a campaign that is begun.

        Raises
        ------
        LedgerError
            The store cannot be reached, is no ledger or was written by a newer version, or there is no such campaign.
        """
        store = open_store(url, create=create)
        try:
            return cls._of_store(store, campaign, create=create, settings=settings)
        except BaseException:
            store.close()
            raise

    @classmethod
    def _of_store(cls, store: Store, campaign: str, *, create: bool, settings: str) -> Self:
        check_texts(np.array([campaign]))
        query = select(campaigns.c.id).where(campaigns.c.name == campaign)
        with store.reading() as connection:
            campaign_id = connection.execute(query).scalar()
            names = connection.execute(select(campaigns.c.name).order_by(campaigns.c.name)).scalars().all()
        if campaign_id is None and not create:
            there = f"it has {', '.join(map(repr, names))}" if names else "it has none yet"
            raise LedgerError(f"there is no campaign {campaign!r} in {store.name}: {there}")
        if campaign_id is None:
            values = {"name": campaign, "settings": settings, "position": 0, "created_at": datetime.now(UTC)}
            try:
                with store.writing() as connection:
                    connection.execute(insert(campaigns).values(values))
            except LedgerError as error:
                if not isinstance(error.__cause__, IntegrityError):  # another process may have begun it
                    raise
            with store.reading() as connection:
                campaign_id = connection.execute(query).scalar_one()
        return cls(store, campaign_id, campaign)

    @staticmethod
    def campaigns(url: str) -> list[str]:
        """Return the names of the campaigns in a store, sorted."""
        store = open_store(url, create=False)
        try:
            with store.reading() as connection:
                return sorted(connection.execute(select(campaigns.c.name)).scalars())
        finally:
            store.close()

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
        return f"Ledger({self._store.name!r}, {self.name!r})"

    # -- the campaign --------------------------------------------------------------------------------

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

    def keep_settings(self, text: str) -> None:
        """Keep the text of the settings, in place of the one before."""
        with self._store.writing() as connection:
            connection.execute(update(campaigns).where(campaigns.c.id == self._id).values(settings=text))

    # -- rounds --------------------------------------------------------------------------------------

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
        """Return the round with this number; raise LedgerError if there is none."""
        with self._store.reading() as connection:
            return as_round(read_round(connection, self._id, number))

    def round_by_key(self, key: str) -> RoundInfo | None:
        """Return the round with this key; None if there is none."""
        with self._store.reading() as connection:
            row = connection.execute(select_rounds(self._id).where(rounds.c.key == key)).one_or_none()
        return None if row is None else as_round(row)

    def add_round(
        self,
        *,
        number: int,
        key: str | None,
        chosen_at: datetime,
        closes_at: datetime,
        details: Mapping[str, Any],
        chosen: ChosenArms,
        settings: str,
        recipe: str | None = None,
    ) -> RoundInfo:
        """Add a round with all its arms, or nothing.

        Parameters
        ----------
        number : int
            The number after that of the last round; the first is 1.
        key : str or None
            The caller's own name for the round, which no other round may have.
        chosen_at : datetime
            When it was chosen, with a time zone.
        closes_at : datetime
            When its window for outcomes closes, with a time zone.
        details : mapping
            Whatever else is to be kept, in values that JSON can hold; no ids of people, since `forget` leaves it.
        chosen : ChosenArms
            The arms.
        settings : str
            The settings that the round was chosen under; they become those of the campaign.
        recipe : str, optional
            The recipe of the features. The first one given is kept, and a later one must be the same.

        Raises
        ------
        LedgerError
            The number or the key was taken meanwhile, the recipe is another one, or the store cannot be written to.
        """
        with self._store.writing() as connection:
            return write_round(
                self._store,
                connection,
                self._id,
                number=number,
                key=key,
                chosen_at=chosen_at,
                closes_at=closes_at,
                details=details,
                arms=chosen,
                settings=settings,
                recipe=recipe,
            )

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
        wanted, found = sorted(set(map(int, numbers))), set[str]()
        query = select(chosen.c.arm).join(rounds, rounds.c.id == chosen.c.round_id)
        query = query.where(rounds.c.campaign_id == self._id, chosen.c.share.in_(list(shares)))
        with self._store.reading() as connection:
            for some in in_parts(wanted):
                found.update(connection.execute(query.where(rounds.c.number.in_(some))).scalars())
        return np.array(sorted(found), dtype=np.str_)

    # -- rewards -------------------------------------------------------------------------------------

    def add_rewards(self, rounds: ArrayLike, ids: ArrayLike, rewards: ArrayLike, received_at: datetime) -> RewardCounts:
        """Add rewards, or nothing: a reward that is known adds nothing, another one is a correction.

        Parameters
        ----------
        rounds : array_like of int, shape (m,)
            The number of the round of each reward.
        ids : array_like of str, shape (m,)
            Its arm, which must have been chosen in that round; each (round, arm) once.
        rewards : array_like of float, shape (m,)
            Finite numbers.
        received_at : datetime
            When they came, with a time zone.

        Raises
        ------
        LedgerError
            An arm was not chosen in its round or is there twice, a reward is not finite, or the store cannot be
            written to.
        """
        numbers, arms, values = (
            np.asarray(rounds),
            np.asarray(ids, dtype=np.str_),
            np.asarray(rewards, dtype=np.float64),
        )
        if not arms.shape == values.shape == numbers.shape == (arms.size,):
            raise LedgerError(
                "rounds, ids and rewards must be as many, one by one, got the shapes "
                f"{numbers.shape}, {arms.shape} and {values.shape}"
            )
        if not np.isfinite(values).all():
            raise LedgerError(f"rewards must be finite, got {values[~np.isfinite(values)][0]}")
        _refuse_repeats(numbers.astype(np.int64), arms)
        with self._store.writing() as connection:
            return write_rewards(
                self._store,
                connection,
                self._id,
                numbers=numbers.astype(np.int64),
                ids=arms,
                values=values,
                received_at=received_at,
            )

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

    # -- snapshots -----------------------------------------------------------------------------------

    def snapshot(self, first: int, last: int) -> tuple[int, bytes] | None:
        """Return position and state of the snapshot of the rounds `first` to `last`; None if there is none."""
        columns = (snapshots.c.position, snapshots.c.state)
        query = select(*columns).where(
            snapshots.c.campaign_id == self._id, snapshots.c.first_round == first, snapshots.c.last_round == last
        )
        with self._store.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else (row.position, bytes(row.state))

    def add_snapshot(self, first: int, last: int, position: int, state: bytes) -> None:
        """Keep the state of some rounds, to save folding them again.

        It replaces an older snapshot of the same rounds. Nothing is kept if a newer one is there, or if somebody was
        erased from these rounds after `position`: the state could still hold that person.

        Parameters
        ----------
        first, last : int
            The rounds, both included.
        position : int
            The position of the outcomes that the state was made of (`RoundOutcomes.position`).
        state : bytes
            The state.
        """
        with self._store.writing() as connection:
            write_snapshot(connection, self._id, first, last, position, state)

    # -- erasing -------------------------------------------------------------------------------------

    def forget(self, ids: ArrayLike) -> int:
        """Erase people: their arms and rewards in all rounds, and the snapshots of states that they were in.

        A record stays of how many were erased and when, without ids. In SQLite the bytes are gone from the files too. A
        PostgreSQL server overwrites them when it vacuums.

        Parameters
        ----------
        ids : array_like of str, shape (n,)
            The people; those who are not there are left out.

        Returns
        -------
        int
            How many people were found and erased.
        """
        people = np.unique(np.atleast_1d(np.asarray(ids, dtype=np.str_))).tolist()
        with self._store.writing() as connection:
            n_people = erase(connection, self._id, people)
        self._store.discard_old_pages()
        return n_people


def _refuse_repeats(numbers: IntArray, ids: NDArray[np.str_]) -> None:
    order = np.lexsort((ids, numbers))
    same = (numbers[order][1:] == numbers[order][:-1]) & (ids[order][1:] == ids[order][:-1])
    if same.any():
        row = order[1:][same][0]
        raise LedgerError(f"{str(ids[row])!r} has several rewards for round {numbers[row]}; give one of them")
