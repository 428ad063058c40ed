"""The routes of the dashboard: pages, their files, data and events."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from armful import __version__
from armful.errors import LedgerError
from armful.service._logging import LOGGER
from armful.service.dashboard._static import StaticFile, page, static_file
from armful.service.dashboard.data import Source
from armful.service.dashboard.feed import Feed, as_text

Guard = Callable[[Request], Awaitable[Response | None]]
"""Returns a response that refuses a request for data, or None to let it in."""

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept-Encoding, Sec-Fetch-Mode",
}
OPENER_POLICY = {"Cross-Origin-Opener-Policy": "same-origin"}
SMALL = 1024
"""Bodies up to so many bytes are not worth compressing."""


def routes(source: Source | Feed, *, guard: Guard | None = None, api: bool = True) -> list[Route]:
    """Return the routes of the dashboard.

    Parameters
    ----------
    source : Source or Feed
        What is shown. A server that is stopped gracefully makes the feed itself, and calls its `close` before it waits
        for open requests: streams of events do not end by themselves.
    guard : callable, optional
        Called before data are sent; None lets everybody in. Pages hold no data and are always sent.
    api : bool, default True
        Whether the server also has `/openapi.json`, which `/docs` shows.

    Returns
    -------
    list of starlette.routing.Route
        `/`, `/docs` (with `api`), `/dashboard/campaigns`, `/dashboard/data`, `/dashboard/events` and the files of the
        pages under `/dashboard/static`.
    """
    feed = source if isinstance(source, Feed) else Feed(source)

    async def campaigns(request: Request) -> Response:
        names = await feed.campaigns()
        return _json(request, json.dumps({"campaigns": names, "version": __version__, "api": api}))

    async def data(request: Request) -> Response:
        name = await _campaign_of(request, feed)
        return name if isinstance(name, Response) else _json(request, as_text((await feed.snapshot(name)).parts))

    async def events(request: Request) -> Response:
        name = await _campaign_of(request, feed)
        if isinstance(name, Response):
            return name
        if feed.is_full:
            return problem(503, "Too many dashboards", "Too many dashboards are open: close one, or try again later.")
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        stream = _stream(feed, name, lambda: _is_refused(guard, request))
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    async def files(request: Request) -> Response:
        found = await run_in_threadpool(static_file, request.path_params["name"])
        return problem(404, "Not found", "There is no such file.") if found is None else await _sent(request, found)

    pages = [Route("/", _page("index.html"))] + ([Route("/docs", _page("docs.html"))] if api else [])
    return [
        *pages,
        Route("/dashboard/static/{name}", files),
        Route("/dashboard/campaigns", _guarded(campaigns, guard)),
        Route("/dashboard/data", _guarded(data, guard)),
        Route("/dashboard/events", _guarded(events, guard)),
    ]


def problem(status: int, title: str, detail: str) -> Response:
    """Return an error as problem details (RFC 9457)."""
    body = json.dumps({"type": "about:blank", "title": title, "status": status, "detail": detail})
    return Response(body, status, {"Cache-Control": "no-store"}, "application/problem+json")


def sentence_of(error: Exception) -> str:
    """Return what is said of an error: its message if it is about the store or the settings; others are logged."""
    if isinstance(error, LedgerError | ValueError | OSError):
        return str(error) or type(error).__name__
    LOGGER.error("the dashboard's data could not be read", exc_info=error)
    return "this is a mistake in the service; its log has it"


def _guarded(
    endpoint: Callable[[Request], Awaitable[Response]], guard: Guard | None
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        refused = None if guard is None else await guard(request)
        if refused is not None:
            return refused
        try:
            return await endpoint(request)
        except Exception as error:
            return problem(503, "The campaign cannot be read", sentence_of(error))

    return answer


async def _campaign_of(request: Request, feed: Feed) -> str | Response:
    """Return the campaign that a request asks for, or why there is none."""
    names = [each["name"] for each in await feed.campaigns()]
    if not names:
        return problem(404, "No campaign", "The store has no campaign yet.")
    wanted = request.query_params.get("campaign", names[0])
    return wanted if wanted in names else problem(404, "No such campaign", f"The store has no campaign {wanted!r}.")


async def _is_refused(guard: Guard | None, request: Request) -> bool:
    """Return whether who was let in would be sent away now: their key was revoked or has expired."""
    refused = None if guard is None else await guard(request)
    return refused is not None and refused.status_code in (401, 403)


async def _stream(feed: Feed, campaign: str, is_refused: Callable[[], Awaitable[bool]]) -> AsyncIterator[str]:
    async for changed in feed.changes(campaign):
        if await is_refused():
            return
        now = json.dumps(datetime.now(UTC).isoformat())
        if isinstance(changed, Exception):
            detail = json.dumps(sentence_of(changed))
            yield f'event: trouble\ndata: {{"now":{now},"detail":{detail}}}\n\n'
        elif changed:
            yield f'event: update\ndata: {{"now":{now},"changed":{as_text(changed)}}}\n\n'
        else:
            yield f'event: alive\ndata: {{"now":{now}}}\n\n'


def _page(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        headers = {**PAGE_HEADERS, **(OPENER_POLICY if _is_secure(request) else {})}
        return await _sent(request, await run_in_threadpool(page, name), headers)

    return answer


def _is_secure(request: Request) -> bool:
    """Return whether the browser takes the page's origin for secure: it has HTTPS, or is on the machine itself.

    Elsewhere a browser ignores an opener policy, and Chromium logs that as an error. Browsers send `Sec-Fetch-Mode` to
    secure origins only, also through a proxy that ends HTTPS.
    """
    return request.url.scheme == "https" or "sec-fetch-mode" in request.headers


async def _sent(request: Request, file: StaticFile, more: Mapping[str, str] | None = None) -> Response:
    headers = {
        "Cache-Control": "public, max-age=31536000, immutable" if file.lasting else "no-cache",
        "ETag": file.etag,
        "Vary": "Accept-Encoding",
        "X-Content-Type-Options": "nosniff",
        **(more or {}),
    }
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    body = file.body
    if _takes_gzip(request):
        body, headers["Content-Encoding"] = await run_in_threadpool(lambda: file.compressed), "gzip"
    return Response(body, headers={**headers, "Content-Type": file.content_type})


def _takes_gzip(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")


def _json(request: Request, text: str) -> Response:
    file = StaticFile(text.encode(), "application/json")
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Vary": "Accept-Encoding"}
    body = file.body
    if len(body) > SMALL and _takes_gzip(request):
        body, headers["Content-Encoding"] = file.compressed, "gzip"
    return Response(body, headers=headers, media_type=file.content_type)
