"""The requests of a client and their answers: everything but sending them, which `client.py` does in two ways."""

import json
import math
import random
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from armful import __version__
from armful.checks import positive
from armful.errors import ServiceError
from armful.service._answers import ArmsPut, Decision, RewardsAdded, ServiceModel, ServiceStatus, StoredDecision

T = TypeVar("T")
Candidates = Mapping[str, Mapping[str, Any] | Sequence[float]] | Iterable[str | Mapping[str, Any]]
PASSING = frozenset({429, 502, 503, 504})
"""Statuses after which the same request may do better."""
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 10.0


def http_options(url: str, key: str | None, timeout: float) -> dict[str, Any]:
    """Return the options of an HTTP client: no redirects and no proxies of the environment, so that no key leaks."""
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"url is the address of a service, like http://127.0.0.1:8000, got {url!r}")
    if key is not None and not (key.isascii() and key.isprintable() and key and " " not in key):
        raise ValueError(
            "key is what `armful key create` printed, in one line without spaces; leave it out without keys"
        )
    seconds = positive("timeout", timeout, "it is the seconds to wait for an answer")
    headers = {"user-agent": f"armful/{__version__}", "content-type": "application/json"}
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    return {"base_url": url, "headers": headers, "timeout": seconds, "trust_env": False}


