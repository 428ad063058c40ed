"""Files that replace others: with real processes that are killed, links, devices, modes and full disks."""

import errno
import multiprocessing
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import armful
from armful.files import _atomic_file as atomic_file
from armful.files._atomic_file import replacing, write_bytes

WRITERS = {
    "policy": lambda path: armful.C2UCB(n_features=2).save(path),
    "state": lambda path: armful.RidgeState(n_features=2).save(path),
    "table": lambda path: armful.Table.build(np.ones((5, 2)), path, progress=False),
    "bytes": lambda path: write_bytes(path, b"content"),
}


@pytest.fixture(params=list(WRITERS))
def write(request):
    return WRITERS[request.param]


def names_in(folder):
    return sorted(os.listdir(folder))


def refusal(kind, path, write=WRITERS["policy"]):
    with pytest.raises(kind) as refused:
        write(path)
    assert "\n" not in str(refused.value)
    return str(refused.value)


# -- what is there already -------------------------------------------------------------------------


def test_a_link_stays_and_its_target_is_replaced(tmp_path, write):
    (tmp_path / "there").mkdir()
    target, link, second = tmp_path / "there" / "file", tmp_path / "link", tmp_path / "second"
    write(target)
    before = target.stat().st_ino
    link.symlink_to("there/file")
    second.symlink_to(link)
    write(second)
    assert link.is_symlink()
    assert second.is_symlink()
    assert target.stat().st_ino != before
    assert not target.is_symlink()
    assert names_in(tmp_path) == ["link", "second", "there"]
    assert names_in(tmp_path / "there") == ["file"]


def test_a_link_to_nothing_makes_its_target_and_one_to_no_folder_is_refused(tmp_path, write):
    (tmp_path / "link").symlink_to("file")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert names_in(tmp_path) == ["file", "link"]
    (tmp_path / "lost").symlink_to("nowhere/file")
    assert refusal(FileNotFoundError, tmp_path / "lost", write) == (
        f"there is no folder {tmp_path}/nowhere to write file to, where {tmp_path}/lost leads"
    )


def test_a_link_to_itself_is_refused(tmp_path, write):
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    assert refusal(FileNotFoundError, tmp_path / "one", write) == (
        f"{tmp_path}/one is a symbolic link that points to itself: remove it"
    )
    assert refusal(FileNotFoundError, tmp_path / "one" / "file", write).startswith("there is no folder")


def test_what_is_no_regular_file_is_left_alone(tmp_path, write):
    os.mkfifo(tmp_path / "pipe")
    bound = socket.socket(socket.AF_UNIX)
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(tmp_path)  # the path of a socket must be short
        bound.bind("socket")
    finally:
        os.fchdir(here)
        os.close(here)
        bound.close()
    (tmp_path / "link").symlink_to("pipe")
    for name, kind in (("pipe", "pipe"), ("socket", "socket"), ("link", "pipe")):
        path = tmp_path / name
        before = os.stat(path)
        assert refusal(FileExistsError, path, write) == (
            f"{path} is a {kind}, and only a regular file is replaced: give another name"
        )
        assert os.path.samestat(os.stat(path), before)
    assert refusal(FileExistsError, Path(os.devnull), write).startswith(f"{os.devnull} is a device, and only a regular")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert refusal(IsADirectoryError, tmp_path, write) == f"{tmp_path} is a folder; give the name of a file in it"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
def test_the_mode_of_an_existing_file_is_kept(tmp_path, write, mode):
    path = tmp_path / "file"
    write(path)
    path.chmod(mode)
    before = path.stat().st_ino
    write(path)
    assert path.stat().st_ino != before
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_mode_of_the_umask(tmp_path, write, umask):
    before = os.umask(umask)
    try:
        write(tmp_path / "file")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o666 & ~umask


