"""Rounds of a made-up campaign, with faults planted or without: what the audit and the report are tried on."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from armful import CappedC2UCB, TopK
from armful.campaigns._records import RoundRecord
from armful.campaigns.settings import (
    ChooseSettings,
    ColumnSettings,
    FeatureSettings,
    HoldoutSettings,
    LearningSettings,
    OutcomeSettings,
    PolicySettings,
    Settings,
)

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
WEEK = timedelta(days=7)
REGIONS = np.array(["east", "north", "south", "west"])
BANDS = ("under 30", "30 to 49", "50 or more")


def made_settings(**outcomes) -> Settings:
    return Settings(
        name="autumn",
        store="sqlite:///ledger.sqlite",
        id="customer_id",
        choose=ChooseSettings(k=200),
        features=FeatureSettings(columns=(ColumnSettings(name="age", kind="number"),)),
        outcomes=OutcomeSettings(reward="bought", id="customer_id", **outcomes),
        policy=PolicySettings(options={"cap": 1.0}),
        holdout=HoldoutSettings(share=0.2),
        learning=LearningSettings(),
        folder=Path(),
        text="",
    )


class World:
    """Customers with numbers, a region and an age band; their mean reward is linear in these unless it is changed.

    kind: "yes or no" for rewards 0 and 1, "amount" for mostly 0 and else skewed amounts, "normal" for normal noise.
    """

    def __init__(self, rng, *, n_people=4000, n_numbers=4, kind="yes or no", level=0.15, person_effect=0.0):
        self.rng, self.kind, self.n = rng, kind, n_people
        self.numbers = rng.random((n_people, n_numbers)) ** np.arange(1, n_numbers + 1)
        self.region = rng.integers(0, 4, n_people)
        self.band = rng.integers(0, 3, n_people)
        columns = [np.ones((n_people, 1)), self.numbers, np.eye(4)[self.region], np.eye(3)[self.band]]
        raw = np.hstack(columns)
        self.names = ["constant", *(f"number {i + 1}" for i in range(n_numbers))]
        self.names += [f"region: {word}" for word in REGIONS] + [f"age: {word}" for word in BANDS]
        self.X = (raw / np.sqrt(raw.shape[1])).astype(np.float32)
        effects = np.r_[0.0, rng.normal(size=raw.shape[1] - 1)]
        mean = raw @ effects
        self.mean = level * (1 + 0.7 * (mean - mean.mean()) / np.abs(mean - mean.mean()).max())
        self.person = person_effect * self.mean * rng.choice([-1.0, 1.0], n_people)
        self.ids = np.array([f"c{i}" for i in range(n_people)])

    def rewards(self, people, mean):
        mean = mean + self.person[people]
        if self.kind == "yes or no":
            return (self.rng.random(people.size) < mean).astype(float)
        if self.kind == "amount":
            return (self.rng.random(people.size) < 0.2) * mean * 5 * self.rng.lognormal(-0.5, 1.0, people.size)
        return mean + 0.3 * self.rng.normal(size=people.size)


def made_policy(world, **options):
    return CappedC2UCB(n_features=world.X.shape[1], **{"cap": 1.0, "seed": 0, **options})


def play(world, policy, *, rounds=6, k=200, holdout=50, changed=None, delays=None, lag=1, rest=0, features=None):
    """Return the records of a campaign; the policy has learned them.

    changed: a function from round (0 for the first), people and means to other means. delays: from rewards to days.
    lag: rounds until outcomes are learned. features: from round, people, features and rewards to other features.
    """
    rng = world.rng
    records, waiting = [], []
    is_holdout = rng.random(world.n) < 0.2
    rested = np.full(world.n, -(10**6))
    for t in range(rounds):
        while waiting and waiting[0][0] <= t - lag:
            _, X, r = waiting.pop(0)
            policy.learn(X, r)
        free = np.flatnonzero(rested < t - rest) if rest else np.arange(world.n)
        pool, others = free[~is_holdout[free]], free[is_holdout[free]]
        choice = policy.choose(world.X[pool].astype(float), TopK(k))
        greedy = np.argsort(-policy.state.mean(world.X[pool].astype(float)), kind="stable")[:k]
        people = np.concatenate([pool[choice.indices], rng.permutation(others)[:holdout]])
        rested[people] = t
        mean = world.mean[people] if changed is None else changed(t, people, world.mean[people])
        rewards = world.rewards(people, mean)
        X = world.X[people] if features is None else features(t, people, world.X[people], rewards)
        days = rng.uniform(1, 13, people.size) if delays is None else delays(rewards)
        chosen_at = START + t * WEEK
        records.append(
            RoundRecord(
                number=t + 1,
                chosen_at=chosen_at,
                closes_at=chosen_at + 2 * WEEK,
                closed=True,
                ids=world.ids[people],
                shares=np.repeat(["chosen", "holdout"], [k, people.size - k]),
                features=X,
                rewards=rewards,
                came=np.ones(people.size, dtype=bool),
                received_at=chosen_at.timestamp() + 86400 * days,
                predicted=policy.state.mean(world.X[people].astype(float)),
                bonus=np.r_[choice.bonus, np.zeros(people.size - k)],
                capped=np.r_[choice.capped, np.zeros(people.size - k, dtype=bool)],
                probabilities=np.full(people.size, np.nan),
                groups={"region": REGIONS[world.region[people]]},
                details={"exploring": 1 - np.isin(choice.indices, greedy).mean()},
            )
        )
        waiting.append((t, X.astype(float), rewards))
    for _, X, r in waiting:
        policy.learn(X, r)
    return records


def opened(record: RoundRecord, known) -> RoundRecord:
    """Return the round as one whose window is open, with the outcomes of some people."""
    rewards, received = np.where(known, record.rewards, np.nan), np.where(known, record.received_at, np.nan)
    return replace(record, closed=False, rewards=rewards, received_at=received, came=np.asarray(known))
