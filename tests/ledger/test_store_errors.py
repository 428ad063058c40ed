"""Stores that cannot be used: one sentence each, and nothing is changed."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing, contextmanager
from types import SimpleNamespace

import numpy as np
import psycopg
import pytest
from sqlalchemy import event, text
from sqlalchemy.engine import make_url

from armful.errors import LedgerError
from armful.ledger import Ledger, _postgresql, _room, _sqlite
from armful.testing._made_decisions import made_decision
from armful.testing._made_rounds import NOON, add, everything, made_arms
from tests.postgresql import own_schema


@contextmanager
def refused(sentence):
    """The block raises a LedgerError of one line that says this and no password."""
    with pytest.raises(LedgerError, match=sentence) as caught:
        yield
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def arms(*ids):
    return made_arms(np.random.default_rng(0), list(ids))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(file):
    with Ledger.open(f"sqlite:///{file}", "autumn", create=True) as ledger:
        add(ledger, arms("ann", "bob"), 1)
        yield ledger


@pytest.fixture
def schema_url():
    with own_schema() as url:
        yield url


# -- addresses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("nonsense with secret", "cannot be read as one"),
        ("postgresql://me:secret@host:port/x", "cannot be read as one"),
        ("mysql://me:secret@host/x", "got one of the kind 'mysql'"),
        ("sqlite://", "needs the name of a file"),
        ("sqlite:///:memory:", "needs the name of a file"),
        ("sqlite:///x.sqlite?mode=ro", "needs the name of a file"),
        ("sqlite://host/x.sqlite", "got one of the kind 'sqlite'"),
    ],
)
def test_an_address_that_is_none_is_refused(url, sentence):
    with refused(f"^a store is sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE.*{sentence}"):
        Ledger.open(url, "autumn", create=True)


# -- what is at the path -----------------------------------------------------------------------------


def test_a_file_that_is_not_there_is_not_made_unless_asked_for(file):
    with refused(f"^there is no ledger {file}; `armful init` begins a campaign$"):
        Ledger.open(f"sqlite:///{file}", "autumn")
    with refused("^there is no ledger"):
        Ledger.campaigns(f"sqlite:///{file}")
    assert not file.exists()


def test_an_empty_file_becomes_a_ledger_only_if_asked_for(file):
    file.touch()
    with refused("^there is no ledger in"):
        Ledger.open(f"sqlite:///{file}", "autumn")
    Ledger.open(f"sqlite:///{file}", "autumn", create=True).close()


def test_a_folder_a_pipe_a_device_and_a_missing_folder_are_named(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path, sentence in {
        tmp_path: "is a folder; give the name of a file in it",
        tmp_path / "pipe": "is a pipe",
        "/dev/null": "is a device",
        tmp_path / "loop": "is a symbolic link that points to itself",
        tmp_path / "missing" / "x.sqlite": "there is no folder",
    }.items():
        with refused(sentence):
            Ledger.open(f"sqlite:///{path}", "autumn", create=True)


def test_a_link_to_a_ledger_is_that_ledger(ledger, file, tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "link.sqlite").symlink_to(file)
    with Ledger.open(f"sqlite:///{folder / 'link.sqlite'}", "autumn") as linked:
        add(linked, arms("cy"), 2)
        assert len(ledger.rounds()) == 2
        assert [path.name for path in folder.iterdir()] == ["link.sqlite"]


def test_a_path_with_odd_characters_is_a_path(tmp_path):
    file = tmp_path / "50% #1? & ü.sqlite"
    Ledger.open(f"sqlite:///{file}", "autumn", create=True).close()
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_a_file_that_is_no_database_is_left_alone(file):
    file.write_bytes(b"id,name\n1,ann\n" * 1000)
    with refused("is not a ledger: it is not an SQLite database; give another store$"):
        Ledger.open(f"sqlite:///{file}", "autumn", create=True)
    assert file.read_bytes() == b"id,name\n1,ann\n" * 1000


def test_a_database_of_something_else_is_left_alone(file):
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE invoices (x)")
    connection.commit()
    with refused(r"is not a ledger: it holds other tables \(invoices\); give another store$"):
        Ledger.open(f"sqlite:///{file}", "autumn", create=True)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("invoices",)]
    connection.close()


def test_a_damaged_file_is_named(ledger, file):
    ledger.close()
    contents = bytearray(file.read_bytes())
    contents[4096:] = np.random.default_rng(0).bytes(len(contents) - 4096)
    file.write_bytes(contents)
    with refused("is damaged: (.*; )?restore it from a backup$"):
        Ledger.open(f"sqlite:///{file}", "autumn")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE rounds SET details = 'no JSON'",
        "UPDATE rounds SET chosen_at = 'yesterday'",
        "UPDATE chosen SET features = x'00' WHERE arm = 'ann'",
        "UPDATE chosen SET groups = '{' WHERE arm = 'ann'",
        "UPDATE rewards SET received_at = 'yesterday'",
        "INSERT INTO rewards VALUES (1, 'nobody', 2, 1.0, '2025-01-01 00:00:00')",
    ],
)
def test_what_cannot_be_read_is_damage(ledger, file, change):
    ledger.add_rewards([1], ["ann"], [1.0], NOON)
    connection = sqlite3.connect(file)
    connection.execute(change)
    connection.commit()
    connection.close()
    with refused("is damaged: "):
        everything(ledger)


AS_NOBODY = """
import os, sys
from armful.ledger import Ledger
from armful.testing._made_rounds import NOON
Ledger.open(sys.argv[1], "autumn").close()  # imports what is imported late: the other user may not read it
os.chmod(sys.argv[1].removeprefix("sqlite:///"), int(sys.argv[2], 8))
os.chmod(os.path.dirname(sys.argv[1].removeprefix("sqlite:///")), int(sys.argv[3], 8))
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534), os.setuid(65534)
for url in (sys.argv[1], sys.argv[1] + ".new"):
    try:
        ledger = Ledger.open(url, "autumn", create=True)
        ledger.add_rewards([1], ["ann"], [1.0], NOON)
    except ValueError as error:
        print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "folder_mode", "sentences"),
    [
        ("444", "755", ["cannot be written: it or its folder is read-only; nothing was changed", "cannot be opened"]),
        ("666", "555", ["cannot be (written|opened): it .*its folder", "cannot be opened: it and its folder must"]),
        ("000", "755", ["cannot be opened: it and its folder must be readable and writable", "cannot be opened"]),
    ],
)
def test_a_read_only_file_or_folder_is_named(mode, folder_mode, sentences):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # where every user comes, unlike the folders of pytest
        os.chmod(folder, 0o755)
        url = f"sqlite:///{folder}/ledger.sqlite"
        with Ledger.open(url, "autumn", create=True) as ledger:
            add(ledger, arms("ann", "bob"), 1)
        program = [sys.executable, "-c", AS_NOBODY, url, mode, folder_mode]
        said = subprocess.run(program, check=True, capture_output=True, text=True).stdout.splitlines()
        os.chmod(folder, 0o755)
        os.chmod(f"{folder}/ledger.sqlite", 0o644)
        assert len(said) == 2
        for line, sentence in zip(said, sentences, strict=True):
            assert re.search(sentence, line), line
        with Ledger.open(url, "autumn") as ledger:
            assert np.isnan(ledger.outcomes(1).rewards).all()


