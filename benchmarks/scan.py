"""The time of choosing from many arms in passes: divided by that of `X @ theta` over the same float64 matrix.

`X @ theta` runs on one core, beside every measurement; choosing runs on one core, and on all of them. "Plain" scores
every arm in float64 and chooses, "fresh" is `policy.choose` on an array, "table" on a `Table` of the same arms round
after round, from the third round on. Medians. The first three rounds on a table and the slowest of the later ones are
printed by themselves, so that a single slow round is seen. Every choice is compared with the plain one.

    python benchmarks/scan.py                 all of it, some minutes
    python benchmarks/scan.py rounds          one part: rounds, hard, quotas, growth, learning or memory
    python benchmarks/scan.py rounds --small  with a tenth of the arms
    OPENBLAS_CORETYPE=Haswell python benchmarks/scan.py rounds    as on a processor without AVX-512
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import armful
from armful.arms import Arms

CORES = os.sched_getaffinity(0)


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def use(cores: set[int]) -> None:
    os.sched_setaffinity(0, cores)


def customers(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    X /= np.sqrt(d)
    return X, rng.standard_normal(d)


def plain(policy: armful.Policy, X: np.ndarray, constraint: Any) -> np.ndarray:
    scores = policy._score_arms(Arms(X, policy.state), constraint.k)
    return constraint.best(scores.value, None, np.random.default_rng(0)).indices


class Rounds:
    """Rounds on the same arms, each of them run in every way."""

    def __init__(self, X: np.ndarray, theta: np.ndarray, constraint: Any, make: Callable[[int], armful.Policy]) -> None:
        self.X, self.theta, self.constraint = X, theta, constraint
        self.policy, self.table = make(X.shape[1]), armful.Table.wrap(X)
        self.rng = np.random.default_rng(1)
        self.passes: dict[str, list[float]] = {}
        self.over_plain: list[float] = []
        """For every round on the table on one core: its time divided by that of the plain computation."""
        self.played = 0

    def play(self, rounds: int, *, skipped: int = 2, ways: tuple[str, ...] = ("plain", "fresh", "table")) -> None:
        for _ in range(rounds):
            self.played += 1
            unit = statistics.median(seconds(lambda: self.X @ self.theta)[0] for _ in range(3))
            chosen, times = {}, {}
            for way in ways:
                for cores in (set(list(CORES)[:1]), set(CORES)) if way != "plain" else (set(list(CORES)[:1]),):
                    use(cores)
                    spent, chosen[way] = seconds(lambda way=way: self.choose(way))
                    use(set(CORES))
                    times.setdefault(way, spent)
                    if self.played > skipped or way != "table":
                        name = way if way == "plain" else f"{way}, {len(cores)} core{'s' * (len(cores) > 1)}"
                        self.passes.setdefault(name, []).append(spent / unit)
            if "plain" in ways:
                self.over_plain.append(times["table"] / times["plain"])
                for way in ways:
                    assert set(chosen[way].tolist()) == set(chosen["plain"].tolist()), "another set was chosen"
            features = self.X[chosen["table"]]
            self.policy.learn(features, features @ self.theta + self.rng.standard_normal(len(features)))

    def choose(self, way: str) -> np.ndarray:
        if way == "plain":
            return plain(self.policy, self.X, self.constraint)
        return self.policy.choose(self.table if way == "table" else self.X, self.constraint).indices

    def medians(self) -> dict[str, float]:
        return {way: statistics.median(passes) for way, passes in self.passes.items()}


def ucb(d: int) -> armful.Policy:
    return armful.C2UCB(n_features=d, radius=1.0, seed=0)


def show(title: str, medians: dict[str, float], aims: str = "") -> None:
    print(f"{title}: " + "; ".join(f"{way} {passes:.2f}" for way, passes in medians.items()) + aims, flush=True)


def rounds(small: bool = False) -> None:
    print(
        "\n# Rounds, k = 1 %, radius 1 (aims: plain 5.5 at d = 50, 9 at d = 100; table 1.2 at d = 50, 2.0 at d = 200)"
    )
    tenth = 10 if small else 1
    for n, d in ((1_000_000 // tenth, 50), (1_000_000 // tenth, 100), (200_000 // tenth, 200)):
        game = Rounds(*customers(n, d), armful.TopK(n // 100), ucb)
        game.play(9)
        show(f"{n:,} x {d}", game.medians())
        first = ", ".join(f"{ratio:.2f}" for ratio in game.over_plain[:3])
        print(f"  table over plain, one core: rounds 1 to 3 {first}; slowest later one {max(game.over_plain[3:]):.2f}")


def hard() -> None:
    print("\n# Where pruning gains nothing, 1M x 50, k = 1 %, over plain (aim: at most 1.15)")
    cases: dict[str, Callable[[int], armful.Policy]] = {
        "wide bonuses": lambda d: armful.C2UCB(n_features=d, radius=50.0, seed=0),
        "all at the cap": lambda d: armful.CappedC2UCB(n_features=d, cap=0.01, radius=5.0, seed=0),
        "Thompson": lambda d: armful.ArmwiseThompson(n_features=d, radius=1.0, seed=0),
        "paper's rule": lambda d: armful.CappedC2UCB(n_features=d, cap=1.0, rule="paper", radius=1.0, seed=0),
    }
    X, theta = customers(1_000_000, 50)
    for name, make in cases.items():
        game = Rounds(X, theta, armful.TopK(10_000), make)
        game.play(5, ways=("table",), skipped=2)
        unit = statistics.median(seconds(lambda: X @ theta)[0] for _ in range(5))
        full = statistics.median(seconds(lambda game=game: plain(game.policy, X, game.constraint))[0] for _ in range(3))
        medians = {way: passes / (full / unit) for way, passes in game.medians().items()}
        show(name, medians, f" (plain {full / unit:.2f} passes)")


def quotas() -> None:
    print("\n# What Quotas add over TopK at 1M x 50, k = 1 % (aim: 0.5 with 10,000 groups)")
    X, theta = customers(1_000_000, 50)
    groups = np.random.default_rng(2).integers(10_000, size=len(X))
    kinds = {
        "Quotas, 10,000 groups": armful.Quotas(groups, at_most=3, total=10_000),
        "NestedQuotas, 10,000 in 20": armful.NestedQuotas(
            {"region": groups % 20, "city": groups}, at_most={"region": 600, "city": 3}, total=10_000
        ),
    }
    games = {
        name: Rounds(X, theta, constraint, ucb) for name, constraint in {"TopK": armful.TopK(10_000), **kinds}.items()
    }
    for _ in range(9):
        for game in games.values():
            game.play(1, ways=("fresh", "table"))
    base = games.pop("TopK").medians()
    for name, game in games.items():
        show(name, {way: passes - base[way] for way, passes in game.medians().items()})


def growth() -> None:
    print("\n# Growth of the time of a round on a table, one core")

    def spent(n: int, d: int, k: int, groups: int = 0) -> float:
        X, theta = customers(n, d)
        codes = np.random.default_rng(2).integers(max(groups, 1), size=n)
        constraint = armful.Quotas(codes, at_most=-(-3 * k // groups), total=k) if groups else armful.TopK(k)
        policy, table, rng = ucb(d), armful.Table.wrap(X), np.random.default_rng(1)
        times = []
        use(set(list(CORES)[:1]))
        for _ in range(9):
            time_, choice = seconds(lambda: policy.choose(table, constraint))
            times.append(time_)
            policy.learn(choice.features, choice.features @ theta + rng.standard_normal(len(choice)))
        use(set(CORES))
        return statistics.median(times[2:])

    print(f"16 times the arms (62,500 to 1M, d = 50): {spent(1_000_000, 50, 10_000) / spent(62_500, 50, 625):.1f}")
    print(f"8 times the features (25 to 200, 200k arms): {spent(200_000, 200, 2_000) / spent(200_000, 25, 2_000):.1f}")
    print(f"40 times the chosen (0.1 % to 4 % of 1M): {spent(1_000_000, 50, 40_000) / spent(1_000_000, 50, 1_000):.1f}")
    many, few = spent(1_000_000, 50, 10_000, 10_000), spent(1_000_000, 50, 10_000, 100)
    print(f"100 times the groups (100 to 10,000): {many / few:.1f}")


def learning() -> None:
    X, theta = customers(1_000_000, 50)
    rewards = X @ theta
    unit, _ = seconds(lambda: X @ theta)
    blocked, state = seconds(lambda: armful.RidgeState(n_features=50).learn(X, rewards))
    once, _ = seconds(lambda: np.linalg.qr(np.concatenate([X, rewards[:, None]], axis=1), mode="r"))
    error = np.abs(state.V - (X.T @ X + np.eye(50))).max() / np.abs(state.V).max()
    print(
        f"\n# Learning 1M x 50: {blocked / unit:.1f} passes; one QR of all {once / unit:.1f}; V differs by {error:.0e}"
    )


def memory() -> None:
    print(
        "\n# Memory while choosing 200,000 from a table on disk, d = 50, Quotas of 1,000 groups (aim: 1,024 MiB at 5M)"
    )
    with tempfile.TemporaryDirectory() as folder:
        for n in (1_250_000, 5_000_000):
            path = Path(folder) / f"{n}.table"
            building = peak("build", n, path)
            choosing = peak("choose", n, path)
            print(f"{n:,} arms: building {building}; choosing {choosing}", flush=True)
            path.unlink()


def peak(job: str, n: int, path: Path) -> str:
    """Measure the memory in a separate process."""
    command = [sys.executable, __file__, "--job", job, str(n), str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def run_job(job: str, n: int, path: Path) -> None:
    begin = time.perf_counter()
    if job == "build":
        armful.Table.build(Stream(n), path, progress=False)
        took = f"{time.perf_counter() - begin:.0f} s"
    else:
        table = armful.Table.open(path)
        quotas = armful.Quotas(np.arange(n) % 1000, at_most=500, total=200_000)
        policy, rng, times = ucb(50), np.random.default_rng(1), []
        for _ in range(5):
            spent, choice = seconds(lambda: policy.choose(table, quotas))
            times.append(spent)
            policy.learn(choice.features, choice.features[:, 0] + rng.standard_normal(len(choice)))
        took = "rounds of " + ", ".join(f"{spent:.2f}" for spent in times) + " s"
    print(f"{own_peak():.0f} MiB, {took}")


def own_peak() -> float:
    """Return the peak memory in MiB. `getrusage` would include that of the parent process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


class Stream:
    """Customers as an Arrow stream, drawn when they are read."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        import pyarrow as pa

        names = ["id", *(f"x{i}" for i in range(50))]
        schema = pa.schema([("id", pa.int64()), *((name, pa.float64()) for name in names[1:])])

        def batches() -> Iterator[Any]:
            rng = np.random.default_rng(0)
            for begin in range(0, self.n, 50_000):
                ids = np.arange(begin, min(begin + 50_000, self.n))
                X = rng.standard_normal((50, len(ids))) / np.sqrt(50)
                yield pa.record_batch([pa.array(ids), *(pa.array(x) for x in X)], schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches()).__arrow_c_stream__(requested_schema)


PARTS = {part.__name__: part for part in (rounds, hard, quotas, growth, learning, memory)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=PARTS)
    parser.add_argument("--small", action="store_true", help="rounds with a tenth of the arms")
    parser.add_argument("--job", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.job:
        run_job(asked.job[0], int(asked.job[1]), Path(asked.job[2]))
    else:
        for name in [asked.part] if asked.part else PARTS:
            rounds(asked.small) if name == "rounds" else PARTS[name]()
