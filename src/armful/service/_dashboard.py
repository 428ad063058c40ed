"""The dashboard of a service: its campaign, for those with a key that may read, and for this machine."""

from collections.abc import Callable, Hashable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from armful.service._http import problem_answer
from armful.service._problems import PROBLEM_JSON, ProblemError
from armful.service._worker import Worker
from armful.service.dashboard import Feed, ServiceSource, routes


class ServedSource:
    """The campaign of a worker, which is there once the application has started.

    Parameters
    ----------
    worker : callable
        Returns the worker.
    """

    def __init__(self, worker: Callable[[], Worker]) -> None:
        self._worker = worker
        self._shown: ServiceSource | None = None

    def _source(self) -> ServiceSource:
        if self._shown is None:
            worker = self._worker()
            self._shown = ServiceSource(worker.ledger, worker.settings)
        return self._shown

    def campaigns(self) -> list[dict[str, str]]:
        """Return the campaign."""
        source = self._source()
        return [{"name": source.settings.name, "kind": source.kind}]

    def stamp(self, _: str) -> Hashable:
        """Return something that is another when `data` may be."""
        return self._source().stamp()

    def data(self, _: str) -> dict[str, Any]:
        """Return what is shown."""
        return self._source().data()


def add_dashboard(app: Starlette) -> None:
    """Add the dashboard to the application of a service."""
    feed = Feed(ServedSource(lambda: app.state.worker))
    app.router.routes.extend(routes(feed, guard=_readers))
    app.state.before_shutdown = feed.close


async def _readers(request: Request) -> Response | None:
    """Return why a request for data is refused; None if it is not."""
    scope, worker = request.scope, request.app.state.worker
    scope["armful.route"] = "dashboard"
    try:
        caller = await worker.access.caller(scope, scope["armful.headers"], "read", local=True)
        worker.rate_limit.take(caller)
    except ProblemError as problem:
        answer = problem_answer(problem, scope["armful.request"])
        return Response(answer.body, answer.status, answer.headers, PROBLEM_JSON.decode())
    scope["armful.caller"] = caller
    return None
