"""What every command of campaigns does: open the campaign, say what came of it, name what is not installed."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from armful.cli._failing import needs, stopped

if TYPE_CHECKING:
    from armful.campaigns import Campaign


@contextmanager
def work() -> Iterator[None]:
    """Name what is not installed, and end with a sentence when the command is interrupted."""
    try:
        with needs("campaigns"):
            yield
    except KeyboardInterrupt:
        stopped()


@contextmanager
def opened(name: str, which: str | None, now: str | None = None) -> Iterator["Campaign"]:
    """Open a campaign; `which` if its store has several, `now` for another time than the present."""
    from armful.campaigns import Campaign  # noqa: PLC0415

    moment = None if now is None else _moment(now)
    with Campaign.open(name, name=which, now=None if moment is None else lambda: moment) as campaign:
        yield campaign


def tell_result(result: Any, as_json: bool, *then: str, which: str | None = None) -> None:
    """Print a result, and the command to run next."""
    from armful.cli._campaign_output import tell  # noqa: PLC0415

    tell(result, as_json=as_json, then=[*then, *(["--campaign", which] if which else [])])


def source_of(campaign: "Campaign") -> str:
    """Return the file of customers that the campaign began with, as seen from here."""
    settings = campaign.settings
    path = settings.folder / (settings.source or "customers.csv")
    try:
        return os.path.relpath(path)
    except ValueError:  # on another drive of Windows
        return str(path)


def _moment(text: str) -> datetime:
    """Return the moment that is meant; one without an offset is in UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"--now takes a date like 2026-03-01 or a moment like 2026-03-01T12:00, got {text!r}"
        ) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def at_a_terminal() -> bool:
    """Whether progress bars are seen by somebody."""
    return sys.stderr.isatty()
