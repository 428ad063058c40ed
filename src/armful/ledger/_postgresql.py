"""A ledger in a PostgreSQL database, through psycopg 3."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, RootTransaction, Table, create_engine, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from armful.errors import LedgerError
from armful.ledger._engine import LOCK_SECONDS, Store
from armful.ledger._schema import metadata, rounds

CONNECT_SECONDS = 10
SCHEMA_LOCK = 0x61726D66756C
"""The number of the advisory lock that is held while the schema is changed: "armful" in ASCII."""

BEGIN = """
SELECT set_config('lock_timeout', %s, true),
    CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END
"""
"""A role or a database may be set to acknowledge commits before they are on disk."""


KNOWN = """
SELECT of_round, in_round IS NOT NULL, (
    SELECT reward FROM rewards WHERE rewards.round_id = of_round AND rewards.arm = in_round ORDER BY seq DESC LIMIT 1
)
FROM (
    SELECT i, of_round, (SELECT chosen.arm FROM chosen WHERE chosen.round_id = of_round AND chosen.arm = asked.arm)
        AS in_round
    FROM (
        SELECT i, pair.arm, (SELECT id FROM rounds WHERE campaign_id = %(campaign)s AND rounds.number = pair.number)
            AS of_round
        FROM unnest(%(numbers)s::bigint[], %(arms)s::text[]) WITH ORDINALITY AS pair(number, arm, i)
    ) AS asked
) AS found
ORDER BY i
"""
"""What is known of arms of rounds, each by the index of its primary key whatever the planner believes."""


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
        cursor = self.cursor(connection)
        cursor.execute(BEGIN, (f"{LOCK_SECONDS}s",))
        cursor.close()
        return transaction

    def lock_schema(self, connection: Connection) -> None:
        """Take the advisory lock of armful."""
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": SCHEMA_LOCK})

    def check_durable(self, cursor: Any) -> None:
        """Raise LedgerError if a commit is acknowledged before it is written."""
        if cursor.execute("SHOW synchronous_commit").fetchone()[0] == "off":
            raise LedgerError(f"{self.name} would not survive a power cut: its synchronous_commit is off, set it to on")

    def insert(self, cursor: Any, table: Table, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Insert by COPY."""
        with cursor.copy(f"COPY {table.name} ({', '.join(columns)}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def sql(self, statement: str) -> str:
        """Return the statement with the marks of psycopg."""
        return statement.replace("?", "%s")

    def one_of(self, column: str) -> str:
        """Return a condition on the values of an array."""
        return f"{column} = ANY(?)"

    def list_value(self, values: Sequence[Any]) -> list[Any]:
        """Return the values as psycopg makes an array of them."""
        return list(values)

    def lock_campaign(self, cursor: Any, campaign_id: int) -> tuple[int, int]:
        """Lock the row of the campaign first: only a later statement sees what the one before wrote."""
        locking = "SELECT position FROM campaigns WHERE id = %s FOR UPDATE"
        position: int = cursor.execute(locking, (campaign_id,)).fetchone()[0]
        last = cursor.execute("SELECT max(number) FROM rounds WHERE campaign_id = %s", (campaign_id,)).fetchone()[0]
        return position, last or 0

    def insert_rounds(self, cursor: Any, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Sequence[int]:
        """Take the ids from the sequence of the table first."""
        query = "SELECT nextval(pg_get_serial_sequence('rounds', 'id')) FROM generate_series(1, %s)"
        ids = [row[0] for row in cursor.execute(query, (len(rows),)).fetchall()]
        self.insert_few(cursor, rounds, ("id", *columns), [(i, *row) for i, row in zip(ids, rows, strict=True)])
        return ids

    def known_rewards(
        self, cursor: Any, campaign_id: int, pairs: Sequence[tuple[int, str]]
    ) -> list[tuple[int | None, bool, float | None]]:
        """Look all of them up by one statement."""
        if not pairs:
            return []
        numbers, arms = [number for number, _ in pairs], [arm for _, arm in pairs]
        rows = cursor.execute(KNOWN, {"campaign": campaign_id, "numbers": numbers, "arms": arms}).fetchall()
        return [tuple(row) for row in rows]

    @contextmanager
    def updater_lock(self, campaign_id: int) -> Iterator[bool]:
        """Take an advisory lock, which ends with its connection at the latest."""
        lock = "hashtextextended(current_schema() || ' ' || :campaign, :seed)"
        values = {"seed": SCHEMA_LOCK, "campaign": str(campaign_id)}
        with self._explained(), self.engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            mine = connection.execute(text(f"SELECT pg_try_advisory_lock({lock})"), values).scalar_one()
            try:
                yield bool(mine)
            finally:
                with suppress(DBAPIError):  # the server ends a closed connection a moment later: too late for the next
                    if mine:
                        connection.execute(text(f"SELECT pg_advisory_unlock({lock})"), values)
                connection.invalidate()

    def size(self) -> int:
        """Return the size of the tables with their indexes."""
        query = text(
            "SELECT sum(pg_total_relation_size(CAST(name AS regclass))) FROM unnest(CAST(:names AS text[])) AS name"
        )
        with self.reading() as connection:
            return int(connection.execute(query, {"names": list(metadata.tables)}).scalar_one())

    def compact(self) -> None:
        """Vacuum the tables."""
        with self._explained(), self.engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.exec_driver_sql(f"VACUUM (ANALYZE) {', '.join(metadata.tables)}")

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
