"""What the dashboard shows, read in a thread, kept for all who look, and sent as it changes."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from armful.service.dashboard.data import Source

T = TypeVar("T")
Parts = Mapping[str, str]


@dataclass(frozen=True)
class Snapshot:
    """What is shown of a campaign: the JSON text of each part, and the stamp of the source when it was read."""

    stamp: Hashable
    parts: Parts

    def changes_since(self, before: "Snapshot | None") -> Parts:
        """Return the parts that differ from an earlier snapshot."""
        if before is None:
            return self.parts
        return {name: text for name, text in self.parts.items() if before.parts.get(name) != text}


@dataclass
class _Watched:
    """A campaign that somebody looks at."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    snapshot: Snapshot | None = None
    read_at: float = -float("inf")


def as_text(parts: Parts) -> str:
    """Return parts as one JSON object.

    Examples
    --------
    >>> as_text({"decisions": "3", "notes": "[]"})
    '{"decisions":3,"notes":[]}'
    """
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in parts.items()) + "}"


class Feed:
    """The data of a source for any number of readers: read once for all of them, off the event loop.

    Parameters
    ----------
    source : Source
        Where the data come from. Its methods are called in one thread, one after the other.
    every : float, default 2.0
        Seconds between two looks at the source while somebody watches; nothing is read when nobody does.
    most_streams : int, default 64
        Streams of events that may be open at once.
    """

    def __init__(self, source: Source, *, every: float = 2.0, most_streams: int = 64) -> None:
        self.source, self.every, self.most_streams = source, every, most_streams
        self._watched: dict[str, _Watched] = {}
        self._names: tuple[float, list[dict[str, str]]] = (-float("inf"), [])
        self._names_lock = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="armful-dashboard")
        self._closed = threading.Event()
        self._closing: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}

    async def campaigns(self) -> list[dict[str, str]]:
        """Return the name and the kind of each campaign."""
        async with self._names_lock:
            read_at, names = self._names
            if time.monotonic() - read_at >= self.every:
                names = await self._read(self.source.campaigns)
                self._names = (time.monotonic(), names)
        return names

    async def snapshot(self, campaign: str) -> Snapshot:
        """Return what is shown of a campaign, no older than `every` seconds.

        Raises
        ------
        KeyError
            If there is no such campaign.
        """
        if campaign not in {each["name"] for each in await self.campaigns()}:
            raise KeyError(campaign)
        watched = self._watched.setdefault(campaign, _Watched())
        async with watched.lock:
            if watched.snapshot is None or time.monotonic() - watched.read_at >= self.every:
                before = watched.snapshot
                watched.snapshot = await self._read(lambda: self._newest(campaign, before))
                watched.read_at = time.monotonic()
            return watched.snapshot

    async def changes(self, campaign: str) -> AsyncIterator[Parts | Exception]:
        """Yield all parts of a campaign, then every so often the parts that changed, which may be none.

        An error of the source is yielded; reading goes on after it.
        """
        before: Snapshot | None = None
        closing = asyncio.Event()
        self._closing[closing] = asyncio.get_running_loop()
        try:
            while not self._closed.is_set():
                try:
                    after = await self.snapshot(campaign)
                    changed: Parts | Exception = after.changes_since(before)
                    before = after
                except Exception as error:  # whatever the source raises, the stream goes on
                    if self._closed.is_set():
                        return
                    changed = error
                yield changed
                try:
                    await asyncio.wait_for(closing.wait(), self.every)
                except TimeoutError:
                    continue
        finally:
            del self._closing[closing]

    @property
    def is_full(self) -> bool:
        """Whether no further stream may be opened."""
        return self._closed.is_set() or len(self._closing) >= self.most_streams

    def close(self) -> None:
        """End all streams, from any thread; a server calls it before it waits for open requests."""
        self._closed.set()
        for closing, loop in list(self._closing.items()):
            loop.call_soon_threadsafe(closing.set)
        self._thread.shutdown(wait=False)

    async def _read(self, read: Callable[[], T]) -> T:
        try:
            reading = self._thread.submit(read)
        except RuntimeError:
            raise OSError("the service is ending: ask again when it is back") from None
        return await asyncio.wrap_future(reading)

    def _newest(self, campaign: str, before: Snapshot | None) -> Snapshot:
        stamp = self.source.stamp(campaign)
        if before is not None and before.stamp == stamp:
            return before
        data: Mapping[str, Any] = self.source.data(campaign)
        texts = {
            name: json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            for name, value in data.items()
        }
        return Snapshot(stamp, texts)
