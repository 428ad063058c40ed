"""One round of a large campaign: each step's share of the time, the whole as a multiple of reading the file, memory.

A file of made customers, 5 text and 15 numeric columns, is written as CSV and as Parquet. `choose` picks 4 % of them
under quotas by region, several times (the first round also fits the recipe), and `learn` records an outcome for each.
Every round runs in a process of its own, so that its largest memory is its own. Between the rounds pyarrow alone reads
the same file, all columns, batch by batch: its time is the unit.

    python benchmarks/campaign.py                # 5,000,000 customers, about 5 minutes and 4 GB of disk
    python benchmarks/campaign.py --rows 500000
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
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


def read_alone(path: Path) -> float:
    """Return the seconds that pyarrow takes to read all columns, a batch at a time."""
    begin = time.perf_counter()
    if path.suffix == ".csv":
        for _ in csv.open_csv(path):
            pass
    else:
        for _ in parquet.ParquetFile(path, pre_buffer=False).iter_batches():
            pass
    return time.perf_counter() - begin


def one_round(folder: Path, source: Path) -> dict[str, Any]:
    """Choose a round, then learn its outcomes, with the time of each step."""
    from armful.campaigns import Campaign, FeatureRecipe, _choosing, _customers, _eligible
    from armful.ledger import Ledger

    seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def timed(step: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        seconds[step] += time.perf_counter() - begin

    def wrap(owner: Any, name: str, step: str) -> None:
        inner = getattr(owner, name)

        def call(*arguments: Any, **options: Any) -> Any:
            with timed(step):
                return inner(*arguments, **options)

        setattr(owner, name, call)

    def wrap_reading() -> None:
        inner = _customers.open_rows

        def call(*arguments: Any, **options: Any) -> Any:
            reader = inner(*arguments, **options)

            def timed_batches() -> Iterator[Any]:
                while True:
                    with timed("reading"):
                        batch = next(reader.batches, None)
                    if batch is None:
                        return
                    yield batch

            return type(reader)(reader.schema, reader.n_rows, reader.n_bytes, timed_batches(), reader.read_bytes)

        _customers.open_rows = call  # type: ignore[assignment]

    wrap_reading()
    wrap(FeatureRecipe, "transform", "recipe")
    wrap(_customers._Columns, "add", "ids, shares, groups")
    wrap(_customers._Columns, "customers", "ids, shares, groups")
    wrap(_eligible, "read_customers", "all of reading")
    wrap(_choosing, "_choose", "choosing")
    wrap(_choosing, "_exploring", "exploring")
    wrap(_choosing, "_by_house_rule", "holdout")
    wrap(Ledger, "add_round", "store")
    began = time.perf_counter()
    with Campaign.open(folder) as campaign:
        chosen = campaign.choose(source)
        whole = time.perf_counter() - began
        begin = time.perf_counter()
        ids = campaign.ledger.chosen_ids(chosen.number)
        outcomes = pa.table({"customer_id": ids.tolist(), "bought": np.arange(ids.size) % 7 == 0})
        csv.write_csv(outcomes, folder / "outcomes.csv")
        begin = time.perf_counter()
        campaign.learn(folder / "outcomes.csv")
        learning = time.perf_counter() - begin
    reading = seconds.pop("all of reading")
    seconds["writing the table"] = reading - seconds["reading"] - seconds["recipe"] - seconds["ids, shares, groups"]
    seconds["the rest"] = whole - sum(seconds.values())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"steps": seconds, "choose": whole, "learn": learning, "memory": memory, "n": len(ids)}


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
        unit = min(read_alone(source) for _ in range(2))
        command = [sys.executable, __file__, "--one-round", str(campaign), str(source)]
        done = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        unit = (unit + read_alone(source)) / 2
        steps = ", ".join(f"{step} {seconds / unit:.2f}" for step, seconds in done["steps"].items())
        print(
            f"{source.suffix[1:]:8} round {number}: choose {done['choose'] / unit:.1f} times reading ({unit:.1f} s), "
            f"{done['memory']:.2f} GiB; {steps}; learn {done['learn'] / unit:.1f} ({done['n']:,} outcomes)",
            flush=True,
        )


if __name__ == "__main__":
    main()
