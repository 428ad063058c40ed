"""A connection that does not say what it wants is closed; others are not."""

import json
import socket
import threading
import time

import pytest
import uvicorn

from armful.service import _server
from tests.service.supervised import App

REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
PATIENCE_SECONDS = 600


@pytest.fixture
def connect(tmp_path):
    """Connect to a server in a thread of this process."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(App(tmp_path), http=_server.GuardedProtocol, ws="none", log_config=None, access_log=False)
    server = uvicorn.Server(config)
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


@pytest.fixture
def soon(monkeypatch):
    monkeypatch.setattr(_server, "HEAD_SECONDS", 0.1)


@pytest.fixture
def never(monkeypatch):
    monkeypatch.setattr(_server, "HEAD_SECONDS", PATIENCE_SECONDS)


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
def test_the_second_head_of_a_connection_has_a_limit_too(never, connect, monkeypatch, sent):
    connection = connect()
    connection.sendall(REQUEST)
    assert answer(connection).startswith(b"HTTP/1.1 200")
    monkeypatch.setattr(_server, "HEAD_SECONDS", 0.1)
    connection.sendall(sent)
    assert rest(connection) == b""


def test_a_connection_between_requests_and_a_request_at_work_are_left_alone(soon, connect, tmp_path):
    idle, slow, stalled = connect(), connect(), connect()
    idle.sendall(REQUEST)
    assert answer(idle).startswith(b"HTTP/1.1 200")
    slow.sendall(REQUEST.replace(b"/", b"/slow", 1))
    assert rest(stalled) == b"", "the limit has passed"
    idle.sendall(REQUEST)
    assert answer(idle).startswith(b"HTTP/1.1 200")
    (tmp_path / "go-on").touch()
    assert answer(slow).startswith(b"HTTP/1.1 200")


def test_a_head_without_end_is_not_kept_in_memory(never, connect):
    connection = connect()
    connection.sendall(REQUEST[:-2])
    assert is_closed_while(connection, b"x: " + b"y" * 995 + b"\r\n", times=_server.LARGEST_HEAD // 10, pause=0)


def test_a_large_body_is_no_head(never, connect):
    connection = connect()
    body = b"x" * (4 * _server.LARGEST_HEAD)
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


def test_connections_beyond_the_limit_are_refused_and_the_others_are_not(never, connect, monkeypatch):
    monkeypatch.setattr(_server, "MOST_CONNECTIONS", 2)
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
