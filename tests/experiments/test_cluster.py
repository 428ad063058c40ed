"""A real cluster on this machine: a scheduler and two worker processes, each under a nanny that starts it again."""

import json
import os
import signal
import sys
import threading
import time
from dataclasses import replace

import pytest

from armful.cluster import _dask_runner as dask_runner
from armful.experiments import Recipe, connect_cluster, run_cells
from tests.clusters import local_cluster
from tests.experiments.test_plan import TINY

distributed = pytest.importorskip("distributed")

OWN = """
import os, time
from pathlib import Path
from threadpoolctl import threadpool_info
from armful import EpsilonGreedy

class Sleepy(EpsilonGreedy):
    '''Takes its time, and notes which process runs it.'''
    def score(self, arms, k):
        (Path(__file__).parent / f"{self.epsilon}-{os.getpid()}.ran").touch()
        time.sleep(0.1)
        return super().score(arms, k)

class Grumpy(EpsilonGreedy):
    def score(self, arms, k):
        raise ArithmeticError("not today")

class Curious(EpsilonGreedy):
    def score(self, arms, k):
        raise ValueError(f"BLAS in { {library['num_threads'] for library in threadpool_info()} } threads")

class Deadly(EpsilonGreedy):
    def score(self, arms, k):
        os.kill(os.getpid(), 9)
"""


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    monkeypatch.setattr(dask_runner, "PATIENCE_SECONDS", 600.0)  # a busy machine is slow to start a worker again


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory):
    with local_cluster(tmp_path_factory.mktemp("dask"), env={"OPENBLAS_NUM_THREADS": "2"}) as cluster:
        yield cluster


@pytest.fixture
def local(two_workers):
    two_workers.wait_for_workers(2, timeout=900)
    return two_workers


@pytest.fixture
def runner(local):
    with connect_cluster(local.scheduler_address) as runner:
        yield runner


def saved(folder):
    """Every result as it is on disk, without the time it took."""
    cells = {path.name: json.loads(path.read_text()) for path in folder.glob("*.json")}
    return {name: json.dumps({**cell["result"], "seconds": 0}) for name, cell in cells.items()}


def with_own(kind, **options):
    """A plan of one cell: which of several is the first to fail is not said."""
    return replace(TINY, policies={"mine": Recipe(kind, options)}, sizes=[(3, 8)])


def own(folder, name, **options):
    (folder / "own.py").write_text(OWN)
    return with_own(f"{folder / 'own.py'}:{name}", **options)


def sleepy(folder, n):
    """A plan of n cells that take half a second each."""
    kind = own(folder, "Sleepy").policies["mine"].kind
    return replace(TINY, policies={f"p{i}": Recipe(kind, {"epsilon": i / n}) for i in range(n)}, sizes=[(2, 5)])


