"""What one worker process has: the ledger, the model, the queue of writes, and who may do what."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any, TypeVar

from armful.campaigns import Campaign
from armful.campaigns.settings import ServiceSettings
from armful.errors import LedgerError
from armful.ledger import Decided, GroupCommit, NewDecision, NewRewards, RewardsAdded
from armful.service._access import Access
from armful.service._candidates import CandidateReader
from armful.service._deciding import Decider
from armful.service._limits import RateLimit
from armful.service._logging import LOGGER
from armful.service._metrics import Metrics
from armful.service._openapi import document
from armful.service._problems import RETRY, ProblemError, store_failed
from armful.service._shared_reads import SharedReads
from armful.service._snapshot import ModelHolder
from armful.service.options import ServeOptions

Result = TypeVar("Result")
READY_SECONDS = 1.0
"""For which `/readyz`, that anybody may ask for, answers from one read of the store."""
COMPUTING_THREADS = 2
MOST_COMPUTING = 64
"""Slow computations that may be under way or waiting."""


class Worker:
    """Everything that requests are answered from; made when the application starts, closed when it stops.

    Parameters
    ----------
    campaign : Campaign
        Opened; it is closed with the worker.
    options : ServeOptions
        How it is served.
    loop : AbstractEventLoop
        The loop that answers requests.
    """

    def __init__(self, campaign: Campaign, options: ServeOptions, loop: asyncio.AbstractEventLoop) -> None:
        self.settings, self.ledger, self.options = campaign.settings, campaign.ledger, options
        self.limits = campaign.settings.service or ServiceSettings()
        self.now: Callable[[], datetime] = options.now or (lambda: datetime.now(UTC))
        self.metrics = Metrics()
        self.access = Access(
            self.ledger, self.now, lambda query, *given: with_ledger(self.read(query, *given)), self.limits.rate
        )
        self.readiness = SharedReads[bool](READY_SECONDS, 1)
        self.checked = SharedReads[float | None](0.0, 1)  # those that wait at the same time share one
        self.rate_limit = RateLimit(self.limits.rate)
        self.candidates = CandidateReader(campaign, self.limits)
        self.models = ModelHolder(self.ledger, self.settings, self.candidates.n_features)
        self.decider = Decider(self.settings, self.limits, self.models, self.now)
        self._campaign, self._loop = campaign, loop
        self._seconds = self.limits.timeout.total_seconds()
        self._outbox: list[tuple[NewDecision | NewRewards, Callable[[Any], None]]] = []
        self._waiting: dict[asyncio.Future[Any], float] = {}
        self._computing = ThreadPoolExecutor(COMPUTING_THREADS, "armful-computing")
        self._computations: set[Future[Any]] = set()
        self._commit = GroupCommit(self.ledger, deliver=self._deliver)
        self._note_model()

    @cached_property
    def openapi(self) -> bytes:
        """The OpenAPI document, with an example that the campaign answers: it names columns and values."""
        return document(self.settings.name, self.candidates.example())

    @cached_property
    def public_openapi(self) -> bytes:
        """The OpenAPI document for anybody, whose example says nothing of the campaign."""
        return document(self.settings.name)

    # -- writing -------------------------------------------------------------------------------------

    def store_decision(self, decision: NewDecision) -> Awaitable[Decided]:
        """Write a decision; to be awaited until it is durable."""
        return self._written(decision)

    def store_rewards(self, rewards: NewRewards) -> Awaitable[RewardsAdded]:
        """Write rewards; to be awaited until they are durable. A strict request may be refused by a `LedgerError`."""
        return self._written(rewards)

    async def _written(self, request: NewDecision | NewRewards) -> Any:
        """Return what became of a request to write; all that come in one turn of the loop are handed over together."""
        future: asyncio.Future[Any] = self._loop.create_future()
        if not self._outbox:
            self._loop.call_soon(self._hand_over)
        self._outbox.append((request, partial(_settle, future)))
        self._waiting[future] = self._loop.time() + self._seconds
        try:
            result = await future
        finally:
            del self._waiting[future]
        if isinstance(result, Exception):
            raise result
        return result

    def _hand_over(self) -> None:
        outbox, self._outbox = self._outbox, []
        for _, settle in outbox[self._commit.put(outbox) :]:
            settle(ProblemError(503, str(self._commit.refusal()), RETRY))

    def _deliver(self, pairs: list[tuple[Callable[[Any], None], Any]]) -> None:
        """Pass the answers of one transaction to the loop; called by the thread that writes."""
        self.metrics.batch.observe(len(pairs))
        self._loop.call_soon_threadsafe(self._settle_all, pairs)

    def _settle_all(self, pairs: list[tuple[Callable[[Any], None], Any]]) -> None:
        for done, result in pairs:
            done(result)

    def _give_up(self) -> None:
        """Answer those who have waited for the store for too long."""
        now = self._loop.time()
        for future, deadline in list(self._waiting.items()):
            if deadline > now:
                break  # the others came later
            sentence = "the store did not answer in time: send the request again, with the same key"
            _settle(future, ProblemError(503, sentence, RETRY))

    # -- reading -------------------------------------------------------------------------------------

    async def read(self, query: Callable[..., Result], *arguments: Any) -> Result:
        """Return what a method of the ledger returns, called in a thread; raise a problem if it takes too long."""
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.to_thread(query, *arguments)
        except TimeoutError:
            raise ProblemError(503, "the store did not answer in time: try again later", RETRY) from None

    # -- computing -----------------------------------------------------------------------------------

    async def compute(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Return what slow work returns, in threads of its own: those that read the store are left alone.

        Work that takes too long is a problem. It counts until it ends, since nothing stops its thread.
        """
        self._computations = {each for each in self._computations if not each.done()}
        if len(self._computations) >= MOST_COMPUTING:
            raise ProblemError(503, f"{MOST_COMPUTING} large requests are waiting already: try again later", RETRY)
        computation = self._computing.submit(work, *arguments)
        self._computations.add(computation)
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.wrap_future(computation, loop=self._loop)
        except TimeoutError:  # ours, or that of a solver which found no set
            sentence = f"no set was found in time (service.timeout is {self._seconds:g} seconds): try again later, or"
            raise ProblemError(503, f"{sentence} with fewer candidates or simpler quotas", RETRY) from None

    # -- what changes --------------------------------------------------------------------------------

    async def watch(self) -> None:
        """Answer those who have waited for the store for too long, and refresh the metrics, until cancelled."""
        while True:
            await asyncio.sleep(min(1.0, self._seconds / 4))
            self._give_up()
            self.refresh_metrics()

    def refresh_metrics(self) -> None:
        """Bring gauges up to date: when they are asked for, and regularly, as another worker may be the one asked."""
        self.metrics.refresh(len(self._waiting), self.candidates.n_registered)

    async def poll(self) -> None:
        """Take newer models and registered arms as they come, until cancelled."""
        seconds = self.options.poll_every.total_seconds()
        while True:
            await asyncio.sleep(seconds)
            await self._polled("model", self._refresh_model)
            await self._polled("registered arms", self.candidates.refresh)
            await self._polled("files of ids", self.candidates.refresh_files)

    async def _polled(self, what: str, refresh: Callable[[], Any]) -> None:
        try:
            await asyncio.to_thread(refresh)
        except LedgerError as error:
            LOGGER.warning("the %s could not be read: %s", what, error)
        except Exception:
            LOGGER.exception("the %s could not be read", what)

    def _refresh_model(self) -> None:
        if self.models.refresh():
            self._note_model()
            LOGGER.info("model swapped", extra={"fields": {"version": self.models.current.version}})

    def _note_model(self) -> None:
        model = self.models.current
        self.metrics.model(model.version, None if model.made_at is None else model.made_at.timestamp())

    def close(self) -> None:
        """Write all that is waiting, then close the store."""
        self._computing.shutdown(wait=False, cancel_futures=True)
        self._commit.close()
        self._campaign.close()


def _settle(future: "asyncio.Future[Any]", result: Any) -> None:
    if not future.done():  # else nobody waits any more
        future.set_result(result)


async def with_ledger(work: Awaitable[Result]) -> Result:
    """Return what the work returns; a store that fails is a problem of status 503."""
    try:
        return await work
    except LedgerError as error:
        raise store_failed(error) from None
