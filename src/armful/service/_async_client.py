"""`armful.AsyncClient`: a decision service from Python with `asyncio`."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Self, TypeVar

import httpx

from armful.checks import count
from armful.service import _calls as calls
from armful.service._answers import ArmsPut, Decision, RewardsAdded, ServiceModel, ServiceStatus, StoredDecision
from armful.service._calls import Attempts, Call, Candidates, http_options, shown_url

T = TypeVar("T")


class AsyncClient:
    r"""A decision service, from Python with `asyncio`; as `Client`, whose methods say more.

    Parameters
    ----------
    url : str
        The address of the service, like http://127.0.0.1:8000.
    key : str, optional
        A key that `armful key create` has printed.
    timeout : float
        How many seconds to wait for an answer.
    attempts : int
        Send a request at most so many times.
    transport : httpx.AsyncBaseTransport, optional
        How requests are sent: for tests, or `httpx.AsyncHTTPTransport(verify=...)` with an `ssl.SSLContext`.

    Examples
    --------
    Here the service is in the same process, as in tests of your own; give `url` alone for one that `armful serve` runs.

    >>> import asyncio, httpx, tempfile
    >>> from pathlib import Path
    >>> from armful.service.app import create_app
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "campaign.toml").write_text(
    ...     'name = "autumn"\nid = "id"\nchoose.k = 1\nholdout.share = 0\npolicy.cap = 1\n'
    ...     'outcomes.reward = "clicked"\nfeatures.ready = 2'
    ... )
    >>> async def one_decision(app):
    ...     async with app.router.lifespan_context(app):
    ...         inside = httpx.ASGITransport(app)
    ...         async with AsyncClient("http://127.0.0.1:8000", transport=inside) as client:
    ...             decision = await client.decide({"a": [0.1, 0.3], "b": [0.2, 0.1]}, unit="user-17")
    ...             return decision.decision_id, await client.reward(decision, {decision.ids[0]: 1.0})
    >>> asyncio.run(one_decision(create_app(str(folder))))
    ('1', RewardsAdded(new=1, repeated=0, corrected=0, unmatched=[]))
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout: float = 10.0,
        attempts: int = 5,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._http = httpx.AsyncClient(**http_options(url, key, timeout), transport=transport)
        self._url, self._most = shown_url(url), count("attempts", attempts)

    async def _send(self, call: Call[T]) -> T:
        attempts = Attempts(self._url, self._most)
        while True:
            outcome: httpx.Response | httpx.TransportError
            try:
                outcome = await self._http.request(call.method, call.path, content=call.body)
            except httpx.TransportError as error:
                outcome = error
            pause = attempts.pause_after(outcome)
            if pause is None and isinstance(outcome, httpx.Response):
                return call.read(outcome.content)
            await asyncio.sleep(pause or 0.0)

    async def decide(
        self,
        candidates: Candidates | None = None,
        k: int | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        unit: str | None = None,
        key: str | None = None,
        constraint: Mapping[str, Any] | None = None,
    ) -> Decision:
        """Let the service choose; see `Client.decide`."""
        return await self._send(calls.decide(candidates, k, context, unit, key, constraint))

    async def reward(self, decision: Decision | str | int, rewards: Mapping[str, float]) -> RewardsAdded:
        """Record rewards of one decision; see `Client.reward`."""
        return await self._send(calls.reward(decision, rewards))

    async def rewards(self, rewards: Iterable[tuple[Decision | str | int, str, float]]) -> RewardsAdded:
        """Record rewards of many decisions; see `Client.rewards`."""
        return await self._send(calls.rewards(rewards))

    async def put_arms(self, arms: Candidates = (), *, withdraw: Iterable[str] = ()) -> ArmsPut:
        """Register and withdraw arms; see `Client.put_arms`."""
        return await self._send(calls.put_arms(arms, withdraw))

    async def decision(self, decision: Decision | str | int) -> StoredDecision:
        """Return a stored decision with why each arm was chosen, and its rewards so far."""
        return await self._send(calls.decision(decision))

    async def status(self) -> ServiceStatus:
        """Return where the campaign stands."""
        return await self._send(calls.status())

    async def model(self) -> ServiceModel:
        """Return the model: its version, coefficients and widths."""
        return await self._send(calls.model())

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url!r})"
