"""Who accepts a connection, of several workers on one socket."""

import asyncio
import errno
import logging
import socket

import pytest

from armful.service import _accepting
from armful.service._accepting import Accepting, Shares


class Noting(asyncio.Protocol):
    """Says who has accepted the connection, and closes it."""

    def __init__(self, name):
        self.name = name

    def connection_made(self, transport):
        transport.write(self.name)
        transport.close()


def accepted_by(surpluses, n=10, *, before=lambda listening: None):
    """Which of several servers in one loop, with these surpluses, accept connections that come one after the other."""

    async def run():
        listening = socket.create_server(("127.0.0.1", 0))
        servers = [
            Accepting(listening.dup(), lambda name=name: Noting(name), lambda _, surplus=surplus: surplus)
            for name, surplus in surpluses.items()
        ]
        names = []
        for server in servers:
            before(server)
        for _ in range(n):
            reader, writer = await asyncio.open_connection(*listening.getsockname())
            names.append(await reader.read())
            writer.close()
        for server in servers:
            server.close()
            await server.wait_closed()
            server._listening.close()
        listening.close()
        return set(names)

    return asyncio.run(run())


def test_one_with_more_connections_lets_the_others_go_first(monkeypatch):
    monkeypatch.setattr(_accepting, "POLITE_SECONDS", 600)
    monkeypatch.setattr(_accepting, "LONGEST_POLITE_SECONDS", 600)
    assert accepted_by({b"many": 3, b"few": 0}) == {b"few"}


def test_one_with_more_connections_accepts_if_nobody_else_does():
    assert accepted_by({b"many": 3}) == {b"many"}


def test_it_goes_on_when_files_can_be_opened_again(monkeypatch, caplog):
    monkeypatch.setattr(_accepting, "PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(logging.getLogger("armful"), "propagate", True)

    class Full:
        """A socket whose first accept fails."""

        def __init__(self, listening):
            self.listening, self.errors = listening, [OSError(errno.EMFILE, "Too many open files")]

        def __getattr__(self, name):
            return getattr(self.listening, name)

        def accept(self):
            if self.errors:
                raise self.errors.pop()
            return self.listening.accept()

    def fill(server):
        server._listening = Full(server._listening)

    assert accepted_by({b"one": 0}, before=fill) == {b"one"}
    assert caplog.messages == ["no connection can be accepted for 0.001 seconds: Too many open files"]


def test_shares_are_compared_with_the_smallest():
    shares = Shares(3)
    assert shares.of(0, 2) == 2
    assert (shares.of(1, 1), shares.of(2, 4), shares.of(0, 2), shares.of(1, 0)) == (1, 3, 1, 0)
    assert shares.of(1, 7) == 5


def test_a_worker_alone_accepts_many_that_come_at_once(monkeypatch):
    monkeypatch.setattr(_accepting, "POLITE_SECONDS", 600)
    monkeypatch.setattr(_accepting, "LONGEST_POLITE_SECONDS", 600)

    async def run():
        listening, shares = socket.create_server(("127.0.0.1", 0)), Shares(1)
        waiting = [socket.create_connection(listening.getsockname()) for _ in range(20)]
        server = Accepting(listening, lambda: Noting(b"one"), lambda n_beginning: shares.of(0, n_beginning))
        async with asyncio.timeout(300):
            for each in waiting:
                reader, writer = await asyncio.open_connection(sock=each)
                assert await reader.read() == b"one"
                writer.close()
        server.close()
        await server.wait_closed()
        listening.close()

    asyncio.run(run())


@pytest.mark.parametrize("n", [1, 5])
def test_a_worker_alone_is_never_polite(n):
    assert Shares(1).of(0, n) == 0
