"""A connection that does not say what it wants, or does not read its answer, is closed; others are not."""

import json
import re
import socket
import threading
import time

import pytest
import uvicorn

from armful.service import _guarded_http
from tests.service.supervised import App

REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
PATIENCE_SECONDS = 600


class Large(App):
    """Answers with as many bytes as the path says."""

    async def __call__(self, scope, receive, send):
        size = scope.get("path", "/")[1:]
        if not size.isdigit():
            return await super().__call__(scope, receive, send)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", size.encode())]})
        await send({"type": "http.response.body", "body": b"x" * int(size)})
        return None


@pytest.fixture
def loop():
    return "auto"


@pytest.fixture
def server(tmp_path, loop):
    http = _guarded_http.GuardedProtocol
    options = {"loop": loop, "http": http, "ws": "none", "log_config": None, "access_log": False}
    return uvicorn.Server(uvicorn.Config(Large(tmp_path), **options))


@pytest.fixture
def connect(server):
    """Connect to a server in a thread of this process."""
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    address = listening.getsockname()
    thread.start()
    connections = []

    def connect():
        connections.append(socket.create_connection(address, timeout=PATIENCE_SECONDS))
        return connections[-1]

    yield connect
    for connection in connections:
        connection.close()
    server.should_exit = True
    thread.join()


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A machine that is busy may take long to read what was sent."""
    monkeypatch.setattr(_guarded_http, "HEAD_SECONDS", PATIENCE_SECONDS)


@pytest.fixture
def soon(patient, monkeypatch):
    monkeypatch.setattr(_guarded_http, "HEAD_SECONDS", 0.1)


def rest(connection):
    """What comes until the other side closes."""
    received = b""
    try:
        while more := connection.recv(65536):
            received += more
    except ConnectionResetError:
        pass
    return received


def answer(connection):
    received = b""
    while b"\r\n\r\n" not in received:
        more = connection.recv(65536)
        assert more, "closed without an answer"
        received += more
    return received


def is_closed_while(connection, line, *, times, pause):
    """Whether the other side closes while a line is sent again and again."""
    try:
        for _ in range(times):
            connection.sendall(line)
            time.sleep(pause)
    except OSError:
        return True
    return False


@pytest.mark.parametrize("sent", [b"", b"G", REQUEST[:-2], REQUEST[:-1]])
def test_a_head_that_does_not_end_closes_the_connection(soon, connect, sent):
    connection = connect()
    connection.sendall(sent)
    assert rest(connection) == b""


def test_a_head_that_trickles_closes_the_connection(soon, connect):
    connection = connect()
    connection.sendall(REQUEST[:-2])
    assert is_closed_while(connection, b"x: y\r\n", times=PATIENCE_SECONDS * 100, pause=0.01)


@pytest.mark.parametrize("sent", [REQUEST[:-2], b"G", b"\r\n"])
def test_the_second_head_of_a_connection_has_a_limit_too(connect, monkeypatch, sent):
    connection = connect()
    connection.sendall(REQUEST)
    assert answer(connection).startswith(b"HTTP/1.1 200")
    monkeypatch.setattr(_guarded_http, "HEAD_SECONDS", 0.1)
    connection.sendall(sent)
    assert rest(connection) == b""


def test_a_connection_between_requests_and_a_request_at_work_are_left_alone(connect, server, tmp_path, monkeypatch):
    idle, slow = connect(), connect()
    idle.sendall(REQUEST)
    assert answer(idle).startswith(b"HTTP/1.1 200")
    slow.sendall(REQUEST.replace(b"/", b"/slow", 1))
    assert comes((tmp_path / "slow-began").exists)
    assert [protocol._timer for protocol in server.server_state.connections] == [None, None]
    monkeypatch.setattr(_guarded_http, "HEAD_SECONDS", 0.1)
    assert rest(connect()) == b"", "the limit has passed"
    idle.sendall(REQUEST)
    assert answer(idle).startswith(b"HTTP/1.1 200")
    (tmp_path / "go-on").touch()
    assert answer(slow).startswith(b"HTTP/1.1 200")


def test_a_head_without_end_is_not_kept_in_memory(connect):
    connection = connect()
    connection.sendall(REQUEST[:-2])
    assert is_closed_while(connection, b"x: " + b"y" * 995 + b"\r\n", times=_guarded_http.LARGEST_HEAD, pause=0)


@pytest.mark.parametrize("beyond", [1, _guarded_http.DISCARDED_HEAD // 2])
@pytest.mark.parametrize("before", [b"", REQUEST])
def test_a_head_that_is_too_large_is_a_problem(connect, before, beyond):
    connection = connect()
    if before:
        connection.sendall(before)
        answer(connection)
    begin = b"GET / HTTP/1.1\r\nhost: x\r\nx: "
    connection.sendall(begin + b"y" * (_guarded_http.LARGEST_HEAD + beyond - len(begin)))
    assert str(_guarded_http.LARGEST_HEAD) in problem_of(rest(connection), 431)


@pytest.mark.parametrize("body", [0, 1000])
@pytest.mark.parametrize("before", [b"", REQUEST])
def test_a_head_that_is_too_large_and_complete_is_a_problem(connect, before, body):
    connection = connect()
    if before:
        connection.sendall(before)
        answer(connection)
    begin = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\nx: " % body
    connection.sendall(begin + b"y" * _guarded_http.LARGEST_HEAD + b"\r\n\r\n" + b"x" * body)
    assert str(_guarded_http.LARGEST_HEAD) in problem_of(rest(connection), 431)


def test_a_path_and_headers_that_are_too_large_together_are_a_problem(connect):
    connection, half = connect(), b"y" * (_guarded_http.LARGEST_HEAD // 2)
    connection.sendall(b"GET /" + half + b" HTTP/1.1\r\nhost: x\r\nx: " + half + b"\r\n\r\n")
    assert str(_guarded_http.LARGEST_HEAD) in problem_of(rest(connection), 431)


@pytest.mark.parametrize("before", [REQUEST, b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nbody"])
@pytest.mark.parametrize("sent_apart", [0, 2])
def test_a_large_head_behind_another_request_is_a_problem(connect, before, sent_apart):
    """Though it is complete in the read in which that request ends."""
    connection = connect()
    connection.sendall(before[:sent_apart])
    large = b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"y" * _guarded_http.LARGEST_HEAD + b"\r\n\r\n"
    connection.sendall(before[sent_apart:] + large)
    assert re.findall(rb"HTTP/1.1 (\d+)", rest(connection)) == [b"200", b"431"]


def test_a_head_that_is_too_large_is_closed_though_its_client_is_not(connect, server):
    connection = connect()
    connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"y" * _guarded_http.LARGEST_HEAD)
    problem_of(rest(connection), 431)
    (protocol,) = server.server_state.connections
    assert protocol._timer is not None
    protocol.loop.call_soon_threadsafe(protocol._give_up)  # its time is over
    assert comes(lambda: not server.server_state.connections)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
        b"nonsense\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\nno header\r\n\r\n",
        b"POST /slow HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n",
    ],
)
@pytest.mark.parametrize("before", [b"", REQUEST])
def test_what_is_no_http_is_a_problem(connect, tmp_path, before, sent):
    connection = connect()
    if before:
        connection.sendall(before)
        answer(connection)
    connection.sendall(sent)
    received = rest(connection)
    (tmp_path / "go-on").touch()
    assert "HTTP/1.1" in problem_of(received, 400)


@pytest.mark.parametrize("sent", [b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nx: " + b"y" * _guarded_http.LARGEST_HEAD])
def test_no_problem_is_taken_for_the_answer_to_the_request_before(connect, tmp_path, sent):
    connection = connect()
    connection.sendall(REQUEST.replace(b"/", b"/slow", 1))
    assert comes((tmp_path / "slow-began").exists)
    connection.sendall(sent)
    received = rest(connection)
    (tmp_path / "go-on").touch()
    assert received == b""


def comes(condition):
    """Whether a condition comes true."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


