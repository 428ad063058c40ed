"""A small campaign for the tests of its commands."""

import csv
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import numpy as np

from armful.cli import main

START = datetime(2026, 1, 5, tzinfo=UTC)


COMMAND = [sys.executable, "-m", "armful"]


def in_a_process(*arguments, cwd):
    """Run a command that works as its user does, and return what it printed."""
    done = subprocess.run([*COMMAND, *arguments], cwd=cwd, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


class Done:
    """What a command printed, and how it ended."""

    def __init__(self, code, stdout, stderr):
        self.code, self.stdout, self.stderr = code, stdout, stderr

    def __repr__(self):
        return f"exit code {self.code}\n{self.stdout}\n{self.stderr}"

    @property
    def json(self):
        assert self.stdout.count("\n") == 1, "one line, one object"
        return json.loads(self.stdout)


class Terminal:
    """Runs commands as `armful` does, in the current folder and in this process."""

    def __init__(self, capsys, monkeypatch):
        self._capsys, self._monkeypatch = capsys, monkeypatch

    def __call__(self, *arguments):
        self._monkeypatch.setattr(sys, "argv", ["armful", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        return Done(code, *self._capsys.readouterr())

    def works(self, *arguments):
        done = self(*arguments)
        assert done.code == 0, done
        assert done.stderr == ""
        return done


def day(n):
    """The date n days after the first round."""
    return (START + timedelta(days=n)).date().isoformat()


def write_customers(path, n=300, seed=0, **more):
    """Customers with a region, an age that is missing for some, and a job."""
    rng = np.random.default_rng(seed)
    columns = {
        "customer_id": [f"c{i}" for i in range(n)],
        "region": rng.choice(["north", "south", "[bold]east"], n).tolist(),
        "age": [int(age) if age < 70 else "" for age in rng.integers(18, 80, n)],
        "job": rng.choice(["clerk", "nurse", "cook", "none"], n).tolist(),
        **more,
    }
    write_rows(path, columns)


def write_rows(path, columns):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def read_rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_outcomes(path, chosen, seed=1):
    """Every second person on a list bought, at random."""
    ids = [row["id"] for row in read_rows(chosen)]
    bought = np.random.default_rng(seed).integers(0, 2, len(ids)).tolist()
    write_rows(path, {"customer_id": ids, "bought": bought})
    return dict(zip(ids, bought, strict=True))
