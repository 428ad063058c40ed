"""A small campaign in a folder, with a clock that tests set."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from armful.campaigns import Campaign

SETTINGS = """\
name = "autumn"
store = "sqlite:///ledger.sqlite"
id = "id"

[choose]
k = 40
{choose}

[policy]
cap = 1.0

[features.columns]
age = {{ kind = "number" }}
region = {{ kind = "category" }}

[features]
leave_out = ["cost", "old_score", "city", "old"]

[outcomes]
reward = "bought"
window = "14 days"
{outcomes}

[holdout]
share = 0.2
{holdout}

[learning]
{learning}
"""


class Clock:
    """The time of a test, which passes when told."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def pass_days(self, days: float) -> None:
        self.time += timedelta(days=days)


def customers(n: int = 400, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    region = rng.choice(["north", "south", "east"], n)
    return pa.table(
        {
            "id": [f"c{i}" for i in range(n)],
            "age": rng.integers(18, 80, n),
            "region": region,
            "city": [f"{name}-{i}" for name, i in zip(region.tolist(), rng.integers(2, size=n).tolist(), strict=True)],
            "cost": rng.integers(1, 10, n),
            "old_score": rng.random(n),
        }
    )


def make(folder: Path, *, choose: str = "", outcomes: str = "", holdout: str = "", learning: str = "") -> Path:
    """Write the settings and the customers of a campaign, and return its folder."""
    folder.mkdir(exist_ok=True)
    text = SETTINGS.format(choose=choose, outcomes=outcomes, holdout=holdout, learning=learning)
    (folder / "campaign.toml").write_text(text)
    csv.write_csv(customers(), folder / "customers.csv")
    csv.write_csv(pa.table({"id": ["c7"]}), folder / "vip.csv")
    return folder


def opened(folder: Path, clock: Clock) -> Campaign:
    return Campaign.open(folder, now=clock)


def outcomes(campaign: Campaign, number: int, seed: int = 1) -> pa.Table:
    """Return an outcome for everybody on the list of a round: 1 for about a third of them."""
    ids = campaign.ledger.chosen_ids(number)
    rng = np.random.default_rng([seed, number])
    return pa.table({"id": ids.tolist(), "bought": (rng.random(ids.size) < 0.3).astype(float)})


def run(campaign: Campaign, clock: Clock, rounds: int) -> None:
    """Choose some rounds, a week apart, and learn the outcomes of each six days later."""
    for _ in range(rounds):
        chosen = campaign.choose(campaign.folder / "customers.csv")
        clock.pass_days(6)
        campaign.learn(outcomes(campaign, chosen.number))
        clock.pass_days(1)


def same_state(left: Campaign, right: Campaign) -> bool:
    a, b = left.policy().state, right.policy().state
    return (
        a.n == b.n and np.allclose(a.V, b.V, rtol=1e-12, atol=1e-12) and np.allclose(a.b, b.b, rtol=1e-12, atol=1e-12)
    )
