"""What is said of the errors of SQLite."""

import sqlite3

from armful.ledger._engine import LOCK_SECONDS

FULL = "the disk is full; nothing was changed, make room and run this again"
SENTENCES = {
    sqlite3.SQLITE_BUSY: f"is locked by another process for more than {LOCK_SECONDS} seconds: nothing was changed, run "
    "this again when the other one has ended",
    sqlite3.SQLITE_FULL: f"cannot be written: {FULL}",
    # Whoever opens a file that nobody has open makes its `-shm` file, also to read.
    sqlite3.SQLITE_IOERR_SHMSIZE: f"cannot be read or written: {FULL}",
    sqlite3.SQLITE_READONLY: "cannot be written: it or its folder is read-only; nothing was changed",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: it and its folder must be readable and writable",
    sqlite3.SQLITE_NOTADB: "is not a ledger: it is not an SQLite database; give another store",
    sqlite3.SQLITE_CORRUPT: "is damaged: restore it from a backup",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk reports an error; nothing was changed",
}
"""What is said of an error, by the code of SQLite."""


def sentence_of(error: BaseException) -> str:
    """Return what is said of a ledger after this error."""
    code = getattr(error, "sqlite_errorcode", None)
    sentence = None if code is None else SENTENCES.get(code, SENTENCES.get(code & 0xFF))
    return sentence or f"cannot be used: {str(error).splitlines()[0]}"
