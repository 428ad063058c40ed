"""Where the dashboard's data come from."""

import os
from collections.abc import Callable, Hashable
from datetime import datetime
from typing import Any, Protocol

from armful.campaigns import Campaign
from armful.ledger import Ledger
from armful.service.dashboard._campaign_data import CampaignSource
from armful.service.dashboard._service_data import ServiceSource

__all__ = ["CampaignSource", "ServiceSource", "Source", "StoreSource"]


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


class StoreSource:
    """The campaigns of a store, each by its newest model if it is served, else by its rounds.

    Nothing is opened before it is asked for.

    Parameters
    ----------
    where : path or str
        A folder with `campaign.toml`, whose campaign is shown, or the URL of a store.
    name : str, optional
        With a URL: which campaign; all of them without.
    now : callable, optional
        Returns the current time, with a time zone.
    """

    def __init__(
        self, where: str | os.PathLike[str], name: str | None = None, *, now: Callable[[], datetime] | None = None
    ) -> None:
        self._where, self._name, self._now = where, name, now
        self._opened: dict[str, Campaign] = {}
        self._shown_as: dict[str, ServiceSource | CampaignSource] = {}

    def campaigns(self) -> list[dict[str, str]]:
        """Return the name and the kind of each campaign."""
        return [{"name": name, "kind": self._shown(name).kind} for name in self._names()]

    def stamp(self, campaign: str) -> Hashable:
        """Return something cheap that is another when `data` may be."""
        shown = self._shown(campaign)
        return shown.kind, shown.stamp()

    def data(self, campaign: str) -> dict[str, Any]:
        """Return what is shown of a campaign."""
        return self._shown(campaign).data()

    def close(self) -> None:
        """Close the campaigns that were opened."""
        while self._opened:
            self._opened.popitem()[1].close()

    def _names(self) -> list[str]:
        if "://" in str(self._where):
            return [self._name] if self._name is not None else Ledger.campaigns(str(self._where))
        if not self._opened:
            campaign = Campaign.open(self._where, now=self._now)
            self._opened[campaign.settings.name] = campaign
        return list(self._opened)

    def _shown(self, name: str) -> ServiceSource | CampaignSource:
        campaign = self._opened.get(name)
        if campaign is None:
            campaign = self._opened[name] = Campaign.open(self._where, name=name, now=self._now)
        known = self._shown_as.get(name)
        if isinstance(known, ServiceSource):
            return known
        if campaign.is_served:
            known = ServiceSource(campaign.ledger, campaign.settings)
        self._shown_as[name] = known = known or CampaignSource(campaign)
        return known
