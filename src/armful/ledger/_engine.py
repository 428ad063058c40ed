"""A database that a ledger is kept in: connections, transactions and error messages; all else is the same for all."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Engine, Table
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from armful.errors import LedgerError
from armful.ledger._schema import SCHEMA_VERSION
from armful.ledger._versions import check_free, check_version, migrate, schema_version

LOCK_SECONDS = 30
"""How long a command waits for another one that is writing."""


class Store(ABC):
    """One database. `name` is what error messages call it, without a password."""

    engine: Engine
    name: str
    driver_errors: tuple[type[Exception], ...]
    alone = False
    """Whether nothing but a ledger may be in the database."""
    flag: Callable[[bool], Any] = bool
    """Turns a bool into what `insert` takes."""
    blob: Callable[[bytes], Any] = bytes
    """Turns bytes into what `insert` takes."""

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection on which all reads see the same moment."""
        with self._explained(), self.engine.connect() as connection:
            try:
                yield self._begin_read(connection)
            except LedgerError:
                raise
            except (ValueError, KeyError, TypeError) as error:  # of reading times, JSON or rewards of nobody
                reason = f"it holds what armful does not write, {error}"
                raise LedgerError(f"{self.name} is damaged: {reason}; restore it from a backup") from error

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a connection on which all is written durably at the end, or nothing."""
        with self._explained(), self.engine.connect() as connection, self._begin_write(connection):
            yield connection

    @contextmanager
    def writing_rows(self) -> Iterator[Any]:
        """Give a cursor of the driver on which all is written durably at the end, or nothing."""
        with self.writing() as connection:
            cursor = self.cursor(connection)
            self.check_durable(cursor)
            yield cursor
            cursor.close()

    def prepare(self, *, create: bool) -> None:
        """Check that this is a ledger and bring its schema up to date; with `create`, make one of an empty database."""
        with self.reading() as connection:
            version = schema_version(connection)
        check_version(version, self.name)
        if version == SCHEMA_VERSION:
            return
        with self.writing() as connection:
            self.lock_schema(connection)
            version = schema_version(connection)  # another process may have been faster
            check_version(version, self.name)
            if version is None:
                check_free(connection, self.name, alone=self.alone)
                if not create:
                    raise LedgerError(f"there is no ledger in {self.name}; `armful init` begins a campaign")
            if version != SCHEMA_VERSION:
                migrate(connection)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of the database into a LedgerError of one sentence."""
        try:
            yield
        except LedgerError:
            raise
        except DBAPIError as error:
            raise LedgerError(self.explain(error.orig or error)) from error
        except SQLAlchemyError as error:
            raise LedgerError(self.explain(error)) from error
        except self.driver_errors as error:  # of what SQLAlchemy does not see: bulk inserts
            raise LedgerError(self.explain(error)) from error

    @abstractmethod
    def _begin_read(self, connection: Connection) -> Connection:
        """Return the connection, set up to read."""

    @abstractmethod
    def _begin_write(self, connection: Connection) -> Any:
        """Return a context manager: the transaction."""

    @abstractmethod
    def lock_schema(self, connection: Connection) -> None:
        """Wait until no other process changes the schema; the lock ends with the transaction."""

    @abstractmethod
    def check_durable(self, cursor: Any) -> None:
        """Raise LedgerError if a commit would not survive a power cut."""

    @abstractmethod
    def insert(self, cursor: Any, table: Table, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Insert many rows, given as the driver takes them; `moment` gives a time so."""

    def insert_few(self, cursor: Any, table: Table, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert as `insert` does, where there are up to some hundreds of rows."""
        self.insert(cursor, table, columns, rows)

    # -- statements of the driver itself ---------------------------------------------------------------

    def cursor(self, connection: Connection) -> Any:
        """Return a cursor of the driver."""
        return connection.connection.cursor()

    @abstractmethod
    def sql(self, statement: str) -> str:
        """Return a statement with ? for its parameters as the driver takes it."""

    @abstractmethod
    def one_of(self, column: str) -> str:
        """Return the condition that a column is one of the values of a parameter, which `list_value` makes."""

    @abstractmethod
    def list_value(self, values: Sequence[Any]) -> Any:
        """Return several values as one parameter."""

    @abstractmethod
    def lock_campaign(self, cursor: Any, campaign_id: int) -> tuple[int, int]:
        """Return the position of a campaign and the number of its last round, 0 if there is none.

        No other transaction writes to the campaign until this one ends.
        """

    @abstractmethod
    def insert_rounds(self, cursor: Any, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Sequence[int]:
        """Insert rounds as `insert_few` does, and return the id that each got."""

    @abstractmethod
    def known_rewards(
        self, cursor: Any, campaign_id: int, pairs: Sequence[tuple[int, str]]
    ) -> list[tuple[int | None, bool, float | None]]:
        """Return what is known of each (number of the round, arm): id of the round, whether chosen, the last reward."""

    @abstractmethod
    def updater_lock(self, campaign_id: int) -> AbstractContextManager[bool]:
        """Give whether this process holds the lock of the campaign's updater."""

    @abstractmethod
    def size(self) -> int:
        """Return how many bytes the ledger takes on the disk, with all campaigns in it."""

    @abstractmethod
    def compact(self) -> None:
        """Give back space that is not used, and bring the statistics of the query planner up to date."""

    @abstractmethod
    def moment(self, value: datetime) -> Any:
        """Return a time as `insert` takes it."""

    @abstractmethod
    def seconds(self, moment: Any) -> float:
        """Return the seconds since 1970 of a time as the driver gives it."""

    @abstractmethod
    def discard_old_pages(self) -> None:
        """Remove copies of erased rows that the database itself still holds, where it can be told to."""

    @abstractmethod
    def explain(self, error: BaseException) -> str:
        """Return one sentence that says what went wrong, and what to do."""


def open_store(url: str, *, create: bool) -> Store:
    """Return the store at a URL, prepared."""
    from armful.ledger._postgresql import PostgresqlStore  # noqa: PLC0415 - circular
    from armful.ledger._sqlite import SqliteStore  # noqa: PLC0415

    parsed = parse_url(url)
    store: Store
    if parsed.get_backend_name() == "sqlite":
        store = SqliteStore(parsed.database or "", create=create)
    else:
        store = PostgresqlStore(parsed)
    try:
        store.prepare(create=create)
    except BaseException:
        store.close()
        raise
    return store


EXPECTED = "a store is sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE"


def parse_url(url: str) -> URL:
    """Return the parts of the URL of a store; no message repeats what may hold a password."""
    file = re.fullmatch(r"sqlite(\+pysqlite)?://(/(?P<path>.+))?", url, re.DOTALL)
    if file:
        path = file["path"]  # as it is: a folder may have a question mark or a percent sign in its name
        if path in (None, ":memory:") or re.search(r"\?\w+=[^/]*$", path):
            raise LedgerError(f"{EXPECTED}; in SQLite it needs the name of a file and nothing else, got {url}")
        return URL.create("sqlite", database=path)
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise LedgerError(f"{EXPECTED}, and what was given cannot be read as one") from None
    if parsed.drivername not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise LedgerError(f"{EXPECTED}, got one of the kind {parsed.drivername!r}")
    return parsed.set(drivername="postgresql+psycopg")
