"""A made news page: articles, readers, and what they click, which only the demo knows."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from armful.checks import FloatArray, IntArray

ID, REWARD = "article", "clicked"
CONTEXT = ("device", "daypart")
TOPICS = ("politics", "sport", "science", "culture", "cooking", "travel")
DEVICES = ("phone", "desktop")
DAYPARTS = ("morning", "noon", "evening")
N_ARTICLES, SLATE = 100, 5
EXAMINED = np.array([1.0, 0.8, 0.65, 0.55, 0.45])
"""How likely a reader looks at each place of the page."""

_OF_DAYPART = {
    "morning": {"politics": 1.3, "sport": 0.3},
    "noon": {"cooking": 1.2, "science": 0.4},
    "evening": {"culture": 1.0, "travel": 0.9, "sport": 0.6},
}


class NewsPage:
    """Articles with columns, and readers whose clicks depend on them.

    Parameters
    ----------
    seed : int
        The same seed gives the same articles.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    @staticmethod
    def columns() -> list[str]:
        """Return the columns of a past impression."""
        return [ID, "topic", "minutes", "video", "popularity", *CONTEXT, REWARD]

    @cached_property
    def articles(self) -> dict[str, dict[str, Any]]:
        """The columns of each article."""
        rng = np.random.default_rng([self._seed, 1])
        return {
            f"article-{i:03d}": {
                "topic": TOPICS[rng.integers(len(TOPICS))],
                "minutes": int(rng.integers(1, 13)),
                "video": "yes" if rng.random() < 0.3 else "no",
                "popularity": round(float(rng.beta(2, 3)), 3),
            }
            for i in range(N_ARTICLES)
        }

    def reader(self, rng: np.random.Generator) -> dict[str, str]:
        """Return the context of a reader."""
        device = DEVICES[int(rng.random() < 0.4)]
        return {"device": device, "daypart": DAYPARTS[rng.integers(len(DAYPARTS))]}

    def probability(self, context: dict[str, str]) -> dict[str, float]:
        """Return the probability that a reader who looks at an article clicks it, for each article."""
        liked, on_phone = _OF_DAYPART[context["daypart"]], context["device"] == "phone"
        found = {}
        for id, article in self.articles.items():
            odds = -3.2 + liked.get(article["topic"], 0.0) + 1.6 * article["popularity"]
            odds += 0.7 * (article["video"] == "yes") * on_phone - 0.10 * article["minutes"] * on_phone
            found[id] = float(1 / (1 + np.exp(-odds)))
        return found

    def clicks(self, shown: list[str], probability: dict[str, float], rng: np.random.Generator) -> list[str]:
        """Return which of the articles on a page, in its order, a reader clicks."""
        chances = EXAMINED[: len(shown)] * [probability[id] for id in shown]
        return [id for id, clicked in zip(shown, rng.random(len(shown)) < chances, strict=True) if clicked]

    def impressions(self, n: int) -> Iterator[dict[str, Any]]:
        """Yield past impressions of articles that were shown at random, each at the first place."""
        rng = np.random.default_rng([self._seed, 2])
        ids = list(self.articles)
        picked: IntArray = rng.integers(len(ids), size=n)
        for i in picked:
            context = self.reader(rng)
            clicked = bool(self.clicks([ids[i]], self.probability(context), rng))
            yield {ID: ids[i], **self.articles[ids[i]], **context, REWARD: int(clicked)}


def expected_clicks(shown: list[str], probability: dict[str, float]) -> float:
    """Return the mean number of clicks on a page."""
    return float(EXAMINED[: len(shown)] @ np.array([probability[id] for id in shown]))


def best_clicks(probability: dict[str, float]) -> float:
    """Return the mean number of clicks on the best page."""
    best: FloatArray = np.sort(np.array(list(probability.values())))[::-1][:SLATE]
    return float(EXAMINED @ best)


def random_clicks(probability: dict[str, float]) -> float:
    """Return the mean number of clicks on a page of random articles."""
    return float(EXAMINED.sum() * np.mean(list(probability.values())))
