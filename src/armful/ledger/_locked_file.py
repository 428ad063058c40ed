"""A file that one process at a time has locked; the lock ends with the process, however that ends."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from armful.errors import LedgerError

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


@contextmanager
def locked_file(path: Path) -> Iterator[bool]:
    """Give whether the lock is ours; the file is made if need be, and left where it is."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
    except OSError as error:
        raise LedgerError(f"{path} cannot be written: {error.strerror}") from error
    try:
        yield try_to_lock(descriptor)
    finally:
        os.close(descriptor)


def try_to_lock(descriptor: int) -> bool:
    """Return whether the file is locked now by this descriptor; closing that ends the lock."""
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415 - of Windows

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
