"""Power cuts, simulated at the level of file writes.

A VFS of apsw records what SQLite writes, syncs, truncates and deletes while a `Ledger` works. `images` then makes disks
as a power cut at a random moment would leave them: what was synced is there, and of what was written later any part.
"""

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path

import apsw

SECTOR = 512
"""What a disk writes in one piece."""


class RecordingVFS(apsw.VFS):
    """Files as usual; what changes them is appended to `log`, as tuples (kind, name, ...)."""

    def __init__(self, name, log):
        super().__init__(name, "")
        self.log = log

    def xOpen(self, name, flags):
        if name is None:  # a temporary file: nobody looks for it after a power cut
            return super().xOpen(name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        return RecordingFile(self.log, path, flags)

    def xDelete(self, name, sync_folder):
        super().xDelete(name, sync_folder)
        self.log.append(("delete", name))
        if sync_folder:
            self.log.append(("sync folder",))


class RecordingFile(apsw.VFSFile):
    def __init__(self, log, path, flags):
        is_new = not Path(path).exists()
        super().__init__("", path, flags)
        self.log, self.path = log, path
        # The VFS of SQLite syncs the folder with the first sync of a journal or log that it created.
        self.sync_folder = is_new and not flags[0] & apsw.SQLITE_OPEN_MAIN_DB
        if is_new:
            log.append(("create", path))

    def xWrite(self, data, offset):
        super().xWrite(data, offset)
        self.log.append(("write", self.path, offset, bytes(data)))

    def xTruncate(self, size):
        super().xTruncate(size)
        self.log.append(("truncate", self.path, size))

    def xSync(self, flags):
        super().xSync(flags)
        self.log.append(("sync", self.path))
        if self.sync_folder:
            self.log.append(("sync folder",))
            self.sync_folder = False


# -- what SQLAlchemy needs of a driver ---------------------------------------------------------------


class Connection:
    """An apsw connection with the methods of `sqlite3` that SQLAlchemy calls."""

    def __init__(self, path, vfs):
        self.raw = apsw.Connection(str(path), vfs=vfs)
        # A VFS in Python has no shared memory, which a log needs unless one connection has the file for itself.
        self.raw.pragma("locking_mode", "exclusive")
        self.raw.pragma("wal_autocheckpoint", 40)  # pages: a short workload is to have several checkpoints
        self.isolation_level = None

    def cursor(self):
        return Cursor(self.raw)

    def create_function(self, *_, **__):
        pass

    def commit(self):
        if self.raw.in_transaction:
            self.raw.execute("COMMIT")

    def rollback(self):
        if self.raw.in_transaction:
            self.raw.execute("ROLLBACK")

    def close(self):
        self.raw.close()


class Cursor:
    def __init__(self, raw):
        self.raw, self.cursor = raw, raw.cursor()
        self.cursor.exec_trace = self._describe
        self.description, self.rowcount, self.lastrowid, self.arraysize = None, -1, None, 1

    def _describe(self, cursor, statement, bindings):
        self.description = [(*column, None, None, None, None, None)[:7] for column in cursor.get_description()] or None
        return True

    def execute(self, statement, parameters=()):
        self.rows = iter(self.cursor.execute(statement, tuple(parameters)).fetchall())
        self.rowcount, self.lastrowid = self.raw.changes(), self.raw.last_insert_rowid()
        return self

    def executemany(self, statement, rows):
        before = self.raw.total_changes()
        for row in rows:
            self.execute(statement, row)
        self.rowcount = self.raw.total_changes() - before
        return self

    def fetchone(self):
        return next(self.rows, None)

    def fetchmany(self, size):
        return [row for _, row in zip(range(size), self.rows, strict=False)]

    def fetchall(self):
        return list(self.rows)

    def close(self):
        self.cursor.close()


# -- what is left after a power cut ------------------------------------------------------------------


@dataclass
class Inode:
    """The contents of a file: what is on the disk, and the changes that were not synced yet."""

    synced: bytearray = field(default_factory=bytearray)
    pending: list = field(default_factory=list)

    def sync(self):
        for change in self.pending:
            apply(self.synced, change)
        self.pending.clear()

    def after_a_cut(self, rng, mode):
        """Return contents in which each pending change is there, or not, or in part."""
        contents = bytearray(self.synced)
        for change in self.pending:
            if mode == "all" or (mode != "nothing" and rng.random() < 0.5):
                apply(contents, change)
            elif mode == "sectors" and change[0] == "write":
                _, offset, data = change
                for begin in range(0, len(data), SECTOR):
                    if rng.random() < 0.5:
                        apply(contents, ("write", offset + begin, data[begin : begin + SECTOR]))
        return contents


def apply(contents, change):
    if change[0] == "truncate":
        del contents[change[1] :]
        contents.extend(bytes(change[1] - len(contents)))
        return
    _, offset, data = change
    contents.extend(bytes(max(0, offset - len(contents))))
    contents[offset : offset + len(data)] = data


def images(log, n_images, rng):
    """Yield (moment, {name: contents}) for power cuts at random moments: the disk after the log up to that moment."""
    moments = sorted(rng.integers(0, len(log) + 1, n_images).tolist())
    disk = Disk()
    done = 0
    for moment in moments:
        for entry in log[done:moment]:
            disk.take(*entry)
        done = moment
        yield moment, disk.after_a_cut(rng)


class Disk:
    """Files by name; creating and deleting reaches the disk in order, at the latest when the folder is synced."""

    def __init__(self):
        self.names, self.synced_names, self.pending = {}, {}, []

    def take(self, kind, name=None, *arguments):
        if kind == "create":
            self.names[name] = Inode()
            self.pending.append((name, self.names[name]))
        elif kind == "delete":
            del self.names[name]
            self.pending.append((name, None))
        elif kind == "sync folder":
            self.synced_names, self.pending = dict(self.names), []
        elif kind == "sync":
            self.names[name].sync()
        elif kind in ("write", "truncate"):
            self.names[name].pending.append((kind, *arguments))

    def after_a_cut(self, rng):
        mode = rng.choice(["nothing", "all", "writes", "sectors"])
        names = self.synced_names | dict(self.pending[: rng.integers(0, len(self.pending) + 1)])
        return {name: inode.after_a_cut(rng, mode) for name, inode in names.items() if inode is not None}


def integrity(path):
    """Return what SQLite says of a file: "ok" if all is well."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute("PRAGMA integrity_check").fetchone()[0]
    finally:
        connection.close()
