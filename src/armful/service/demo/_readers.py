"""Made readers: a process that asks the service for pages and reports clicks, some seconds later."""

import json
import logging
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from armful.errors import ServiceError
from armful.service._children import Lifeline
from armful.service._logging import LOGGER, configure_logging
from armful.service.client import Client, Decision
from armful.service.demo._news import NewsPage, best_clicks, expected_clicks, random_clicks

N_THREADS = 2
PAGES_PER_SECOND = 40.0
"""Of all threads together."""
LATE_SECONDS = 3.0
"""The mean time from a page to a click on it; the window of the demo is 20 seconds."""
LATEST_SECONDS = 15.0
N_READERS = 400


@dataclass(kw_only=True)
class Totals:
    """What the readers saw, and how good it was in truth.

    Attributes
    ----------
    pages, holdout_pages : int
        Pages chosen by the model, and at random.
    clicks : int
        On all of them.
    chosen, at_random, best : float
        The clicks to expect on the pages that the model chose, had they been random ones, and had they been the best.
    late : list of (str, str)
        Decisions and articles whose click had not been reported when the service ended.
    """

    pages: int = 0
    holdout_pages: int = 0
    clicks: int = 0
    chosen: float = 0.0
    at_random: float = 0.0
    best: float = 0.0
    late: list[tuple[str, str]] = field(default_factory=list)

    def add(self, decision: Decision, probability: dict[str, float], n_clicks: int) -> None:
        """Count a page."""
        self.clicks += n_clicks
        if decision.share == "holdout":
            self.holdout_pages += 1
            return
        self.pages += 1
        self.chosen += expected_clicks(decision.ids, probability)
        self.at_random += random_clicks(probability)
        self.best += best_clicks(probability)


def read_totals(path: Path) -> Totals | None:
    """Return what `run_readers` wrote; None if it wrote nothing."""
    try:
        return Totals(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def run_readers(lifeline: Lifeline, url: str, seed: int, totals: Path) -> None:
    """Ask for pages and click until the lifeline ends, then write the totals.

    Parameters
    ----------
    lifeline : Lifeline
        Of this process.
    url : str
        The address of the service.
    seed : int
        Of the articles.
    totals : Path
        The file to write.
    """
    configure_logging(logging.WARNING)
    over = threading.Event()
    lifeline.when_to_end(over.set)
    lifeline.ready()
    page, counted, lock = NewsPage(seed), Totals(), threading.Lock()
    with Client(url) as client:
        if not _register(client, page, over):
            return
        threads = [threading.Thread(target=_read, args=(client, page, over, counted, lock)) for _ in range(N_THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    totals.write_text(json.dumps(asdict(counted)), encoding="utf-8")


def _register(client: Client, page: NewsPage, over: threading.Event) -> bool:
    """Register the articles, once the service answers; return whether that was done."""
    while not over.is_set():
        try:
            client.put_arms(page.articles)
            return True
        except ServiceError:
            over.wait(0.2)
    return False


def _read(client: Client, page: NewsPage, over: threading.Event, counted: Totals, lock: threading.Lock) -> None:
    """Let readers come one after the other, and report their clicks when they are due."""
    rng = np.random.default_rng()  # another stream at every start: the service decides, not the seed
    known: dict[tuple[str, ...], dict[str, float]] = {}
    due: list[tuple[float, str, str]] = []
    while not over.wait(float(rng.exponential(N_THREADS / PAGES_PER_SECOND))):
        try:
            context = page.reader(rng)
            probability = known.setdefault(tuple(context.values()), page.probability(context))
            decision = client.decide(context=context, unit=f"reader-{rng.integers(N_READERS)}")
            clicked = page.clicks(decision.ids, probability, rng)
            for id in clicked:
                delay = min(float(rng.exponential(LATE_SECONDS)), LATEST_SECONDS)
                due.append((time.monotonic() + delay, decision.decision_id, id))
            with lock:
                counted.add(decision, probability, len(clicked))
            now = time.monotonic()
            ready = [(decision_id, id, 1.0) for at, decision_id, id in due if at <= now]
            if ready:
                client.rewards(ready)
                due = [each for each in due if each[0] > now]
        except ServiceError as error:
            if not over.is_set():
                LOGGER.warning("a reader was not served: %s", error)
    with lock:
        counted.late += [(decision_id, id) for _, decision_id, id in due]
