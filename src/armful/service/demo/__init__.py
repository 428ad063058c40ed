"""`armful demo --serve`: a made news page, whose readers ask a real service what to show them."""

import csv
from pathlib import Path

from armful.campaigns import Campaign
from armful.campaigns.demo._settings import edited
from armful.campaigns.init import InitResult, init_service
from armful.ledger import NewRewards
from armful.service._children import Role
from armful.service.demo._news import CONTEXT, ID, REWARD, NewsPage
from armful.service.demo._readers import Totals, read_totals, run_readers

__all__ = ["ServiceDemo", "Totals"]

N_IMPRESSIONS = 2_000
SETTINGS = {
    ("policy", "cap"): "0.5",
    ("features", "interactions"): '[["topic", "daypart"], ["video", "device"], ["minutes", "device"]]',
    ("outcomes", "window"): '"20 seconds"',
    ("holdout", "share"): "0.1",
    ("service", "update_every"): '"2 seconds"',
    ("service", "explore"): "0.1",
    ("service", "positions"): '"estimate"',
}
"""What is changed by hand: a page whose readers click within seconds, and a model that can be watched."""


class ServiceDemo:
    """A campaign that is served, and made readers who ask it and click.

    Parameters
    ----------
    folder : Path
        The files are made in it; the campaign in its folder `news`, which must not be there.
    seed : int
        The same seed gives the same articles and readers.
    """

    def __init__(self, folder: Path, *, seed: int = 0) -> None:
        self.folder, self.campaign, self.impressions = folder, folder / "news", folder / "impressions.csv"
        self._seed, self._totals = seed, folder / "news" / "readers.json"

    def make_impressions(self) -> None:
        """Write what was shown in the past, at random, and what was clicked.

        Raises
        ------
        FileExistsError
            If the campaign is there already.
        """
        if self.campaign.exists():
            raise FileExistsError(f"{self.campaign} is there already: remove it, or give another folder by --out")
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.impressions.open("w", newline="", encoding="utf-8") as file:
            rows = csv.DictWriter(file, NewsPage.columns())
            rows.writeheader()
            rows.writerows(NewsPage(self._seed).impressions(N_IMPRESSIONS))

    def init(self) -> InitResult:
        """Do what `init_command` does."""
        return init_service(self.campaign, self.impressions, context=CONTEXT, id=ID, reward=REWARD)

    @property
    def init_command(self) -> list[str]:
        """The command that begins the campaign, as it would be typed."""
        given = ["--from", str(self.impressions), "--kind", "service", "--context", ",".join(CONTEXT)]
        return ["init", str(self.campaign), *given, "--id", ID, "--reward", REWARD]

    def edit(self) -> list[str]:
        """Change a few settings, and return the lines as they are now."""
        path = self.campaign / "campaign.toml"
        path.write_text(edited(path.read_text(encoding="utf-8"), SETTINGS), encoding="utf-8")
        return [f"{table}.{name} = {value}" for (table, name), value in SETTINGS.items()]

    def readers(self, url: str) -> Role:
        """Return the process of the readers, who ask the service at this address."""
        return Role(name="readers", run=run_readers, arguments=(url, self._seed, self._totals))

    def add_late_clicks(self) -> None:
        """Add the clicks that had not been reported when the service ended: its last pages would seem to have few."""
        totals = self.totals()
        if totals is not None and totals.late:
            rewards = [(int(decision), article, 1.0) for decision, article in totals.late]
            with Campaign.open(self.campaign) as campaign:
                came = NewRewards(rewards=rewards, received_at=campaign.now(), strict=False)
                campaign.ledger.add_reward_requests([came])

    def totals(self) -> Totals | None:
        """Return what became of it, once the readers have gone; None if none came."""
        return read_totals(self._totals)
