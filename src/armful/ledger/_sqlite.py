"""A ledger in an SQLite file: write-ahead log, synced at every commit, one writer at a time."""

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, RootTransaction, Table, create_engine, event
from sqlalchemy.pool import PoolProxiedConnection, QueuePool

from armful.errors import LedgerError
from armful.files._atomic_file import real_target
from armful.ledger._engine import LOCK_SECONDS, Store
from armful.ledger._locked_file import locked_file
from armful.ledger._opened_file import OpenedFile
from armful.ledger._room import check_room
from armful.ledger._schema import rounds
from armful.ledger._sqlite_errors import sentence_of
from armful.ledger._turns import begin_immediate, turn
from armful.ledger._versions import check_free, schema_version

SYNCHRONOUS = ("FULL", 2)
"""With NORMAL a power cut loses commits that were acknowledged: the log is then synced at checkpoints only."""
CACHE_KIB = 131072
"""The pages of a round of 200,000 people are written once."""
PRAGMAS = {
    "synchronous": SYNCHRONOUS[0],
    "foreign_keys": "ON",
    "secure_delete": "ON",
    "temp_store": "MEMORY",  # people's rows are not to be in temporary files
    "cache_size": -CACHE_KIB,
}
WRITES = "armful_writes"
CHECKED, TIMEOUT = "armful_checked", "armful_timeout"
"""What is kept of a connection: whether `check_durable` was asked, and SQLite's own time-out."""
TOGETHER = 100
"""Rows that one statement inserts at most. After each statement, and each row of `executemany`, the thread may have to
wait for another one of Python's."""

LAST = """
SELECT position, (SELECT max(number) FROM rounds WHERE campaign_id = campaigns.id) FROM campaigns WHERE id = ?
"""
"""The position of a campaign and its last round."""

KNOWN = """
SELECT rounds.id, chosen.arm IS NOT NULL, (
    SELECT reward FROM rewards WHERE rewards.round_id = rounds.id AND rewards.arm = chosen.arm ORDER BY seq DESC LIMIT 1
)
FROM rounds LEFT JOIN chosen ON chosen.round_id = rounds.id AND chosen.arm = ?3
WHERE campaign_id = ?1 AND number = ?2
"""
"""What is known of an arm of a round."""


def _known(row: Any) -> tuple[int | None, bool, float | None]:
    return (None, False, None) if row is None else (row[0], bool(row[1]), row[2])


