"""Accepting connections on a socket that several workers share, so that each gets its share of them.

asyncio and uvloop accept all connections that wait: the first worker that wakes up takes them, and keeps those that
stay open. Here a worker that has more than another lets the other go first for a moment.
"""

import asyncio
import errno
import socket
from collections.abc import Callable, Sequence
from multiprocessing.sharedctypes import RawArray
from typing import Any

from armful.service._logging import LOGGER

PAUSE_SECONDS = 1.0
"""When no more files can be opened."""
POLITE_SECONDS, LONGEST_POLITE_SECONDS = 0.002, 0.02
"""How long a worker waits for one that has fewer connections, for each that it has more, and in all."""
MOST_AT_ONCE = 64
"""Connections that are set up at a time: those that are open are answered meanwhile."""
NO_ROOM = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class Shares:
    """How many connections each worker has, in memory that they share.

    Parameters
    ----------
    n_workers : int
    """

    def __init__(self, n_workers: int) -> None:
        self._counts: Any = RawArray("i", n_workers)

    def of(self, index: int, n: int) -> int:
        """Note that a worker has n connections; return how many more than the one with the fewest."""
        self._counts[index] = n
        counts: Sequence[int] = self._counts[:]
        return n - min(counts)


class Accepting:
    """A server of asyncio's kind, as far as uvicorn uses one.

    Parameters
    ----------
    listening : socket
        Bound and listening.
    make_protocol : callable
        Returns the protocol of a new connection.
    surplus : callable
        Given how many connections are being set up, returns how many this worker has more than another.
    """

    def __init__(
        self, listening: socket.socket, make_protocol: Callable[[], asyncio.Protocol], surplus: Callable[[int], int]
    ) -> None:
        self._loop = asyncio.get_running_loop()  # one that can watch sockets: not the usual one of Windows
        self._listening, self._make_protocol, self._surplus = listening, make_protocol, surplus
        self._beginning: set[asyncio.Task[object]] = set()
        self._is_closed = False
        listening.setblocking(False)
        self._watch()

    def _watch(self) -> None:
        if not self._is_closed:
            self._loop.add_reader(self._listening, self._look)

    def _look(self) -> None:
        """Accept connections, or wait whether another worker does."""
        while (surplus := self._surplus(len(self._beginning))) <= 0 and self._accept():
            if len(self._beginning) >= MOST_AT_ONCE:
                return
        if surplus > 0:
            self._loop.remove_reader(self._listening)
            self._loop.call_later(min(surplus * POLITE_SECONDS, LONGEST_POLITE_SECONDS), self._after_waiting)

    def _after_waiting(self) -> None:
        if not self._is_closed:
            self._watch()
            self._accept()

    def _accept(self) -> bool:
        """Accept a connection, and return whether there was one."""
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):  # another worker took it, or it is gone
            return False
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            LOGGER.error("no connection can be accepted for %g seconds: %s", PAUSE_SECONDS, error.strerror)
            self._loop.remove_reader(self._listening)
            self._loop.call_later(PAUSE_SECONDS, self._watch)
            return False
        connection.setblocking(False)
        task: asyncio.Task[object] = self._loop.create_task(
            self._loop.connect_accepted_socket(self._make_protocol, connection)
        )
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)
        return True

    def close(self) -> None:
        """Accept no more."""
        self._is_closed = True
        self._loop.remove_reader(self._listening)

    async def wait_closed(self) -> None:
        """Wait for connections that are being set up."""
        await asyncio.gather(*self._beginning, return_exceptions=True)
