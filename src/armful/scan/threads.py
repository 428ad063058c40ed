"""Python threads over parts of the work, with BLAS at one thread in each."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(work: Callable[[Item], Result], items: Iterable[Item], n_items: int) -> Iterator[Result]:
    """`work` of each item, in order, as many at a time as there are cores.

    Several threads of BLAS would only get in each other's way. Where they cannot be held at one (threadpoolctl is not
    installed), the work is done in this thread.
    """
    n_threads = min(_cores(), n_items)
    if n_threads <= 1 or _controller() is None:
        yield from map(work, items)
        return
    with _one_blas_thread(), ThreadPoolExecutor(n_threads) as pool:
        yield from pool.map(work, items)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _one_blas_thread() -> AbstractContextManager[Any]:
    controller = _controller()
    return nullcontext() if controller is None else controller.limit(limits=1, user_api="blas")


@cache
def _controller() -> Any:
    """threadpoolctl's, made once: it looks through all loaded libraries."""
    try:
        from threadpoolctl import ThreadpoolController  # noqa: PLC0415 - not among what armful must have
    except ImportError:
        return None
    return ThreadpoolController()
