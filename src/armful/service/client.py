"""`armful.Client` and `armful.AsyncClient`: a decision service from Python."""

import time
from collections.abc import Iterable, Mapping
from typing import Any, Self, TypeVar

import httpx

from armful._signatures import explain_arguments
from armful.checks import count
from armful.service import _calls as calls
from armful.service._answers import (
    ArmsPut,
    ChosenArm,
    Decision,
    ModelAge,
    ModelCoefficient,
    RewardsAdded,
    RunnerUp,
    ServiceModel,
    ServiceStatus,
    StoredArm,
    StoredDecision,
    Unmatched,
)
from armful.service._async_client import AsyncClient
from armful.service._calls import Attempts, Call, Candidates, http_options, shown_url

__all__ = [
    "ArmsPut",
    "AsyncClient",
    "ChosenArm",
    "Client",
    "Decision",
    "ModelAge",
    "ModelCoefficient",
    "RewardsAdded",
    "RunnerUp",
    "ServiceModel",
    "ServiceStatus",
    "StoredArm",
    "StoredDecision",
    "Unmatched",
]

T = TypeVar("T")


class Client:
    """A decision service, from Python.

    What fails on the way is sent again, with growing pauses: connections that break, and the statuses 429, 502, 503 and
    504. That is safe. Every decision has a key, by which the service recognises it, and a reward that comes again
    changes nothing. Threads may share a client.

    Parameters
    ----------
    url : str
        The address of the service, like http://127.0.0.1:8000.
    key : str, optional
        A key that `armful key create` has printed.
    timeout : float
        How many seconds to wait for an answer.
    attempts : int
        Send a request at most so many times. While a service starts again nobody answers: the pauses between 5 attempts
        are 0.75 to 1.5 seconds together, between 9 attempts 11 to 23.
    transport : httpx.BaseTransport, optional
        How requests are sent: for tests, or `httpx.HTTPTransport(verify=...)` with an `ssl.SSLContext` that knows
        your own certificate authority.

    Examples
    --------
    Here the service is a function that answers; give `url` alone for a real one.

    >>> import httpx
    >>> def answer(request):
    ...     if request.url.path == "/v1/decisions":
    ...         return httpx.Response(200, json={"decision_id": "17", "chosen": [{"id": "b", "position": 1}]})
    ...     return httpx.Response(200, json={"new": 1, "repeated": 0, "corrected": 0})
    >>> with Client("http://127.0.0.1:8000", transport=httpx.MockTransport(answer)) as client:
    ...     decision = client.decide({"a": {"price": 3.5}, "b": {"price": 2.0}}, k=1, unit="user-17")
    ...     recorded = client.reward(decision, {"b": 1.0})
    >>> decision.ids, recorded.new
    (['b'], 1)
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout: float = 10.0,
        attempts: int = 5,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._http = httpx.Client(**http_options(url, key, timeout), transport=transport)
        self._url, self._most = shown_url(url), count("attempts", attempts)

    def _send(self, call: Call[T]) -> T:
        attempts = Attempts(self._url, self._most)
        while True:
            outcome: httpx.Response | httpx.TransportError
            try:
                outcome = self._http.request(call.method, call.path, content=call.body)
            except httpx.TransportError as error:
                outcome = error
            pause = attempts.pause_after(outcome)
            if pause is None and isinstance(outcome, httpx.Response):
                return call.read(outcome.content)
            time.sleep(pause or 0.0)

    def decide(
        self,
        candidates: Candidates | None = None,
        k: int | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        unit: str | None = None,
        key: str | None = None,
        constraint: Mapping[str, Any] | None = None,
    ) -> Decision:
        """Let the service choose.

        Parameters
        ----------
        candidates : mapping or iterable, optional
            A mapping of ids to columns (a mapping) or ready features (numbers), or ids of registered arms. All
            registered arms if left out.
        k : int, optional
            How many to choose, if it differs from the settings of the campaign.
        context : mapping, optional
            Columns that all candidates share, like the hour or the device.
        unit : str, optional
            Whom the decision is for. A unit that is in the holdout stays in it.
        key : str, optional
            The same key again gives the same decision. A random one if left out.
        constraint : mapping, optional
            What is allowed, if it differs from the settings: quotas, exclude, require.

        Returns
        -------
        Decision

        Raises
        ------
        ServiceError
            If the service refuses, or does not answer.
        """
        return self._send(calls.decide(candidates, k, context, unit, key, constraint))

    def reward(self, decision: Decision | str | int, rewards: Mapping[str, float]) -> RewardsAdded:
        """Record rewards of one decision: some or all of its arms, late, repeated or corrected.

        Parameters
        ----------
        decision : Decision, str or int
            The decision, or its id.
        rewards : mapping
            The reward of each arm.

        Returns
        -------
        RewardsAdded

        Raises
        ------
        ServiceError
            If the decision is not known or an arm was not chosen; nothing is recorded then.
        """
        return self._send(calls.reward(decision, rewards))

    def rewards(self, rewards: Iterable[tuple[Decision | str | int, str, float]]) -> RewardsAdded:
        """Record rewards of many decisions; those that belong to none are listed in the answer.

        Parameters
        ----------
        rewards : iterable of tuple
            The decision or its id, the arm, and its reward.

        Returns
        -------
        RewardsAdded
        """
        return self._send(calls.rewards(rewards))

    def put_arms(self, arms: Candidates = (), *, withdraw: Iterable[str] = ()) -> ArmsPut:
        """Register arms, so that a request for a decision need only name them, and withdraw others.

        Parameters
        ----------
        arms : mapping
            Ids with their columns or features; none, to withdraw only.
        withdraw : iterable of str
            Ids that are chosen no longer.

        Returns
        -------
        ArmsPut
        """
        return self._send(calls.put_arms(arms, withdraw))

    def decision(self, decision: Decision | str | int) -> StoredDecision:
        """Return a stored decision with why each arm was chosen, and its rewards so far."""
        return self._send(calls.decision(decision))

    def status(self) -> ServiceStatus:
        """Return where the campaign stands."""
        return self._send(calls.status())

    def model(self) -> ServiceModel:
        """Return the model: its version, coefficients and widths."""
        return self._send(calls.model())

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url!r})"


explain_arguments(Client)
explain_arguments(AsyncClient)
