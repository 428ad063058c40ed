"""A made campaign for the dashboard: what a service would publish, and more of it when told."""

import math
import random
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

from armful.campaigns.decisions._series import mean_of
from armful.service.dashboard._why import why

EFFECTS = {
    "age of the article": -0.121,
    "topic: local": 0.094,
    "reads in the last hour": 0.083,
    "author followed": 0.071,
    "topic: sport": 0.062,
    "has video": 0.055,
    "device: phone x has video": 0.047,
    "topic: culture": 0.041,
    "length": -0.034,
    "topic: politics": -0.018,
    "device: desktop x length": 0.012,
    "hour of the day": -0.009,
}
AUDIT = [
    ("ok", "The cap", "No reward is above the cap of 1: 0 of 46,210.", ""),
    ("ok", "Good and bad times", "Rewards of one time have little in common: 0.4 % of their variance.", ""),
    (
        "warning",
        "Effects that change",
        "The effect of `age of the article` is not the one it was: -0.09 at first and -0.15 in the last third, which "
        "chance explains once in 4,000 cases.",
        "Set `discount = 0.999` in the table `[learning]`.",
    ),
    ("ok", "Straight lines", "Straight lines fit: no feature has a bend that chance does not explain.", ""),
    ("open", "Late rewards", "Whether late outcomes are like early ones needs 100 of them, and 41 are there.", ""),
]


class MadeSource:
    """A source of made data, with `n` campaigns; `pass_time` adds a point, decisions and a model version.

    The points end at `now`: `pass_time` adds one in front of the others, or behind them where time passes (`moves`).
    """

    def __init__(
        self, n: int = 1, *, points: int = 96, n_open: int = 0, now: datetime | None = None, moves: bool = False
    ) -> None:
        self.names = ["front-page", "newsletter", "<b>odd</b> & long name of a campaign"][:n]
        self.now = now or datetime.now(UTC)
        self.points, self.n_open, self.version, self.reads = points, n_open, 41, 0
        self.step, self.moves = timedelta(minutes=15), moves
        self.trouble: str | Exception = ""
        self.audit_levels = [level for level, *_ in AUDIT]
        self._lock = threading.Lock()

    def campaigns(self) -> list[dict[str, str]]:
        return [{"name": name, "kind": "service"} for name in self.names]

    def stamp(self, campaign: str) -> Any:
        if self.trouble:
            raise self.trouble if isinstance(self.trouble, Exception) else OSError(self.trouble)
        return self.version

    def pass_time(self) -> int:
        with self._lock:
            self.version += 1
            self.points += 1
            if self.moves:
                self.now += self.step
            return self.version

    def data(self, campaign: str) -> dict[str, Any]:
        with self._lock:
            self.reads += 1
            made = made_data(
                campaign, points=self.points, n_open=self.n_open, version=self.version, now=self.now, step=self.step
            )
            audit = [{**each, "level": level} for each, level in zip(made["audit"], self.audit_levels, strict=True)]
            return {**made, "audit": audit}


def made_data(
    campaign: str,
    *,
    points: int,
    version: int,
    now: datetime,
    kind: str = "service",
    n_open: int = 0,
    step: timedelta = timedelta(minutes=15),
) -> dict[str, Any]:
    series = [_point(i, now - (points - i) * step, step) for i in range(points)]
    series = series[: points - n_open] + [_opened(each, i, n_open) for i, each in enumerate(series[points - n_open :])]
    decisions = sum(each["decisions"] for each in series)
    return {
        "campaign": campaign,
        "kind": kind,
        "made_at": now.isoformat(),
        "sentence": "Chosen sets earn 23 % more than random ones.",
        "decisions": decisions,
        "rewards": 5 * decisions - 382,
        "outstanding": 382,
        "reward_name": "click",
        "ready_features": False,
        "missing": 0.0,
        "explores_by": "bonus",
        "model": {
            "version": version,
            "made_at": (now - timedelta(seconds=12)).isoformat(),
            "checked_at": now.isoformat(),
            "n_observations": 5 * decisions - 382,
            "update_every_seconds": 30,
            "suggested_seconds": 42,
        },
        "series": series,
        "lift": {
            "value": 0.0312,
            "low": 0.0248,
            "high": 0.0377,
            "certainty": "sure",
            "relative": 0.23,
            "sentence": "+23 % (95 % CI 18 .. 28); the holdout cost about 310 clicks",
        },
        "coefficients": [
            {"name": name, "value": value, "low": value - 0.014 - 0.001 * i, "high": value + 0.014 + 0.001 * i}
            for i, (name, value) in enumerate(EFFECTS.items())
        ],
        "quotas": [
            {
                "column": "topic",
                "group": group,
                "n": int(decisions * 5 * share),
                "share": share,
                "at_least": None,
                "at_most": 2,
            }
            for group, share in [("local", 0.38), ("sport", 0.24), ("culture", 0.2), ("politics", 0.18)]
        ],
        "positions": [{"position": i + 1, "weight": 0.82**i, "mean": 0.21 * 0.82**i} for i in range(5)],
        "audit": [
            {"level": level, "title": title, "sentence": sentence, "remedy": remedy}
            for level, title, sentence, remedy in AUDIT
        ],
        "notes": ["Rewards of 41 decisions came after their window of 30 minutes had closed; they do not count."],
        "last_decisions": [_decision(decisions - i, version, now - timedelta(seconds=3 * i)) for i in range(12)],
    }


