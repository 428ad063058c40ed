"""The time of a round with N arms, here and on a cluster: calculated from measured constants.

Prints the sizing table of docs/scale.md. Constants are in `Machine`; put in those of your own machines.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """Measured on two shared cores (benchmarks/scan.py; dask on them), but for the network, which is assumed."""

    pass_bytes: float = 9e9  # a second and core: X @ theta from memory
    read_bytes: float = 4e9  # a second: a table that the operating system still has in memory
    table_passes: float = 1.6  # a round on a table, from the third round on, one core
    fresh_passes: float = 4.3  # a round on a partition of a cluster, one core
    part_seconds: float = 0.0035  # of the scheduler, for each partition
    round_seconds: float = 0.06  # of a cluster, for each round
    network_bytes: float = 1.25e8  # a second: 1 Gbit/s


D, CHOSEN, PART_ROWS, BASE_MEMORY = 50, 0.01, 1_000_000, 150e6


def row(n: int, machine: Machine, *, cores: int = 2) -> list[str]:
    features = 8 * n * D
    k = int(CHOSEN * n)
    here = features * (machine.table_passes / machine.pass_bytes / cores + 1 / machine.read_bytes)
    gathered = 24 * k + 8 * k * D  # candidates and features of the chosen, to the client
    memory = BASE_MEMORY + 3 * cores * 24 * 2**20 + 12 * n + 2 * 8 * k * D
    cells = [f"{n:,}", size(features), size(memory), seconds(here)]
    for workers in (4, 16, 64):
        parts = max(n // PART_ROWS, workers)
        work = features * (machine.fresh_passes / machine.pass_bytes + 1 / machine.read_bytes) / workers
        cells.append(
            seconds(work + machine.round_seconds + machine.part_seconds * parts + gathered / machine.network_bytes)
        )
    return [*cells, size(gathered)]


def size(n_bytes: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} PB"


def seconds(time: float) -> str:
    return f"{time:.2g} s" if time < 100 else f"{time / 60:.2g} min"


if __name__ == "__main__":
    print("| arms | features | memory here | round here | 4 workers | 16 workers | 64 workers | to the client |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for power in range(6, 10):
        print("| " + " | ".join(row(10**power, Machine())) + " |")
