"""Turns of processes that write to one SQLite file.

SQLite's own waiting sleeps longer and longer, and the process that has just written writes again before the others
look: of four processes one wrote 16 decisions while the others wrote 4,900. Here all look equally often, and who waits
holds a locked file beside the database until it has the lock of SQLite: so who has just written cannot be next. The
file is made when somebody waits for the first time.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from armful.ledger._locked_file import try_to_lock

PAUSE_SECONDS = 0.0005
"""Between two looks of the one whose turn it is; the others look half as often."""


def begin_immediate(cursor: Any, turns: Path, seconds: float) -> None:
    """Begin a transaction that writes, at most so many seconds later; raise the error of SQLite if it is still busy.

    SQLite's own time-out must be 0.
    """
    if turns.exists() or not _begun(cursor):
        deadline = time.monotonic() + seconds
        with turn(turns, deadline):
            while not _begun(cursor, last=time.monotonic() > deadline):
                time.sleep(PAUSE_SECONDS)


@contextmanager
def turn(turns: Path, deadline: float) -> Iterator[None]:
    """Hold the turn: nobody else begins to write; or do without it after the deadline."""
    file = -1
    with suppress(OSError):  # where no file can be made, all look equally often, and that is all
        file = os.open(turns, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
    try:
        while file >= 0 and not try_to_lock(file) and time.monotonic() < deadline:
            time.sleep(2 * PAUSE_SECONDS)
        yield
    finally:
        if file >= 0:
            os.close(file)


def _begun(cursor: Any, *, last: bool = False) -> bool:
    """Try to begin, and return whether it worked; the last time raise the error of SQLite."""
    try:
        cursor.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if last or getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True
