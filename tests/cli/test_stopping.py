"""However a command ends, its worker processes end with it."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

SLOW_POLICY = """
import os, pathlib, time
from armful import C2UCB

class Slow(C2UCB):
    def score(self, arms, k):
        pathlib.Path(__file__).with_name(f"worker-{os.getpid()}").touch()
        time.sleep(0.05)
        return super().score(arms, k)
"""

PLAN = """
runs = 2
sizes = [{ k = 2, rounds = 100000 }, { k = 3, rounds = 100000 }]
[policies.slow]
class = "slow.py:Slow"
[environments.Slates]
"""


@pytest.fixture
def at_work(tmp_path):
    """A comparison in two processes that would take hours, when both are at work."""
    (tmp_path / "slow.py").write_text(SLOW_POLICY)
    (tmp_path / "plan.toml").write_text(PLAN)
    process = subprocess.Popen(
        [sys.executable, "-m", "armful", "compare", "plan.toml", "--workers", "2"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    while len(workers := list(tmp_path.glob("worker-*"))) < 2:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    pids = [int(path.name.removeprefix("worker-")) for path in workers]
    yield process, pids
    for pid in [process.pid, *pids]:
        if is_running(pid):
            os.kill(pid, signal.SIGKILL)
    process.stderr.close()
    process.wait()


def is_running(pid):
    """Whether it runs: a process that has ended and that nobody has waited for does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def has_ended(pid, patience=900.0):
    end = time.monotonic() + patience
    while is_running(pid):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.slow
def test_a_killed_command_leaves_no_workers_behind(at_work):
    process, workers = at_work
    process.kill()
    process.wait()
    assert all(has_ended(pid) for pid in workers)


@pytest.mark.slow
def test_sigterm_ends_the_command_and_its_workers_with_a_sentence(at_work):
    process, workers = at_work
    process.terminate()
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 143
    assert stderr.strip().splitlines()[-1].startswith("armful: stopped; what is finished is kept")
    assert "Traceback" not in stderr
    assert all(has_ended(pid) for pid in workers)
