"""The policies that tests run over."""

import math
import os
import signal
import sys

import pytest

from armful import C2UCB, ArmwiseThompson, CappedC2UCB, CombLinTS, CombLinUCB, EpsilonGreedy, Policy
from tests import browsers

# On a busy machine a worker of dask takes long to start, and a LocalCluster closes the nanny of a killed one for good
# if the next is not there in time (15 s by default). dask reads this when it is imported, here and in the workers.
for name in ("COMM__TIMEOUTS__CONNECT", "COMM__TIMEOUTS__TCP", "DEPLOY__LOST_WORKER_TIMEOUT"):
    os.environ.setdefault(f"DASK_DISTRIBUTED__{name}", "900s")

if sys.platform == "win32":  # these tests play with terminals, process groups, signals and system calls of POSIX
    collect_ignore = [
        "cli/test_campaign_stopping.py",
        "cli/test_compare_on_a_cluster.py",
        "cli/test_experiments_commands.py",
        "cli/test_stopping.py",
        "experiments/test_cluster.py",
        "experiments/test_names_and_disks.py",
        "files/test_atomic_file.py",
        "cluster/test_cluster.py",
        "cli/test_serving.py",
        "service/test_dashboard_in_use.py",
        "service/test_demo.py",
        "service/test_ending.py",
        "service/test_faults.py",
        "service/test_supervisor.py",
        "service/test_two_machines.py",
        "tables/test_build.py",
        "tables/test_table.py",
    ]

PAPER_POLICIES = {
    "EpsilonGreedy": lambda d: EpsilonGreedy(n_features=d),
    "C2UCB": lambda d: C2UCB(n_features=d, ridge=d, radius=math.sqrt(d)),
    "CappedC2UCB": lambda d: CappedC2UCB(n_features=d, ridge=d, radius=math.sqrt(d), cap=0.9),
    "CappedC2UCB-paper": lambda d: CappedC2UCB(n_features=d, ridge=d, radius=math.sqrt(d), cap=0.9, rule="paper"),
    "CappedC2UCB-default": lambda d: CappedC2UCB(n_features=d, cap=1.0),
    "ArmwiseThompson": lambda d: ArmwiseThompson(n_features=d, ridge=d, radius=math.sqrt(d)),
    "CombLinUCB": lambda d: CombLinUCB(n_features=d),
    "CombLinTS": lambda d: CombLinTS(n_features=d),
}


@pytest.fixture(params=list(PAPER_POLICIES))
def make_policy(request: pytest.FixtureRequest):
    """A function from the number of features to a policy: each of the paper's, and the default."""

    def make(n_features: int) -> Policy:
        return PAPER_POLICIES[request.param](n_features)

    return make


@pytest.fixture
def interruptible():
    """Processes started here are interrupted as from a terminal, also when the tests run in the background.

    There, and under nohup, interrupts are ignored, which is all that a new process inherits of a signal's handling.
    armful leaves that as it is: who starts it with interrupts ignored wants it so.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


LEFT_OUT = pytest.StashKey[int]()
"""How many tests were left out since there is no browser, in this process and in workers of xdist."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if browsers.chromium() is not None or browsers.is_required():
        return
    left_out = [item for item in items if item.get_closest_marker("browser")]
    if left_out:
        config.stash[LEFT_OUT] = len(left_out)
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["browser_tests_left_out"] = session.config.stash.get(LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error) -> None:
    n = getattr(node, "workeroutput", {}).get("browser_tests_left_out", 0)
    node.config.stash[LEFT_OUT] = max(n, node.config.stash.get(LEFT_OUT, 0))


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    n = config.stash.get(LEFT_OUT, 0)
    if n:
        terminalreporter.section("left out", yellow=True)
        terminalreporter.line(f"{n} browser tests were left out, since there is no Chromium here: {browsers.HOW}.")
