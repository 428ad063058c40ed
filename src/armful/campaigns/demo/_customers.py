"""The customers of `armful demo`, and how they respond: a made truth that the campaign has to find out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import expit

from armful.checks import FloatArray, IntArray

REGIONS = {"north": 0.28, "south": 0.25, "west": 0.22, "east": 0.18, "islands": 0.07}
CHANNELS = {"web": 0.38, "shop": 0.27, "app": 0.22, "phone": 0.13}
TIERS = {"bronze": 0.6, "silver": 0.3, "gold": 0.1}
INTERESTS = ("garden", "sport", "books", "cooking", "travel", "music", "pets", "tools")
TODAY = np.datetime64("2026-01-05")


@dataclass(frozen=True, eq=False, kw_only=True)
class DemoCustomers:
    """Customers and their probability of buying when they are contacted; n customers, T weeks.

    Attributes
    ----------
    columns : pyarrow.Table
        What the campaign sees of them, with the column `customer_id`.
    log_odds : ndarray, shape (n,)
        Of buying in an ordinary first week.
    drift : ndarray, shape (n,)
        What is added to the log odds from one week to the next.
    shocks : ndarray, shape (T,)
        What a week adds to the log odds of everybody.
    seed : int
    """

    columns: pa.Table
    log_odds: FloatArray
    drift: FloatArray
    shocks: FloatArray
    seed: int

    def probability(self, week: int) -> FloatArray:
        """Return everybody's probability of buying when contacted in a week, counted from 1; `(n,)`."""
        return np.asarray(expit(self.log_odds + self.drift * (week - 1) + self.shocks[week - 1]))

    def responses(self, week: int) -> tuple[NDArray[np.bool_], IntArray]:
        """Return who would buy if contacted in a week, and how many days later; each `(n,)`.

        They do not depend on who is contacted, so that everything is the same for the same seed.
        """
        rng = np.random.default_rng([self.seed, week])
        buys = rng.random(len(self.log_odds)) < self.probability(week)
        return buys, rng.geometric(0.25, len(buys))


def make_customers(n_customers: int, n_weeks: int, seed: int) -> DemoCustomers:
    """Return customers whose response depends on several columns, on pairs of them and on what no column shows."""
    rng = np.random.default_rng(seed)
    region, channel, tier = (_draw(rng, shares, n_customers) for shares in (REGIONS, CHANNELS, TIERS))
    age = np.clip(rng.normal(45, 16, n_customers), 18, 95).round()
    income = np.exp(rng.normal(10.4, 0.45, n_customers) + 0.25 * (tier == "gold")).round(-2)
    orders = rng.poisson(rng.gamma(0.7, 3.0, n_customers) + 2.0 * (tier == "gold"))
    days_since = np.where(orders > 0, rng.exponential(90 / np.maximum(orders, 1) ** 0.5), np.nan).round()
    basket = np.exp(rng.normal(3.4, 0.5, n_customers)).round(2)
    member_days = rng.gamma(2.0, 400, n_customers).astype(np.int64) + 30
    newsletter = rng.random(n_customers) < 0.35 + 0.2 * (channel == "app")
    likes = rng.random((n_customers, len(INTERESTS))) < 0.18

    log_odds = (
        -4.3
        + np.select([tier == "silver", tier == "gold"], [0.3, 0.7], 0.0)
        + np.select([channel == "app", channel == "web", channel == "phone"], [0.5, 0.2, -0.5], 0.0)
        + 0.5 * newsletter
        + 0.45 * np.log1p(orders)
        - 0.5 * ((age - 42) / 18) ** 2
        + np.where(np.isnan(days_since), -0.4, 0.5 * np.exp(-np.nan_to_num(days_since) / 30))
        + 0.5 * likes[:, INTERESTS.index("garden")]
        + 0.3 * likes[:, INTERESTS.index("cooking")]
        + 0.2 * (region == "south")
        - 0.2 * (region == "islands")
        + 0.6 * (channel == "app") * (age < 35)
        + 0.4 * newsletter * (tier == "gold")
        + 0.3 * (np.log(income) - 10.4) * (orders > 2)
        + rng.normal(0.0, 0.3, n_customers)
    )
    missing_age, missing_income = rng.random(n_customers) < 0.04, rng.random(n_customers) < 0.12
    columns: dict[str, Any] = {
        "customer_id": np.char.add("C", (1_000_000 + rng.permutation(n_customers)).astype(str)),
        "region": region,
        "channel": channel,
        "tier": tier,
        "age": pa.array(age.astype(np.int64), mask=missing_age),
        "income": pa.array(income.astype(np.int64), mask=missing_income),
        "orders_12m": orders,
        "days_since_order": pa.array(np.nan_to_num(days_since).astype(np.int64), mask=np.isnan(days_since)),
        "mean_basket": basket,
        "member_since": pa.array(TODAY - member_days.astype("timedelta64[D]")),
        "newsletter": np.where(newsletter, "yes", "no"),
        "interests": [" ".join(word for word, like in zip(INTERESTS, row, strict=True) if like) for row in likes],
    }
    return DemoCustomers(
        columns=pa.table(columns),
        log_odds=log_odds,
        drift=0.05 * (channel == "web") - 0.04 * (channel == "app"),
        shocks=rng.normal(0.0, 0.2, n_weeks),
        seed=seed,
    )


def _draw(rng: np.random.Generator, shares: dict[str, float], n: int) -> NDArray[np.str_]:
    return rng.choice(list(shares), size=n, p=list(shares.values()))
