"""The HTTP of a connection: uvicorn's, with limits on clients that are slow, send too much, or are too many."""

import asyncio
import uuid
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from armful.service._joined_writes import JoinedWrites
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
        """Answer what is not HTTP."""
        if self._is_its_turn():
            problem = ProblemError(400, "this is not HTTP: send a request in HTTP/1.1", {"connection": "close"})
            self.transport.write(_answer_of(problem))
        self.transport.close()

    def _refuse_head(self) -> None:
        """Answer, and drop what still comes: a connection that closes with bytes to read loses its answer."""
        if not self._is_its_turn():
            self.transport.close()
            return
        self._is_refused = True
        self.transport.write(_answer_of(_head_problem()))
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
        if self._head_size() > LARGEST_HEAD:  # it came complete, in one read
            self.app = _too_large_head
        super().on_headers_complete()
        self.app = app

    def _head_size(self) -> int:
        """Return the bytes of a complete head, without what came after it."""
        return len(self.url) + sum(len(name) + len(value) + len(b": \r\n") for name, value in self.headers)

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


def _answer_of(problem: ProblemError) -> bytes:
    """Return a problem as it is written to a connection."""
    headers, body = _headers_and_body(problem)
    status = f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}".encode()
    return b"\r\n".join([status, *(b": ".join(pair) for pair in headers), b"", body])


def _headers_and_body(problem: ProblemError) -> tuple[list[tuple[bytes, bytes]], bytes]:
    body = problem.body(uuid.uuid4().hex)
    own = [(name.encode(), value.encode()) for name, value in problem.headers.items()]
    return [(b"content-type", PROBLEM_JSON), (b"content-length", str(len(body)).encode()), *own], body


def _head_problem() -> ProblemError:
    detail = f"the head of a request may have at most {LARGEST_HEAD} bytes, and has more: send fewer headers"
    return ProblemError(431, detail, {"connection": "close"})


async def _too_large_head(scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG001 - as ASGI has it
    """Answer a request whose head is too large, and complete."""
    await _send(_head_problem(), send)


async def _not_one_host(scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG001 - as ASGI has it
    """Answer a request with no Host header or with several (RFC 9112, 3.2)."""
    await _send(ProblemError(400, "a request has one Host header: send one", {"connection": "close"}), send)


async def _send(problem: ProblemError, send: Any) -> None:
    headers, body = _headers_and_body(problem)
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
