"""Replacing a file atomically: readers see the old content or the new one, never a mixture."""

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
NO_PERMISSION = (errno.EACCES, errno.EPERM, errno.EROFS)
NO_SYNC = (errno.EACCES, errno.EINVAL, errno.ENOTSUP)
"""Errors of syncing a folder that may not be read, or a file system that does not sync folders."""
LONG_NAME = 150
"""In bytes. The part file of a longer name uses a digest of it: most file systems allow 255."""
ABANDONED_SECONDS = 60.0
"""Without locks, a part file that was not written to for so long counts as abandoned."""


class PartFile:
    """A temporary file in the folder of the file that it will replace.

    descriptor: open for writing and reading. needs: a lower bound on the size of the complete file in bytes, for the
    message when the disk is full.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path, self.descriptor, self.needs = path, descriptor, 0

    def close(self) -> None:
        """Close the file; closing it again does nothing."""
        if self.descriptor >= 0:
            descriptor, self.descriptor = self.descriptor, -1
            os.close(descriptor)

    def write(self, data: bytes | memoryview) -> None:
        """Write all of `data` at the end."""
        write_all(self.descriptor, data)


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of `data` to an open file, by as many calls as it takes."""
    view, done = memoryview(data), 0
    while done < len(view):
        done += os.write(descriptor, view[done:])


@contextmanager
def replacing(path: Path) -> Iterator[PartFile]:
    """Give a part file to write; it replaces the file at `path` on success and is removed on failure.

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
        remove_abandoned_parts(target)
        part = _create_part_file(target)
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
            raise with_message(error, _full_disk_message(path, target, error, part)) from error
        if error.errno in NO_PERMISSION and _is_about(error, target, part):
            if not HAS_LOCKS and part is not None and target.exists():
                sentence = f"{path} is open, and this system cannot replace open files: close it, or give another name"
                raise with_message(error, sentence) from error
            raise with_message(error, f"no permission to write in {target.parent}: give another folder") from error
        raise


def write_bytes(path: Path, data: bytes) -> None:
    """Replace the file at `path` by one that holds `data`."""
    with replacing(path) as part:
        part.needs = len(data)
        part.write(data)


def real_target(path: Path) -> Path:
    """Return the path behind symbolic links; raise OSError, with the name given, if no regular file can be there."""
    try:
        target = Path(os.path.realpath(path)) if path.is_symlink() else path
        if target.is_symlink():
            raise FileNotFoundError(f"{path} is a symbolic link that points to itself: remove it")
        if not target.parent.is_dir():
            linked = "" if target == path else f", where {path} leads"
            raise FileNotFoundError(f"there is no folder {target.parent} to write {target.name} to{linked}")
        mode = target.stat().st_mode if target.exists() else stat.S_IFREG
    except PermissionError as error:
        raise with_message(error, f"no permission to read {path.parent}: give another folder") from error
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path} is a folder; give the name of a file in it")
    if not stat.S_ISREG(mode):
        raise FileExistsError(f"{path} is a {kind_of(mode)}, and only a regular file is replaced: give another name")
    return target


def kind_of(mode: int) -> str:
    """Return the kind of something that is not a regular file, for an error message."""
    kinds = {
        stat.S_IFDIR: "folder",
        stat.S_IFCHR: "device",
        stat.S_IFBLK: "device",
        stat.S_IFIFO: "pipe",
        stat.S_IFSOCK: "socket",
    }
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


def _prefix(target: Path) -> str:
    name = os.fsencode(target.name)
    return target.name if len(name) <= LONG_NAME else blake2b(name, digest_size=16).hexdigest()


def _create_part_file(target: Path) -> PartFile:
    """Create and lock a part file with the mode of the target or, if there is none, of a new file."""
    status = None
    with suppress(FileNotFoundError):
        status = target.stat()
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    for _ in range(100):
        name = f"{_prefix(target)}.{os.getpid()}.{threading.get_native_id()}.{secrets.token_hex(4)}.part"
        part = PartFile(target.with_name(name), -1)
        with suppress(FileExistsError, BlockingIOError):  # another process removed it as abandoned before it was locked
            part.descriptor = os.open(part.path, flags, 0o666 if status is None else 0o600)
            try:
                if not _lock(part.descriptor) or _is_at(part):
                    _copy_mode_and_owner(status, part.descriptor)
                    return part
            except BaseException:
                _remove(part)
                raise
            part.close()
    raise OSError(errno.EEXIST, f"no part file could be created in {target.parent}")


def _copy_mode_and_owner(status: os.stat_result | None, descriptor: int) -> None:
    """Give an open file the mode of another and, if that is allowed, its owner."""
    if status is None or not hasattr(os, "fchmod") or not hasattr(os, "fchown"):
        return
    ours = os.fstat(descriptor)
    if (status.st_uid, status.st_gid) != (ours.st_uid, ours.st_gid):
        with suppress(OSError):
            os.fchown(descriptor, status.st_uid, status.st_gid)
    with suppress(OSError):  # some file systems have no modes
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def _lock(descriptor: int) -> bool:
    """Lock the file and return True, or False if there are no locks; raise BlockingIOError if another has the lock."""
    if not HAS_LOCKS:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


def _remove(part: PartFile) -> None:
    with suppress(OSError):
        part.needs = max(part.needs, os.fstat(part.descriptor).st_size)
    if not HAS_LOCKS:
        part.close()
    with suppress(OSError):
        part.path.unlink()
    part.close()


def remove_abandoned_parts(target: Path) -> None:
    """Remove part files of the same target whose lock nobody holds: their processes were killed."""
    pattern = re.compile(re.escape(_prefix(target)) + r"\.\d+\.\d+\.[0-9a-f]{8}\.part")
    with suppress(OSError):  # a folder that may be written to and not read
        for entry in [entry for entry in os.scandir(target.parent) if pattern.fullmatch(entry.name)]:
            with suppress(OSError):  # somebody else's, or gone by now
                if not HAS_LOCKS:
                    if time.time() - entry.stat().st_mtime > ABANDONED_SECONDS:
                        os.unlink(entry.path)
                    continue
                part = PartFile(Path(entry.path), os.open(entry.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW))
                try:
                    if _lock(part.descriptor) and _is_at(part):
                        part.path.unlink()
                finally:
                    part.close()


def _is_at(part: PartFile) -> bool:
    """Return whether the open file still has this name: it may have replaced its target, or be removed."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(part.descriptor), part.path.stat())
    return False


def _is_about(error: OSError, target: Path, part: PartFile | None) -> bool:
    """Return whether the error is about the part file or its target, not about a file that the writer reads."""
    if part is None:
        return True
    return error.filename is not None and os.fspath(error.filename) in (os.fspath(part.path), os.fspath(target))


def _full_disk_message(path: Path, target: Path, error: OSError, part: PartFile | None) -> str:
    size, free = size_text(part.needs if part else 0), size_text(shutil.disk_usage(target.parent).free)
    reason = os.strerror(error.errno or 0)
    return f"{path} could not be written: {reason}; it needs at least {size}, and its disk has {free} free"


def _sync_folder(folder: Path) -> None:
    """Sync a folder, so that the new name of a file survives a power cut."""
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
