"""The head and the body of an answer in one call of the system, where uvicorn's two writes would be two."""

import asyncio
from collections.abc import Callable
from typing import Any


class JoinedWrites:
    """A transport that keeps what is written until the next turn of the loop, and writes it together.

    Parameters
    ----------
    transport : asyncio.Transport
        Does everything else.
    loop : AbstractEventLoop
        The loop that it belongs to.
    when_closed : callable
        Called after each `close`: what was written may still be on its way.
    """

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, when_closed: Callable[[], None]
    ) -> None:
        self._transport, self._loop, self._when_closed = transport, loop, when_closed
        self._parts: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write in the next turn of the loop."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        """Write what is waiting, then close."""
        self._flush()
        self._transport.close()
        self._when_closed()

    def write_eof(self) -> None:
        """Write what is waiting, and no more after it; what comes is still read."""
        self._flush()
        self._transport.write_eof()

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():  # it may have been aborted since they were written
            self._transport.write(parts[0] if len(parts) == 1 else b"".join(parts))
