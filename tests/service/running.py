"""A real service for tests: `armful serve` in processes of its own, and what it takes to look after it."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import armful

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 900


def until(happened, what):
    """Wait until something is true, and return it."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (result := happened()):
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.01)
    return result


def is_alive(pid):
    """Whether a process runs; one that has ended and waits to be noticed by its parent does not."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")


KILL_AFTER = """
cat >/dev/null
kill -KILL -- "-$1" 2>/dev/null
"""
"""Kills a group of processes when its input ends: also if the process that runs the tests is killed."""


class Service:
    """A command that serves, until it is ended or the test is over.

    Parameters
    ----------
    command : list
        After `python -m`; it prints one line of JSON when it is ready.

    Attributes
    ----------
    first_line : str
        What it printed first, if it could not start.
    url : str
    processes : dict
        The ids of its processes, by name.
    """

    def __init__(self, *command, cwd=ROOT):
        # A file, and not a pipe that has to be read: a service may log more than a pipe holds.
        self._log = tempfile.NamedTemporaryFile(mode="w+", suffix=".log", delete=True)  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-m", *map(str, command)],
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,
        )
        self._watcher = subprocess.Popen(
            ["sh", "-c", KILL_AFTER, "sh", str(self.process.pid)], stdin=subprocess.PIPE, start_new_session=True
        )
        self.first_line = self.process.stdout.readline()
        if self.first_line.startswith("{"):
            said = json.loads(self.first_line)
            self.url, self.processes = said["url"], said["processes"]

    def log(self):
        self._log.seek(0)
        return self._log.read()

    def messages(self):
        """What was logged, as dicts."""
        return [json.loads(line) for line in self.log().splitlines() if line.startswith("{")]

    def client(self, **options):
        return armful.Client(self.url, **options)

    def end(self, kind=signal.SIGTERM):
        """Ask for the end, and return the exit code."""
        self.process.send_signal(kind)
        return self.process.wait(PATIENCE_SECONDS)

    def close(self):
        """Leave nothing behind, whatever happened."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(120)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        self._watcher.stdin.close()
        self._watcher.wait()
        self._log.close()
