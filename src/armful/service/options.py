"""How a campaign is served: what the command line says, not what `campaign.toml` says."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from armful.campaigns.settings import Settings


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """Options of one running service; what belongs to the campaign is in its settings.

    Attributes
    ----------
    campaign : str, optional
        Which campaign, where the service is opened by the URL of a store that holds several.
    update_every : timedelta, optional
        In place of `service.update_every` of the settings.
    poll_every : timedelta
        How often a worker asks the store whether there is a newer model, and which arms have changed.
    access_log : bool
        Whether each request is logged.
    dashboard : bool
        Whether the dashboard is served at `/`.
    log_level : int
        What is logged: `logging.INFO` and above by default.
    now : callable, optional
        Returns the current time, with a time zone; for tests and simulations.
    settings : Settings, optional
        Of the campaign, as they were when the service started: a process that is started again keeps to them.
    """

    campaign: str | None = None
    update_every: timedelta | None = None
    poll_every: timedelta = timedelta(seconds=1)
    access_log: bool = True
    dashboard: bool = True
    log_level: int = logging.INFO
    now: Callable[[], datetime] | None = None
    settings: Settings | None = None
