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


@contextmanager
def workspace(folder: Path | None) -> Iterator[Path]:
    """Give a new folder below `folder/.work`, or below the system's temporary folder; it is removed at the end."""
    parent = Path(tempfile.gettempdir()) / "armful-work" if folder is None else folder / ".work"
    remove_abandoned(folder)
    parent.mkdir(exist_ok=True)
    path = Path(tempfile.mkdtemp(dir=parent))
    lock = os.open(path / "lock", os.O_CREAT | os.O_RDWR)
    try:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield path
    finally:
        os.close(lock)
        shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):  # another command uses it
            parent.rmdir()


def remove_abandoned(folder: Path | None) -> None:
    """Remove the folders of commands that were killed."""
    parent = Path(tempfile.gettempdir()) / "armful-work" if folder is None else folder / ".work"
    for path in parent.iterdir() if parent.is_dir() else ():
        if path.is_dir() and not path.is_symlink() and _is_abandoned(path):
            shutil.rmtree(path, ignore_errors=True)


def _is_abandoned(path: Path) -> bool:
    try:
        age = time.time() - path.stat().st_mtime
        if fcntl is None:
            return age > ABANDONED_AFTER
        lock = os.open(path / "lock", os.O_RDWR)
    except FileNotFoundError:  # killed before it was locked, or being made at this moment
        return path.exists() and age > 60
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True
