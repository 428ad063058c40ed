"""The end of a worker: no connection and no request is forgotten."""

import asyncio
import socket
from types import SimpleNamespace

import pytest
import uvicorn

from armful.service._accepting import Shares
from armful.service._guarded_http import GuardedProtocol
from armful.service._http import Requests
from armful.service._server import _Server


async def waits_for_ever(scope, receive, send):
    await asyncio.Event().wait()


def test_connections_that_are_being_set_up_at_the_end_are_closed_too():
    async def check():
        loop, may_go_on = asyncio.get_running_loop(), asyncio.Event()
        plain = loop.connect_accepted_socket

        async def slow(*arguments):
            await may_go_on.wait()
            return await plain(*arguments)

        loop.connect_accepted_socket = slow
        config = uvicorn.Config(waits_for_ever, http=GuardedProtocol, ws="none", lifespan="off", log_config=None)
        config.load()
        lifeline = SimpleNamespace(beat=lambda: None, ready=lambda: None)
        server = _Server(config, lifeline, lambda: None, (Shares(1), 0))
        server.lifespan = config.lifespan_class(config)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            await server.startup(sockets=[listening])
            reader, writer = await asyncio.open_connection(*listening.getsockname())
            while not server.servers[0]._beginning:
                await asyncio.sleep(0.01)
            ending = loop.create_task(server.shutdown())
            assert not (await asyncio.wait({ending}, timeout=1))[0]
            may_go_on.set()
            await ending
            assert not server.server_state.connections
            assert await reader.read() == b""
            writer.close()

    asyncio.run(check())


def test_a_request_that_is_cancelled_at_the_end_is_to_be_sent_again():
    sent = []

    async def send(message):
        sent.append(message)

    async def check():
        metrics = SimpleNamespace(answered=lambda *_: None)
        app = SimpleNamespace(state=SimpleNamespace(worker=SimpleNamespace(metrics=metrics)))
        scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "app": app}
        request = asyncio.create_task(Requests(waits_for_ever, access_log=False, direct={})(scope, None, send))
        await asyncio.sleep(0)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request

    asyncio.run(check())
    start, body = sent
    assert start["status"] == 503
    assert b"retry-after" in {name.lower() for name, _ in start["headers"]}
    assert b"send the request again" in body["body"]
