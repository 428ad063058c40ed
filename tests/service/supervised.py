"""A service of a trivial app, for the tests of the supervisor; run as a program.

Usage: python -m tests.service.supervised N_WORKERS APP FOLDER

It prints the address and the ids of its processes when it is ready. `APP` is a function of this module.
"""

import asyncio
import functools
import json
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

from armful.service import _accepting, _children, _server, _supervisor
from armful.service._children import Role
from armful.service._supervisor import ServingError, Supervisor


class App:
    """Answers with the id of its process; a request for /slow waits for a file, and the end of the app writes one."""

    def __init__(self, folder):
        self.folder, self.is_stopping = Path(folder), False
        self.state = SimpleNamespace(before_shutdown=lambda: setattr(self, "is_stopping", True))

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            await self.lifespan(receive, send)
            return
        if scope["path"] == "/events":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while not self.is_stopping:
                await send({"type": "http.response.body", "body": b".", "more_body": True})
                await asyncio.sleep(0.01)
            await send({"type": "http.response.body", "body": b"end"})
            return
        if scope["path"] == "/slow":
            (self.folder / "slow-began").touch()
            while not (self.folder / "go-on").exists():
                await asyncio.sleep(0.01)
        body = str(os.getpid()).encode()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def lifespan(self, receive, send):
        await receive()
        await self.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        (self.folder / f"drained-{os.getpid()}").touch()
        await send({"type": "lifespan.shutdown.complete"})

    async def start(self):
        pass


class FailsInStart(App):
    async def start(self):
        raise ValueError("the model is missing; run armful check")


def plain(folder):
    return App(folder)


def watched(folder):
    """The supervisor waits for a few seconds only for a worker that hangs."""
    return App(folder)


def stops_when_ready(folder):
    """Each worker hangs as soon as it has said that it is ready."""
    return signalled_when_ready(folder, signal.SIGSTOP)


def ends_when_ready(folder):
    """The first worker is told to end as soon as it has said that it is ready."""
    if Path(folder, "was-ready").exists():
        return App(folder)
    return signalled_when_ready(folder, signal.SIGTERM)


def signalled_when_ready(folder, kind):
    ready = _children.Lifeline.ready

    def ready_and_signalled(self):
        Path(folder, "was-ready").touch()
        ready(self)
        os.kill(os.getpid(), kind)

    _children.Lifeline.ready = ready_and_signalled
    return App(folder)


def fails(folder):
    raise ValueError("the settings have\ntwo mistakes")


def fails_in_start(folder):
    return FailsInStart(folder)


def dies(folder):
    os.kill(os.getpid(), signal.SIGKILL)


def two_live(folder):
    """The first two processes work, and those after them die at once."""
    if len(list(Path(folder).glob("began-*"))) == 2:
        with Path(folder, "deaths").open("a") as file:
            file.write(".")
        raise ValueError("there is no room")
    Path(folder, f"began-{os.getpid()}").touch()
    return App(folder)


def idle(lifeline, folder):
    """A process beside the workers, as the updater is."""
    over = threading.Event()
    lifeline.when_to_end(over.set)
    lifeline.ready()
    over.wait()
    Path(folder, f"drained-{os.getpid()}").touch()


def main():
    n_workers, app, folder = int(sys.argv[1]), globals()[sys.argv[2]], sys.argv[3]
    _server.configure_logging()
    _children.FIRST_PAUSE_SECONDS = 0.01
    _supervisor.GRACE_SECONDS = 600
    if app in (watched, stops_when_ready):
        _children.SILENT_SECONDS = 3.0
    listening = socket.create_server(("127.0.0.1", 0))
    make_app = functools.partial(app, folder)
    shares = _accepting.Shares(n_workers)
    roles = [
        Role(name=f"worker {i}", run=_server.run_worker, arguments=(listening, make_app, (shares, i)))
        for i in range(n_workers)
    ]
    roles.append(Role(name="updater", run=idle, arguments=(folder,)))

    def say(pids):
        print(json.dumps({"url": f"http://127.0.0.1:{listening.getsockname()[1]}", "processes": pids}), flush=True)

    try:
        code = Supervisor(roles, listening, say).run()
    except ServingError as error:
        print(f"sentence: {error}", flush=True)
        code = 2
    sys.exit(code)


if __name__ == "__main__":
    main()
