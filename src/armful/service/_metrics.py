"""What Prometheus reads: decisions, rewards, latencies, the queue, the model, errors."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector

SECONDS = (0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.02, 0.03, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The variable with the folder of several workers' metrics; prometheus-client reads it when it is imported."""
MEMORY = Path("/dev/shm")
"""Files in memory, on Linux. Workers map the files of metrics: on a full disk a write to a new page would kill them."""


@contextmanager
def shared_metrics(workers: int) -> Iterator[None]:
    """Let workers that are started within share a folder for their metrics, if there are several."""
    if workers == 1 or FOLDER in os.environ:
        yield
        return
    where = MEMORY if os.access(MEMORY, os.W_OK | os.X_OK) else None
    with TemporaryDirectory(prefix="armful-metrics-", dir=where, ignore_cleanup_errors=True) as folder:
        os.environ[FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[FOLDER]


class Metrics:
    """The counters of one worker. With several workers they share a folder, named by PROMETHEUS_MULTIPROC_DIR."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        _make_folder_again()
        _forget_dead_workers()
        self.decisions = Counter("armful_decisions", "Decisions made", ["share"], registry=registry)
        self.repeated = Counter("armful_decisions_repeated", "Decisions asked for again by key", registry=registry)
        self.rewards = Counter("armful_rewards", "Rewards received", ["kind"], registry=registry)
        self.requests = Counter("armful_requests", "Requests", ["route", "status"], registry=registry)
        self.errors = Counter("armful_errors", "Requests that failed in the service", ["route"], registry=registry)
        self.latency = Histogram(
            "armful_request_seconds", "Time to answer", ["route"], buckets=SECONDS, registry=registry
        )
        self.batch = Histogram(
            "armful_commit_size", "Requests written in one transaction", buckets=SIZES, registry=registry
        )
        self.waiting = Gauge(
            "armful_commit_waiting", "Requests to be written", registry=registry, multiprocess_mode="livesum"
        )
        self.model_version = Gauge(
            "armful_model_version", "Version of the model", registry=registry, multiprocess_mode="livemin"
        )
        self.model_made = Gauge(
            "armful_model_made_timestamp_seconds",
            "When the model was made",
            registry=registry,
            multiprocess_mode="livemin",
        )
        self.model_age = Gauge(
            "armful_model_age_seconds", "Age of the model", registry=registry, multiprocess_mode="livemax"
        )
        self.model_checked = Gauge(
            "armful_model_checked_timestamp_seconds",
            "When the model was last found to be up to date",
            registry=registry,
            multiprocess_mode="livemax",
        )
        self.arms = Gauge("armful_registered_arms", "Registered arms", registry=registry, multiprocess_mode="livemax")
        self._made_at: float | None = None
        self._decided: dict[str, Callable[[], None]] = {}
        self._answered: dict[tuple[str, int], tuple[Callable[[], None], Callable[[float], None]]] = {}

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count an answer."""
        key = (route, status)
        counters = self._answered.get(key)
        if counters is None:
            counters = self._answered[key] = (
                self.requests.labels(route, str(status)).inc,
                self.latency.labels(route).observe,
            )
        counters[0]()
        counters[1](seconds)

    def decided(self, share: str) -> None:
        """Count a decision."""
        counter = self._decided.get(share)
        if counter is None:
            counter = self._decided[share] = self.decisions.labels(share).inc
        counter()

    def model(self, version: int, made_at: float | None) -> None:
        """Note which model decides, and when it was made, in seconds since 1970."""
        self._made_at = made_at
        self.model_version.set(version)
        if made_at is not None:
            self.model_made.set(made_at)
        self._note_age()

    def text(self) -> bytes:
        """Return all metrics of all workers, in Prometheus' format."""
        registry = self._registry
        if FOLDER in os.environ:
            _make_folder_again()
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return bytes(generate_latest(registry))

    def refresh(self, n_waiting: int, n_registered: int) -> None:
        """Note what changes by itself: the age of the model, requests that wait to be written, registered arms."""
        self.waiting.set(n_waiting)
        self.arms.set(n_registered)
        self._note_age()

    def _note_age(self) -> None:
        if self._made_at is not None:
            self.model_age.set(max(0.0, time.time() - self._made_at))


def _make_folder_again() -> None:
    """Make the shared folder if it is gone: systemd removes what a user has in memory when that user logs out."""
    if FOLDER in os.environ:
        Path(os.environ[FOLDER]).mkdir(mode=0o700, exist_ok=True)


def _forget_dead_workers() -> None:
    """Remove the gauges of workers that have ended, which would be counted with those of the living."""
    for file in Path(os.environ[FOLDER]).glob("gauge_live*_*.db") if FOLDER in os.environ else ():
        with suppress(ValueError, OSError):
            pid = int(file.stem.rpartition("_")[2])
            if not _is_alive(pid):
                file.unlink()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
