"""From ASGI to handlers and back: request ids, access, problems, metrics, logs."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from random import getrandbits
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from armful.service._limits import ClientGoneError, check_content, read_body
from armful.service._logging import LOGGER, log_request
from armful.service._problems import PROBLEM_JSON, RETRY, ProblemError
from armful.service.keys import Role

if TYPE_CHECKING:
    from armful.service._worker import Worker

JSON = b"application/json"
LONGEST_LOGGED = 200
"""Characters of a path that are logged."""
PYTHON_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
"""What JSON and the OpenAPI document call them."""
PYTHON_TYPE = re.compile(rf"\b({'|'.join(PYTHON_TYPES)})\b")
REQUEST_ID = re.compile(rb"(?!.*armful_)[A-Za-z0-9._:-]{1,128}")
"""An id that holds a key is not taken, since it is logged."""
KEY_IN_PATH = re.compile(r"armful_[^/]*")
Body = TypeVar("Body")
Headers = dict[bytes, bytes]


@dataclass(slots=True)
class Answer:
    """The body of an answer and what its header says."""

    body: bytes
    status: int = 200
    content_type: bytes = JSON
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Call:
    """One request, as handlers see it.

    Attributes
    ----------
    worker : Worker
        What this process has: the ledger, the model, the queue of writes.
    headers : dict of bytes to bytes
    scope : mapping
        The request, as ASGI gives it.
    receive : callable
        As ASGI gives it.
    """

    worker: "Worker"
    headers: Headers
    scope: Scope
    receive: Receive

    @property
    def params(self) -> Mapping[str, Any]:
        """The parts of the path."""
        params: Mapping[str, Any] = self.scope.get("path_params", {})
        return params

    async def body(self) -> bytes:
        """Return the body, within the limits."""
        check_content(self.headers)
        limits = self.worker.limits
        return await read_body(
            self.receive, self.headers, largest=limits.largest_body, seconds=limits.timeout.total_seconds()
        )


def decoded(decoder: msgspec.json.Decoder[Body], body: bytes) -> Body:
    """Return what a body says; raise a problem that names the field where it is not as expected."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise ProblemError(422, _sentence(str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProblemError(400, f"the body must be JSON in UTF-8: {str(error)[:200]}") from None
    except RecursionError:
        raise ProblemError(422, "the body must not be nested so deeply") from None


def _sentence(message: str) -> str:
    """Return what msgspec says of a body, with the field in front."""
    what, _, where = message.partition(" - at `$")
    field_name = where.rstrip("`").lstrip(".")
    if " matching regex " in what:  # the one pattern of requests
        what = "must not hold the character NUL"
    elif what.startswith("Expected "):  # others quote what the request has
        what = PYTHON_TYPE.sub(lambda found: PYTHON_TYPES[found[0]], what)
    what = f"{what[:1].lower()}{what[1:]}"[:300]
    return f"{field_name[:200]}: {what}" if field_name else f"the body: {what}"


Handler = Callable[[Call], Awaitable[Answer]]


class Endpoint:
    """An ASGI application of one route: who may call it, and what answers.

    Parameters
    ----------
    handler : callable
        Takes a `Call` and returns an `Answer`, or raises `ProblemError`.
    role : str, optional
        The role that the caller's key must have; None if everybody may call.
    local : bool
        Whether a request from this machine needs no key, also where the campaign has keys.
    """

    def __init__(self, handler: Handler, *, role: Role | None, local: bool = False) -> None:
        self._handler, self._role, self._local = handler, role, local
        self.name = handler.__name__

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        scope["armful.route"] = self.name
        worker: Worker = scope["app"].state.worker
        headers = scope.get("armful.headers") or dict(scope["headers"])
        try:
            if self._role is not None:
                caller = await worker.access.caller(scope, headers, self._role, local=self._local)
                worker.rate_limit.take(caller)
                scope["armful.caller"] = caller
            answer = await self._handler(Call(worker, headers, scope, receive))
        except ProblemError as problem:
            answer = problem_answer(problem, scope["armful.request"])
        await send_answer(answer, scope, send)


