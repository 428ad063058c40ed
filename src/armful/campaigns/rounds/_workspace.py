"""A folder for the files of one command, which is removed when the command ends or was killed."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

ABANDONED_AFTER = 24 * 3600.0
"""Seconds after which a folder counts as abandoned where files cannot be locked."""
PREFIX = "armful-work-"
LOCK = "lock"


@contextmanager
def workspace(folder: Path | None) -> Iterator[Path]:
    """Give a new folder below `folder/.work`, or below the system's temporary folder; it is removed at the end.

    The command that uses it holds a lock in it, so that folders which killed commands left behind are known.
    """
    parent = _parent(folder)
    remove_abandoned(folder)
    path, lock = _locked_folder(parent)
    try:
        yield path
    finally:
        _remove(path, lock)
        if folder is not None:
            with suppress(OSError):  # another command uses it
                parent.rmdir()


def remove_abandoned(folder: Path | None) -> None:
    """Remove the folders of commands that were killed."""
    parent = _parent(folder)
    with suppress(OSError):  # it is not there, or somebody else's
        for path in parent.glob(f"{PREFIX}*"):
            lock = _lock_of_abandoned(path)
            if lock is not None:
                _remove(path, lock)
        if folder is not None:
            parent.rmdir()


def is_in_use(folder: Path) -> bool:
    """Return whether a command has a workspace in a campaign's folder; False where files cannot be locked."""
    remove_abandoned(folder)
    return fcntl is not None and any(_parent(folder).glob(f"{PREFIX}*"))


def _parent(folder: Path | None) -> Path:
    return Path(tempfile.gettempdir()) if folder is None else folder / ".work"


def _locked_folder(parent: Path) -> tuple[Path, int]:
    """Return a new folder and its lock; others may remove the folder before it is locked, then another one is made."""
    while True:
        parent.mkdir(exist_ok=True)
        try:
            path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
            lock = os.open(path / LOCK, os.O_CREAT | os.O_EXCL | os.O_RDWR)
        except FileNotFoundError:
            continue
        if _locked(lock) is not False:
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock), os.stat(path / LOCK)):
                    return path, lock
        os.close(lock)


def _locked(descriptor: int) -> bool | None:
    """Lock a file: return True, False if another process has the lock, None if there are no locks here."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _lock_of_abandoned(path: Path) -> int | None:
    """Return the lock of a folder, taken, if the command that made it has ended; None if not. -1: there is no lock."""
    try:
        age = time.time() - path.stat().st_mtime
        with suppress(OSError):
            path.rmdir()  # it is empty: its command was killed before it had the lock, or will make another one
            return None
        lock = os.open(path / LOCK, os.O_RDWR)
    except FileNotFoundError:
        return -1 if path.exists() else None  # it is being removed, or its removal was interrupted
    except OSError:
        return None
    locked = _locked(lock)
    if locked or (locked is None and age > ABANDONED_AFTER):
        return lock
    os.close(lock)
    return None


def _remove(path: Path, lock: int) -> None:
    if fcntl is None and lock >= 0:  # an open file cannot be removed
        os.close(lock)
    shutil.rmtree(path, ignore_errors=True)
    if fcntl is not None and lock >= 0:
        os.close(lock)
