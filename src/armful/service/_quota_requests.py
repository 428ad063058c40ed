"""Quotas that a request asks for."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from armful.campaigns.settings import QuotaSettings

Bound = float | Mapping[str, float] | None


class QuotaRequest(Protocol):
    """A quota of a request; a number below 1 is a share of k, any other a count."""

    @property
    def column(self) -> str:
        """Whose groups are bounded."""

    @property
    def at_least(self) -> Any:
        """The lower bound of every group, or of each by its name."""

    @property
    def at_most(self) -> Any:
        """The upper bound of every group, or of each by its name."""

    @property
    def nested(self) -> bool:
        """Whether each group lies within one of the quota before."""


def requested_quotas(quotas: Sequence[QuotaRequest]) -> tuple[QuotaSettings, ...]:
    """Return the quotas of a request; raise ValueError if they contradict each other."""
    found: list[QuotaSettings] = []
    for i, quota in enumerate(quotas):
        if quota.at_least is None and quota.at_most is None:
            raise ValueError(f"the quota of {quota.column!r} needs at_least or at_most")
        if quota.column in [other.column for other in found]:
            raise ValueError(f"the quota of {quota.column!r} is there twice; put both into one")
        if quota.nested and i == 0:
            raise ValueError("nested is for the second quota and later ones: each lies within the one before")
        if i > 1 and quota.nested != found[-1].nested:
            raise ValueError("nested must be the same in all quotas after the first")
        at_least = _bounds(quota.column, "at_least", quota.at_least)
        at_most = _bounds(quota.column, "at_most", quota.at_most)
        found.append(QuotaSettings(column=quota.column, at_least=at_least, at_most=at_most, nested=quota.nested))
    return tuple(found)


def _bounds(column: str, name: str, bound: Bound) -> Any:
    if bound is None:
        return None
    if isinstance(bound, Mapping):
        return {group: _count_or_share(column, name, number) for group, number in bound.items()}
    return _count_or_share(column, name, bound)


def _count_or_share(column: str, name: str, number: Any) -> int | float:
    """Return a number below 1 as a share, any other as a count: JSON does not tell 1 from 1.0."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < 2**31:
        raise ValueError(f"{name} of {column!r} must be a number of arms, or a share of k below 1, got {number!r}")
    if number >= 1 and number != int(number):
        raise ValueError(
            f"{name} of {column!r} must be a whole number of arms, or a share of k below 1, got {number!r}"
        )
    return int(number) if number >= 1 or number == 0 else float(number)