def problem_answer(problem: ProblemError, request_id: str) -> Answer:
    """Return a problem as an answer."""
    return Answer(problem.body(request_id), problem.status, PROBLEM_JSON, problem.headers)


async def send_answer(answer: Answer, scope: Scope, send: Send) -> None:
    """Send an answer with the id of its request, and note its status."""
    scope["armful.status"] = answer.status
    headers = [
        (b"content-type", answer.content_type),
        (b"content-length", str(len(answer.body)).encode()),
        (b"x-request-id", scope["armful.request"].encode()),
    ]
    if answer.headers:
        headers += [(name.encode(), value.encode()) for name, value in answer.headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


async def starlette_problem(request: Request, error: Exception) -> Response:
    """Return an error of the router, such as an unknown path, as problem details."""
    status, details = (error.status_code, error.headers) if isinstance(error, HTTPException) else (500, None)
    path, method = request.url.path[:200], request.method[:20]
    sentences = {
        404: f"there is nothing at {path}; /openapi.json lists what there is",
        405: f"{method} is not for {path}; use {(details or {}).get('Allow', 'another method')}",
    }
    problem = ProblemError(status, sentences.get(status, str(getattr(error, "detail", "the request failed"))))
    answer = problem_answer(problem, request.scope["armful.request"])
    return Response(answer.body, status, details, media_type=PROBLEM_JSON.decode())


class Requests:
    """ASGI middleware around everything: gives each request its id, counts and logs it, and lets no error through.

    Parameters
    ----------
    app : ASGI application
        Answers all requests but those of `direct`.
    access_log : bool
        Whether each request is logged.
    direct : mapping of (method, path) to ASGI application
        Endpoints without parameters that are asked for most: the router is not needed to find them.
    """

    def __init__(self, app: ASGIApp, *, access_log: bool, direct: Mapping[tuple[str, str], ASGIApp]) -> None:
        self._app, self._log, self._direct = app, access_log, direct

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin = time.perf_counter()
        headers = scope["armful.headers"] = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"")
        request_id = given if given and REQUEST_ID.fullmatch(given) else b"%016x" % getrandbits(64)
        scope["armful.request"] = request_id.decode()

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start" and "armful.status" not in scope:
                scope["armful.status"] = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id)]
            await send(message)

        try:
            direct = self._direct.get((scope["method"], scope["path"]))
            if direct is not None:
                await direct(scope, receive, send)
            else:
                await self._app(scope, receive, send_with_id)
        except ClientGoneError:
            scope["armful.status"] = 499  # nobody is there to be answered
        except asyncio.CancelledError:
            if "armful.status" not in scope:
                problem = ProblemError(503, "the service is ending: send the request again, with the same key", RETRY)
                await send_answer(problem_answer(problem, scope["armful.request"]), scope, send)
            raise
        except Exception:
            LOGGER.exception("a request failed", extra={"fields": {"request_id": request_id.decode()}})
            scope["app"].state.worker.metrics.errors.labels(scope.get("armful.route", "other")).inc()
            if "armful.status" not in scope:
                problem = ProblemError(500, "this is a mistake in the service; its log has it under the request's id")
                await send_answer(problem_answer(problem, scope["armful.request"]), scope, send)
            scope["armful.status"] = 500
        finally:
            self._note(scope, time.perf_counter() - begin)

    def _note(self, scope: Scope, seconds: float) -> None:
        route, status = scope.get("armful.route", "other"), scope.get("armful.status", 0)
        scope["app"].state.worker.metrics.answered(route, status, seconds)
        if self._log:
            client = scope.get("client")
            log_request(
                {
                    "request_id": scope["armful.request"],
                    "method": scope["method"],
                    "path": KEY_IN_PATH.sub("armful_...", scope["path"])[:LONGEST_LOGGED],
                    "status": status,
                    "ms": round(seconds * 1000, 3),
                    "caller": scope.get("armful.caller"),
                    "client": client[0] if client else None,
                }
            )
