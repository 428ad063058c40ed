"""The parent of a service's processes: starts them, starts them again when they die, and lets them end in peace."""

import logging
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import wait

from armful.service._children import Child, Role

LOGGER = logging.getLogger("armful.service")
GRACE_SECONDS = 40.0
"""How long processes may take to end; a request in flight gets less, see `_server.py`."""
TICK_SECONDS = 0.2


class ServingError(ValueError):
    """A service cannot start; the message says why."""


class Supervisor:
    """Runs processes until it is told to end.

    Parameters
    ----------
    roles : sequence of Role
        The processes.
    listening : socket, optional
        The socket that the processes share; closed when they should end, so that nobody can connect any more.
    when_ready : callable
        Called once, when all processes are ready, with their ids by name.
    """

    def __init__(
        self, roles: Sequence[Role], listening: socket.socket | None, when_ready: Callable[[dict[str, int]], None]
    ) -> None:
        self._children = [Child(role) for role in roles]
        self._listening, self._when_ready = listening, when_ready
        self._n_signals = 0
        self._ready_at: float | None = None

    def run(self, seconds: float | None = None) -> int:
        """Run until SIGINT or SIGTERM, or for so many seconds once it is ready; return the exit code.

        Raises
        ------
        ServingError
            If a process cannot start in the first place.
        """
        with self._signals():
            try:
                while not self._n_signals and not (seconds is not None and self._ready_for() >= seconds):
                    self._start_those_due()
                    self._wait(TICK_SECONDS)
                    self._listen()
            finally:
                ended = self._end()
        return 0 if ended else 1

    def _ready_for(self) -> float:
        return 0.0 if self._ready_at is None else time.monotonic() - self._ready_at

    def _start_those_due(self) -> None:
        for child in self._children:
            if child.pid is None and child.start_at <= time.monotonic() and not self._n_signals:
                try:
                    child.start()
                except OSError as error:
                    if self._ready_at is None:
                        raise
                    LOGGER.error("%s cannot be started now: %s; next try in %g s", child.role.name, error, child.pause)

    def _wait(self, seconds: float) -> None:
        waitables = [each for child in self._children for each in child.waitables()]
        if waitables:
            wait(waitables, seconds)
        else:
            time.sleep(seconds)

    def _listen(self) -> None:
        """Read what the processes say, and replace those that have ended or hang."""
        for child in self._children:
            was_ready = child.is_ready
            child.listen()
            if self._ready_at is not None and child.is_ready and not was_ready:
                LOGGER.info("%s (process %s) is ready", child.role.name, child.pid)
            if child.hangs() and not self._n_signals:
                LOGGER.error("%s (process %s) hangs, and is killed", child.role.name, child.pid)
                child.kill()
                child.join(GRACE_SECONDS)
            if not child.has_ended() or self._n_signals:
                continue
            how = child.reap()
            if self._ready_at is None:
                raise ServingError(child.sentence or f"{how} before it was ready")
            then = f"in {child.pause:g} seconds" if child.pause else "now"
            LOGGER.error("%s; another one is started %s", how, then)
        if self._ready_at is None and all(child.is_ready for child in self._children):
            self._ready_at = time.monotonic()
            self._when_ready({child.role.name: child.pid for child in self._children if child.pid is not None})

    def _end(self) -> bool:
        """End all processes: those that serve finish what they have begun. A second signal kills them."""
        if self._listening is not None:
            self._listening.close()
        for child in self._children:
            child.hang_up()
        until, before = time.monotonic() + GRACE_SECONDS, self._n_signals
        left = self._children
        while left and self._n_signals <= max(1, before) and time.monotonic() < until:
            left = [child for child in left if not child.join(TICK_SECONDS / len(left))]
        for child in left:
            LOGGER.error("%s (process %s) was ended before it had finished", child.role.name, child.pid)
            child.kill()
            child.join(GRACE_SECONDS)
        return not left

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Count signals that ask for the end."""

        def count(*_: object) -> None:
            self._n_signals += 1

        kinds = [signal.SIGTERM]
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # who starts it in the background wants it so
            kinds.append(signal.SIGINT)
        before = {kind: signal.signal(kind, count) for kind in kinds}
        try:
            yield
        finally:
            for kind, handler in before.items():
                signal.signal(kind, handler)
