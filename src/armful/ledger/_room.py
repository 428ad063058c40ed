"""Room on the disk to write a file of SQLite anew."""

import os
import shutil
import tempfile
from pathlib import Path

from armful.errors import LedgerError
from armful.files._atomic_file import size_text

SPARE = 1.05
"""Others write to the log meanwhile, and its pages are a little larger."""


def check_room(path: Path, name: str, size: int, cached: int) -> None:
    """Raise LedgerError if the disk has no room for a file to be written anew.

    SQLite writes all of it to the log beside the file, and what is not in its cache to a temporary file before. On a
    disk that is too small it would leave a log behind that fills the disk, and nobody could write to the ledger then.

    Parameters
    ----------
    path : Path
        The file.
    name : str
        What messages call it.
    size : int
        The bytes in use.
    cached : int
        How many of them SQLite keeps in memory.
    """
    copies = 2 if size > cached and os.stat(_temporary_folder()).st_dev == path.stat().st_dev else 1
    needed, free = int(SPARE * copies * size), shutil.disk_usage(path.parent).free
    if free < needed:
        takes, has = size_text(needed), size_text(free)
        raise LedgerError(
            f"{name} is not written anew: that takes {takes} of its disk, and {has} are free; "
            "make room and run this again"
        )


def _temporary_folder() -> str:
    """Return where SQLite makes temporary files."""
    if os.name == "nt":
        return tempfile.gettempdir()
    candidates = (os.environ.get("SQLITE_TMPDIR"), os.environ.get("TMPDIR"), "/var/tmp", "/usr/tmp", "/tmp")
    return next((each for each in candidates if each and os.access(each, os.W_OK | os.X_OK)), tempfile.gettempdir())
