"""Durable decisions: what a transaction for each costs beside group commit, and how long processes wait for each other.

Decisions of k = 10 arms with d = 20 features, and requests of 10 rewards. All are measured in turn in one run, so that
ratios hold on a busy machine; the unit is one transaction for each decision, synced (`synchronous=FULL`).

    python benchmarks/ledger.py                                    # an SQLite file in a temporary folder, half a minute
    python benchmarks/ledger.py --url postgresql://me@host/empty   # the first part in a PostgreSQL database
"""

import argparse
import json
import multiprocessing
import os
import secrets
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import event

from armful.ledger import Decided, GroupCommit, Ledger, NewDecision, NewRewards, _sqlite

K, D = 10, 20
DETAILS = json.dumps({"n_candidates": 100, "runner_up": {"id": "article-17", "predicted": 0.12, "bonus": 0.03}})
SIZES = (1, 8, 64)


def decisions(n: int) -> list[NewDecision]:
    """Return made decisions, with a key and a unit each."""
    rng, made = np.random.default_rng(), []
    for _ in range(n):
        now, arms, X = datetime.now(UTC), rng.choice(1000, K, replace=False).tolist(), rng.normal(size=(K, D))
        data, numbers = X.astype("<f4"), rng.random((K, 3)).tolist()
        made.append(
            NewDecision(
                key=secrets.token_hex(16),
                unit=f"user-{secrets.randbelow(10**6)}",
                model_version=1,
                chosen_at=now,
                closes_at=now + timedelta(minutes=30),
                n_features=D,
                details=DETAILS,
                rows=[
                    (f"article-{arms[i]}", i, "chosen", *numbers[i][:2], False, numbers[i][2], data[i].tobytes(), None)
                    for i in range(K)
                ],
            )
        )
    return made


def rewards_of(decided: Any, decision: NewDecision) -> NewRewards:
    """Return a request with a reward for each arm."""
    rewards = [(decided.number, row[0], float(row[1] < 2)) for row in decision.rows]
    return NewRewards(rewards=rewards, received_at=datetime.now(UTC), strict=True)


@contextmanager
def stopwatch(times: list[tuple[float, float]], n: int) -> Iterator[None]:
    """Append the microseconds of each of n requests: elapsed, and of our CPU."""
    elapsed, cpu = time.perf_counter(), time.process_time()
    yield
    times.append((1e6 * (time.perf_counter() - elapsed) / n, 1e6 * (time.process_time() - cpu) / n))


def measure_transactions(ledgers: dict[str, Ledger], seconds: float) -> None:
    """Print what a request costs in transactions of 1, 8 and 64 requests."""
    times: dict[tuple[str, str, int], list[tuple[float, float]]] = defaultdict(list)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, ledger in ledgers.items():
            for size in SIZES:
                made = decisions(size)
                with stopwatch(times["decision", name, size], size):
                    answers = ledger.add_decisions(made)
                requests = [rewards_of(*pair) for pair in zip(answers, made, strict=True)]
                with stopwatch(times["10 rewards", name, size], size):
                    ledger.add_reward_requests(requests)
    print(f"{'':12} {'':8} {'in one':>7} {'elapsed':>9} {'CPU':>8}   elapsed, as a part of the unit")
    unit = {what: np.median(times[what, "FULL", 1], axis=0)[0] for what in ("decision", "10 rewards")}
    for (what, name, size), found in sorted(times.items()):
        elapsed, cpu = np.median(found, axis=0)
        print(f"{what:12} {name:8} {size:7} {elapsed:6.0f} us {cpu:5.0f} us   {elapsed / unit[what]:.3f}")


