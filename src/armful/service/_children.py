"""The processes of a service from both sides: a `Child` of the supervisor, and the `Lifeline` that it holds."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.sharedctypes import RawValue
from queue import SimpleQueue
from typing import Any

SPAWN = multiprocessing.get_context("spawn")
READY = "ready"
FAILED = 2
"""Exit code of a process that has said in a sentence why it cannot start."""
STEADY_SECONDS = 10.0
"""A process that was ready for so long is started again at once."""
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
SILENT_SECONDS = 60.0
"""A process that has sent a heartbeat, and then none for so long, is taken to hang."""
LONGEST_LOOK_SECONDS = 1.0
"""What one look adds to a silence at most: while the supervisor did not run, its processes may not have run either."""


class Lifeline:
    """What a process has of its supervisor: it says that it is ready, and learns when to end.

    The supervisor closes its side when the process should end. The system does so if the supervisor is killed.

    Parameters
    ----------
    connection : Connection
        This side of a pipe.
    beats : ctypes value, optional
        The number of heartbeats, in memory that the supervisor reads.
    """

    def __init__(self, connection: Connection, beats: Any = None) -> None:
        self._connection, self._beats = connection, beats

    def beat(self) -> None:
        """Send a heartbeat; a process that has sent one must send more every few seconds."""
        if self._beats is not None:
            self._beats.value += 1

    def ready(self) -> None:
        """Tell the supervisor that the work begins."""
        self._say(READY)

    def fail(self, sentence: str) -> None:
        """Tell the supervisor why the work cannot begin, and end the process."""
        self._say(sentence)
        sys.exit(FAILED)

    def _say(self, text: str) -> None:
        with suppress(OSError):  # the supervisor is gone: then this process ends by itself
            self._connection.send(text)

    def when_to_end(self, end: Callable[[], None]) -> None:
        """Call `end`, in another thread, when the process should end; at SIGTERM too."""
        asked: SimpleQueue[None] = SimpleQueue()

        def listen() -> None:
            with suppress(EOFError, OSError):
                self._connection.recv()
            asked.put(None)

        def wait() -> None:
            while True:
                asked.get()
                end()

        signal.signal(signal.SIGINT, signal.SIG_IGN)  # from a terminal it also goes to the supervisor, who decides
        # `put` may be called wherever a signal comes, and `end` not: it may wait for a lock that this thread holds.
        signal.signal(signal.SIGTERM, lambda *_: asked.put(None))
        for target in (listen, wait):
            threading.Thread(target=target, name="lifeline", daemon=True).start()


@dataclass(frozen=True, kw_only=True)
class Role:
    """What a process is for: its name in messages, and the function that it runs with its lifeline and `arguments`."""

    name: str
    run: Callable[..., None]
    arguments: tuple[Any, ...] = ()


class Silence:
    """For how long a process has sent no heartbeat, not counting time in which its supervisor did not run either."""

    def __init__(self) -> None:
        self._beats, self._looked_at, self._seconds = 0, 0.0, 0.0

    def seconds(self, beats: int, now: float) -> float:
        """Return the seconds of silence; before the first heartbeat there is none.

        Parameters
        ----------
        beats : int
            The number of heartbeats so far.
        now : float
            The time of a clock that does not jump.
        """
        passed, self._looked_at = min(now - self._looked_at, LONGEST_LOOK_SECONDS), now
        self._seconds = 0.0 if beats != self._beats or not beats else self._seconds + passed
        self._beats = beats
        return self._seconds


class Child:
    """A process that is started again when it ends.

    Parameters
    ----------
    role : Role
        What it does.
    """

    def __init__(self, role: Role) -> None:
        self.role = role
        self.sentence: str | None = None
        self.start_at = time.monotonic()
        self._pause = 0.0
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._ready_at: float | None = None
        self._beats: Any = None
        self._silence = Silence()

    @property
    def is_ready(self) -> bool:
        """Whether the process has said that it is ready."""
        return self._ready_at is not None

    @property
    def pid(self) -> int | None:
        """The id of the process, while there is one."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the process.

        Raises
        ------
        OSError
            If the system has no memory, processes or files left for one; `start_at` is when to try again.
        """
        self._ready_at, self.sentence = None, None
        try:
            self._connection, theirs = SPAWN.Pipe()
            with theirs:
                self._beats, self._silence = RawValue("L", 0), Silence()
                process = SPAWN.Process(
                    target=_begin, args=(self.role, theirs, self._beats), name=self.role.name, daemon=True
                )  # a daemon, so that multiprocessing does not wait for it if the supervisor fails
                with _without_interrupts():
                    process.start()
        except OSError:
            self.hang_up()
            self._put_off()
            raise
        self._process = process

    def waitables(self) -> Iterator[Any]:
        """Yield what can be waited for: something is said, or the process has ended."""
        if self._process is not None:
            yield self._process.sentinel
        if self._connection is not None:
            yield self._connection

    def listen(self) -> None:
        """Read what the process has said."""
        try:
            while self._connection is not None and self._connection.poll():
                said = self._connection.recv()
                if said == READY:
                    self._ready_at = time.monotonic()
                else:
                    self.sentence = said
        except (EOFError, OSError):
            self.hang_up()

    def hangs(self) -> bool:
        """Whether the process has stopped sending heartbeats; to be called at each look, since it measures the time."""
        if self._process is None:
            return False
        return self._silence.seconds(self._beats.value, time.monotonic()) >= SILENT_SECONDS

    def has_ended(self) -> bool:
        """Whether a process was started and is over."""
        return self._process is not None and not self._process.is_alive()

    def reap(self) -> str:
        """Forget a process that has ended; return a sentence on how, and set when to start the next."""
        assert self._process is not None
        self.listen()
        pid, code = self._process.pid, self._process.exitcode
        how = f"{self.role.name} (process {pid}) {_ending(code or 0)}"
        if self.sentence:
            how += f": {self.sentence}"
        self._put_off()
        self._process.close()
        self._process = None
        self.hang_up()
        return how

    def _put_off(self) -> None:
        """Set when to start the next process: at once if the last one was ready for long, else after a longer pause."""
        steady = self._ready_at is not None and time.monotonic() - self._ready_at >= STEADY_SECONDS
        self._pause = 0.0 if steady else min(LONGEST_PAUSE_SECONDS, max(FIRST_PAUSE_SECONDS, 2 * self._pause))
        self.start_at = time.monotonic() + self._pause

    @property
    def pause(self) -> float:
        """Seconds from the end of the last process to the start of the next."""
        return self._pause

    def hang_up(self) -> None:
        """Let the process end when it has done what it has begun."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def kill(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.kill()

    def join(self, seconds: float) -> bool:
        """Wait for the end of the process; return whether it has ended."""
        if self._process is None:
            return True
        self._process.join(max(0.0, seconds))
        return not self._process.is_alive()


def _begin(role: Role, connection: Connection, beats: Any) -> None:
    """Run a role, in the new process."""
    role.run(Lifeline(connection, beats), *role.arguments)


def _ending(code: int) -> str:
    """Return how a process ended.

    Examples
    --------
    >>> _ending(0), _ending(3), _ending(-9)
    ('ended', 'ended with exit code 3', 'was ended by SIGKILL')
    """
    if code == 0:
        return "ended"
    if code > 0:
        return "could not start" if code == FAILED else f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start a process that an interrupt from the terminal does not reach before it can handle it."""
    if os.name == "nt":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
