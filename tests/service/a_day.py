"""A day of a small service, faster than life: a made clock, and readers who come and whose clicks come late."""

import heapq
import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from armful.campaigns import Campaign
from armful.campaigns.decisions import DecisionFold, update_model
from tests.service.small_service import Service, make_campaign, serving

K, D = 5, 10
SETTINGS = f"""name = "autumn"
id = "item"
choose.k = {K}
holdout.share = 0.1
policy.cap = 1
policy.ridge = 1
outcomes.reward = "click"
outcomes.window = "30 minutes"
features.ready = {D}
service.explore = 0.02
service.update_every = "5 minutes"
"""
TICK = timedelta(minutes=1)
TICKS_IN_AN_UPDATE = 5
DECISIONS_IN_A_TICK = 4
MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC)


class Day:
    """The service, its updater and its readers.

    Rewards come 10 minutes after a decision on average, some after its window; some are sent twice, some corrected.
    """

    def __init__(self, folder: Path, service: Service, campaign: Campaign, clock: "Clock", seed: int) -> None:
        self.folder, self.service, self.campaign, self.clock = folder, service, campaign, clock
        self.rng = np.random.default_rng(seed)
        self.items = self.rng.normal(size=(30, D)) / np.sqrt(D)
        self.theta = self.rng.normal(size=D) / 2
        self.fold = DecisionFold.of(campaign.ledger, campaign.settings)
        self.n_decisions, self.n_ticks, self.n_rewards_sent = 0, 0, 0
        self._due: list[tuple[int, int, dict[str, Any]]] = []
        self._order = itertools.count()

    def pass_time(self, time: timedelta) -> None:
        """Let the time pass, tick by tick."""
        for _ in range(time // TICK):
            self.tick()

    def tick(self) -> None:
        """Answer the readers of a minute and take the rewards that are due, all at once; update if it is time."""
        self.clock.time += TICK
        self.n_ticks += 1
        requests = [("/v1/decisions", self._reader()) for _ in range(DECISIONS_IN_A_TICK)]
        due = self._taken()
        if due:
            requests.append(("/v1/rewards", {"rewards": due}))
        answers = self.service.post_each(requests)
        for answer in answers[:DECISIONS_IN_A_TICK]:
            assert answer.status_code == 200, answer.text
            self._expect_rewards(answer.json())
        if due:
            assert answers[-1].json()["unmatched"] == [], answers[-1].text
        self.n_decisions += DECISIONS_IN_A_TICK
        self.n_rewards_sent += len(due)
        if self.n_ticks % TICKS_IN_AN_UPDATE == 0:
            update_model(self.fold, self.clock())

    def _reader(self) -> dict[str, Any]:
        there = self.rng.choice(len(self.items), size=20, replace=False)
        number = self.n_decisions * 10 + int(self.rng.integers(10))
        return {
            "candidates": [{"id": f"item-{i:04}", "features": self.items[i].tolist()} for i in there.tolist()],
            "unit": f"user-{self.rng.integers(1000):04}",
            "key": f"{number:016x}{self.rng.integers(2**62):016x}",
        }

    def _expect_rewards(self, decision: dict[str, Any]) -> None:
        for arm in decision["chosen"]:
            x = self.items[int(arm["id"].removeprefix("item-"))]
            clicked = float(self.rng.random() < 0.2 + 0.2 * np.tanh(x @ self.theta))
            reward = {"decision_id": decision["decision_id"], "id": arm["id"], "reward": clicked}
            fate = self.rng.random()
            if fate < 0.1:
                continue  # it never comes
            self._send_later(reward)
            if fate < 0.15:
                self._send_later(reward)
            elif fate < 0.2:
                self._send_later({**reward, "reward": 1.0 - clicked})

    def _send_later(self, reward: dict[str, Any]) -> None:
        ticks = 1 + int(self.rng.exponential(10))
        heapq.heappush(self._due, (self.n_ticks + ticks, next(self._order), reward))

    def _taken(self) -> list[dict[str, Any]]:
        taken = []
        while self._due and self._due[0][0] <= self.n_ticks:
            taken.append(heapq.heappop(self._due)[2])
        return taken


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.time = MIDNIGHT

    def __call__(self) -> datetime:
        """Return the time."""
        return self.time


@contextmanager
def a_day(folder: Path, seed: int = 0) -> Iterator[Day]:
    """Serve a campaign from midnight on, in this process."""
    clock = Clock()
    make_campaign(folder, settings=SETTINGS)
    options = {"now": clock, "access_log": False, "poll_every": timedelta(milliseconds=20)}
    with serving(folder, **options) as service, Campaign.open(folder, now=clock) as campaign:
        yield Day(folder, service, campaign, clock, seed)


def one_row(folder: Path, query: str) -> Any:
    """Return the row that SQLite returns."""
    with sqlite3.connect(folder / "ledger.sqlite") as connection:
        return connection.execute(query).fetchone()