# -- writing fails -----------------------------------------------------------------------------------


def test_a_full_disk_changes_nothing(ledger):
    before = everything(ledger)
    many = made_arms(np.random.default_rng(1), [f"p{i}" for i in range(3000)], n_features=30)
    with ledger._store.engine.connect() as connection:
        n_pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
    limit = "PRAGMA max_page_count = {}"
    event.listen(ledger._store.engine, "begin", lambda c: c.exec_driver_sql(limit.format(n_pages + 20)))
    with refused("cannot be written: the disk is full; nothing was changed, make room and run this again$"):
        add(ledger, many, 2)
    assert everything(ledger) == before
    event.listen(ledger._store.engine, "begin", lambda c: c.exec_driver_sql(limit.format(10**6)))
    add(ledger, many, 2)


TOO_LARGE = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from armful.ledger import Ledger
from armful.testing._made_rounds import add, everything, made_arms
import numpy as np
many = made_arms(np.random.default_rng(1), [f"p{i}" for i in range(3000)], n_features=30)
with Ledger.open(sys.argv[1], "autumn") as ledger:
    before = everything(ledger)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    try:
        add(ledger, many, 2)
    except ValueError as error:
        print(error)
    assert everything(ledger) == before
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    add(ledger, many, 2)
"""


@pytest.mark.slow
def test_a_disk_that_takes_no_more_changes_nothing(ledger, file):
    program = [sys.executable, "-c", TOO_LARGE, f"sqlite:///{file}"]
    said = subprocess.run(program, check=True, capture_output=True, text=True).stdout
    assert re.search("cannot be (read or )?written: the disk .*; nothing was changed", said), said
    assert len(ledger.rounds()) == 2


NO_ROOM_TO_OPEN = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from armful.ledger import Ledger
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
try:
    Ledger.open(sys.argv[1], "autumn")
except ValueError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
Ledger.open(sys.argv[1], "autumn").close()
"""


