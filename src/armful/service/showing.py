"""`armful dashboard`: the dashboard alone, for campaigns that are run from the command line or served elsewhere."""

import functools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from armful.campaigns import Campaign
from armful.ledger import Ledger
from armful.service._access import is_local
from armful.service.dashboard import Feed, StoreSource, routes
from armful.service.dashboard.routes import problem
from armful.service.serving import Running, serve_app


def show(name: str, *, port: int, campaign: str | None, when_ready: Callable[[Running], None]) -> int:
    """Show the dashboard of a campaign on this machine until SIGINT or SIGTERM, and return the exit code.

    Parameters
    ----------
    name : str
        A folder with `campaign.toml`, or the URL of a store.
    port : int
        The port; 0 for one that is free.
    campaign : str, optional
        With a URL: which campaign; all of them without.
    when_ready : callable
        Called once, when the page can be opened.

    Raises
    ------
    ValueError
        If there is no such campaign; the message says why.
    OSError
        If the port cannot be used.
    """
    if "://" in name and campaign is None:
        if not Ledger.campaigns(name):
            raise ValueError("the store has no campaign yet; `armful init` begins one")
    else:
        Campaign.open(name, name=campaign).close()
    make_app = functools.partial(dashboard_app, name, campaign)
    return serve_app(make_app, host="127.0.0.1", port=port, when_ready=when_ready)


def dashboard_app(name: str, campaign: str | None = None) -> Starlette:
    """Return the application of the dashboard alone, which answers requests from this machine."""
    source = StoreSource(name, campaign)
    feed = Feed(source)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            feed.close()
            source.close()

    shown = routes(feed, guard=_only_from_here, api=False)
    app = Starlette(routes=shown, lifespan=lifespan, exception_handlers={HTTPException: _problem, Exception: _problem})
    app.state.before_shutdown = feed.close
    return app


async def _only_from_here(request: Request) -> Response | None:
    if is_local(request.scope, dict(request.scope["headers"])):
        return None
    return problem(403, "Only from this machine", "Open the dashboard on the machine that it runs on.")


async def _problem(request: Request, error: Exception) -> Response:
    """Return an error of the router, or a mistake of ours, as problem details."""
    if not isinstance(error, HTTPException):
        return problem(500, "The dashboard made a mistake", "Its log has it.")
    path, method = request.url.path[:200], request.method[:20]
    details = {404: f"There is nothing at {path}.", 405: f"{method} is not for {path}."}
    answer = problem(error.status_code, error.detail, details.get(error.status_code, error.detail))
    answer.headers.update(error.headers or {})
    return answer
