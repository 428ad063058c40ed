"""`armful compare --cluster` as its user runs it: in a process of its own, against a real scheduler."""

import os
import signal
import subprocess
import sys

import pytest

from tests.clusters import local_cluster
from tests.experiments.test_cluster import eventually, saved

pytestmark = pytest.mark.slow

PLAN = """
runs = {runs}
sizes = [{{ k = 2, rounds = 10 }}, {{ k = 3, rounds = 20 }}]

[policies.C2UCB]

[policies.mine]
class = "mine.py:Mine"

[environments.slates]
class = "Slates"
n_arms = 20
n_features = 4
"""
OWN = """
import time
from armful import EpsilonGreedy

class Mine(EpsilonGreedy):
    def score(self, arms, k):
        time.sleep({seconds})
        return super().score(arms, k)
"""
MAIN = "from armful.cli import main; main()"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with local_cluster(tmp_path_factory.mktemp("dask")) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def folder(tmp_path):
    return plan_in(tmp_path)


def plan_in(folder, runs=20, seconds=0.0):
    (folder / "plan.toml").write_text(PLAN.format(runs=runs))
    (folder / "mine.py").write_text(OWN.format(seconds=seconds))
    return folder


def compare(*options, cwd, main=MAIN):
    command = [sys.executable, "-c", main, "compare", "plan.toml", *options]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=900, check=False)


def test_a_cluster_writes_what_processes_here_write(address, folder):
    there = compare("--cluster", address, "--out", "there", cwd=folder)
    here = compare("--workers", "2", "--out", "here", cwd=folder)
    assert there.returncode == here.returncode == 0, there.stderr
    assert there.stdout.endswith("\nreport: there/report.html\n")
    assert there.stdout == here.stdout.replace("here/", "there/")
    assert "4/4" in there.stderr
    assert len(there.stderr.strip().splitlines()) == 1, "the progress bar and nothing of dask's"
    assert saved(folder / "there" / "cells") == saved(folder / "here" / "cells")
    assert (folder / "there" / "results.csv").read_bytes() == (folder / "here" / "results.csv").read_bytes()


def test_an_interrupt_gets_one_sentence_and_the_next_call_goes_on(address, tmp_path, interruptible):
    plan_in(tmp_path, seconds=0.05)
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "compare", "plan.toml", "--cluster", address, "--out", "there"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    cells = tmp_path / "there" / "cells"
    eventually(lambda: saved(cells), seconds=900)
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=900)
    assert process.returncode == 130
    assert stderr.strip().splitlines()[-1].startswith("armful: stopped; what is finished is kept")
    assert "Traceback" not in stderr
    kept = {path.name: path.read_bytes() for path in cells.glob("*.json")}
    assert 1 <= len(kept) < 4

    again = compare("--cluster", address, "--out", "there", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    after = {path.name: path.read_bytes() for path in cells.iterdir()}
    assert len(after) == 4
    assert kept.items() <= after.items(), "what was there was not run again: its seconds would differ"


def test_workers_and_a_cluster_are_not_both_taken(folder):
    done = compare("--cluster", "tcp://127.0.0.1:1", "--workers", "2", cwd=folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("armful: --workers is for processes on this machine")


def test_without_dask_the_sentence_says_what_to_install(folder):
    hidden = f"import sys; sys.modules['distributed'] = None; {MAIN}"
    done = compare("--cluster", "tcp://127.0.0.1:1", cwd=folder, main=hidden)
    assert (done.returncode, done.stderr) == (
        2,
        "armful: a cluster needs distributed: pip install '.[dask]' in a clone of armful\n",
    )


def test_an_address_that_does_not_answer_gets_one_sentence_and_nothing_is_begun(folder):
    done = compare("--cluster", "tcp://127.0.0.1:none", cwd=folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("armful: no dask scheduler answers at tcp://127.0.0.1:none; start one with")
    assert not (folder / "armful-comparison").exists()