LARGE = 32 * 2**20
"""Bytes that no buffers of the system hold."""


@pytest.mark.parametrize("loop", ["auto", "asyncio"])
@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
def test_a_client_that_does_not_read_its_answer_is_closed(connect, server, monkeypatch, version):
    monkeypatch.setattr(_guarded_http, "DRAIN_SECONDS", 0.1)
    connection = connect()
    connection.sendall(b"GET /%d HTTP/%s\r\nhost: x\r\n\r\n" % (LARGE, version))
    connection.recv(1)
    assert comes(lambda: not server.server_state.connections)
    assert len(rest(connection)) < LARGE


@pytest.mark.parametrize("loop", ["auto", "asyncio"])
@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
def test_a_connection_that_closes_does_not_wait_for_its_client_to_read(connect, server, monkeypatch, version):
    """Also where so little is left that writing was never paused."""
    monkeypatch.setattr(_guarded_http, "DRAIN_SECONDS", 0.1)
    monkeypatch.setattr(_guarded_http.GuardedProtocol, "pause_writing", lambda _: None)
    server.config.timeout_keep_alive = 0.1
    connection = connect()
    connection.sendall(b"GET /%d HTTP/%s\r\nhost: x\r\n\r\n" % (LARGE, version))
    connection.recv(1)
    assert comes(lambda: not server.server_state.connections)