def test_a_file_that_only_its_owner_reads_is_not_open_to_all_while_it_is_written(tmp_path):
    path = tmp_path / "file"
    path.touch()
    path.chmod(0o600)
    with replacing(path) as part:
        assert stat.S_IMODE(part.path.stat().st_mode) == 0o600
        part.write(b"secret")
    assert path.read_bytes() == b"secret"


def test_a_name_as_long_as_the_file_system_takes_is_written(tmp_path, write):
    path = tmp_path / ("ä" * 127)
    write(path)
    write(path)
    assert names_in(tmp_path) == [path.name]


# -- failures --------------------------------------------------------------------------------------


def fail(path, error):
    with replacing(path) as part:
        part.write(b"new")
        raise error


def test_what_fails_leaves_the_old_file_alone(tmp_path):
    path = tmp_path / "file"
    write_bytes(path, b"old")
    for error in (KeyboardInterrupt, ValueError, MemoryError):
        with pytest.raises(error):
            fail(path, error)
        assert path.read_bytes() == b"old"
        assert names_in(tmp_path) == ["file"]


def lines_of(*arguments):
    """What Python prints; not measured by coverage, whose file cannot be written where the disk is full or closed."""
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run(
        [sys.executable, *arguments], env=unmeasured, check=False, capture_output=True, text=True, timeout=120
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


FULL_DISK = """
import resource, sys
import numpy as np, armful
from armful.files._atomic_file import write_bytes
from pathlib import Path
path = Path(sys.argv[1])
policy = armful.C2UCB(n_features=200)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
for write in (policy.save, policy.state.save, lambda path: write_bytes(path, bytes(300_000)),
              lambda path: armful.Table.build(np.ones((4_000, 10)), path, progress=False)):
    try:
        write(path)
    except OSError as error:
        print(error.errno, error)
"""


def test_a_real_limit_of_the_system_is_reported_with_the_size_of_the_file(tmp_path):
    path = tmp_path / "file"
    lines = lines_of("-W", "error", "-c", FULL_DISK, str(path))
    sizes = ["63", "63", "292.97 KiB", "312.50 KiB"]  # the first two: 2 x 201 x 201 x 8 bytes and a header
    for line, size in zip(lines, sizes, strict=True):
        begin = f"{errno.EFBIG} {path} could not be written: File too large; it needs at least {size}"
        assert line.startswith(begin), line
        assert line.endswith("iB free")
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch, number, call):
    path = tmp_path / "file"
    write_bytes(path, b"old")

    def full(*_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        message = refusal(OSError, path, lambda path: write_bytes(path, bytes(5_000)))
    assert message.startswith(f"{path} could not be written: {os.strerror(number)}; it needs at least 4.88 KiB, and")
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == ["file"]


READ_ONLY = """
import os, sys, armful
import numpy as np
policy = armful.C2UCB(n_features=2)
armful.Table.build(np.ones((2, 2)), sys.argv[2], progress=False)  # imports all that it needs
os.chdir(sys.argv[1])
if os.geteuid() == 0:  # whom no mode refuses
    os.setgid(65534), os.setuid(65534)
for write in (policy.save, lambda path: armful.Table.build(np.ones((2, 2)), path, progress=False)):
    try:
        write("file")
    except PermissionError as error:
        print(error.errno, error)
"""


def test_a_folder_that_may_not_be_written_to_is_named(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    lines = lines_of("-c", READ_ONLY, str(closed), str(tmp_path / "open"))
    assert lines == [f"{errno.EACCES} no permission to write in .: give another folder"] * 2


# -- several at once -------------------------------------------------------------------------------


def saves(path, value, times):
    """Saves a policy whose state says who it was, and reads what is there, whole."""
    policy = armful.C2UCB(n_features=40)
    policy.learn(np.full((10 * value, 40), float(value)), np.zeros(10 * value))
    for _ in range(times):
        policy.save(path)
        found = armful.load(path).state
        assert np.allclose(found.V - np.eye(40), 10 * (found.n / 10) ** 3)


def test_threads_that_save_to_one_path_do_not_disturb_each_other(tmp_path):
    path, failed = tmp_path / "file", []

    def run(value):
        try:
            saves(path, value, 15)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(value,)) for value in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert names_in(tmp_path) == ["file"]


def test_processes_that_save_to_one_path_do_not_disturb_each_other(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=saves, args=(tmp_path / "file", value, 15)) for value in (1, 2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0]
    assert names_in(tmp_path) == ["file"]


ENDLESS = """
import sys, armful
policy = armful.C2UCB(n_features=60)
print("ready", flush=True)
while True:
    policy.save(sys.argv[1])
"""


def started(path, code=ENDLESS):
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.slow
def test_what_killed_processes_leave_is_removed_by_the_next_save(tmp_path):
    path, left = tmp_path / "file", 0
    for i in range(12):
        process = started(path)
        time.sleep(0.005 * i)
        process.kill()
        process.communicate()
        left += len(names_in(tmp_path)) > path.exists()
        if path.exists():
            armful.load(path)
    assert left > 0  # else nothing was tested
    armful.C2UCB(n_features=2).save(path)
    assert names_in(tmp_path) == ["file"]


HOLDING = """
import sys, time
from pathlib import Path
from armful.files._atomic_file import replacing
with replacing(Path(sys.argv[1])) as part:
    part.write(b"half")
    print("ready", flush=True)
    time.sleep(600)
"""


def test_a_part_file_is_removed_when_its_process_is_dead_and_not_before(tmp_path, write):
    path = tmp_path / "file"
    process = started(path, HOLDING)
    (part,) = names_in(tmp_path)
    for other in ("file.part", "file.7.part", "other.7.8.0123abcd.part"):  # not ours to remove
        (tmp_path / other).touch()
    write(path)
    assert part in names_in(tmp_path)
    process.kill()
    process.communicate()
    assert part in names_in(tmp_path)
    write(path)
    assert names_in(tmp_path) == ["file", "file.7.part", "file.part", "other.7.8.0123abcd.part"]


def test_a_part_file_taken_for_abandoned_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    real, taken = atomic_file._lock, []

    def lock(descriptor):
        if not taken:
            taken.extend(tmp_path.glob("*.part"))
            taken[0].unlink()
        return real(descriptor)

    monkeypatch.setattr(atomic_file, "_lock", lock)
    write_bytes(tmp_path / "file", b"new")
    assert len(taken) == 1
    assert names_in(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"new"


def test_without_locks_only_old_part_files_are_removed(tmp_path, monkeypatch, write):
    monkeypatch.setattr(atomic_file, "HAS_LOCKS", False)
    old, young = (tmp_path / f"file.7.8.{name}.part" for name in ("0123abcd", "89abcdef"))
    old.touch()
    young.touch()
    os.utime(old, (time.time() - 3600,) * 2)
    write(tmp_path / "file")
    assert names_in(tmp_path) == ["file", young.name]
    with pytest.raises(ValueError):
        fail(tmp_path / "file", ValueError)
    assert names_in(tmp_path) == ["file", young.name]


def test_a_file_system_without_locks_is_written_to(tmp_path, monkeypatch, write):
    def unsupported(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(atomic_file.fcntl, "flock", unsupported)
    write(tmp_path / "file")
    assert names_in(tmp_path) == ["file"]


def test_a_file_that_is_open_is_named_where_it_cannot_be_replaced(tmp_path, monkeypatch):
    """As on Windows: a table that is open cannot be built again at the same path."""
    path = tmp_path / "arms"
    path.write_bytes(b"old")

    def refused(source, target):
        raise PermissionError(errno.EACCES, "Access is denied", os.fspath(source), None, os.fspath(target))

    monkeypatch.setattr(atomic_file, "HAS_LOCKS", False)
    monkeypatch.setattr(os, "replace", refused)
    with pytest.raises(PermissionError, match="arms is open, and this system cannot replace open files: close it"):
        atomic_file.write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["arms"]
