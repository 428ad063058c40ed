"""Reads of the store that requests share: one at a time, and remembered for a while."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class SharedReads(Generic[T]):
    """What was read under each key, for some seconds; requests that ask meanwhile wait for the same read.

    A read that fails raises for all who wait for it, and is not remembered.

    Parameters
    ----------
    seconds : float
        How long an answer holds, from the moment at which its read began.
    most : int
        How many answers are remembered; with one more, the one that was read longest ago is forgotten.
    """

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds, self._most = seconds, most
        self._found: dict[str, tuple[float, T]] = {}
        self._pending: dict[str, asyncio.Future[T]] = {}

    def known(self, key: str) -> T | None:
        """Return what was read just now; None if nothing was."""
        return self.last(key) if self._holds(key) else None

    def last(self, key: str) -> T | None:
        """Return what was read last, however long ago; None if it is not remembered."""
        known = self._found.get(key)
        return None if known is None else known[1]

    async def get(self, key: str, read: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return what `read` returns, or what it returned to another request just now."""
        if self._holds(key):
            return self._found[key][1]
        pending = self._pending.get(key)
        if pending is None:
            pending = asyncio.ensure_future(self._remembered(key, read()))
            self._pending[key] = pending
            pending.add_done_callback(lambda done: self._ended(key, done))
        return await asyncio.shield(pending)  # who goes away does not end the read of the others

    def _holds(self, key: str) -> bool:
        """Return whether what was read last is new enough."""
        known = self._found.get(key)
        return known is not None and time.monotonic() < known[0]

    async def _remembered(self, key: str, read: Awaitable[T]) -> T:
        until = time.monotonic() + self._seconds
        found = await read
        self._found.pop(key, None)  # to the end: they are in the order in which they were read
        if len(self._found) >= self._most:
            del self._found[next(iter(self._found))]
        self._found[key] = until, found
        return found

    def _ended(self, key: str, done: "asyncio.Future[T]") -> None:
        del self._pending[key]
        if not done.cancelled():
            done.exception()  # it was raised for those who waited, if anybody still did
