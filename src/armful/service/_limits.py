"""Limits on requests: their bodies, and how many come."""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from armful.service._problems import ProblemError

Receive = Callable[[], Awaitable[Any]]

DISCARDED = 16 * 2**20
"""So many bytes of a body that is too large are read and dropped, so that most clients see the answer."""


class ClientGoneError(Exception):
    """The client closed the connection before its request was complete."""


def check_content(headers: Mapping[bytes, bytes]) -> None:
    """Raise a problem unless the header announces JSON in UTF-8 that is not compressed."""
    if headers.get(b"content-type") == b"application/json" and b"content-encoding" not in headers:
        return
    kind, *parameters = headers.get(b"content-type", b"").decode("latin-1").lower().split(";")
    if kind.strip() != "application/json":
        came = f"got {kind.strip()[:80]!r}" if kind else "got none"
        raise ProblemError(415, f"the header Content-Type must be application/json, {came}")
    for parameter in parameters:
        name, _, value = parameter.strip().partition("=")
        if name == "charset" and value.strip('"') not in ("utf-8", "utf8", "us-ascii"):
            raise ProblemError(415, f"the body must be UTF-8, got the charset {value[:40]!r}")
    encoding = headers.get(b"content-encoding", b"identity").decode("latin-1")
    if encoding.lower() != "identity":
        raise ProblemError(415, f"the body must not be compressed, got the Content-Encoding {encoding[:40]!r}")


async def read_body(receive: Receive, headers: Mapping[bytes, bytes], *, largest: int, seconds: float) -> bytes:
    """Return the body of a request; raise a problem if it is too large or comes too slowly.

    Parameters
    ----------
    receive : callable
        As ASGI gives it.
    headers : mapping of bytes to bytes
        The header of the request.
    largest : int
        The largest body, in bytes; no more is kept in memory.
    seconds : float
        How long the whole body may take.
    """
    length = headers.get(b"content-length", b"")
    keep = 0 if length.isdigit() and int(length) > largest else largest
    if _is_there(receive):
        return await _read_parts(receive, keep, largest)
    try:
        async with asyncio.timeout(seconds):
            return await _read_parts(receive, keep, largest)
    except TimeoutError:
        raise ProblemError(
            408, f"the body must come within {seconds:g} seconds, and it did not", {"connection": "close"}
        ) from None


def _is_there(receive: Receive) -> bool:
    """Return whether the whole body has come already, as nearly always: then no timer is needed.

    `receive` is a method of what uvicorn keeps of a request; of another server's request nothing is known.
    """
    return getattr(getattr(receive, "__self__", None), "more_body", True) is False


async def _read_parts(receive: Receive, keep: int, largest: int) -> bytes:
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        part = message.get("body", b"")
        size += len(part)
        if size <= keep:
            parts.append(part)
        else:
            parts.clear()
        if not message.get("more_body") or size > keep + DISCARDED:
            break
    if size > keep:
        raise ProblemError(
            413,
            f"the body may have at most {largest} bytes, and has more (service.largest_body in the settings)",
            {"connection": "close"},
        )
    return b"".join(parts)


class RateLimit:
    """A token bucket for each caller: `rate` requests a second, and as many at once as come in one second.

    Parameters
    ----------
    rate : float
        Requests per second of one caller in this process; 0 for no limit.
    clock : callable
        Returns seconds that only grow.
    whose : str
        Who a caller is, for messages.
    """

    MOST = 10_000
    """Callers that are remembered; the one that came least recently is dropped first."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic, *, whose: str = "key") -> None:
        self._rate, self._clock, self._whose = rate, clock, whose
        self._size = max(1.0, rate)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> None:
        """Count a request; raise a problem if the caller has to wait."""
        if not self._rate:
            return
        now = self._clock()
        tokens, before = self._buckets.pop(caller, (self._size, now))
        tokens = min(self._size, tokens + (now - before) * self._rate)
        allowed = tokens >= 1
        self._buckets[caller] = (tokens - 1 if allowed else tokens, now)
        if len(self._buckets) > self.MOST:
            self._buckets.popitem(last=False)
        if not allowed:
            seconds = (1 - tokens) / self._rate
            sentence = f"at most {self._rate:g} requests a second are answered for one {self._whose}"
            retry = {"retry-after": str(max(1, math.ceil(seconds)))}
            raise ProblemError(429, f"{sentence}: wait {seconds:.2g} seconds", retry)

    def give_back(self, caller: str) -> None:
        """Count a request no longer."""
        if caller in self._buckets:
            tokens, before = self._buckets[caller]
            self._buckets[caller] = (tokens + 1, before)
