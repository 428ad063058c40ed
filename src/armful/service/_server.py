"""A process that answers requests: uvicorn on the socket that all workers share."""

import asyncio
import gc
import logging
import os
import socket
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from armful.service._accepting import Accepting, Shares
from armful.service._children import Lifeline
from armful.service._joined_writes import JoinedWrites
from armful.service._logging import configure_logging
from armful.service._problems import PROBLEM_JSON, RETRY, ProblemError

HEAD_SECONDS = 10.0
"""A connection must send the head of a request within this time."""
LARGEST_HEAD = 64 * 1024
"""Bytes of the largest head of a request."""
DISCARDED_HEAD = 1024 * 1024
"""So many bytes of a head that is too large are read and dropped, so that most clients see the answer."""
DRAIN_SECONDS = 30.0
LEAST_DRAINED = 16 * 1024
"""A client must read so many bytes of its answer, or the rest of it, in each `DRAIN_SECONDS`."""
MOST_CONNECTIONS = 1000
"""Of one worker: another is answered with 503 and closed, so that slow clients cannot use up all open files."""
KEEP_ALIVE_SECONDS = 30
GARBAGE = 50_000
"""Objects after which cycles are looked for: a request makes hundreds, which go without it."""
GRACE_SECONDS = 20
"""How long a request in flight may take when the service ends."""

UVICORN = logging.getLogger("uvicorn")

App = Callable[..., Any]


class GuardedProtocol(HttpToolsProtocol):
    """HTTP that closes a connection which takes too long to say what it wants, or to read its answer.

    uvicorn waits for the head of a request for ever, and for what it wrote to be read, so that a client could hold all
    connections.
    """

    _timer: asyncio.TimerHandle | None = None
    _drain_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _first_bytes = 0
    _in_head = True
    _is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(JoinedWrites(transport, self.loop, self._watch_draining))  # type: ignore[arg-type]
        if len(self.connections) > MOST_CONNECTIONS:
            detail = f"this worker has {MOST_CONNECTIONS} connections already: try again later, and use fewer at a time"
            self.transport.write(_answer_of(ProblemError(503, detail, {**RETRY, "connection": "close"})))
            self.transport.close()
            return
        self._set_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        super().connection_lost(exc)
        self._stop_timer()
        self._stop_drain_timer()

    def data_received(self, data: bytes) -> None:
        """Parse what came; refuse a head that grows beyond bounds."""
        if self._in_head:
            self._head_bytes += len(data)
        else:
            self._first_bytes = 0 if self.cycle.more_body else len(data)  # a body may end in them
        if self._is_refused:
            if self._head_bytes > LARGEST_HEAD + DISCARDED_HEAD:
                self.transport.close()
            return
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._timer is None and (self._in_head or self.cycle.response_complete):  # empty lines are no head yet
            self._set_timer()
        if self._in_head and self._head_bytes > LARGEST_HEAD:
            self._refuse_head()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP."""
        if self._is_its_turn():
            problem = ProblemError(400, "this is no HTTP: send a request in HTTP/1.1", {"connection": "close"})
            self.transport.write(_answer_of(problem))
        self.transport.close()

    def _refuse_head(self) -> None:
        """Answer, and drop what still comes: a connection that closes with bytes to read loses its answer."""
        if not self._is_its_turn():
            self.transport.close()
            return
        self._is_refused = True
        detail = f"the head of a request may have at most {LARGEST_HEAD} bytes, and has more: send fewer headers"
        self.transport.write(_answer_of(ProblemError(431, detail, {"connection": "close"})))
        self.transport.write_eof()

    def _is_its_turn(self) -> bool:
        """Return whether the next answer is to what came last: else it would be taken for that of a request before."""
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            return True
        return cycle.more_body and not cycle.response_started and not self.pipeline

    def pause_writing(self) -> None:
        """Begin to wait for the client to read."""
        super().pause_writing()
        self._watch_draining()

    def resume_writing(self) -> None:
        """Wait no longer, unless the connection closes once all is read."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._stop_drain_timer()

    def _watch_draining(self) -> None:
        """Abort the connection if what was written is not read: closing waits for that for ever."""
        size = self.transport.get_write_buffer_size()
        if self._drain_timer is None and size:
            self._drain_timer = self.loop.call_later(DRAIN_SECONDS, self._check_draining, size)

    def _check_draining(self, before: int) -> None:
        self._drain_timer = None
        if self.transport.get_write_buffer_size() > max(before - LEAST_DRAINED, 0):
            self.transport.abort()
        else:
            self._watch_draining()

    def _stop_drain_timer(self) -> None:
        if self._drain_timer is not None:
            self._drain_timer.cancel()
            self._drain_timer = None

    def on_message_begin(self) -> None:
        """Count the bytes of a new head, on a connection that was used before."""
        if not self._in_head:
            self._in_head, self._head_bytes, self._first_bytes = True, self._first_bytes, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Wait no longer: the rest of the request has a time-out of its own."""
        self._stop_timer()
        self._in_head = False
        app = self.app
        n_hosts = [name for name, _ in self.headers].count(b"host")
        if n_hosts > 1 or (n_hosts == 0 and self.parser.get_http_version() == "1.1"):
            self.app = _not_one_host  # with two of them it is not known whom a proxy took the request to be for
        super().on_headers_complete()
        self.app = app

    def _set_timer(self) -> None:
        self._timer = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self.transport.close()


def _request_id() -> str:
    return uuid.uuid4().hex


def _answer_of(problem: ProblemError) -> bytes:
    """Return a problem as it is written to a connection."""
    lines = [b": ".join(pair) for pair in _headers(problem)]
    status = f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}".encode()
    return b"\r\n".join([status, *lines, b"", problem.body(_request_id())])


def _headers(problem: ProblemError) -> list[tuple[bytes, bytes]]:
    own = [(name.encode(), value.encode()) for name, value in problem.headers.items()]
    length = str(len(problem.body(_request_id()))).encode()
    return [(b"content-type", PROBLEM_JSON), (b"content-length", length), *own]


async def _not_one_host(scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG001 - as ASGI has it
    """Answer a request with no Host header or with several (RFC 9112, 3.2)."""
    problem = ProblemError(400, "a request has one Host header: send one", {"connection": "close"})
    await send({"type": "http.response.start", "status": 400, "headers": _headers(problem)})
    await send({"type": "http.response.body", "body": problem.body(_request_id())})


class _Server(uvicorn.Server):
    """uvicorn, whose signals are handled by the lifeline, and which says when it is ready."""

    def __init__(
        self, config: uvicorn.Config, lifeline: Lifeline, before_shutdown: Callable[[], None], share: tuple[Shares, int]
    ) -> None:
        super().__init__(config)
        self._lifeline, self._before_shutdown, self._share = lifeline, before_shutdown, share
        self._is_over = False

    def end(self) -> None:
        """Finish what has begun, and end.

        With `should_exit`, set as soon as it is ready, older versions of uvicorn do not tell the app that it ends.
        """
        self._is_over = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        on_windows = os.name == "nt"
        await super().startup(sockets if on_windows else [])
        if not self.started:  # older versions of uvicorn return here, newer ones exit
            return
        if not on_windows:
            accepting = [Accepting(each, self._make_protocol, self._surplus) for each in sockets or ()]
            self.servers = accepting  # type: ignore[assignment]
        UVICORN.setLevel(logging.WARNING)
        self._lifeline.beat()  # so that one that hangs before its first tick is noticed too
        self._lifeline.ready()

    async def on_tick(self, counter: int) -> bool:
        self._surplus()
        self._lifeline.beat()
        return await super().on_tick(counter) or self._is_over

    def _surplus(self, n_beginning: int = 0) -> int:
        """Tell the other workers how many connections there are; return how many more than another has."""
        shares, index = self._share
        return shares.of(index, len(self.server_state.connections) + n_beginning)

    def _make_protocol(self) -> GuardedProtocol:
        return GuardedProtocol(self.config, self.server_state, self.lifespan.state)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._before_shutdown()
        await super().shutdown(sockets)


class _Starting:
    """An app whose error at the start is kept for a sentence, instead of being logged with its traceback."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.error: BaseException | None = None

    def before_shutdown(self) -> None:
        """Call `app.state.before_shutdown`, if there is one: it ends answers that do not end by themselves."""
        end = getattr(getattr(self._app, "state", None), "before_shutdown", None)
        if end is not None:
            end()

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        awaited: Awaitable[None] = (self._live if scope["type"] == "lifespan" else self._app)(scope, receive, send)
        return awaited

    async def _live(self, scope: Any, receive: Any, send: Any) -> None:
        is_started = False

        async def noting(message: Any) -> None:
            nonlocal is_started
            is_started = is_started or message["type"] == "lifespan.startup.complete"
            if message["type"] != "lifespan.startup.failed":
                await send(message)

        try:
            await self._app(scope, receive, noting)
        except BaseException as error:
            if is_started:
                raise
            self.error = error
        if not is_started:
            await send({"type": "lifespan.startup.failed", "message": ""})


