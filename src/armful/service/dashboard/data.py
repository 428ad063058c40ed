"""Where the dashboard's data come from."""

from collections.abc import Hashable
from typing import Any, Protocol


class Source(Protocol):
    """What a dashboard shows. The methods may be slow: they are called in a thread of their own."""

    def campaigns(self) -> list[dict[str, str]]:
        """Return the `name` and the `kind` (`service` or `campaign`) of each campaign."""
        ...

    def stamp(self, campaign: str) -> Hashable:
        """Return something cheap that is another when `data` may be."""
        ...

    def data(self, campaign: str) -> dict[str, Any]:
        """Return what is shown of a campaign, as JSON has it."""
        ...