def serve(url: str, in_turns: bool, n_at_once: int, seconds: float, start: Any, answers: Any) -> None:
    """Decide through a GroupCommit with so many requests on their way; send the waiting times, in milliseconds."""
    if not in_turns:
        _sqlite.begin_immediate = lambda cursor, *_: cursor.execute("BEGIN IMMEDIATE")  # type: ignore[assignment]
    waited: list[float] = []
    with Ledger.open(url, "benchmark") as ledger:
        group, room, made = GroupCommit(ledger), threading.Semaphore(n_at_once), decisions(512)
        start.wait()
        end, i = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            room.acquire()
            begin = time.perf_counter()
            d = made[i % len(made)]
            again = NewDecision(**{name: getattr(d, name) for name in d.__slots__} | {"key": None})

            def done(_: Decided | Exception, begin: float = begin) -> None:
                waited.append(1e3 * (time.perf_counter() - begin))
                room.release()

            group.decide(again, done)
            i += 1
        group.close()
    answers.put(waited)


def measure_processes(folder: Path, seconds: float) -> None:
    """Print how long decisions wait when several processes write to one SQLite file."""
    context = multiprocessing.get_context("spawn")
    print("\nwaiting for a durable decision, 16 on their way in each process, in milliseconds")
    print(
        f"{'processes':>9} {'waiting':14} {'p50':>6} {'p99':>6} {'longest':>7} {'per second':>10}   least of a process"
    )
    for n in (1, 2, 4):
        for in_turns in (False, True):
            url = f"sqlite:///{folder / f'{n}-{in_turns}.sqlite'}"
            Ledger.open(url, "benchmark", create=True).close()
            start, answers = context.Barrier(n), context.Queue()
            arguments = (url, in_turns, 16, seconds, start, answers)
            processes = [context.Process(target=serve, args=arguments) for _ in range(n)]
            for process in processes:
                process.start()
            found = [answers.get(timeout=100 * seconds) for _ in processes]
            for process in processes:
                process.join()
            waited, least = np.concatenate(found), min(map(len, found)) / max(1, sum(map(len, found)))
            p50, p99 = np.percentile(waited, (50, 99))
            how = "in turns" if in_turns else "of SQLite"
            rate = len(waited) / seconds
            print(f"{n:9} {how:14} {p50:6.1f} {p99:6.1f} {waited.max():7.0f} {rate:8.0f}   {least:.2f}")


def measure_bytes(folder: Path) -> None:
    """Print the size of a decision, without and with a reward for each arm."""
    with Ledger.open(f"sqlite:///{folder / 'size.sqlite'}", "benchmark", create=True) as ledger:
        sizes = [os.path.getsize(folder / "size.sqlite")]
        made = decisions(20_000)
        answers = [a for begin in range(0, len(made), 500) for a in ledger.add_decisions(made[begin : begin + 500])]
        ledger.compact()
        sizes.append(os.path.getsize(folder / "size.sqlite"))
        requests = [rewards_of(*pair) for pair in zip(answers, made, strict=True)]
        for begin in range(0, len(requests), 500):
            ledger.add_reward_requests(requests[begin : begin + 500])
        grown = os.path.getsize(folder / "size.sqlite")
        ledger.compact()
        sizes.append(os.path.getsize(folder / "size.sqlite"))
    n = len(made)
    print(f"\nbytes of a decision: {(sizes[1] - sizes[0]) / n:.0f}, with 10 rewards {(sizes[2] - sizes[0]) / n:.0f}")
    print(f"bytes before the file is compacted: {(grown - sizes[0]) / n:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", help="an empty PostgreSQL database, instead of SQLite files")
    parser.add_argument("--seconds", type=float, default=10.0, help="for the first part; the others take as long")
    options = parser.parse_args()
    if options.url:
        with Ledger.open(options.url, "benchmark", create=True) as ledger:
            measure_transactions({"FULL": ledger}, options.seconds)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        full = Ledger.open(f"sqlite:///{folder / 'full.sqlite'}", "benchmark", create=True)
        normal = Ledger.open(f"sqlite:///{folder / 'normal.sqlite'}", "benchmark", create=True)
        event.listen(normal._store.engine, "checkout", lambda c, *_: c.execute("PRAGMA synchronous = NORMAL"))
        normal._store.check_durable = lambda _: None  # type: ignore[method-assign]
        with full, normal:
            measure_transactions({"FULL": full, "NORMAL": normal}, options.seconds)
        measure_processes(folder, options.seconds / 6)
        measure_bytes(folder)


if __name__ == "__main__":
    main()
