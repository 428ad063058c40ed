"""The process that folds new rewards into a new model, every so often, while the workers answer requests."""

import threading
from collections.abc import Callable
from datetime import timedelta

from armful.campaigns import Campaign
from armful.campaigns.decisions import DecisionFold, update_model
from armful.campaigns.settings import ServiceSettings
from armful.errors import LedgerError, PrecisionError
from armful.ledger import Ledger
from armful.service._children import Lifeline
from armful.service._logging import LOGGER, configure_logging
from armful.service._preparing import frozen_recipe
from armful.service._server import one_line
from armful.service.options import ServeOptions

FIRST_PAUSE_SECONDS = 0.5
"""After an error of the store or of the numbers in it; then longer, up to the time between updates."""

Update = Callable[[], object]


class Updater:
    """Updates the model of a campaign, unless another process does.

    Parameters
    ----------
    ledger : Ledger
        Has the lock: of all updaters of a campaign, on this machine and on others, one is at work.
    begin : callable
        Returns a function that makes one update, from what the store holds. It is called again after an error.
    every : timedelta
        From the end of an update to the next. Measured by a clock that does not jump.
    """

    def __init__(self, ledger: Ledger, begin: Callable[[], Update], every: timedelta) -> None:
        self._ledger, self._begin, self._every = ledger, begin, every.total_seconds()
        self._pause = FIRST_PAUSE_SECONDS

    def run(self, over: threading.Event) -> None:
        """Update until `over` is set; what the store or its numbers do not allow is logged, and then tried again."""
        is_alone = True
        while not over.is_set():
            try:
                with self._ledger.updater_lock() as is_mine:
                    if is_mine:
                        self._update(over)
                    elif is_alone:
                        LOGGER.info("another process updates this campaign: this one takes over when that ends")
                    is_alone = is_mine
                pause = self._every
            except (LedgerError, PrecisionError) as error:
                pause = min(self._pause, self._every)
                self._pause *= 2
                LOGGER.error("the model was not updated: %s; it is tried again in %g seconds", one_line(error), pause)
            over.wait(pause)

    def _update(self, over: threading.Event) -> None:
        update = self._begin()
        while not over.is_set():
            update()
            self._pause = FIRST_PAUSE_SECONDS
            over.wait(self._every)


def run_updater(lifeline: Lifeline, name: str, options: ServeOptions) -> None:
    """Update the model of a campaign until the lifeline ends.

    Parameters
    ----------
    lifeline : Lifeline
        Of this process.
    name : str
        A folder with `campaign.toml`, or the URL of a store.
    options : ServeOptions
        How it is served.
    """
    configure_logging(options.log_level)
    over = threading.Event()
    lifeline.when_to_end(over.set)
    try:
        campaign = Campaign.open(name, name=options.campaign, now=options.now, settings=options.settings)
    except (ValueError, OSError) as error:
        lifeline.fail(one_line(error))
    with campaign:
        every = options.update_every or (campaign.settings.service or ServiceSettings()).update_every
        lifeline.ready()
        Updater(campaign.ledger, lambda: _updates(campaign, every), every).run(over)


def _updates(campaign: Campaign, every: timedelta) -> Update:
    """Return a function that makes one update, resumed from what the ledger holds."""
    fold = _fold(campaign)
    return lambda: update_model(fold, campaign.now(), update_every=every)


def _fold(campaign: Campaign) -> DecisionFold:
    recipe = frozen_recipe(campaign)
    return DecisionFold(campaign.ledger, campaign.settings, recipe.n_features, recipe.names)
