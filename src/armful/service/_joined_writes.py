"""The head and the body of an answer in one call of the system, where uvicorn's two writes would be two."""

import asyncio
from typing import Any


class JoinedWrites:
    """A transport that keeps what is written until the next turn of the loop, and writes it together.

    Parameters
    ----------
    transport : asyncio.Transport
        Does everything else.
    loop : AbstractEventLoop
        The loop that it belongs to.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
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

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts:
            self._transport.write(b"".join(parts))
