"""A file that takes the place of another when it is complete, and not before."""

import errno
import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from armful.scan.tablefile import told


@contextmanager
def taking_the_place_of(path: Path) -> Iterator[tuple[Path, int]]:
    """A file beside `path` to write to: it takes its place if all goes well, and is removed if not.

    The process that writes holds a lock on it, so that others know whether it is still at work.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with _writing_in(path.parent):
        _remove_abandoned(path)
        descriptor = _locked(part)
    try:
        yield part, descriptor
        os.fsync(descriptor)
        with _writing_in(path.parent):
            os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    _sync_folder(path.parent)


@contextmanager
def _writing_in(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        raise told(error, f"no right to write in {folder}: build the table in another folder") from error


def _locked(part: Path) -> int:
    """A descriptor of the file, made if it is not there, with its lock."""
    for _ in range(100):
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(part, descriptor):
                return descriptor
        os.close(descriptor)
        time.sleep(0.01)  # another build held it for a moment, to see whether it was abandoned
    raise ValueError(f"{part} is being written by another thread: wait for it, or build at another path")


def _remove_abandoned(path: Path) -> None:
    """Remove what builds of the same table left behind that were killed: nobody holds their lock."""
    pattern = re.compile(re.escape(path.name) + r"\.\d+\.part")
    for part in [entry for entry in path.parent.iterdir() if pattern.fullmatch(entry.name)]:
        with suppress(OSError):  # somebody else's, locked, or gone by now
            descriptor = os.open(part, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(part, descriptor):
                    part.unlink()
            finally:
                os.close(descriptor)


def _is_at(part: Path, descriptor: int) -> bool:
    """Whether the open file is still the one of this name: it may have taken its place, or be gone."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), part.stat())
    return False


def _sync_folder(folder: Path) -> None:
    """Make the new name of a file last through a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
