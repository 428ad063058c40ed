"""`Ledger`: what was decided and what came of it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sqlalchemy import insert, select, update

from armful.checks import IntArray
from armful.errors import LedgerError
from armful.ledger._engine import Store, open_store
from armful.ledger._erasing import erase
from armful.ledger._records import ChosenArms, RewardCounts, RoundInfo
from armful.ledger._schema import campaigns
from armful.ledger._service_ledger import ServiceLedger
from armful.ledger._writing import check_ids, write_rewards, write_round, write_snapshot


class Ledger(ServiceLedger):
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
        check_ids([campaign])
        query = select(campaigns.c.id).where(campaigns.c.name == campaign)
        with store.reading() as connection:
            campaign_id = connection.execute(query).scalar()
            names = connection.execute(select(campaigns.c.name).order_by(campaigns.c.name)).scalars().all()
        if campaign_id is None and not create:
            there = f"it has {', '.join(map(repr, names))}" if names else "it has none yet"
            raise LedgerError(f"there is no campaign {campaign!r} in {store.name}: {there}")
        if campaign_id is None:
            with store.writing() as connection:
                store.lock_schema(connection)  # another process may begin it too
                campaign_id = connection.execute(query).scalar()
                if campaign_id is None:
                    values = {"name": campaign, "settings": settings, "position": 0, "created_at": datetime.now(UTC)}
                    campaign_id = connection.execute(
                        insert(campaigns).values(values).returning(campaigns.c.id)
                    ).scalar_one()
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

    # -- the campaign --------------------------------------------------------------------------------

    def keep_settings(self, text: str) -> None:
        """Keep the text of the settings, in place of the one before."""
        with self._store.writing() as connection:
            connection.execute(update(campaigns).where(campaigns.c.id == self._id).values(settings=text))

    # -- rounds --------------------------------------------------------------------------------------

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
        if numbers.size and numbers.dtype.kind not in "iu":
            raise LedgerError(f"rounds must be whole numbers, got {numbers.dtype}")
        if not np.isfinite(values).all():
            raise LedgerError(f"rewards must be finite, got {values[~np.isfinite(values)][0]}")
        check_ids(arms.tolist())
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

    # -- snapshots -----------------------------------------------------------------------------------

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

        A record stays of how many were erased and when, without ids. In SQLite the bytes are gone from the files too:
        the file is written anew, which takes as much space again meanwhile. A PostgreSQL server frees the rows when it
        vacuums, and its logs and backups hold them as long as it keeps those.

        Parameters
        ----------
        ids : array_like of str, shape (n,)
            The people; those who are not there are left out.

        Returns
        -------
        int
            How many people were found and erased.
        """
        people = np.unique(np.atleast_1d(np.asarray(ids, dtype=np.str_)))
        check_ids(people.tolist())
        with self._store.writing() as connection:
            n_people = erase(connection, self._id, people.tolist())
        self._store.discard_old_pages()
        return n_people


def _refuse_repeats(numbers: IntArray, ids: NDArray[np.str_]) -> None:
    order = np.lexsort((ids, numbers))
    same = (numbers[order][1:] == numbers[order][:-1]) & (ids[order][1:] == ids[order][:-1])
    if same.any():
        row = order[1:][same][0]
        raise LedgerError(f"{str(ids[row])!r} has several rewards for round {numbers[row]}; give one of them")