def shown_url(url: str) -> str:
    """Return an address without the name and the password that it may hold, to be shown."""
    return re.sub("//[^/@]*@", "//", url)


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request, which may be sent more than once: the service recognises it."""

    method: str
    path: str
    read: Callable[[bytes], T]
    body: bytes | None = None


def new_key() -> str:
    """Return an idempotency key that no other request has.

    It begins with the time, in milliseconds: keys that are made one after another then stand beside each other in the
    index of the store, where random ones would change a page of the disk each.
    """
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"


def decide(
    candidates: Candidates | None,
    k: int | None,
    context: Mapping[str, Any] | None,
    unit: str | None,
    key: str | None,
    constraint: Mapping[str, Any] | None,
) -> Call[Decision]:
    """Return the request for a decision; without a key it gets one of its own, so that it can be sent again."""
    if constraint is not None and not hasattr(constraint, "keys"):
        raise ValueError(f"constraint is a mapping like {{'k': 3, 'exclude': ['film-9']}}, got {constraint!r}")
    rules = dict(constraint or {})
    if k is not None and rules.setdefault("k", k) != k:
        raise ValueError(f"k is {k}, and that of constraint is {rules['k']}: give one of them")
    given = {
        "candidates": None if candidates is None else _arms(candidates),
        "context": context,
        "constraint": rules or None,
        "unit": unit,
        "key": new_key() if key is None else key,
    }
    body = {name: value for name, value in given.items() if value is not None}
    return Call("POST", "/v1/decisions", _DECISION, _json(body))


def reward(decision: Decision | str | int, rewards: Mapping[str, float]) -> Call[RewardsAdded]:
    """Return the request that records rewards of one decision."""
    if not hasattr(rewards, "items"):
        raise ValueError(f"rewards is a mapping of ids to numbers, like {{'film-2': 1.0}}, got {rewards!r}")
    rows = [{"id": _arm_id(arm), "reward": value} for arm, value in rewards.items()]
    return Call("POST", f"/v1/decisions/{_number(decision)}/rewards", _REWARDS, _json({"rewards": rows}))


def rewards(rows: Iterable[tuple[Decision | str | int, str, float]]) -> Call[RewardsAdded]:
    """Return the request that records rewards of many decisions."""
    try:
        body = [{"decision_id": _id(decision), "id": arm, "reward": value} for decision, arm, value in rows]
    except (TypeError, ValueError):
        raise ValueError("rewards are tuples of a decision, an id and a number, like (17, 'film-2', 1.0)") from None
    for row in body:
        _arm_id(row["id"])
    return Call("POST", "/v1/rewards", _REWARDS, _json({"rewards": body}))


def put_arms(arms: Candidates, withdraw: Iterable[str]) -> Call[ArmsPut]:
    """Return the request that registers and withdraws arms."""
    if isinstance(withdraw, str):
        raise ValueError(f"withdraw is a list of ids, got the text {withdraw!r}")
    return Call("PUT", "/v1/arms", _ARMS, _json({"arms": _arms(arms), "withdraw": list(map(_arm_id, withdraw))}))


def decision(number: Decision | str | int) -> Call[StoredDecision]:
    """Return the request for a stored decision."""
    return Call("GET", f"/v1/decisions/{_number(number)}", _STORED)


def status() -> Call[ServiceStatus]:
    """Return the request for where the campaign stands."""
    return Call("GET", "/v1/status", _STATUS)


def model() -> Call[ServiceModel]:
    """Return the request for the model."""
    return Call("GET", "/v1/model", _MODEL)


class Attempts:
    """When to send a request again, and when to give up.

    Parameters
    ----------
    url : str
        The address, for messages.
    most : int
        Send a request at most so many times.
    """

    def __init__(self, url: str, most: int) -> None:
        self._url, self._most, self._made = url, most, 0

    def pause_after(self, outcome: httpx.Response | httpx.TransportError) -> float | None:
        """Return the seconds to wait before the next attempt, or None if the request has succeeded.

        Raises
        ------
        ServiceError
            If the request was refused, or there were attempts enough.
        """
        self._made += 1
        if isinstance(outcome, httpx.Response):
            if outcome.is_success:
                return None
            if outcome.status_code not in PASSING or self._made >= self._most:
                raise refusal(outcome)
        elif self._made >= self._most or isinstance(outcome, httpx.UnsupportedProtocol | httpx.LocalProtocolError):
            times = "" if self._made == 1 else f" after {self._made} attempts"
            what = str(outcome) or type(outcome).__name__
            raise ServiceError(f"{self._url} does not answer{times}: {what}; is the service running there?")
        longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** (self._made - 1))
        asked_for = _retry_after(outcome) if isinstance(outcome, httpx.Response) else 0.0
        return max(asked_for, random.uniform(longest / 2, longest))  # apart, so that clients do not return together


def refusal(response: httpx.Response) -> ServiceError:
    """Return the error for an answer that refuses a request."""
    try:
        problem = response.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {}
    said = problem.get("detail") or problem.get("title") or response.reason_phrase or "no reason was given"
    return ServiceError(f"the service answered {response.status_code}: {said}", response.status_code, problem)


def _retry_after(response: httpx.Response) -> float:
    try:
        seconds = float(response.headers.get("retry-after", "0"))
    except ValueError:
        return 0.0
    return min(max(seconds, 0.0), LONGEST_PAUSE_SECONDS) if math.isfinite(seconds) else 0.0


def _arms(arms: Candidates) -> list[Any]:
    """Return arms as the service takes them, from a mapping of ids to columns or features, or as they are."""
    if isinstance(arms, str):
        raise ValueError(f"candidates are ids, or a mapping of ids to columns or features, got the text {arms!r}")
    if not isinstance(arms, Mapping):
        return [arm if hasattr(arm, "keys") else _arm_id(arm) for arm in arms]
    return [{"id": _arm_id(arm), "columns" if isinstance(of, Mapping) else "features": of} for arm, of in arms.items()]


def _arm_id(id: object) -> str:
    """Return the id; JSON would have bytes as another text, and numbers as no text."""
    if not isinstance(id, str):
        raise ValueError(f"the id of an arm is a text, got {id!r}; str makes one of a number, .decode() of bytes")
    return id


def _id(decision: Decision | str | int) -> str:
    return decision.decision_id if isinstance(decision, Decision) else str(decision)


def _number(decision: Decision | str | int) -> str:
    return quote(_id(decision), safe="")


def _json(value: object) -> bytes:
    """Return a value as JSON; numbers that JSON does not have are refused, not sent as null."""
    body = msgspec.json.encode(value, enc_hook=_plain)
    if b"null" in body:
        try:
            json.dumps(msgspec.to_builtins(value, enc_hook=_plain), allow_nan=False)
        except ValueError:
            raise ValueError("numbers must be finite, got a NaN or infinite one; leave out what is missing") from None
    return body


def _plain(value: object) -> object:
    """Return an array, or a number of numpy's, as plain Python."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"JSON has texts, numbers, lists and mappings, got {type(value).__name__}")


def _reader(kind: type[T]) -> Callable[[bytes], T]:
    decoder = msgspec.json.Decoder(kind)

    def read(content: bytes) -> T:
        try:
            return decoder.decode(content)
        except msgspec.MsgspecError as error:
            raise ServiceError(f"this is no answer of a decision service ({error}); is the address right?") from None

    return read


_DECISION, _REWARDS, _ARMS = _reader(Decision), _reader(RewardsAdded), _reader(ArmsPut)
_STORED, _STATUS, _MODEL = _reader(StoredDecision), _reader(ServiceStatus), _reader(ServiceModel)
