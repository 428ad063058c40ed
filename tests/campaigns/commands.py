"""Runs commands of armful, each in a process of its own, and kills them at a moment that the test chooses.

`python -m tests.campaigns.commands` imports what the commands need, then reads requests from standard input, one line
of JSON each, and forks a process for every command: that is a hundred times faster than starting Python. `Commands`
talks to it.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import alembic.config  # noqa: F401 - what is imported before the forks need not be imported after each

import armful.campaigns.campaign
import armful.cli._campaign_output  # noqa: F401
from armful import cli
from armful.ledger._sqlite import SqliteStore

ROOT = Path(__file__).parents[2]
FILE_EVENTS = {"open", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "sqlite3.connect"}


class Done:
    """How a command ended. events: what it did to files of the folder, and the SQL that it ran, in order."""

    def __init__(self, answer):
        self.code, self.stdout, self.stderr, self.events = (
            answer[name] for name in ("code", "stdout", "stderr", "events")
        )

    def __repr__(self):
        return f"exit code {self.code}\n{self.stdout}\n{self.stderr}"

    @property
    def json(self):
        assert self.code == 0, self
        assert self.stderr == ""
        return json.loads(self.stdout)

    @property
    def sentence(self):
        """What the command said when it failed: one line, no traceback, and the same as JSON."""
        assert self.code == 2, self
        assert self.stderr.startswith("armful: "), self
        assert self.stderr.count("\n") == 1, self
        error = json.loads(self.stdout)["error"]
        assert self.stderr == f"armful: {error}\n"
        return error


class Commands:
    """Starts commands; a context manager."""

    def __enter__(self):
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.campaigns.commands"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_):
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()

    def __call__(self, *arguments, **options):
        """Run `armful ARGUMENTS --json` to its end, or until it is killed.

        kill_after : seconds. kill_before : the number of the event before which it is killed, from 0. largest_file : in
        bytes; a file that becomes larger meets the same as a full disk.
        """
        return self.several([arguments], **options)[0]

    def several(self, commands, **options):
        """Run several commands at once."""
        texts = [[*map(str, arguments), "--json"] for arguments in commands]
        self._server.stdin.write(json.dumps({"commands": texts, **options}) + "\n")
        self._server.stdin.flush()
        line = self._server.stdout.readline()
        assert line, "the server of commands has ended"
        return [Done(each) for each in json.loads(line)]


def _serve():
    for line in sys.stdin:
        request = json.loads(line)
        commands = request.pop("commands")
        with tempfile.TemporaryDirectory() as folder:
            running = [_start(command, Path(folder, str(i)), **request) for i, command in enumerate(commands)]
            print(json.dumps([_wait(*each) for each in running]), flush=True)


def _start(arguments, target, kill_after=None, kill_before=None, largest_file=None):
    target.mkdir()
    process = os.fork()
    if process:
        return process, target, kill_after
    code = 1
    try:
        for descriptor, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(target / name, os.O_CREAT | os.O_WRONLY), descriptor)
        if largest_file is None:
            _watch(target / "events", arguments[1], kill_before)
        else:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
        sys.argv = ["armful", *arguments]
        cli.main()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait(process, target, kill_after):
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(process, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    files = {name: target / name for name in ("stdout", "stderr", "events")}
    texts = {name: file.read_text() if file.exists() else "" for name, file in files.items()}
    return {"code": code, **texts, "events": texts["events"].splitlines()}


def _watch(file, folder, kill_before):
    """Write down each event, and end this process as `kill -9` does before one of them."""
    log = os.open(file, os.O_CREAT | os.O_WRONLY)
    count = [0]

    def note(event):
        if count[0] == kill_before:
            os.kill(os.getpid(), signal.SIGKILL)
        count[0] += 1
        os.write(log, f"{event[:80]}\n".replace("\n", " ").encode() + b"\n")

    def audit(event, arguments):
        if event in FILE_EVENTS and folder in str(arguments[0]):
            note(f"{event} {Path(str(arguments[0])).name}")

    def connect(store, _connect=SqliteStore._connect):
        connection = _connect(store)
        connection.set_trace_callback(note)
        return connection

    SqliteStore._connect = connect
    sys.addaudithook(audit)


if __name__ == "__main__":
    _serve()
