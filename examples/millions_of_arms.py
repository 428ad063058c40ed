"""A campaign over millions of customers: a table on disk, quotas per region, exact choice, little memory.

    python examples/millions_of_arms.py             200,000 customers, some seconds
    python examples/millions_of_arms.py 5000000     5 million x 50: 4 GB of disk for a while, about a minute

Printed for each week: the time to choose, in passes (how long reading the table once and multiplying by a vector takes
on one core), and the peak memory of the process so far. Measured with 5 million on two cores: 7.5 passes in the first
week, 4.4 in the second, then 1.9 to 2.3 (a pass, reading included, took 0.4 to 0.5 s); 703 MiB.
"""

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import armful

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("customers", nargs="?", type=int, default=200_000)
parser.add_argument("--figure", metavar="PATH", help="draw a figure there too; needs matplotlib")
options = parser.parse_args()

N, D = options.customers, 50
rng = np.random.default_rng(0)
worth = rng.standard_normal(D) / np.sqrt(D)


def write_customers(path: Path) -> None:
    """What a data warehouse would export: an id and 50 numbers for each customer."""
    schema = pa.schema([("id", pa.int64()), *((f"x{i}", pa.float64()) for i in range(D))])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for begin in range(0, N, 100_000):
            ids = np.arange(begin, min(begin + 100_000, N))
            columns = rng.standard_normal((D, ids.size)) / np.sqrt(D)
            writer.write_batch(pa.record_batch([pa.array(ids), *map(pa.array, columns)], schema=schema))


def one_pass(table: armful.Table) -> float:
    """Seconds to read all features once and multiply them by a vector."""
    begin = time.perf_counter()
    for row in range(0, table.n_arms, table.block_rows):
        table.rows(row, min(row + table.block_rows, table.n_arms)) @ worth
    return time.perf_counter() - begin


def peak_memory() -> str:
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB"


with tempfile.TemporaryDirectory() as folder:
    write_customers(Path(folder) / "customers.parquet")
    begin = time.perf_counter()
    armful.Table.build(Path(folder) / "customers.parquet", Path(folder) / "customers.table")
    print(f"{N:,} customers x {D}: table built in {time.perf_counter() - begin:.1f} s, peak memory {peak_memory()}")

    table = armful.Table.open(Path(folder) / "customers.table")
    regions = rng.integers(100, size=N)
    quotas = armful.Quotas(regions, at_most=N // 2000, total=N // 25)  # 4 % in all, from no region more than 5 %
    policy = armful.CappedC2UCB(n_features=D, cap=2.0, radius=1.0, seed=0)
    one_pass(table)  # the first time a block is read its checksum is compared

    history = []  # passes and mean outcome, week by week
    for week in range(1, 7):
        unit = one_pass(table)
        begin = time.perf_counter()
        choice = policy.choose(table, quotas)
        passes = (time.perf_counter() - begin) / unit
        outcomes = choice.features @ worth + 0.5 * rng.standard_normal(len(choice))
        policy.learn(choice, outcomes)
        history.append((passes, outcomes.mean()))
        print(
            f"week {week}: {len(choice):,} chosen in {passes:.1f} passes of {unit:.2f} s; customer {choice.ids[0]} and "
            f"others paid {outcomes.mean():.2f} on average; peak memory {peak_memory()}"
        )

if options.figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    above, below = figure.subplots(2, sharex=True)
    passes, outcomes = zip(*history, strict=True)
    above.bar(range(1, 7), passes)
    above.set(ylabel="time to choose, in passes")
    below.plot(range(1, 7), outcomes, marker="o")
    below.set(xlabel="week", ylabel="mean outcome")
    figure.savefig(options.figure)
