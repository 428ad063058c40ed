"""A process that answers requests: uvicorn on the socket that all workers share."""

import gc
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from armful.service._accepting import Accepting, Shares
from armful.service._children import Lifeline
from armful.service._guarded_http import GuardedProtocol
from armful.service._logging import configure_logging

KEEP_ALIVE_SECONDS = 30
GARBAGE = 50_000
"""Objects after which cycles are looked for: a request makes hundreds, which go without it."""
GRACE_SECONDS = 20
"""How long a request in flight may take when the service ends."""

UVICORN = logging.getLogger("uvicorn")

App = Callable[..., Any]


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
        for accepting in self.servers:
            if isinstance(accepting, Accepting):  # uvicorn tells only connections that it knows to close
                accepting.close()
                await accepting.wait_closed()
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
