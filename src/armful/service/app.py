"""The application: which handler answers which route, and what happens at start and stop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp

from armful.campaigns import Campaign
from armful.service import _arms, _decisions, _reading, _rewards
from armful.service._dashboard import add_dashboard
from armful.service._http import Endpoint, Requests, starlette_problem
from armful.service._worker import Worker
from armful.service.options import ServeOptions

__all__ = ["create_app"]


def create_app(name: str, *, options: ServeOptions | None = None) -> Starlette:
    """Return the ASGI application of a campaign's decision service.

    The campaign is opened when the application starts, and closed when it stops: all requests are answered and all
    decisions and rewards are stored before.

    Parameters
    ----------
    name : str
        A folder with `campaign.toml`, or the URL of a store.
    options : ServeOptions, optional
        How it is served.

    Returns
    -------
    Starlette
    """
    options = options or ServeOptions()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()

        def start() -> Worker:
            campaign = Campaign.open(name, name=options.campaign, now=options.now, settings=options.settings)
            try:
                return Worker(campaign, options, loop)
            except BaseException:
                campaign.close()
                raise

        worker = app.state.worker = await asyncio.to_thread(start)
        tasks = [asyncio.create_task(each) for each in (worker.poll(), worker.watch())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.to_thread(worker.close)

    routes = _routes()
    direct = {("POST", route.path): route.app for route in routes if route.path in ("/v1/decisions", "/v1/rewards")}
    app = _App(routes=routes, lifespan=lifespan)
    app.outermost = partial(Requests, access_log=options.access_log, direct=direct)
    app.router.redirect_slashes = False
    if options.dashboard:
        add_dashboard(app)
    return app


class _App(Starlette):
    """Starlette without its own middleware for errors around everything: `Requests` lets none through."""

    outermost: Callable[[ASGIApp], ASGIApp]

    def build_middleware_stack(self) -> ASGIApp:
        return self.outermost(ExceptionMiddleware(self.router, handlers={HTTPException: starlette_problem}))


def _routes() -> list[Route]:
    return [
        Route("/v1/decisions", Endpoint(_decisions.decide, role="decide"), methods=["POST"]),
        Route("/v1/decisions/{id}/rewards", Endpoint(_rewards.reward, role="reward"), methods=["POST"]),
        Route("/v1/rewards", Endpoint(_rewards.many_rewards, role="reward"), methods=["POST"]),
        Route("/v1/arms", Endpoint(_arms.put_arms, role="decide"), methods=["PUT"]),
        Route("/v1/decisions/{id}", Endpoint(_decisions.decision, role="read"), methods=["GET"]),
        Route("/v1/status", Endpoint(_reading.status, role="read"), methods=["GET"]),
        Route("/v1/model", Endpoint(_reading.model, role="read"), methods=["GET"]),
        Route("/healthz", Endpoint(_reading.healthz, role=None), methods=["GET"]),
        Route("/readyz", Endpoint(_reading.readyz, role=None), methods=["GET"]),
        Route("/metrics", Endpoint(_reading.metrics, role="read", local=True), methods=["GET"]),
        Route("/openapi.json", Endpoint(_reading.openapi, role=None), methods=["GET"]),
    ]
