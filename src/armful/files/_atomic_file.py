"""Replacing a file atomically: readers see the old content or the new one, whatever happens in between."""

import errno
import os
import re
import secrets
import shutil
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path

from armful.errors import with_message

try:
    import fcntl
except ModuleNotFoundError:  # Windows, where nobody can remove or rename a file that is open
    HAS_LOCKS = False
else:
    HAS_LOCKS = True

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NO_RIGHT = (errno.EACCES, errno.EPERM, errno.EROFS)
NO_SYNC = (errno.EACCES, errno.EINVAL, errno.ENOTSUP)
"""What a folder says that may not be read, or of a file system that does not sync folders."""
LONG_NAME = 150
"""In bytes. Of a longer name the part file takes a digest: most file systems end at 255."""
ABANDONED_SECONDS = 60.0
"""Where there are no locks, a part file not written to for so long, that nobody has open, is nobody's."""


class Part:
    """A file beside the one that it will replace.

    path: where it is. descriptor: open for writing and reading. needs: how many bytes the whole file takes at least,
    as far as its writer knows; it is said when the disk is full.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path, self.descriptor, self.needs = path, descriptor, 0

    def close(self) -> None:
        """Close it, once."""
        if self.descriptor >= 0:
            descriptor, self.descriptor = self.descriptor, -1
            os.close(descriptor)

    def write(self, data: bytes | memoryview) -> None:
        """Write all of `data` at the end."""
        view, done = memoryview(data), 0
        while done < len(view):
            done += os.write(self.descriptor, view[done:])


@contextmanager
def replacing(path: Path) -> Iterator[Part]:
    """Give a part file to write; it replaces the file at `path` if all goes well, and is removed if not.

    A symbolic link stays, and the file that it points to is replaced, in its own folder. The mode and, where allowed,
    the owner of an existing file are kept. The process that writes holds a lock on its part file, so part files that
    killed processes left behind are known and removed. When this returns, the new file survives a power cut.

    Raises
    ------
    FileNotFoundError, IsADirectoryError, FileExistsError
        There is no folder for it, or there is something else than a regular file.
    OSError
        The folder may not be written to, or the disk is full: a sentence with the size of the file and of the disk.
    """
    target = real_target(path)
    part = None
    try:
        _remove_abandoned(target)
        part = _created(target)
        try:
            yield part
            os.fsync(part.descriptor)
            if not HAS_LOCKS:  # an open file cannot be renamed
                part.close()
            os.replace(part.path, target)
        except BaseException:
            _remove(part)
            raise
        finally:
            part.close()
        _sync_folder(target.parent)
    except OSError as error:
        if error.errno in FULL:
            raise with_message(error, _too_large(path, target, error, part)) from error
        if error.errno in NO_RIGHT and _concerns(error, target, part):
            if not HAS_LOCKS and part is not None and target.exists():
                sentence = f"{path} is open, and this system cannot replace open files: close it, or give another name"
                raise with_message(error, sentence) from error
            raise with_message(error, f"no right to write in {target.parent}: give another folder") from error
        raise


def write_bytes(path: Path, data: bytes) -> None:
    """Replace the file at `path` by one that holds `data`."""
    with replacing(path) as part:
        part.needs = len(data)
        part.write(data)


def real_target(path: Path) -> Path:
    """Return the place that `path` leads to through links, refused if no regular file can be there.

    Errors call it by the name that the user gave.
    """
    try:
        target = Path(os.path.realpath(path)) if path.is_symlink() else path
        if target.is_symlink():
            raise FileNotFoundError(f"{path} is a symbolic link that leads nowhere but to itself: remove it")
        if not target.parent.is_dir():
            linked = "" if target == path else f", where {path} leads"
            raise FileNotFoundError(f"there is no folder {target.parent} to write {target.name} to{linked}")
        mode = target.stat().st_mode if target.exists() else stat.S_IFREG
    except PermissionError as error:
        raise with_message(error, f"no right to look into {path.parent}: give another folder") from error
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path} is a folder; give the name of a file in it")
    if not stat.S_ISREG(mode):
        raise FileExistsError(f"{path} is a {kind_of(mode)}, and only a regular file is replaced: give another name")
    return target


def kind_of(mode: int) -> str:
    """Return what it is that is no regular file, for a sentence."""
    kinds = {stat.S_IFCHR: "device", stat.S_IFBLK: "device", stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket"}
    return kinds.get(stat.S_IFMT(mode), "special file")


def size_text(n_bytes: int) -> str:
    """Return a size in the unit that suits it.

    >>> size_text(512), size_text(40_000), size_text(3 << 20), size_text(5 << 30)
    ('512 bytes', '39.06 KiB', '3.00 MiB', '5.00 GiB')
    """
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if n_bytes >= 1 << power:
            return f"{n_bytes / (1 << power):,.2f} {unit}"
    return f"{n_bytes} bytes"


# -- inside ------------------------------------------------------------------------------------------


def _prefix(target: Path) -> str:
    name = os.fsencode(target.name)
    return target.name if len(name) <= LONG_NAME else blake2b(name, digest_size=16).hexdigest()


def _created(target: Path) -> Part:
    """A part file that nobody else has, locked, with the mode that the target has or a new file would have."""
    there = None
    with suppress(FileNotFoundError):
        there = target.stat()
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    for _ in range(100):
        name = f"{_prefix(target)}.{os.getpid()}.{threading.get_native_id()}.{secrets.token_hex(4)}.part"
        part = Part(target.with_name(name), -1)
        with suppress(FileExistsError, BlockingIOError):  # another process took it for abandoned before it was locked
            part.descriptor = os.open(part.path, flags, 0o666 if there is None else 0o600)
            try:
                if not _lock(part.descriptor) or _is_at(part):
                    _take_over(there, part.descriptor)
                    return part
            except BaseException:
                _remove(part)
                raise
            part.close()
    raise OSError(errno.EEXIST, f"no part file could be made beside {target}")


def _take_over(there: os.stat_result | None, descriptor: int) -> None:
    """Give the file behind the descriptor the mode of another and, as far as it is allowed, its owner."""
    if there is None or not hasattr(os, "fchmod") or not hasattr(os, "fchown"):
        return
    ours = os.fstat(descriptor)
    if (there.st_uid, there.st_gid) != (ours.st_uid, ours.st_gid):
        with suppress(OSError):
            os.fchown(descriptor, there.st_uid, there.st_gid)
    with suppress(OSError):  # some file systems have no modes
        os.fchmod(descriptor, stat.S_IMODE(there.st_mode))


def _lock(descriptor: int) -> bool:
    """Lock the file, or raise if another has the lock; where there are no locks it is False."""
    if not HAS_LOCKS:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


def _remove(part: Part) -> None:
    """Remove a part file that is not wanted any more."""
    with suppress(OSError):
        part.needs = max(part.needs, os.fstat(part.descriptor).st_size)
    if not HAS_LOCKS:
        part.close()
    with suppress(OSError):
        part.path.unlink()
    part.close()


def _remove_abandoned(target: Path) -> None:
    """Remove what processes left behind that were killed while they wrote the same file: nobody holds their lock."""
    pattern = re.compile(re.escape(_prefix(target)) + r"\.\d+\.\d+\.[0-9a-f]{8}\.part")
    with suppress(OSError):  # a folder that may be written to and not read
        for entry in [entry for entry in os.scandir(target.parent) if pattern.fullmatch(entry.name)]:
            with suppress(OSError):  # somebody else's, or gone by now
                if not HAS_LOCKS:
                    if time.time() - entry.stat().st_mtime > ABANDONED_SECONDS:
                        os.unlink(entry.path)
                    continue
                part = Part(Path(entry.path), os.open(entry.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW))
                try:
                    if _lock(part.descriptor) and _is_at(part):
                        part.path.unlink()
                finally:
                    part.close()


def _is_at(part: Part) -> bool:
    """Whether the open file still has this name: it may have replaced its target, or be removed."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(part.descriptor), part.path.stat())
    return False


def _concerns(error: OSError, target: Path, part: Part | None) -> bool:
    """Whether the error is of the part file or its replacing, not of what its writer reads."""
    if part is None:
        return True
    return error.filename is not None and os.fspath(error.filename) in (os.fspath(part.path), os.fspath(target))


def _too_large(path: Path, target: Path, error: OSError, part: Part | None) -> str:
    size, free = size_text(part.needs if part else 0), size_text(shutil.disk_usage(target.parent).free)
    reason = os.strerror(error.errno or 0)
    return f"{path} could not be written: {reason}; it needs at least {size}, and its disk has {free} free"


def _sync_folder(folder: Path) -> None:
    """Make the new name of a file survive a power cut."""
    if not HAS_LOCKS:
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in NO_SYNC:
            raise