class SqliteStore(Store):
    """An SQLite file.

    Parameters
    ----------
    file : str
        Its path.
    create : bool
        Whether to make the file if there is none.
    connect : callable, optional
        Returns a new connection of the driver, in place of `sqlite3`.
    """

    alone = True
    driver_errors = (sqlite3.Error,)
    # Of a bool and of bytes the driver looks for an adapter first, which takes longer than to write them.
    flag = int
    blob = bytearray

    def __init__(self, file: str, *, create: bool, connect: Callable[[], Any] | None = None) -> None:
        try:
            self.path = real_target(Path(file)).absolute()
        except OSError as error:
            raise LedgerError(str(error)) from error
        self.name, self._turns = str(file), Path(f"{self.path}-turns")
        if not create and not self.path.exists():
            raise LedgerError(f"there is no ledger {self.name}; `armful init` begins a campaign")
        self._mode = "rwc" if create else "rw"
        self._file = OpenedFile(self.path, self.name)
        creator = connect or self._connect
        self.engine = create_engine("sqlite://", creator=creator, poolclass=QueuePool, hide_parameters=True)
        event.listen(self.engine, "connect", _set_up)
        event.listen(self.engine, "begin", self._begin)

    def _connect(self) -> sqlite3.Connection:
        address = f"{self.path.as_uri()}?mode={self._mode}"
        return sqlite3.connect(address, uri=True, timeout=LOCK_SECONDS, check_same_thread=False)

    def prepare(self, *, create: bool) -> None:
        """Also see to it that the file has a write-ahead log; first that it is not the database of another program."""
        with self.reading() as connection:
            if schema_version(connection) is None:
                check_free(connection, self.name, alone=self.alone)
        with self._explained():
            _use_write_ahead_log(self.engine.raw_connection())
        super().prepare(create=create)

    def _begin_read(self, connection: Connection) -> Connection:
        return connection

    def _begin_write(self, connection: Connection) -> RootTransaction:
        return connection.execution_options(**{WRITES: True}).begin()

    @contextmanager
    def writing_rows(self) -> Iterator[Any]:
        """Give a cursor without a transaction of SQLAlchemy, which would take longer than a few decisions.

        Few statements matter where other threads work: during each of them another one may take Python's lock, and
        then has to be waited for. So a connection is checked once: while it is open, nobody can switch its log off.
        """
        with self._explained(), closing(self.engine.raw_connection()) as connection:
            cursor = connection.cursor()
            if CHECKED not in connection.info:
                self.check_durable(cursor)
                connection.info[CHECKED] = True
            self._file.check()
            self._begin_immediate(connection, cursor)
            yield cursor
            cursor.execute("COMMIT")
            cursor.close()

    def lock_schema(self, connection: Connection) -> None:
        """Do nothing: a transaction that writes is alone already."""

    def close(self) -> None:
        """Close all connections; those made later may be to another file."""
        super().close()
        self._file.forget()

    def _begin(self, connection: Connection) -> None:
        """Begin a transaction; one that will write takes the lock at once, since a reader cannot wait for it later."""
        self._file.check()
        if connection.get_execution_options().get(WRITES, False):
            cursor = connection.connection.cursor()
            self._begin_immediate(connection.connection, cursor)
        else:
            cursor = _waiting_cursor(connection.connection)
            cursor.execute("BEGIN")
        cursor.close()

    def _begin_immediate(self, connection: PoolProxiedConnection, cursor: Any) -> None:
        _set_timeout(connection, cursor, 0)
        begin_immediate(cursor, self._turns, LOCK_SECONDS)

    def check_durable(self, cursor: Any) -> None:
        """Raise LedgerError unless the log is written ahead and synced at each commit."""
        synchronous = cursor.execute("PRAGMA synchronous").fetchone()[0]
        journal = cursor.execute("PRAGMA journal_mode").fetchone()[0]
        if (journal, synchronous) != ("wal", SYNCHRONOUS[1]):
            raise LedgerError(
                f"{self.name} would not survive a power cut (journal_mode is {journal}, synchronous is {synchronous}): "
                "keep it on a local disk, and let no other program change its settings"
            )

    def insert(self, cursor: Any, table: Table, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Insert by one statement, prepared once."""
        cursor.executemany(_insertion(table, tuple(columns)), rows)

    def insert_few(self, cursor: Any, table: Table, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert many rows by each statement."""
        for begin in range(0, len(rows), TOGETHER):
            some = rows[begin : begin + TOGETHER]
            cursor.execute(_insertion(table, tuple(columns), len(some)), tuple(chain.from_iterable(some)))

    def sql(self, statement: str) -> str:
        """Return the statement as it is."""
        return statement

    def one_of(self, column: str) -> str:
        """Return a condition on the values of a JSON text."""
        return f"{column} IN (SELECT value FROM json_each(?))"

    def list_value(self, values: Sequence[Any]) -> str:
        """Return the values as JSON."""
        return json.dumps(list(values), ensure_ascii=False)

    def lock_campaign(self, cursor: Any, campaign_id: int) -> tuple[int, int]:
        """Read both by one statement: who writes is alone."""
        position, last = cursor.execute(LAST, (campaign_id,)).fetchone()
        return position, last or 0

    def insert_rounds(self, cursor: Any, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Sequence[int]:
        """Insert them without ids: SQLite takes the numbers after the largest."""
        self.insert_few(cursor, rounds, columns, rows)
        return range(cursor.lastrowid - len(rows) + 1, cursor.lastrowid + 1)

    def known_rewards(
        self, cursor: Any, campaign_id: int, pairs: Sequence[tuple[int, str]]
    ) -> list[tuple[int | None, bool, float | None]]:
        """Look each of them up by one statement, prepared once."""
        return [_known(cursor.execute(KNOWN, (campaign_id, number, arm)).fetchone()) for number, arm in pairs]

    @contextmanager
    def updater_lock(self, campaign_id: int) -> Iterator[bool]:
        """Lock a file beside that of the ledger."""
        with locked_file(Path(f"{self.path}-updater-{campaign_id}")) as mine:
            yield mine

    def size(self) -> int:
        """Return the size of the file once all commits in its log are in it."""
        with self._explained(), self.engine.connect() as connection:
            return _pages(_waiting_cursor(connection.connection))[0]

    def compact(self) -> None:
        """Write the file anew, and empty its write-ahead log unless another process is reading it.

        A disk that has no room for that is refused.
        """
        self._write_anew()
        with self._explained(), self.engine.connect() as connection:
            _waiting_cursor(connection.connection).execute("PRAGMA optimize")

    def _write_anew(self) -> bool:
        """Write the file anew and empty its log; return whether that worked, or somebody was reading it."""
        waiting = turn(self._turns, time.monotonic() + LOCK_SECONDS)
        with self._explained(), self.engine.connect() as connection, waiting:
            cursor = _waiting_cursor(connection.connection)
            size, unused = _pages(cursor)
            check_room(self.path, self.name, size - unused, CACHE_KIB * 1024)
            cursor.execute("PRAGMA temp_store = FILE")  # a copy of the whole file may be larger than memory
            cursor.execute("VACUUM")
            cursor.execute("PRAGMA temp_store = MEMORY")
            return not cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]

    def moment(self, value: datetime) -> str:
        """Return the text that SQLAlchemy writes."""
        return value.astimezone(UTC).isoformat(" ", "microseconds")[: -len("+00:00")]

    def seconds(self, moment: str) -> float:
        """Return the seconds of such a text."""
        return datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp()

    def discard_old_pages(self) -> None:
        """Write the file anew, and empty its write-ahead log.

        `secure_delete` overwrites a deleted row, but not copies of it that stayed in the free part of a page when rows
        were moved to another page; the log holds older versions of pages.
        """
        erased = f"all is erased, but old copies may still be in the files of {self.name}"
        try:
            is_empty = self._write_anew()
        except LedgerError as error:
            raise LedgerError(f"{erased}, run this again: {error}") from error
        if not is_empty:
            raise LedgerError(f"{erased}, since another process is reading it: let it finish, then run this again")

    def explain(self, error: BaseException) -> str:
        """Return one sentence for an error of SQLite."""
        return f"{self.name} {sentence_of(error)}"


@cache
def _insertion(table: Table, columns: tuple[str, ...], n_rows: int = 1) -> str:
    marks = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES {', '.join([marks] * n_rows)}"


def _pages(cursor: Any) -> tuple[int, int]:
    """Return the bytes of all pages, and of those that are not in use."""
    names = ("page_size", "page_count", "freelist_count")
    size, count, unused = (int(cursor.execute(f"PRAGMA {name}").fetchone()[0]) for name in names)
    return count * size, unused * size


def _waiting_cursor(connection: PoolProxiedConnection) -> Any:
    """Return a cursor whose statements wait for a lock."""
    cursor = connection.cursor()
    _set_timeout(connection, cursor, LOCK_SECONDS)
    return cursor


def _set_timeout(connection: PoolProxiedConnection, cursor: Any, seconds: float) -> None:
    """Let SQLite itself wait for so long for a lock, unless the connection does so already."""
    if connection.info.get(TIMEOUT) != seconds:
        cursor.execute(f"PRAGMA busy_timeout = {1000 * seconds:.0f}")
        connection.info[TIMEOUT] = seconds


def _set_up(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # the driver begins no transactions: `_begin` does
    cursor = connection.cursor()
    for name, value in PRAGMAS.items():
        cursor.execute(f"PRAGMA {name} = {value}")
    cursor.close()


def _use_write_ahead_log(connection: Any) -> None:
    """Switch a new file to its write-ahead log, which stays so; wait for a process that does the same."""
    cursor = connection.cursor()
    try:
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                cursor.execute("PRAGMA journal_mode = WAL").fetchone()
                return
            except sqlite3.OperationalError as error:
                # SQLite does not wait by itself where two processes would wait for each other.
                busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
                if not busy or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
    finally:
        cursor.close()
        connection.close()
