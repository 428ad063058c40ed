"""Bearer keys: `armful_<id>_<secret>`; the store keeps the id and a hash of the whole."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from typing import Literal, get_args

Role = Literal["decide", "reward", "read"]
ROLES: tuple[Role, ...] = get_args(Role)
FORM = re.compile(r"armful_([0-9a-f]{12})_([0-9a-f]{48})")


def new_key() -> tuple[str, str, bytes]:
    """Return the id of a new key, the key itself, which is shown once, and the hash that is kept."""
    key_id = secrets.token_hex(6)
    key = f"armful_{key_id}_{secrets.token_hex(24)}"
    return key_id, key, hash_of(key)


def hash_of(key: str) -> bytes:
    """Return what is kept of a key. It has 192 random bits, so a fast hash without salt cannot be inverted."""
    return hashlib.sha256(key.encode()).digest()


def key_id(key: str) -> str | None:
    """Return the id in a key; None if it is not of the form of a key."""
    found = FORM.fullmatch(key)
    return None if found is None else found[1]


def matches(key: str, kept: bytes) -> bool:
    """Return whether this is the key of a hash, in constant time."""
    return hmac.compare_digest(hash_of(key), kept)


def check_roles(roles: Iterable[str]) -> tuple[Role, ...]:
    """Return the roles, each once, in their usual order; raise ValueError if there is none or one is unknown."""
    wanted = set(roles)
    unknown = sorted(wanted - set(ROLES))
    if unknown or not wanted:
        raise ValueError(f"a role must be one of {', '.join(ROLES)}, got {unknown[0]!r}" if unknown else "give a role")
    return tuple(role for role in ROLES if role in wanted)
