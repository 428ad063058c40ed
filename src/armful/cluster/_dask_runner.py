"""Running tasks on the workers of a dask cluster, and explaining in one sentence what goes wrong there."""

import asyncio
import importlib
import logging
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any, Self
from weakref import WeakKeyDictionary

RETRIES = 2
"""How often a failed task is tried again: remote files are not always readable at the first attempt."""

PATIENCE_SECONDS = 60.0
"""How long a cluster may be without any worker: enough for a killed one to be restarted."""

CONNECT_SECONDS = 5.0
"""How long a scheduler may take to answer."""

GROUP = 8
"""How many results are merged by one task."""


class DaskRunner:
    """The workers that a `dask.distributed.Client` is connected to. Tasks must be pure: a lost one runs again.

    address: of the scheduler, as messages should name it.
    """

    when_gone = "connect to one with a new Client and try again"

    def __init__(self, client: Any, address: str | None = None) -> None:
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
        self.address = address or ("an unknown address" if scheduler is None else str(scheduler.address))
        if client.status != "running":
            raise self._gone()
        self._check_new_workers()

    @classmethod
    @contextmanager
    def connected(cls, address: str) -> Iterator[Self]:
        """Connect to the scheduler at `address`, and close the connection at the end."""
        distributed = imported("distributed")
        if _server_type(address) != "Scheduler":
            raise ValueError(f"no dask scheduler answers at {address}; start one with `dask scheduler`")
        with warnings.catch_warnings():  # different versions get a sentence of ours
            warnings.simplefilter("ignore", distributed.versions.VersionMismatchWarning)
            client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        # After an interrupt some versions of dask leave a task whose error asyncio reports while the client closes.
        with _quiet("asyncio"), _quiet("distributed.client"), client:
            yield cls(client, address)

    def task(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return a lazy call; arguments that are tasks are replaced by their results."""
        return imported("dask").delayed(function, pure=False)(*arguments)

    def merged(self, tasks: Sequence[Any], function: Callable[..., Any], *arguments: Any) -> Any:
        """Return a task that merges the results of `tasks` in a tree by `function(*arguments, results)`."""
        while len(tasks) > 1:
            groups = [list(tasks[begin : begin + GROUP]) for begin in range(0, len(tasks), GROUP)]
            tasks = [self.task(function, *arguments, group) if len(group) > 1 else group[0] for group in groups]
        return tasks[0]

    def results(self, tasks: Sequence[Any], doing: str) -> list[Any]:
        """Return the results of all tasks. doing: what they do, for error messages."""
        futures: list[Any] = []
        with self._errors_explained(futures, doing):
            futures += self.client.compute(list(tasks), retries=RETRIES)
            for _ in self._finished(futures):
                pass
            results: list[Any] = self.client.gather(futures)
        return results

    def as_completed(
        self, calls: Sequence[tuple[Any, ...]], doing: Sequence[str]
    ) -> Generator[tuple[int, Any], None, None]:
        """Yield the index and the result of each call `(function, *arguments)` as it finishes, started in order.

        Closing the generator cancels the calls that have not started. doing: what each call does, for error messages.
        """
        futures: list[Any] = []
        with self._errors_explained(futures, "submitting"):
            futures += [self.client.submit(*call, pure=False) for call in calls]
            for i in self._finished(futures):
                with self._errors_explained([futures[i]], doing[i]):
                    result = futures[i].result()
                yield i, result

    def keep(self, values: Sequence[Any]) -> list[Any]:
        """Return futures of these values, on the workers as long as the futures are held; a lost one is sent again.

        They are tasks and not scattered data, since the scheduler can run a task again when a worker dies.
        """
        with imported("dask").config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"}):
            return [self.client.submit(_identity, value, pure=False, retries=RETRIES) for value in values]

    @contextmanager
    def _errors_explained(self, futures: list[Any], doing: str) -> Iterator[None]:
        """Turn dask's errors into sentences, and release the futures at the end."""
        try:
            with _quiet("distributed.client"):
                yield
        except imported("distributed").KilledWorker:
            raise ValueError(
                f"{doing}: every worker that ran it died, perhaps for lack of memory; give the workers more memory, "
                "or less to do at a time (smaller chunks, fewer runs)"
            ) from None
        except (Exception, CancelledError) as error:
            if isinstance(error, CancelledError) or self.client.status != "running":
                raise self._gone() from None
            if isinstance(error, ImportError):
                raise self._lacks_armful(f"a worker of {self.address}", error) from None
            raise
        finally:
            for future in futures:  # now, not when the last traceback that refers to them is gone
                future.release()

    def _finished(self, futures: list[Any]) -> Iterator[int]:
        """Yield the index of each future when it is done; give up when there are no workers."""
        done: SimpleQueue[int] = SimpleQueue()
        for i, future in enumerate(futures):
            future.add_done_callback(lambda _, i=i: done.put(i))
        for _ in futures:
            seen = time.monotonic()
            while True:
                try:
                    i = done.get(timeout=1.0)
                    break
                except Empty:
                    seen = time.monotonic() if self._workers() else seen
                if time.monotonic() - seen > PATIENCE_SECONDS:
                    raise ValueError(
                        f"no worker at {self.address} for {PATIENCE_SECONDS:g} s: start some with "
                        f"`dask worker {self.address}`"
                    )
            yield i

    def _check_new_workers(self) -> None:
        """Refuse workers without this version of armful: a worker that cannot unpickle a function shuts down."""
        checked = _checked.setdefault(self.client, set())
        new = [worker for worker in self._workers() if worker not in checked]
        if not new:
            return
        here = _version()
        versions = self.client.run(eval, "__import__('armful').__version__", workers=new, on_error="return")
        for worker, version in versions.items():
            if isinstance(version, ImportError):
                raise self._lacks_armful(f"the worker at {worker}", version)
            if isinstance(version, str) and version != here:
                raise ValueError(other_version(worker, "armful", version, here))
        checked.update(worker for worker, version in versions.items() if isinstance(version, str))

    def _workers(self) -> list[str]:
        try:
            return list(self.client.nthreads())
        except (OSError, CancelledError):
            raise self._gone() from None

    def _gone(self) -> ValueError:
        return ValueError(f"the cluster at {self.address} is gone: {self.when_gone}")

    def _lacks_armful(self, worker: str, error: ImportError) -> ValueError:
        return ValueError(
            f"{worker} cannot import armful ({error}): it needs armful[dask] {_version()}, as on this machine"
        )


_checked: "WeakKeyDictionary[Any, set[str]]" = WeakKeyDictionary()
"""By client: the workers whose version was checked."""


def other_version(worker: str, package: str, version: str, here: str) -> str:
    """Return the message for a worker with another version of a package than this machine."""
    return f"the worker at {worker} has {package} {version}, this machine {here}: both must have the same"


def _version() -> str:
    return str(importlib.import_module("armful").__version__)  # which imports this module


def _identity(value: Any) -> Any:
    return value


def _server_type(address: str) -> str | None:
    """Return the type that a dask server states; None if none answers, which a Client would wait for too long."""
    distributed = imported("distributed")

    async def ask() -> str:
        arguments = distributed.Security().get_connection_args("client")
        async with asyncio.timeout(CONNECT_SECONDS), distributed.rpc(address, connection_args=arguments) as server:
            return str((await server.identity())["type"])

    with ThreadPoolExecutor(1) as thread:  # in a notebook this thread already runs an event loop
        try:
            return thread.submit(lambda: asyncio.run(ask())).result()
        except Exception:  # unresolved names, other servers' answers, ...: in any case no scheduler
            return None


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Keep a logger from printing tracebacks of errors that are explained in one sentence."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def imported(name: str) -> Any:
    """Return a module of dask, or one that it needs: an extra, imported when it is used."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"a cluster needs {error.name}: pip install '.[dask]' in a clone of armful") from None
