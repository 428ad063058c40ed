"""The cells of a plan on the workers of a dask cluster: the same results, computed elsewhere."""

import asyncio
import importlib
import os
import pickle
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy
import scipy

import armful
from armful.cluster._dask_runner import quiet
from armful.experiments.plan import Cell
from armful.experiments.recipe import Recipe, find, source_digest
from armful.experiments.results import Result
from armful.experiments.running import Outcomes, run_cell

CONNECT_SECONDS = 5.0
"""How long a scheduler may take to answer."""

PATIENCE_SECONDS = 60.0
"""How long a cluster may be without any worker: enough for a killed one to be started again."""


@contextmanager
def connected(address: str) -> Iterator["Cluster"]:
    """The cluster of the scheduler at `address`, to be the runner of `run_cells`.

    with connected("tcp://10.0.0.1:8786") as cluster:
        results = run_cells(plan.cells(), folder, runner=cluster)
    """
    distributed = _distributed()
    if _kind_of_server(address) != "Scheduler":
        raise ValueError(f"no dask scheduler answers at {address}; start one with `dask scheduler`")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", distributed.versions.VersionMismatchWarning)  # told below, in one sentence
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    with quiet("distributed.client"), client:
        yield Cluster(client, address)


@dataclass(frozen=True, eq=False)
class Cluster:
    """The workers of a dask scheduler. client: the connection. address: how the user calls the scheduler."""

    client: Any
    address: str

    def run(self, cells: Sequence[Cell], /) -> Outcomes:
        """Run all of `cells`; those of a worker that dies run again on another."""
        for kind in sorted({recipe.kind for cell in cells for recipe in (cell.world, cell.learner)}):
            find(kind)  # what is wrong here is told as it is told without a cluster
        pool = self.client.get_executor(pure=False)
        try:
            yield from self._outcomes(pool, cells)
        except Exception:
            if self._is_closed():  # each of dask's calls then fails in a way of its own
                raise self._gone() from None
            raise
        finally:
            if not self._is_closed():
                pool.shutdown(wait=False)

    def _outcomes(self, pool: Any, cells: Sequence[Cell]) -> Outcomes:
        jobs = {self._submit(pool, cell): i for i, cell in enumerate(cells)}
        seen = time.monotonic()
        while jobs:
            done, _ = wait(jobs, timeout=1.0, return_when=FIRST_COMPLETED)
            for job in done:
                i = jobs.pop(job)
                yield i, self._result(job, cells[i])
            if done or self._has_workers():
                seen = time.monotonic()
            elif time.monotonic() - seen > PATIENCE_SECONDS:
                raise ValueError(
                    f"no worker at {self.address} for {PATIENCE_SECONDS:g} s; start some with "
                    f"`dask worker {self.address}`"
                )

    def _is_closed(self) -> bool:
        """Whether the connection was closed, here or from there."""
        return self.client.status in ("closing", "closed")

    def _submit(self, pool: Any, cell: Cell) -> Any:
        """By name and in bytes: a worker that gets a function or an object it cannot unpickle leaves the cluster."""
        names = {"cell": pickle.dumps(cell), "key": cell.key(), "wanted": installed()}
        return pool.submit(
            eval, f"__import__('{__name__}', fromlist=['run_there']).run_there(cell, key, wanted)", names
        )

    def _result(self, job: Any, cell: Cell) -> Result:
        try:
            result: Result = job.result()
        except ImportError as error:
            raise ValueError(
                f"a worker of {self.address} cannot run armful: {error}; "
                f"it needs armful[dask] {armful.__version__}, as on this machine"
            ) from None
        except _distributed().KilledWorker:
            raise ValueError(
                f"{cell}: every worker that ran it died, for want of memory perhaps; what is finished is kept"
            ) from None
        except CancelledError:
            raise self._gone() from None
        return result

    def _has_workers(self) -> bool:
        try:
            return bool(self.client.nthreads())
        except OSError:
            raise self._gone() from None

    def _gone(self) -> ValueError:
        return ValueError(f"the scheduler at {self.address} is gone; what is finished is kept and need not run again")


def _kind_of_server(address: str) -> str | None:
    """What dask's servers say they are; None where none answers, which a Client would wait for too long."""
    distributed = _distributed()

    async def ask() -> Any:
        arguments = distributed.Security().get_connection_args("client")
        async with distributed.rpc(address, connection_args=arguments) as server:
            return await server.identity()

    async def ask_in_time() -> Any:
        return await asyncio.wait_for(ask(), CONNECT_SECONDS)

    with ThreadPoolExecutor(1) as thread:  # of its own, as a notebook's has an event loop already
        try:
            return str(thread.submit(asyncio.run, ask_in_time()).result()["type"])
        except Exception:  # names that do not resolve, other servers' answers, ...: whatever it is, it is no scheduler
            return None


def installed() -> dict[str, str]:
    """What results depend on, and what talks to the cluster, in their versions."""
    return {
        "armful": armful.__version__,
        "the source of armful": source_digest()[:12],
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "distributed": _distributed().__version__,
        "Python": f"{sys.version_info.major}.{sys.version_info.minor}",
    }


def run_there(pickled: bytes, key: str, wanted: dict[str, str]) -> Result:
    """Run a cell on a worker, if that gives what it gives on the machine that asks.

    key: the cell's, made there. wanted: what is installed there.
    """
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - of the same extra

    where = f"the worker at {_distributed().get_worker().address}"
    has = installed()
    for name, version in wanted.items():
        if has[name] != version:
            raise ValueError(f"{where} has {name} {has[name]}, this machine {version}; both must have the same")
    cell: Cell = pickle.loads(pickled)
    with _LOADING:
        _load(cell.world, where)
        _load(cell.learner, where)
    if cell.key() != key:
        raise ValueError(f"{where} has another text in a file of the plan than this machine; {_SAME_FILES}")
    threadpool_limits(limits=1)  # for good: the end of one cell must not give threads to another beside it
    return run_cell(cell)


_SAME_FILES = "on a cluster every worker must see the same files and modules"
_LOADING = threading.Lock()
_loaded: dict[str, str] = {}


def _load(recipe: Recipe, where: str) -> None:
    """Load the user's own file or module; a file that was edited since is loaded anew, as workers live on."""
    place = recipe.kind.rpartition(":")[0]
    try:
        digest = recipe.fingerprint()["file"]
        if digest is not None and _loaded.get(place) != digest:
            _forget(os.path.abspath(place))
            _loaded[place] = digest
        find(recipe.kind)
    except FileNotFoundError:
        raise ValueError(f"{where} does not see {place}; {_SAME_FILES}") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{where}: {error}; {_SAME_FILES}") from None


def _forget(path: str) -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("armful_plan_") and getattr(module, "__file__", None) == path:
            del sys.modules[name]


def _distributed() -> Any:
    """The package, which is an extra and takes half a second to import."""
    try:
        return importlib.import_module("distributed")
    except ImportError as error:
        raise ValueError(f"a cluster needs {error.name}: pip install '.[dask]' in a clone of armful") from None
