"""24 hours of a small service in a minute: nothing grows but the ledger, and that as the documentation computes it."""

import gc
import re
import sqlite3
import sys
import threading
import tracemalloc
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from armful.campaigns.decisions import DecisionFold, PublishedModel, update_model
from tests.service.a_day import DECISIONS_IN_A_TICK, D, K, a_day

pytestmark = pytest.mark.slow

STRETCHES, STRETCH = 5, timedelta(hours=4)
"""Memory is compared from stretch to stretch, after one to warm up. What is kept for each decision grows in all of
them; a table of Python's own that is doubled, as that of interned strings by megabytes, grows in one."""
BLOCKS_A_DECISION = 0.5
"""Memory may grow by so many blocks for each decision: an object that is kept for each one would be one block or more.
A segment of 512 decisions is about fifty."""
BYTES_A_DECISION = 100
"""The same in bytes, those of arrays too: the features of its arms would be 200, and a segment is 18,000 for 512."""
TOLERANCE = 0.1
"""Of the formula for the size of the ledger."""
PAGE = Path(__file__).parents[2] / "docs/howto/deploy-the-service.md"
FORMULA = re.compile(r"^    bytes = (.*)$", re.MULTILINE)


def memory() -> tuple[int, int]:
    """Return how many blocks of memory Python has given out, and how many bytes, those of arrays included."""
    gc.collect()
    return sys.getallocatedblocks(), tracemalloc.get_traced_memory()[0]


def growth_of_memory(day):
    """Return how many blocks and bytes more there are after a typical stretch of the day, for each of its decisions."""
    tracemalloc.start()
    try:
        day.pass_time(STRETCH)
        seen, n_before = [memory()], day.n_decisions
        for _ in range(STRETCHES):
            day.pass_time(STRETCH)
            seen.append(memory())
    finally:
        tracemalloc.stop()
    return np.median(np.diff(seen, axis=0), axis=0) / ((day.n_decisions - n_before) / STRETCHES)


def rows_of(folder, query):
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as connection:
        return connection.execute(query).fetchall()


def file_size(folder):
    return (folder / "ledger.sqlite").stat().st_size


def documented_size(folder):
    """Return what the formula of the page says."""
    ((n, key, unit),) = rows_of(folder, "SELECT count(*), avg(length(key)), avg(length(unit)) FROM rounds")
    ((arms, id),) = rows_of(folder, "SELECT count(*), avg(length(arm)) FROM chosen")
    ((rewards,),) = rows_of(folder, "SELECT count(*) FROM rewards")
    (formula,) = FORMULA.findall(PAGE.read_text(encoding="utf-8"))
    values = {"decisions": n, "k": arms / n, "d": D, "rewards": rewards / n, "id": id, "key": key, "unit": unit}
    return eval(formula, {}, values)


def plain_model(folder, now):
    """Return the ridge regression of all rewards in closed windows, read by plain SQL: Gram matrix, X'r and n."""
    query = """
    SELECT features, (
        SELECT reward FROM rewards WHERE rewards.round_id = rounds.id AND rewards.arm = chosen.arm
        ORDER BY seq DESC LIMIT 1
    )
    FROM chosen JOIN rounds ON rounds.id = chosen.round_id WHERE closes_at <= ?
    """
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as connection:
        rows = connection.execute(query, (f"{now:%Y-%m-%d %H:%M:%S.%f}",)).fetchall()
    X = np.frombuffer(b"".join(features for features, _ in rows), dtype="<f4").reshape(-1, D).astype(np.float64)
    r = np.array([0.0 if reward is None else reward for _, reward in rows])
    return np.eye(D) + X.T @ X, X.T @ r, len(r)


def assert_model_is_that_of_the_ledger(day):
    update_model(day.fold, day.clock())
    _, state, _ = day.campaign.ledger.newest_model()
    learned = PublishedModel.from_bytes(state).state
    V, b, n = plain_model(day.folder, day.clock())
    assert learned.n == n
    mean, width = learned.mean_and_width(np.eye(D))
    np.testing.assert_allclose(mean, np.linalg.solve(V, b), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(width, np.sqrt(np.diag(np.linalg.inv(V))), rtol=1e-8)


class Compacting(threading.Thread):
    """Compacts a ledger again and again, beside everything else, until it is told to end."""

    def __init__(self, ledger):
        super().__init__()
        self._ledger, self._over, self.n, self.error = ledger, threading.Event(), 0, None
        self.has_compacted = threading.Event()

    def run(self):
        try:
            while not self._over.is_set():
                self._ledger.compact()
                self.n += 1
                self.has_compacted.set()
        except Exception as error:
            self.error = error
            self.has_compacted.set()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self._over.set()
        self.join()
        assert self.error is None, self.error


def test_24_hours_in_a_minute(tmp_path):
    with a_day(tmp_path / "autumn") as day:
        folder, ledger = day.folder, day.campaign.ledger
        blocks, size = growth_of_memory(day)
        assert blocks < BLOCKS_A_DECISION
        assert size < BYTES_A_DECISION

        # Nothing but decisions and rewards has grown in the ledger.
        n = 24 * 60 * DECISIONS_IN_A_TICK
        assert day.n_decisions == ledger.last_number() == n
        assert rows_of(folder, "SELECT count(*), count(state), count(summary) FROM models") == [(100, 1, 1)]
        assert ledger.model_version() == 24 * 60 // 5
        assert rows_of(folder, "SELECT count(*) FROM snapshots") == [(-(-n // 512),)]
        ledger.compact()
        assert file_size(folder) == pytest.approx(documented_size(folder), rel=TOLERANCE)
        assert (folder / "ledger.sqlite-wal").stat().st_size < 2**23  # it is emptied by who writes, and used again

        # The model is the sum over the ledger, also of an updater that begins now, from what was saved.
        assert_model_is_that_of_the_ledger(day)
        reads = []
        resumed = DecisionFold(Noting(ledger, reads), day.campaign.settings, D)
        assert not resumed.update(day.clock())
        assert reads == []
        np.testing.assert_allclose(resumed.state.mean(np.eye(D)), day.fold.state.mean(np.eye(D)), rtol=1e-10)

        # The ledger is compacted while the service goes on.
        with Compacting(ledger) as compacting:
            day.pass_time(timedelta(minutes=30))
            compacting.has_compacted.wait()
            day.pass_time(timedelta(minutes=1))
        assert compacting.n > 0
        assert_model_is_that_of_the_ledger(day)

        # People are forgotten while the service is up, and the file is smaller then.
        ((unit, decided),) = rows_of(
            folder, "SELECT unit, count(*) FROM rounds WHERE unit IS NOT NULL GROUP BY unit ORDER BY 2 DESC LIMIT 1"
        )
        ((n_arms,),) = rows_of(folder, "SELECT count(*) FROM chosen")
        ledger.forget([unit])
        assert rows_of(folder, "SELECT count(*) FROM chosen") == [(n_arms - K * decided,)]
        everything = b"".join(path.read_bytes() for path in folder.iterdir() if path.name.startswith("ledger.sqlite"))
        assert unit.encode() not in everything
        day.pass_time(timedelta(minutes=30))
        assert_model_is_that_of_the_ledger(day)


class Noting:
    """A ledger that notes which blocks are read."""

    def __init__(self, ledger, reads):
        self._ledger, self._reads = ledger, reads

    def __getattr__(self, name):
        return getattr(self._ledger, name)

    def block(self, first, last):
        self._reads.append((first, last))
        return self._ledger.block(first, last)
