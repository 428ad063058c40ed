"""One round of a large campaign: each step's share of the time, the whole as a multiple of reading the file, memory.

A file of made customers, 5 text and 15 numeric columns, is written as CSV and as Parquet. `choose` picks 4 % of them
under quotas by region, several times (the first round also fits the recipe, and knows nothing), and `learn` records an
outcome for each when the window of the round closes.
Every round runs in a process of its own, so that its largest memory is its own. Between the rounds pyarrow alone reads
the same file, all columns, batch by batch: its time is the unit, its processor time that of processor times. Customers
are prepared in threads while the next are read, so of what is done there the time of each thread is printed too; these
overlap, also with reading.

    python benchmarks/campaign.py                # 5,000,000 customers, about 5 minutes and 4 GB of disk
    python benchmarks/campaign.py --rows 500000
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

REGIONS = ["north", "south", "east", "west", "capital"]
BATCH = 100_000
SETTINGS = """\
name = "large"
id = "customer_id"

[choose]
k = {k}
rest = 1

[[choose.quotas]]
column = "region"
at_least = 0.1

[policy]
cap = 1.0

[features.columns]
region = {{ kind = "category" }}
{columns}

[outcomes]
reward = "bought"
"""


def batches(n: int) -> Iterator[pa.RecordBatch]:
    """Yield made customers: an id, 5 texts of 5 to 20 kinds, and 15 numbers, a few of them missing."""
    rng = np.random.default_rng(0)
    for begin in range(0, n, BATCH):
        size = min(BATCH, n - begin)
        columns: dict[str, Any] = {"customer_id": [f"C{i:08d}" for i in range(begin, begin + size)]}
        columns["region"] = pa.array(REGIONS).take(pa.array(rng.integers(len(REGIONS), size=size)))
        for i in range(4):
            labels = pa.array([f"kind {j}" for j in range(10 + 3 * i)])
            columns[f"text_{i}"] = labels.take(pa.array(rng.integers(len(labels), size=size)))
        for i in range(15):
            values = rng.lognormal(3, 1, size).round(2) if i % 3 == 0 else rng.integers(0, 100, size).astype(float)
            columns[f"number_{i}"] = pa.array(values, mask=rng.random(size) < 0.02 * (i % 5 == 0))
        yield pa.RecordBatch.from_pydict(columns)


def write_files(folder: Path, n: int) -> None:
    schema = next(batches(1)).schema
    with (
        csv.CSVWriter(folder / "customers.csv", schema) as texts,
        parquet.ParquetWriter(
            folder / "customers.parquet", schema, use_dictionary=["region", *(f"text_{i}" for i in range(4))]
        ) as columns,
    ):
        for batch in batches(n):
            texts.write(batch)
            columns.write_batch(batch)


def read_alone(path: Path) -> tuple[float, float]:
    """Return the seconds that pyarrow takes to read all columns, a batch at a time, and its processor time."""
    begin, processor = time.perf_counter(), time.process_time()
    if path.suffix == ".csv":
        for _ in csv.open_csv(path):
            pass
    else:
        for _ in parquet.ParquetFile(path, pre_buffer=False).iter_batches():
            pass
    return time.perf_counter() - begin, time.process_time() - processor


class Stopwatch:
    """The seconds of each step, and of what threads do at the same time."""

    def __init__(self) -> None:
        self.steps: dict[str, float] = defaultdict(float)
        self.in_threads: dict[str, float] = defaultdict(float)
        self._lock = Lock()

    def wrap(self, owner: Any, name: str, step: str, *, thread: bool = False) -> None:
        """Measure a function whenever it is called; thread: the time of its thread alone."""
        inner, clock = getattr(owner, name), time.thread_time if thread else time.perf_counter
        seconds = self.in_threads if thread else self.steps

        def call(*arguments: Any, **options: Any) -> Any:
            begin = clock()
            try:
                return inner(*arguments, **options)
            finally:
                with self._lock:
                    seconds[step] += clock() - begin

        setattr(owner, name, call)

    def wrap_reading(self, module: Any) -> None:
        """Measure how long each batch of `open_rows` takes."""
        inner = module.open_rows

        def call(*arguments: Any, **options: Any) -> Any:
            reader = inner(*arguments, **options)

            def timed_batches() -> Iterator[Any]:
                while True:
                    begin = time.perf_counter()
                    batch = next(reader.batches, None)
                    self.in_threads["reading"] += time.perf_counter() - begin
                    if batch is None:
                        return
                    yield batch

            return type(reader)(reader.schema, reader.n_rows, reader.n_bytes, timed_batches(), reader.read_bytes)

        module.open_rows = call


def stopwatch() -> Stopwatch:
    """Return one that measures the steps of a round."""
    from armful.campaigns import FeatureRecipe, _view, campaign
    from armful.campaigns.rounds import _choosing, _customers, _eligible
    from armful.campaigns.rounds._feature_file import FeatureFile
    from armful.ledger import Ledger

    watch = Stopwatch()
    watch.wrap_reading(_customers)
    for name in ("pack", "unpack"):
        watch.wrap(FeatureRecipe, name, "recipe", thread=True)
    watch.wrap(FeatureFile, "write", "writing", thread=True)
    for name in ("as_ids", "uniforms_of_texts", "_labels_and_codes"):
        watch.wrap(_customers, name, "ids, shares, groups", thread=True)
    watch.wrap(campaign, "fit_recipe", "fitting the recipe")
    watch.wrap(_view, "fold", "state")
    watch.wrap(_view, "pending_features", "state")
    watch.wrap(_eligible, "read_customers", "customers")
    watch.wrap(_choosing, "allowed_sets", "quotas")
    watch.wrap(_choosing, "_choose", "choosing")
    watch.wrap(_choosing, "_best_by_estimate", "best by estimate", thread=True)
    watch.wrap(_choosing, "_by_house_rule", "holdout")
    watch.wrap(Ledger, "add_round", "store")
    return watch


def one_round(folder: Path, source: Path) -> dict[str, Any]:
    """Choose a round, then learn its outcomes on the day on which its window closes."""
    from armful.campaigns import Campaign

    watch, now = stopwatch(), datetime(2026, 1, 1, tzinfo=UTC)
    began, processor = time.perf_counter(), time.process_time()
    with Campaign.open(folder, now=lambda: now) as campaign:
        last = campaign.ledger.last_round()
        now = now if last is None else last.closes_at + timedelta(days=1)
        chosen = campaign.choose(source)
        whole, processor = time.perf_counter() - began, time.process_time() - processor
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        steps, in_threads = dict(watch.steps), dict(watch.in_threads)
        steps["the rest"] = whole - sum(steps.values())
        ids = campaign.ledger.chosen_ids(chosen.number)
        outcomes = pa.table({"customer_id": ids.tolist(), "bought": np.arange(ids.size) % 7 == 0})
        csv.write_csv(outcomes, folder / "outcomes.csv")
        now = chosen.closes_at
        begin = time.perf_counter()
        campaign.learn(folder / "outcomes.csv")
        learning = time.perf_counter() - begin
    return {
        "steps": steps,
        "in_threads": in_threads,
        "choose": whole,
        "processor": processor,
        "learn": learning,
        "memory": memory,
        "n": len(ids),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one-round", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one_round:
        print(json.dumps(one_round(*options.one_round)))
        return
    with tempfile.TemporaryDirectory(dir=".") as temporary:
        folder = Path(temporary).resolve()
        write_files(folder, options.rows)
        print(f"{options.rows:,} customers, {options.rows // 25:,} of them chosen")
        for ending in ("csv", "parquet"):
            measure(folder, folder / f"customers.{ending}", options)


def measure(folder: Path, source: Path, options: argparse.Namespace) -> None:
    campaign = folder / source.suffix.removeprefix(".")
    campaign.mkdir()
    kinds = [f'text_{i} = {{ kind = "category" }}' for i in range(4)]
    kinds += [f'number_{i} = {{ kind = "number"{", log = true" if i % 3 == 0 else ""} }}' for i in range(15)]
    settings = SETTINGS.format(k=options.rows // 25, columns="\n".join(kinds))
    (campaign / "campaign.toml").write_text(settings)
    for number in range(1, options.rounds + 1):
        before = min(read_alone(source) for _ in range(2))
        command = [sys.executable, __file__, "--one-round", str(campaign), str(source)]
        done = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        unit, processor = (sum(each) / 2 for each in zip(before, read_alone(source), strict=True))
        steps, busy = (
            ", ".join(f"{step} {seconds / unit:.2f}" for step, seconds in done[name].items())
            for name in ("steps", "in_threads")
        )
        print(
            f"{source.suffix[1:]:8} round {number}: choose {done['choose'] / unit:.1f} times reading ({unit:.1f} s), "
            f"{done['processor'] / processor:.1f} in processor time ({processor:.1f} s), "
            f"load {os.getloadavg()[0]:.1f}, {done['memory']:.2f} GiB; {steps} (in threads: {busy}); "
            f"learn {done['learn'] / unit:.1f} ({done['n']:,} outcomes)",
            flush=True,
        )


if __name__ == "__main__":
    main()
