"""`ServiceLedger`: what the decision service writes to a ledger."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime

from sqlalchemy import update

from armful.errors import LedgerError
from armful.ledger._decision_records import Decided, KeyInfo, ModelInfo, NewDecision, NewRewards, RewardsAdded
from armful.ledger._decisions import write_decisions, write_reward_requests
from armful.ledger._models import write_model, write_segments
from armful.ledger._registry import revoke, write_arms, write_key
from armful.ledger._schema import campaigns, models
from armful.ledger._service_view import ServiceView
from armful.ledger._writing import aware, check_texts, lock_campaign


class ServiceLedger(ServiceView):
    """What the decision service reads and writes; `Ledger` has the rest."""

    def add_decisions(
        self, decisions: Sequence[NewDecision], settings: str | None = None
    ) -> list[Decided | LedgerError]:
        """Add decisions in one transaction; one that cannot be added does not fail the others.

        Parameters
        ----------
        decisions : sequence of NewDecision
            They are numbered in this order.
        settings : str, optional
            The settings that they were chosen under; they become those of the campaign.

        Returns
        -------
        list of Decided or LedgerError
            What became of each.

        Raises
        ------
        LedgerError
            The store cannot be written to: nothing was added.
        """
        with self._store.writing_rows() as cursor:
            _, last = self._store.lock_campaign(cursor, self._id)
            return write_decisions(self._store, cursor, self._id, last, decisions, settings)

    def add_reward_requests(self, requests: Sequence[NewRewards]) -> list[RewardsAdded | LedgerError]:
        """Add the rewards of several requests in one transaction; one that is refused does not fail the others.

        A reward that is known adds nothing, another one is a correction. Of several rewards of the same arm the last
        one holds.

        Parameters
        ----------
        requests : sequence of NewRewards
            They are added in this order.

        Returns
        -------
        list of RewardsAdded or LedgerError
            What became of each. A strict request with a reward that cannot be added is refused: `UnknownRoundError`,
            `NotChosenError` or another `LedgerError`.

        Raises
        ------
        LedgerError
            The store cannot be written to: nothing was added.
        """
        with self._store.writing_rows() as cursor:
            position, _ = self._store.lock_campaign(cursor, self._id)
            return write_reward_requests(self._store, cursor, self._id, position, requests)

    def add_group(self, requests: Sequence[NewDecision | NewRewards]) -> list[Decided | RewardsAdded | LedgerError]:
        """Add decisions and requests of rewards in one transaction, the decisions first.

        Returns
        -------
        list of Decided, RewardsAdded or LedgerError
            What became of each.
        """
        decisions = [request for request in requests if isinstance(request, NewDecision)]
        of_rewards = [request for request in requests if isinstance(request, NewRewards)]
        if len(decisions) + len(of_rewards) < len(requests):
            raise TypeError("a request must be a NewDecision or NewRewards")
        decided: list[Decided | LedgerError] = []
        added: list[RewardsAdded | LedgerError] = []
        with self._store.writing_rows() as cursor:
            position, last = self._store.lock_campaign(cursor, self._id)
            if decisions:
                decided = write_decisions(self._store, cursor, self._id, last, decisions)
            if of_rewards:
                added = write_reward_requests(self._store, cursor, self._id, position, of_rewards)
        of_decisions, of_others = iter(decided), iter(added)
        return [next(of_decisions if isinstance(request, NewDecision) else of_others) for request in requests]

    def freeze_recipe(self, text: str) -> None:
        """Freeze the recipe of the features before the first round; if one is frozen, it must be the same."""
        check_texts([text])
        with self._store.writing() as connection:
            frozen = lock_campaign(connection, self._id).recipe
            if frozen not in (None, text):
                raise LedgerError("the recipe of the features is frozen already, and the one given is another")
            connection.execute(update(campaigns).where(campaigns.c.id == self._id).values(recipe=text))

    # -- models --------------------------------------------------------------------------------------

    def publish_model(self, info: ModelInfo, state: bytes, summary: str) -> bool:
        """Publish a model, unless another one came first or somebody was erased since it read the ledger.

        The last 100 are listed, and only the newest keeps its state and summary.

        Parameters
        ----------
        info : ModelInfo
            Its version must be `model_version() + 1`, and its position not before that of the newest model or that
            of the last erasure.
        state : bytes
            The model.
        summary : str
            What a dashboard shows of it, as JSON.

        Returns
        -------
        bool
            Whether it is published now.
        """
        check_texts([summary])
        with self._store.writing() as connection:
            return write_model(connection, self._id, info, state, summary)

    def model_checked(self, version: int, at: datetime) -> None:
        """Note when a model was last found to be up to date."""
        this = (models.c.campaign_id == self._id) & (models.c.version == version)
        with self._store.writing() as connection:
            connection.execute(update(models).where(this).values(checked_at=aware("at", at)))

    def write_segments(self, states: Mapping[tuple[int, int], bytes], position: int) -> None:
        """Keep states of segments, by first and last round, as snapshots at one position (`add_snapshot`).

        A segment that has grown replaces the shorter ones that begin at the same round.
        """
        with self._store.writing() as connection:
            write_segments(connection, self._id, states, position)

    def updater_lock(self) -> AbstractContextManager[bool]:
        """Return a context manager that gives whether this process holds the campaign's updater lock until it ends.

        It does not wait. The lock ends with the process, however that ends: in PostgreSQL it is an advisory lock, and
        with SQLite a locked file beside that of the ledger.
        """
        return self._store.updater_lock(self._id)

    # -- arms and keys -------------------------------------------------------------------------------

    def put_arms(self, contents: Sequence[tuple[str, bytes | None]]) -> int:
        """Register arms, in place of what was registered under the same ids, and return the number of this change.

        Parameters
        ----------
        contents : sequence of tuple
            (arm, content), where None withdraws the arm. Of several with the same id the last one holds.
        """
        with self._store.writing() as connection:
            return write_arms(self._store, connection, self._id, contents)

    def add_key(
        self, *, id: str, hash: bytes, roles: Sequence[str], label: str = "", expires_at: datetime | None = None
    ) -> KeyInfo:
        """Add a key of the service.

        Parameters
        ----------
        id : str
            Its public part, which no other key of the campaign has.
        hash : bytes
            A hash of its secret part.
        roles : sequence of str
            Some of `"decide"`, `"reward"` and `"read"`.
        label : str
            What it is for.
        expires_at : datetime, optional
            When it ends by itself, with a time zone.
        """
        info = KeyInfo(
            id=id,
            label=label,
            roles=tuple(roles),
            created_at=datetime.now(UTC),
            expires_at=None if expires_at is None else aware("expires_at", expires_at),
            revoked_at=None,
        )
        with self._store.writing() as connection:
            write_key(connection, self._id, info, hash)
        return info

    def revoke_key(self, id: str) -> bool:
        """Revoke a key, for good; return whether there is such a key."""
        check_texts([id])
        with self._store.writing() as connection:
            return revoke(connection, self._id, id, datetime.now(UTC))

    # -- space ---------------------------------------------------------------------------------------

    def compact(self) -> None:
        """Give back space that is not used, and bring the statistics of the query planner up to date.

        Other processes may use the store meanwhile; in SQLite those that write wait until the file is written anew,
        which takes as much space again.
        """
        self._store.compact()
