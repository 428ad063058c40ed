"""A ledger in a PostgreSQL database, through psycopg 3."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, RootTransaction, Table, create_engine, text
from sqlalchemy.engine import URL

from armful.errors import LedgerError
from armful.ledger._engine import LOCK_SECONDS, Store

CONNECT_SECONDS = 10
SCHEMA_LOCK = 0x61726D66756C
"""The number of the advisory lock that is held while the schema is changed: "armful" in ASCII."""

WAIT_FOR_THE_DISK = """
SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'
"""
"""A role or a database may be set to acknowledge commits before they are on disk."""


class PostgresqlStore(Store):
    """A PostgreSQL database.

    Parameters
    ----------
    url : sqlalchemy.URL
        Where it is.
    """

    def __init__(self, url: URL) -> None:
        try:
            import psycopg  # noqa: PLC0415 - not needed for SQLite
        except ImportError:
            raise LedgerError("a store in PostgreSQL needs psycopg: pip install 'armful[campaigns]'") from None
        self._psycopg = psycopg
        self.driver_errors = (psycopg.Error,)
        plain = URL.create("postgresql", url.username, host=url.host, port=url.port, database=url.database)
        self.name = plain.render_as_string()
        limit = {} if "connect_timeout" in url.query else {"connect_timeout": CONNECT_SECONDS}
        self.engine = create_engine(url, connect_args=limit, pool_pre_ping=True, hide_parameters=True)

    def _begin_read(self, connection: Connection) -> Connection:
        return connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    def _begin_write(self, connection: Connection) -> RootTransaction:
        transaction = connection.begin()
        connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'"))
        connection.execute(text(WAIT_FOR_THE_DISK))
        return transaction

    def lock_schema(self, connection: Connection) -> None:
        """Take the advisory lock of armful."""
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": SCHEMA_LOCK})

    def check_durable(self, connection: Connection) -> None:
        """Raise LedgerError if a commit is acknowledged before it is written."""
        if connection.execute(text("SHOW synchronous_commit")).scalar() == "off":
            raise LedgerError(f"{self.name} would not survive a power cut: its synchronous_commit is off, set it to on")

    def insert(
        self, connection: Connection, table: Table, columns: Sequence[str], rows: Iterable[Sequence[Any]]
    ) -> None:
        """Insert by COPY."""
        driver: Any = connection.connection
        with driver.cursor() as cursor, cursor.copy(f"COPY {table.name} ({', '.join(columns)}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def moment(self, value: datetime) -> datetime:
        """Return the time in UTC."""
        return value.astimezone(UTC)

    def seconds(self, moment: datetime) -> float:
        """Return the seconds of a time with its time zone."""
        return moment.timestamp()

    def discard_old_pages(self) -> None:
        """Do nothing: the server removes deleted rows by itself (autovacuum)."""

    def explain(self, error: BaseException) -> str:
        """Return one sentence for an error of PostgreSQL."""
        errors = self._psycopg.errors
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if isinstance(error, errors.LockNotAvailable | errors.DeadlockDetected):
            return (
                f"{self.name} was locked by another process for more than {LOCK_SECONDS} seconds: nothing was changed, "
                "run this again when the other has ended"
            )
        if isinstance(error, errors.DiskFull):
            return f"the disk of {self.name} is full: nothing was changed, make room and run this again"
        if isinstance(error, errors.InsufficientPrivilege | errors.ReadOnlySqlTransaction):
            return f"no permission to write to {self.name}: nothing was changed ({reason})"
        if isinstance(error, self._psycopg.OperationalError):
            return f"{self.name} cannot be reached: {reason}"
        return f"{self.name} cannot be used: {reason}"
