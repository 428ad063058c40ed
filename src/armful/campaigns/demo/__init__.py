"""`armful demo`: a made campaign from beginning to end, by the functions that the commands call."""

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.csv

from armful.campaigns._results import Result
from armful.campaigns.campaign import Campaign
from armful.campaigns.demo._customers import DemoCustomers, make_customers
from armful.campaigns.demo._orders import DemoShop, day
from armful.campaigns.demo._settings import edited
from armful.campaigns.init import init_campaign
from armful.campaigns.lift import Lift, estimate_lift, lift_data
from armful.campaigns.lift._words import unit_of
from armful.campaigns.rounds._lists import list_path
from armful.campaigns.settings import read_settings

T = TypeVar("T")
WEEKS_OF_WINDOW = 2
SETTINGS = {
    ("choose", "rest"): "3",
    ("outcomes", "time"): '"date"',
    ("outcomes", "window"): f'"{7 * WEEKS_OF_WINDOW} days"',
}
QUOTA = '[[choose.quotas]]\ncolumn = "region"\nat_least = 0.1\nat_most = 0.35\n'


@dataclass(frozen=True, kw_only=True)
class DemoStep:
    """One command of the demo.

    Attributes
    ----------
    before : str
        What happened before it.
    command : list of str
        As it would be typed, after `armful`.
    run : callable
        Does what the command does, and returns its result.
    """

    before: str
    command: list[str]
    run: Callable[[], Any]


@dataclass(frozen=True, kw_only=True)
class DemoWeek(Result):
    """The true probability of buying after a contact in a week, which only the demo knows: the mean of some customers.

    Attributes
    ----------
    week : int
    everybody, chosen, holdout, best : float
        The mean over all customers, over those whom the model chose, over the holdout's contacts, and over the k best
        customers, whatever quotas and rests say.
    """

    week: int
    everybody: float
    chosen: float
    holdout: float
    best: float


class Demo:
    """A campaign of made customers with weekly rounds.

    Parameters
    ----------
    folder : Path
        A new folder for everything that is made.
    n_customers, k, n_rounds : int
        How many customers there are, how many are contacted in a round, and how many rounds there are.
    seed : int
        The same seed gives the same campaign.
    """

    def __init__(
        self, folder: Path, *, n_customers: int = 200_000, k: int = 2_000, n_rounds: int = 8, seed: int = 0
    ) -> None:
        self.folder, self.k, self.n_rounds = folder, k, n_rounds
        self._n_customers, self._seed = n_customers, seed
        self.campaign, self.customers = folder / "autumn", folder / "customers.csv"
        self.report = self.campaign / "report.html"

    @cached_property
    def _people(self) -> DemoCustomers:
        return make_customers(self._n_customers, self.n_rounds, self._seed)

    @cached_property
    def _shop(self) -> DemoShop:
        return DemoShop(self._people)

    def steps(self) -> Iterator[DemoStep]:
        """Yield the commands in their order; each must be run before the next is asked for.

        Raises
        ------
        FileExistsError
            If the folder is there already.
        """
        try:
            self.folder.mkdir(parents=True)
        except FileExistsError:
            message = f"{self.folder} is there already: remove it, or give another folder by --out"
            raise FileExistsError(message) from None
        self._write_customers()
        yield DemoStep(
            before=f"A shop has {self._n_customers:,} customers, in {self.customers}.",
            command=[
                *("init", str(self.campaign), "--from", str(self.customers)),
                *("--reward", "bought", "--k", str(self.k)),
            ],
            run=partial(init_campaign, self.campaign, self.customers, reward="bought", k=self.k),
        )
        changes = "\n".join(f"    {line}" for line in self._edit_settings())
        yield DemoStep(
            before=f"In {self.campaign / 'campaign.toml'} a few lines are changed by hand:\n{changes}",
            command=["check", str(self.campaign)],
            run=partial(read_settings, self.campaign),
        )
        yield self._at(1, "", Campaign.plan)
        for week in range(1, self.n_rounds + 1):
            yield self._at(week, f"Week {week}.", Campaign.choose, self.customers)
            people = read_list(list_path(self.campaign, week))
            self._shop.contact(week, [id for id, share in people if share != "no-contact"])
            yield self._learn(week)
        for week in range(self.n_rounds + 1, self.n_rounds + WEEKS_OF_WINDOW):
            yield self._learn(week)
        yield self._at(self.n_rounds + WEEKS_OF_WINDOW, "All windows are closed.", Campaign.status)
        yield self._at(self.n_rounds + WEEKS_OF_WINDOW, "", Campaign.report)

    def lift(self) -> Lift:
        """Return the lift over the holdout, as the report has it."""
        return self._run(self.n_rounds + WEEKS_OF_WINDOW, _lift)

    def weeks(self) -> list[DemoWeek]:
        """Return how good the choices of each week were in truth."""
        index = {id: i for i, id in enumerate(self._people.columns["customer_id"].to_pylist())}
        weeks = []
        for week in range(1, self.n_rounds + 1):
            probability = self._people.probability(week)
            people = read_list(list_path(self.campaign, week))
            means = {
                share: float(np.mean([probability[index[id]] for id, its in people if its == share]))
                for share in ("chosen", "holdout")
            }
            best = float(np.partition(probability, -self.k)[-self.k :].mean())
            weeks.append(DemoWeek(week=week, everybody=float(probability.mean()), best=best, **means))
        return weeks

    def _learn(self, week: int) -> DemoStep:
        path = self.folder / f"orders-{week:02d}.csv"
        n_rows = self._shop.write_week(week, path)
        return self._at(week + 1, f"A week passes; {n_rows:,} rows are in {path}.", Campaign.learn, path)

    def _at(self, week: int, before: str, method: Callable[..., Any], *files: Path) -> DemoStep:
        """Return a step at the beginning of a week."""
        names = [str(path) for path in (self.campaign, *files)]
        command = [method.__name__, *names, "--now", day(week).isoformat()]
        return DemoStep(before=before, command=command, run=partial(self._run, week, method, *files))

    def _run(self, week: int, method: Callable[..., T], *files: Path) -> T:
        moment = datetime.combine(day(week), time(), UTC)
        with Campaign.open(self.campaign, now=lambda: moment) as campaign:
            return method(campaign, *files)

    def _write_customers(self) -> None:
        plain = pa.csv.WriteOptions(quoting_style="none")  # no value holds a comma
        pa.csv.write_csv(self._people.columns, self.customers, plain)

    def _edit_settings(self) -> list[str]:
        """Change the settings as a user would with an editor, and return the lines that were written."""
        path = self.campaign / "campaign.toml"
        path.write_text(edited(path.read_text(encoding="utf-8"), SETTINGS) + "\n" + QUOTA, encoding="utf-8")
        return [*(f"{key} = {value}" for (_, key), value in SETTINGS.items()), *QUOTA.splitlines()]


def _lift(campaign: Campaign) -> Lift:
    return estimate_lift(lift_data(campaign.records()), unit=unit_of(campaign.settings.outcomes.reward))


def read_list(path: Path) -> list[tuple[str, str]]:
    """Return id and share of each person on a list."""
    with path.open(encoding="utf-8", newline="") as file:
        return [(row["id"], row["share"]) for row in csv.DictReader(file)]
