"""A dashboard on a real server in a thread, and pages of a real browser that look at it."""

import contextlib
import socket
import threading
import time

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from armful.service.dashboard import Feed, routes
from tests import browsers
from tests.service.made_dashboard import MadeSource

KEY = "armful_made_secret"
POLICY_WATCH = """document.addEventListener("securitypolicyviolation", (event) =>
    console.error("policy", event.violatedDirective, event.blockedURI, event.sample))"""


class DashboardServer:
    """A dashboard of made data; `stop` and `start` keep the address."""

    def __init__(self, *, campaigns=1, needs_key=False, openapi=None, points=96, n_open=0, moves=False):
        self.source = MadeSource(campaigns, points=points, n_open=n_open, moves=moves)
        self.needs_key, self.openapi, self.port = needs_key, openapi, 0
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        async def guard(request):
            if not self.needs_key or request.headers.get("authorization") == f"Bearer {KEY}":
                return None
            return JSONResponse({"title": "No key", "detail": "this is no key: `armful key create` prints one."}, 401)

        async def openapi(request):
            return JSONResponse(self.openapi)

        self.feed = Feed(self.source, every=0.1)
        app = Starlette(routes=[*routes(self.feed, guard=guard), Route("/openapi.json", openapi)])
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", self.port))
        self.port = listening.getsockname()[1]
        self.server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none", lifespan="off"))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listening]})
        self.thread.start()
        while not self.server.started and self.thread.is_alive():
            time.sleep(0.01)

    def stop(self):
        self.feed.close()
        self.server.should_exit = True
        self.thread.join(60)
        assert not self.thread.is_alive()


@contextlib.contextmanager
def started_servers():
    """Yield a function that starts a server; all of them are stopped at the end."""
    servers = []

    def start(**options):
        servers.append(DashboardServer(**options))
        return servers[-1]

    try:
        yield start
    finally:
        for server in servers:
            server.stop()


class Watcher:
    """What a page complains about: messages on its console, errors, and violations of its content policy."""

    def __init__(self, page, *, allowed=()):
        self.found, self.allowed = [], list(allowed)
        page.on("console", lambda message: self._note(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self._note(f"error: {error}"))
        page.on("requestfailed", lambda request: self._note(f"request failed: {request.url} {request.failure}"))
        page.on("request", lambda request: self._note_foreign(request.url))

    def _note(self, text):
        if not any(each in text for each in self.allowed):
            self.found.append(text)

    def _note_foreign(self, url):
        if not url.startswith(("http://127.0.0.1:", "data:")):
            self.found.append(f"foreign: {url}")


def tile(page, title):
    """The number in one of the tiles at the top."""
    return page.locator("#tiles div", has=page.get_by_text(title, exact=True)).locator("strong")


@contextlib.contextmanager
def open_page(browser, url, *, allowed=(), wait="#reward-plot .scatterlayer .trace", **options):
    """A page that loaded, in a context of its own; at the end it must have had nothing to complain about."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    context.set_default_timeout(browsers.PATIENCE_MS)
    page = context.new_page()
    watcher = page.watcher = Watcher(page, allowed=["ERR_ABORTED", *allowed])
    page.add_init_script(POLICY_WATCH)
    try:
        page.goto(url)
        if wait:
            page.wait_for_selector(wait)
        yield page
        if watcher.found:
            raise AssertionError("\n".join(watcher.found))
    finally:
        context.close()
