"""The dashboard: a page that shows campaigns while they run, and a page for the HTTP interface."""

from armful.service.dashboard.data import CampaignSource, ServiceSource, Source, StoreSource
from armful.service.dashboard.feed import Feed
from armful.service.dashboard.routes import CONTENT_POLICY, Guard, routes

__all__ = ["CONTENT_POLICY", "CampaignSource", "Feed", "Guard", "ServiceSource", "Source", "StoreSource", "routes"]
