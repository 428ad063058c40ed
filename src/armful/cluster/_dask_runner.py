"""Running tasks on the workers of a dask cluster; what goes wrong there, in one sentence."""

import importlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

RETRIES = 2
"""A task that fails is tried again so often: files that are far away are not always there at the first time."""

PATIENCE_SECONDS = 60.0
"""How long a cluster may be without any worker: enough for a killed one to be started again."""

GROUP = 8
"""Results that are merged at a time."""


class DaskRunner:
    """The workers that a `dask.distributed.Client` is connected to. Tasks must be pure: a lost one runs again."""

    def __init__(self, client: Any) -> None:
        distributed = imported("distributed")
        if not isinstance(client, distributed.Client):
            raise ValueError(
                f"client must be a dask.distributed.Client, got {type(client).__name__}; "
                "Client('tcp://...') connects to a cluster, Client() starts one on this machine"
            )
        if client.asynchronous:
            raise ValueError("client must not be asynchronous: make it with Client(..., asynchronous=False)")
        self.client = client
        scheduler = client.scheduler  # None once it is closed
        self._address = "an unknown address" if scheduler is None else str(scheduler.address)
        if client.status != "running":
            raise self._gone()
        self._refuse_strangers()

    def task(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """A call that the cluster will make, with what other tasks give in place of these, if they are arguments."""
        return imported("dask").delayed(function, pure=False)(*arguments)

    def merged(self, tasks: Sequence[Any], function: Callable[..., Any], *arguments: Any) -> Any:
        """A task that merges the results of others, some at a time: `function(*arguments, results)` is like one."""
        while len(tasks) > 1:
            groups = [list(tasks[begin : begin + GROUP]) for begin in range(0, len(tasks), GROUP)]
            tasks = [self.task(function, *arguments, group) if len(group) > 1 else group[0] for group in groups]
        return tasks[0]

    def results(self, tasks: Sequence[Any], doing: str) -> list[Any]:
        """What the tasks give. doing: in a few words, for a sentence about what went wrong."""
        distributed = imported("distributed")
        with quiet("distributed.client"):
            futures = self.client.compute(list(tasks), retries=RETRIES)
            try:
                self._wait_for(futures)
                results: list[Any] = self.client.gather(futures)
            except distributed.KilledWorker:
                raise ValueError(
                    f"{doing} killed one worker after another, for want of memory perhaps: "
                    "make the chunks smaller, or give the workers more memory"
                ) from None
            except (Exception, CancelledError) as error:
                if isinstance(error, CancelledError) or self.client.status != "running":
                    raise self._gone() from None
                raise
            finally:
                for future in futures:  # now, not when the last traceback that knows of them is gone
                    future.release()
        return results

    def keep(self, values: Sequence[Any]) -> list[Any]:
        """Futures of these values, on the workers as long as the futures are held; a lost one is sent again.

        They are tasks and not scattered data, since the scheduler can run a task again when a worker dies.
        """
        with imported("dask").config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"}):
            return [self.client.submit(_as_it_is, value, pure=False, retries=RETRIES) for value in values]

    def _wait_for(self, futures: list[Any]) -> None:
        """Until all are done; refuse to wait where nobody works on them."""
        seen = time.monotonic()
        for future in futures:
            while True:
                try:
                    future.exception(timeout=1.0)
                    break
                except TimeoutError:  # of the waiting: what the task itself raised would be returned
                    seen = time.monotonic() if self._workers() else seen
                if time.monotonic() - seen > PATIENCE_SECONDS:
                    raise ValueError(
                        f"no worker at {self._address} for {PATIENCE_SECONDS:g} s: start some with "
                        f"`dask worker {self._address}`"
                    )

    def _refuse_strangers(self) -> None:
        """Refuse workers that cannot run this armful: one that gets a function it does not know leaves the cluster."""
        wanted = importlib.import_module("armful").__version__  # which imports this module
        known = _known.setdefault(self.client, set())
        new = [worker for worker in self._workers() if worker not in known]
        if not new:
            return
        versions = self.client.run(eval, "__import__('armful').__version__", workers=new, on_error="return")
        for worker, version in versions.items():
            if isinstance(version, ImportError):
                raise ValueError(
                    f"the worker at {worker} cannot import armful ({version}): it needs armful[dask] "
                    f"{wanted}, as on this machine"
                )
            if isinstance(version, str) and version != wanted:
                raise ValueError(
                    f"the worker at {worker} has armful {version}, this machine {wanted}: both must have the same"
                )
        known.update(worker for worker, version in versions.items() if isinstance(version, str))

    def _workers(self) -> list[str]:
        try:
            return list(self.client.nthreads())
        except (OSError, CancelledError):
            raise self._gone() from None

    def _gone(self) -> ValueError:
        return ValueError(f"the cluster at {self._address} is gone: connect to one with a new Client and try again")


_known: "WeakKeyDictionary[Any, set[str]]" = WeakKeyDictionary()


def _as_it_is(value: Any) -> Any:
    return value


@contextmanager
def quiet(name: str) -> Iterator[None]:
    """A log without tracebacks of what is told in one sentence."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def imported(name: str) -> Any:
    """A module of dask, or one that it needs: an extra, loaded when it is used."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"a cluster needs {error.name}: pip install '.[dask]' in a clone of armful") from None