def _point(i: int, at: datetime, step: timedelta) -> dict[str, Any]:
    random_ = random.Random(i)
    level = 0.135 + 0.015 * math.sin(i / 15)
    learned = 1 - math.exp(-i / 22)

    def share(n: int, mean: float) -> Any:
        """Return the mean of decisions with three rewards each, which are alike to some degree."""
        error = math.sqrt(mean * (1 - mean) / n)
        value = max(0.0, mean + random_.gauss(0, 0.65 * error))
        squares = (1 + random_.random()) * n * value * (1 - value) + 3 * n * value**2
        totals = {"n": n, "sum": n * value, "squares": squares, "product": 3 * n * value, "sizes": 3 * n}
        return mean_of({f"a_{name}": each for name, each in totals.items()}, "a", yes_or_no=True)

    n = 150 + random_.randrange(60)
    return {
        "from": at.isoformat(),
        "to": (at + step).isoformat(),
        "decisions": n,
        "open": 0,
        "chosen": share(5 * n - n // 2, level + 0.034 * learned),
        "holdout": share(max(n // 2, 30), level),
        "explored": share(40, level - 0.02) if i % 9 != 4 else {"n": 0, "mean": None, "low": None, "high": None},
        "predicted": level + 0.03 * learned,
        "exploring": 0.065 + 0.02 * random_.random(),
        "capped": 0.2 * (1 - learned),
    }


def _opened(point: dict[str, Any], i: int, n_open: int) -> dict[str, Any]:
    """Return the ith of the points that are open, the first of them nearly closed: few rewards of the last came."""
    came = 1 - (i + 0.5) / n_open
    means = {
        share: {
            "n": point[share]["n"],
            "mean": point[share]["mean"] and came * point[share]["mean"],
            "low": None,
            "high": None,
        }
        for share in ("chosen", "holdout", "explored")
    }
    return {**point, **means, "open": max(1, round((1 - came) * point["decisions"]))}


def _decision(number: int, version: int, at: datetime) -> dict[str, Any]:
    random_ = random.Random(number)
    ids = random_.sample(
        ["storm-on-the-coast", "derby-ends-level", "new-tram-line", "museum-opens", "council-votes", "bread-prices"], 6
    )
    share = "holdout" if number % 11 == 0 else "chosen"
    arms = []
    for i, id in enumerate(ids):
        predicted, bonus = 0.24 - 0.02 * i + 0.01 * random_.random(), 0.03 + 0.02 * random_.random()
        arms.append(
            {
                "id": id,
                "position": i + 1,
                "share": share,
                "predicted": predicted,
                "bonus": bonus,
                "capped": False,
                "probability": 0.98 - 0.01 * i,
                "score": predicted + bonus,
                "reward": None if number % 3 == 0 else float(random_.random() < 0.2),
            }
        )
    runner_up = arms.pop()
    runner_up = {key: runner_up[key] for key in ("id", "predicted", "bonus", "score")}
    decision = {
        "decision_id": str(number),
        "decided_at": at.isoformat(),
        "unit_present": number % 2 == 0,
        "share": share,
        "model_version": version,
        "n_candidates": 48,
        "chosen": arms,
        "runner_up": runner_up if share == "chosen" else None,
    }
    return {**decision, "why": why(decision)}