def eventually(condition, seconds=900.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s")


@pytest.mark.slow
def test_a_cluster_saves_what_processes_here_save(runner, tmp_path):
    plan = replace(TINY, sizes=[(2, 5), (3, 8), (4, 20)], runs=60)
    reported = []
    there = run_cells(plan.cells(), tmp_path / "there", runner=runner, progress=reported.append)
    here = run_cells(plan.cells(), tmp_path / "here", workers=1)
    assert saved(tmp_path / "there") == saved(tmp_path / "here")
    assert (
        [(r.policy, r.k) for r in there] == [(r.policy, r.k) for r in here] == [(c.policy, c.k) for c in plan.cells()]
    )
    assert len(reported) == len(there) == len(saved(tmp_path / "there")) == 6
    assert None not in reported


class Interrupt(Exception):
    pass


@pytest.mark.slow
def test_an_interrupted_run_goes_on_where_it_was(runner, tmp_path):
    ran = []

    def stop_after_two(result):
        ran.append(result)
        if len(ran) == 2:
            raise Interrupt

    with pytest.raises(Interrupt):
        run_cells(TINY.cells(), tmp_path / "there", runner=runner, progress=stop_after_two)
    assert len(saved(tmp_path / "there")) == 2

    reported = []
    run_cells(TINY.cells(), tmp_path / "there", runner=runner, progress=reported.append)
    assert reported.count(None) == 2
    run_cells(TINY.cells(), tmp_path / "here")
    assert saved(tmp_path / "there") == saved(tmp_path / "here")


@pytest.mark.slow
def test_an_interrupted_run_leaves_the_cluster_to_others(runner, local, tmp_path):
    def stop(result):
        raise Interrupt

    plan = sleepy(tmp_path, 12)
    with pytest.raises(Interrupt):
        run_cells(plan.cells(), tmp_path / "there", runner=runner, progress=stop)
    eventually(lambda: not local.scheduler.tasks)
    time.sleep(0.5)
    assert len(list(tmp_path.glob("*.ran"))) <= 6, "what had not begun did not begin"


@pytest.mark.slow
def test_the_cells_of_a_killed_worker_run_again_elsewhere(runner, tmp_path):
    plan = replace(sleepy(tmp_path, 3), sizes=[(2, 5), (3, 8)])
    killed = []

    def kill_the_first():
        killed.append(eventually(lambda: sorted(tmp_path.glob("*.ran")))[0].stem)
        os.kill(int(killed[0].rpartition("-")[2]), signal.SIGKILL)

    killer = threading.Thread(target=kill_the_first)
    killer.start()
    there = run_cells(plan.cells(), tmp_path / "there", runner=runner)
    killer.join()

    epsilon = killed[0].rpartition("-")[0]
    assert len(list(tmp_path.glob(f"{epsilon}-*.ran"))) >= 2, "it ran in another process too"
    plain = {name: Recipe("EpsilonGreedy", recipe.options) for name, recipe in plan.policies.items()}
    here = run_cells(replace(plan, policies=plain).cells(), tmp_path / "here")
    assert [replace(r, seconds=0) for r in there] == [replace(r, seconds=0) for r in here]


@pytest.mark.slow
def test_a_cell_that_kills_every_worker_is_named(runner, local, tmp_path, monkeypatch):
    monkeypatch.setattr(local.scheduler, "allowed_failures", 1)
    plan = own(tmp_path, "Deadly")
    with pytest.raises(ValueError, match=r"^mine in slates with k = 3.*: every worker that ran it died"):
        run_cells(plan.cells(), tmp_path / "there", runner=runner)


@pytest.mark.slow
@pytest.mark.parametrize(
    "plan",
    [
        lambda folder: own(folder, "Grumpy"),
        lambda folder: own(folder, "Nobody"),
        lambda folder: with_own("C2UCB", cap=2),
        lambda folder: with_own("C3UCB"),
    ],
)
def test_what_fails_fails_with_the_same_sentence_as_here(runner, tmp_path, plan):
    cells = plan(tmp_path).cells()
    with pytest.raises(ValueError) as here:
        run_cells(cells, tmp_path / "here")
    with pytest.raises(ValueError) as there:
        run_cells(cells, tmp_path / "there", runner=runner)
    assert str(there.value) == str(here.value)


@pytest.mark.slow
def test_a_file_edited_between_two_runs_is_loaded_anew(runner, tmp_path):
    file = tmp_path / "mine.py"
    for kind in ("EpsilonGreedy", "C2UCB"):
        file.write_text(f"from armful import {kind}\nclass Mine({kind}):\n    pass\n")
        there = run_cells(with_own(f"{file}:Mine").cells(), tmp_path / "there", runner=runner)
        here = run_cells(with_own(kind).cells(), tmp_path / "here")
        assert [r.regret for r in there] == [r.regret for r in here]


@pytest.mark.slow
def test_files_that_workers_see_otherwise_get_one_sentence(runner, tmp_path, monkeypatch):
    """By a relative path, which every process follows from its own folder."""
    monkeypatch.chdir(tmp_path)
    own(tmp_path, "Sleepy")
    cells = with_own("own.py:Sleepy").cells()
    with pytest.raises(
        ValueError, match=r"^the worker at tcp://\S+ does not see own.py; on a cluster every worker must"
    ):
        run_cells(cells, tmp_path / "there", runner=runner)

    other = tmp_path / "other"
    other.mkdir()
    (other / "own.py").write_text("from armful import C2UCB as Sleepy\n")
    back = runner.client.run(os.getcwd)
    runner.client.run(os.chdir, str(other))
    try:
        with pytest.raises(ValueError, match=r"^the worker at tcp://\S+ has another text in a file of the plan"):
            run_cells(cells, tmp_path / "there", runner=runner)
    finally:
        for worker, folder in back.items():
            runner.client.run(os.chdir, folder, workers=[worker])


@pytest.mark.slow
def test_a_module_that_workers_cannot_import_gets_one_sentence(runner, tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("from armful import EpsilonGreedy\nclass Mine(EpsilonGreedy):\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=r"^the worker at tcp://\S+: cannot import only_here: No module named"):
        run_cells(with_own("only_here:Mine").cells(), tmp_path / "there", runner=runner)


@pytest.mark.slow
@pytest.mark.parametrize("package", ["armful", "numpy"])
def test_another_version_on_a_worker_gets_one_sentence(runner, tmp_path, package):
    module = sys.modules[package]
    runner.client.run(setattr, module, "__version__", "0.0")
    try:
        sentence = rf"^the worker at tcp://\S+ has {package} 0.0, this machine {module.__version__}: both must have"
        with pytest.raises(ValueError, match=sentence):
            run_cells(TINY.cells(), tmp_path, runner=runner)
    finally:
        runner.client.run(setattr, module, "__version__", module.__version__)
    assert not saved(tmp_path)


@pytest.mark.slow
def test_workers_without_armful_get_one_sentence(local, tmp_path):
    def hide():
        kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "armful"}
        sys.hidden_armful = kept
        sys.modules["armful"] = None

    def show():
        del sys.modules["armful"]
        sys.modules.update(sys.hidden_armful)

    with connect_cluster(local.scheduler_address) as runner:
        runner.client.run(hide)
        try:
            with pytest.raises(
                ValueError, match=rf"^a worker of {runner.address} cannot import armful .*armful\[dask\]"
            ):
                run_cells(TINY.cells(), tmp_path, runner=runner)
        finally:
            runner.client.run(show)


@pytest.mark.slow
def test_workers_run_blas_in_one_thread(runner, tmp_path):
    assert set(runner.client.run(os.getenv, "OPENBLAS_NUM_THREADS").values()) == {"2"}
    with pytest.raises(ValueError, match=r"^mine in slates with k = 3, T = 8: BLAS in \{1\} threads \(own.py"):
        run_cells(own(tmp_path, "Curious").cells(), tmp_path / "there", runner=runner)


@pytest.mark.slow
def test_a_worker_with_many_threads_gives_the_same(tmp_path):
    """All threads want the user's file at once, and the file takes its time to load."""
    file = tmp_path / "mine.py"
    file.write_text("import time\ntime.sleep(0.3)\nfrom armful import C2UCB\nclass Mine(C2UCB):\n    pass\n")
    plan = with_own(f"{file}:Mine")
    plan = replace(plan, policies={f"p{i}": plan.policies["mine"] for i in range(4)})
    with (
        local_cluster(tmp_path / "dask", n_workers=1, threads_per_worker=4) as several,
        connect_cluster(several.scheduler_address) as runner,
    ):
        there = run_cells(plan.cells(), tmp_path / "there", runner=runner)
    here = run_cells(with_own("C2UCB").cells(), tmp_path / "here")
    assert {(r.k, *r.regret) for r in there} == {(r.k, *r.regret) for r in here}


@pytest.mark.slow
def test_a_cluster_without_workers_is_reported_after_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr(dask_runner, "PATIENCE_SECONDS", 0.5)
    with (
        local_cluster(tmp_path, n_workers=0) as empty,
        connect_cluster(empty.scheduler_address) as runner,
        pytest.raises(ValueError, match=rf"^no worker at {runner.address} for 0.5 s: start some with `dask worker"),
    ):
        run_cells(TINY.cells(), tmp_path / "there", runner=runner)


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_reported_and_what_is_finished_is_kept(tmp_path):
    gone = local_cluster(tmp_path, n_workers=1)
    cluster = gone.__enter__()

    def close(result):
        gone.__exit__(None, None, None)

    with connect_cluster(cluster.scheduler_address) as runner:
        plan = sleepy(tmp_path, 3)
        with pytest.raises(ValueError, match=rf"^the cluster at {runner.address} is gone: what is finished is kept"):
            run_cells(plan.cells(), tmp_path / "there", runner=runner, progress=close)
    assert len(saved(tmp_path / "there")) == 1


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "while a cell runs", "after a cell"])
def test_a_client_that_closes_is_reported_like_a_scheduler_that_is_gone(local, tmp_path, when):
    plan = sleepy(tmp_path, 4)
    with connect_cluster(local.scheduler_address) as runner:
        if when == "before":
            runner.client.close()
        elif when == "while a cell runs":
            threading.Thread(
                target=lambda: eventually(lambda: list(tmp_path.glob("*.ran")), seconds=900) and runner.client.close()
            ).start()
        with pytest.raises(ValueError, match=rf"^the cluster at {runner.address} is gone: what is finished is kept"):
            run_cells(
                plan.cells(),
                tmp_path / "there",
                runner=runner,
                progress=lambda result: runner.client.close() if when == "after a cell" else None,
            )


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "no such host", "", "odd://127.0.0.1:1", "tcp://127.0.0.1:x"])
def test_an_address_that_does_not_answer_gets_one_sentence_soon(address, monkeypatch):
    monkeypatch.setattr(dask_runner, "CONNECT_SECONDS", 0.3)
    with pytest.raises(ValueError, match=f"^no dask scheduler answers at {address}; start one with `dask scheduler`$"):
        connect_cluster(address).__enter__()


@pytest.mark.slow
def test_the_address_of_a_worker_is_not_taken_for_a_schedulers(runner):
    (worker, *_) = runner.client.nthreads()
    with pytest.raises(ValueError, match=r"^no dask scheduler answers"):
        connect_cluster(worker).__enter__()


def test_without_dask_the_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"^a cluster needs distributed: pip install '\.\[dask\]' in a clone of armful$"
    ):
        connect_cluster("tcp://127.0.0.1:8786").__enter__()