def test_a_ledger_that_a_full_disk_has_no_room_to_open_says_so(ledger, file):
    ledger.close()
    program = [sys.executable, "-c", NO_ROOM_TO_OPEN, f"sqlite:///{file}"]
    said = subprocess.run(program, check=True, capture_output=True, text=True).stdout
    assert "cannot be read or written: the disk is full; nothing was changed, make room and run this again" in said


def test_a_ledger_is_not_written_anew_where_its_disk_has_no_room_for_that(ledger, file, monkeypatch):
    before, size = everything(ledger), ledger.size()
    free = [size - 1]
    monkeypatch.setattr(_room.shutil, "disk_usage", lambda _: SimpleNamespace(free=free[0]))
    with refused("is not written anew: that takes .* of its disk, and .* are free; make room and run this again$"):
        ledger.compact()
    assert everything(ledger) == before
    with refused(
        "^all is erased, but old copies may still be in .*, run this again: .* is not written anew: that takes"
    ):
        ledger.forget(["ann"])
    free[0] = 2 * size
    ledger.compact()
    unused = ledger.size()
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE passing AS SELECT zeroblob(1000000)")
        connection.execute("DROP TABLE passing")
    assert ledger.size() > unused + 1_000_000
    free[0] = int(1.1 * unused)
    ledger.compact()
    assert ledger.size() <= unused
    free[0] = 2 * size
    monkeypatch.setattr(_sqlite, "CACHE_KIB", 1)
    monkeypatch.setenv("SQLITE_TMPDIR", str(file.parent))
    with refused("is not written anew"):  # a temporary file on the same disk needs as much again
        ledger.compact()


def test_a_ledger_that_stays_locked_is_given_up(ledger, file, monkeypatch):
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(_sqlite, "LOCK_SECONDS", 0.1)
    with Ledger.open(f"sqlite:///{file}", "autumn") as waiting:
        before = everything(waiting)
        with refused("is locked by another process for more than 30 seconds: nothing was changed, run this again"):
            add(waiting, arms("cy"), 2)
        assert everything(waiting) == before, "reading does not wait for a writer"
        other.execute("ROLLBACK")
        add(waiting, arms("cy"), 2)
    other.close()


def test_settings_that_would_lose_rounds_are_refused(ledger):
    event.listen(ledger._store.engine, "checkout", lambda c, *_: c.execute("PRAGMA synchronous = NORMAL"))
    before = everything(ledger)
    for write in (lambda: add(ledger, arms("cy"), 2), lambda: ledger.add_rewards([1], ["ann"], [1.0], NOON)):
        with refused("would not survive a power cut .journal_mode is wal, synchronous is 1"):
            write()
    assert everything(ledger) == before


def test_another_program_cannot_switch_the_log_off_while_the_ledger_is_open(ledger):
    with ledger._store.writing_rows() as cursor:  # which checks a connection once
        ledger._store.lock_campaign(cursor, 1)
    with closing(sqlite3.connect(ledger._store.path, timeout=0)) as other:
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("PRAGMA journal_mode = DELETE")
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_file_that_is_taken_away_is_written_no_more(ledger, file, tmp_path, is_replaced):
    """What is written to a removed file is gone when the last program that has it open ends."""
    before, away = everything(ledger), tmp_path / "away"
    file.rename(away)
    if is_replaced:
        shutil.copy(away, file)
    with refused("was removed or replaced while it was open: nothing was changed"):
        add(ledger, arms("ann"), 2)
    with refused("was removed or replaced"):
        ledger.add_group([made_decision(np.random.default_rng(0))])
    with refused("was removed or replaced"):
        ledger.last_number()
    away.replace(file)
    assert everything(ledger) == before
    add(ledger, arms("ann"), 2)