class Buffer:
    """A transport whose buffer a client reads, and a loop whose timers are called by hand."""

    def __init__(self, size):
        self.size, self.is_aborted, self.timers = size, False, []

    def get_write_buffer_size(self):
        return self.size

    def is_closing(self):
        return True

    def abort(self):
        self.is_aborted = True

    def call_later(self, _, call, *given):
        self.timers.append(lambda: call(*given))
        return threading.Timer(0, None)  # can be cancelled


def test_a_client_that_reads_slowly_is_left_alone():
    buffer = Buffer(10 * _guarded_http.LEAST_DRAINED + 5)
    protocol = object.__new__(_guarded_http.GuardedProtocol)
    protocol.loop = protocol.transport = buffer
    protocol._watch_draining()
    for _ in range(10):
        buffer.size -= _guarded_http.LEAST_DRAINED
        buffer.timers.pop()()
        assert not buffer.is_aborted
    (check,) = buffer.timers
    buffer.size -= 4
    check()
    assert buffer.is_aborted, "so little is left that all of it should have been read"


def test_a_large_body_is_no_head(connect):
    connection = connect()
    body = b"x" * (4 * _guarded_http.LARGEST_HEAD)
    connection.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
    assert answer(connection).startswith(b"HTTP/1.1 200")


def problem_of(received, status):
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d" % status)
    assert b"content-type: application/problem+json" in head
    assert b"content-length: %d" % len(body) in head
    assert json.loads(body)["status"] == status
    return json.loads(body)["detail"]


@pytest.mark.parametrize("hosts", [b"host: x\r\nhost: y\r\n", b"host: x\r\nHost: x\r\n", b""])
def test_a_request_without_one_host_is_refused(connect, hosts):
    connection = connect()
    connection.sendall(b"GET / HTTP/1.1\r\n" + hosts + b"\r\n")
    assert "one Host" in problem_of(rest(connection), 400)
    for fine in (REQUEST, b"GET / HTTP/1.0\r\n\r\n"):
        other = connect()
        other.sendall(fine)
        assert answer(other).startswith(b"HTTP/1.1 200")


def test_connections_beyond_the_limit_are_refused_and_the_others_are_not(connect, monkeypatch):
    monkeypatch.setattr(_guarded_http, "MOST_CONNECTIONS", 2)
    first, second = connect(), connect()
    for connection in (first, second):
        connection.sendall(REQUEST)
        assert answer(connection).startswith(b"HTTP/1.1 200")
    assert "2 connections already" in problem_of(rest(connect()), 503)
    first.sendall(REQUEST)
    assert answer(first).startswith(b"HTTP/1.1 200")
    second.close()
    while not (received := answered(connect())).startswith(b"HTTP/1.1 200"):
        assert received.startswith(b"HTTP/1.1 503") or not received  # the end of the second was not seen yet


def answered(connection):
    try:
        connection.sendall(REQUEST)
        return connection.recv(65536)
    except OSError:
        return b""
