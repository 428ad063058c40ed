"""Who may do what: bearer keys with roles, or a request from this machine."""

import ipaddress
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from armful.ledger import KeyInfo, Ledger
from armful.service import keys
from armful.service._limits import RateLimit
from armful.service._problems import ProblemError
from armful.service._shared_reads import SharedReads

REMEMBERED = 3.0
"""Seconds for which a key is taken as the store had it: so soon a revoked key is refused everywhere."""
MOST_REMEMBERED = 10_000

LOCAL = "local"
"""The caller of requests without a key."""

_FORWARDED = (b"forwarded", b"x-forwarded-", b"x-real-ip", b"via")
"""How headers begin that proxies add."""
_CHALLENGE = {"www-authenticate": 'Bearer realm="armful"'}


class Access:
    """Decide whether a request may be answered.

    A key must be known, neither expired nor revoked, and have the role. Without a key a request is let in if the
    campaign has no keys and the request comes from this machine.

    Parameters
    ----------
    ledger : Ledger
        Has the keys.
    now : callable
        Returns the current time, with a time zone.
    read : callable
        Calls a method of the ledger in a thread and returns what that returns; a store that fails is a problem.
    rate : float
        Requests per second from one address that are refused, or look up a key not seen before; 0 for no limit.
    """

    def __init__(
        self, ledger: Ledger, now: Callable[[], datetime], read: Callable[..., Awaitable[Any]], rate: float
    ) -> None:
        self._ledger, self._now, self._read = ledger, now, read
        self._refused = RateLimit(rate, whose="address without a valid key")
        self._found = SharedReads[tuple[KeyInfo, bytes] | None](REMEMBERED, MOST_REMEMBERED)
        self._keyless = SharedReads[bool](REMEMBERED, 1)

    async def caller(
        self, scope: MutableMapping[str, Any], headers: Mapping[bytes, bytes], role: keys.Role, *, local: bool = False
    ) -> str:
        """Return who asks: the id of a key, or "local"; raise a problem if they may not.

        Parameters
        ----------
        scope : mapping
            The request, as ASGI gives it.
        headers : mapping of bytes to bytes
            Its header.
        role : str
            The role that the key must have.
        local : bool
            Whether a request from this machine needs no key though the campaign has keys.
        """
        client = scope.get("client")
        address = client[0] if client else ""
        given = headers.get(b"authorization")
        try:
            if given is not None:
                return await self._caller_of(given.decode("latin-1"), role, address)
            if not is_local(scope, headers):
                raise ProblemError(401, "send a key in the header Authorization: Bearer armful_...", _CHALLENGE)
            if not local and not (self._keyless.known("keys") or await self._has_no_keys()):
                sentence = "the campaign has keys: send one in the header Authorization: Bearer armful_..."
                raise ProblemError(401, sentence, _CHALLENGE)
        except ProblemError as problem:
            if problem.status in (401, 403):
                self._refused.take(address)
            raise
        return LOCAL

    async def _caller_of(self, given: str, role: keys.Role, address: str) -> str:
        scheme, _, key = given.partition(" ")
        key = key.strip()
        key_id = keys.key_id(key)
        if scheme.lower() != "bearer":
            raise ProblemError(401, "the header Authorization must be: Bearer armful_<id>_<secret>", _CHALLENGE)
        if key_id is None:
            sentence = "this is no key: `armful key create` prints one, of the form armful_<id>_<secret>"
            raise ProblemError(401, sentence, _CHALLENGE)
        found = await self._find(key_id, address)
        if found is None or not keys.matches(key, found[1]):
            raise ProblemError(401, "the key is unknown: `armful key list` shows the keys of a campaign", _CHALLENGE)
        info = found[0]
        if info.revoked_at is not None:  # whatever the time: that of another machine may be ahead
            raise ProblemError(401, f"the key {info.id} was revoked: use another one", _CHALLENGE)
        if info.expires_at is not None and info.expires_at <= self._now():
            raise ProblemError(401, f"the key {info.id} has expired: use another one", _CHALLENGE)
        if role not in info.roles:
            raise ProblemError(403, f"this needs a key with the role {role}; {info.id} has {', '.join(info.roles)}")
        return info.id

    async def _find(self, key_id: str, address: str) -> tuple[KeyInfo, bytes] | None:
        async def read() -> tuple[KeyInfo, bytes] | None:
            found: tuple[KeyInfo, bytes] | None = await self._read(self._ledger.find_key, key_id)
            return found

        if self._found.last(key_id) is not None:
            return await self._found.get(key_id, read)
        self._refused.take(address)  # before the store is asked, so that guessing does not keep it busy
        try:
            return await self._found.get(key_id, read)
        finally:
            self._refused.give_back(address)  # who is refused in the end is counted then

    async def _has_no_keys(self) -> bool:
        async def read() -> bool:
            return not await self._read(self._ledger.keys)

        return await self._keyless.get("keys", read)


def is_local(scope: MutableMapping[str, Any], headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a request comes from this machine, not through a proxy and not from another site's page."""
    client = scope.get("client")
    if client is None or not _is_loopback(client[0]) or _is_forwarded(tuple(headers)):
        return False
    origin = headers.get(b"origin")
    if origin is not None and not _is_loopback_host(origin.partition(b"://")[2]):
        return False
    return _is_loopback_host(headers.get(b"host", b""))


@lru_cache(maxsize=100)
def _is_forwarded(names: tuple[bytes, ...]) -> bool:
    """Return whether one of the headers is a proxy's."""
    return any(name.startswith(_FORWARDED) for name in names)


@lru_cache(maxsize=1000)
def _is_loopback_host(host: bytes) -> bool:
    """Return whether a name with or without a port is this machine: others may be made to point here."""
    text = host.decode("latin-1").strip().lower()
    name = text[1:].partition("]")[0] if text.startswith("[") else text.rpartition(":")[0] if ":" in text else text
    return name == "localhost" or _is_loopback(name)


@lru_cache(maxsize=1000)
def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False