def test_a_closed_ledger_opens_its_file_again(ledger):
    before = everything(ledger)
    ledger.close()
    assert everything(ledger) == before


# -- PostgreSQL --------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["postgresql://me:secret@127.0.0.1:1/x", "postgres://me:secret@/x?host=/nowhere"])
def test_a_server_that_is_not_there_is_named_without_the_password(address):
    with refused(r"^postgresql://me@[^ ]*/x cannot be reached: "):
        Ledger.open(address, "autumn", create=True)


def test_without_psycopg_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with refused(r"needs psycopg: pip install 'armful\[campaigns\]'$"):
        Ledger.open("postgresql://me:secret@host/x", "autumn")


@pytest.mark.slow
def test_a_database_that_is_not_there_is_named(schema_url):
    with refused("cannot be reached: .*nowhere.* does not exist"):
        Ledger.open(make_url(schema_url).set(database="nowhere").render_as_string(hide_password=False), "autumn")


@pytest.mark.slow
def test_tables_of_something_else_with_our_names_are_left_alone(schema_url):
    with psycopg.connect(schema_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE invoices (x int)")
        Ledger.open(schema_url, "autumn", create=True).close()
    with own_schema() as other, psycopg.connect(other, autocommit=True) as connection:
        connection.execute("CREATE TABLE campaigns (x int)")
        with refused(r"is not a ledger: it holds other tables \(campaigns\); give another store$"):
            Ledger.open(other, "autumn", create=True)


@pytest.mark.slow
def test_a_role_that_may_only_read_is_named(schema_url):
    Ledger.open(schema_url, "autumn", create=True).close()
    schema = schema_url.rpartition("%3D")[2]
    role = f"{schema}_reader"
    with psycopg.connect(schema_url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role}")
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}")
        with Ledger.open(f"{schema_url}%20-crole%3D{role}", "autumn") as ledger:
            with refused("^no permission to write to postgresql://.*: nothing was changed"):
                add(ledger, arms("ann"), 1)
            assert ledger.rounds() == []
        connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


@pytest.mark.slow
def test_a_campaign_that_stays_locked_is_given_up(schema_url, monkeypatch):
    monkeypatch.setattr(_postgresql, "LOCK_SECONDS", 0.1)
    with Ledger.open(schema_url, "autumn", create=True) as ledger, psycopg.connect(schema_url) as other:
        other.execute("SELECT * FROM campaigns FOR UPDATE")
        with refused("was locked by another process for more than .* seconds: nothing was changed"):
            add(ledger, arms("ann"), 1)
        other.rollback()
        add(ledger, arms("ann"), 1)


@pytest.mark.slow
def test_a_server_that_dropped_its_connections_is_used_again(schema_url):
    with Ledger.open(f"{schema_url}&application_name=dropped", "autumn", create=True) as ledger:
        add(ledger, arms("ann"), 1)
        with psycopg.connect(schema_url, autocommit=True) as other:
            drop = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dropped'"
            assert other.execute(drop).fetchall() != []
        assert ledger.chosen_ids(1).tolist() == ["ann"]


@pytest.mark.slow
def test_commits_wait_for_the_disk_even_if_the_role_does_not(schema_url):
    with Ledger.open(f"{schema_url}%20-csynchronous_commit%3Doff", "autumn", create=True) as ledger:
        with ledger._store.writing() as connection:
            assert connection.execute(text("SHOW synchronous_commit")).scalar() == "on"
        with ledger._store.writing() as connection:
            connection.execute(text("SET LOCAL synchronous_commit = off"))
            with refused("would not survive a power cut: its synchronous_commit is off"):
                ledger._store.check_durable(ledger._store.cursor(connection))
