"""Python threads over blocks of arms, with BLAS limited to one thread."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(work: Callable[[Item], Result], items: Iterable[Item], n_items: int) -> Iterator[Result]:
    """Yield `work(item)` for each item, in order, with a thread for each core.

    More threads of BLAS would compete for the cores. Without threadpoolctl, which limits them, all work is done in the
    calling thread.
    """
    n_threads = min(_cores(), n_items)
    if n_threads <= 1 or _controller() is None:
        yield from map(work, items)
        return
    with BLAS_AT_ONE, ThreadPoolExecutor(n_threads) as pool:
        yield from pool.map(work, items)


def in_threads_as_read(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield `work(item)` for each item, in order, while the calling thread reads the next items.

    Unlike with `in_threads`, only as many items are held as there are threads, and one more.
    """
    n_threads = _cores()
    with blas_at_one_thread(), ThreadPoolExecutor(n_threads) as pool:
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def while_reading(work: Callable[[Item], object], items: Iterable[Item]) -> None:
    """Call `work(item)` for each item, one after another, in a thread while the calling thread reads the next item."""
    with ThreadPoolExecutor(1) as pool:
        at_work: Future[object] | None = None
        for item in items:
            if at_work is not None:
                at_work.result()
            at_work = pool.submit(work, item)
        if at_work is not None:
            at_work.result()


@contextmanager
def blas_at_one_thread() -> Iterator[None]:
    """Limit BLAS to one thread, so that all scores of a round are rounded alike; does nothing without threadpoolctl."""
    if _controller() is None:
        yield
        return
    with BLAS_AT_ONE:
        yield


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _BlasAtOne:
    """Limits BLAS to one thread while any thread is inside; the last to leave restores the limit."""

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._limit = _controller().limit(limits=1, user_api="blas")

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


BLAS_AT_ONE = _BlasAtOne()


@cache
def _controller() -> Any:
    """Return threadpoolctl's controller, made once since it searches all loaded libraries; None without it."""
    try:
        from threadpoolctl import ThreadpoolController  # noqa: PLC0415 - optional
    except ImportError:
        return None
    return ThreadpoolController()