def run_worker(
    lifeline: Lifeline,
    listening: socket.socket,
    make_app: Callable[[], App],
    share: tuple[Shares, int] | None = None,
    log_level: int = logging.INFO,
) -> None:
    """Answer requests until the lifeline ends.

    Parameters
    ----------
    lifeline : Lifeline
        Of this process.
    listening : socket
        Bound and listening.
    make_app : callable
        Returns the ASGI application; an error of a user's is reported in a sentence. Its `state.before_shutdown`, if
        there is one, is called before requests in flight are waited for.
    share : tuple of Shares and int, optional
        The connections of all workers, and which one this is; none if it is the only one.
    log_level : int
        What is logged.
    """
    configure_logging(log_level)
    UVICORN.setLevel(logging.CRITICAL)  # why it cannot start is said in a sentence
    try:
        app = _Starting(make_app())
    except (ValueError, ArithmeticError, OSError, MemoryError, ImportError) as error:
        lifeline.fail(one_line(error))
    gc.collect()
    gc.freeze()  # what was imported is not looked through again while requests are answered
    gc.set_threshold(GARBAGE)
    config = uvicorn.Config(
        app,
        http=GuardedProtocol,
        interface="asgi3",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = _Server(config, lifeline, app.before_shutdown, share or (Shares(1), 0))
    lifeline.when_to_end(server.end)
    try:
        server.run(sockets=[listening])
    except SystemExit:  # the app did not start
        if app.error is None:
            raise
    if app.error is not None:
        lifeline.fail(one_line(app.error))


def one_line(error: BaseException) -> str:
    """Return the message of an error in one line."""
    return " ".join(str(error).splitlines()) or type(error).__name__
