"""The time of a plain loop divided by that of repetitions in a batch, on one core: ratios from one interleaved run.

Three loops play the same rounds: `together` is what `armful.simulate` does, `alone` is armful's own plain loop (choose
and learn, one repetition after the other), `bare` is the least numpy that C2UCB can be written in, with no checks at
all, keeping V and solving anew. Two environments: arms that stay, the same for all repetitions (`same`), and arms
that are new in every round and repetition (`fresh`). Drawing them is then a good part of all three loops; `loop`
is the same with the clock stopped while the environment draws, which leaves the loop itself.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.random import Generator

from armful import C2UCB, TopK, simulate
from armful.checks import FloatArray
from armful.environments import Round
from armful.simulation.loop import run_alone
from armful.simulation.trajectories import ENVIRONMENT, NOISE, generator

D, K, REPETITIONS, SEED, RUNS = 7, 20, 100, 0, 7


@dataclass
class Plain:
    n_arms: int
    stay: bool
    n_features: int = D
    drawing: float = 0.0
    """The seconds spent on drawing arms."""

    def rounds(self, n_rounds: int, rng: Generator) -> Iterator[Round]:
        theta = rng.standard_normal(D) / math.sqrt(D)
        features = self.shared
        for _ in range(n_rounds):
            begin = time.perf_counter()
            if not self.stay:
                features = rng.standard_normal((self.n_arms, D)) / math.sqrt(D)
            shown = [Round(features, TopK(K), features @ theta)]
            self.drawing += time.perf_counter() - begin
            yield shown.pop()

    @cached_property
    def shared(self) -> FloatArray:
        return np.random.default_rng(1).standard_normal((self.n_arms, D)) / math.sqrt(D)


def bare_loop(environment: Plain, rounds: int) -> FloatArray:
    """C2UCB with ridge d and radius sqrt(d), as short as numpy allows."""
    regret = np.zeros((REPETITIONS, rounds))
    for i in range(REPETITIONS):
        noise = generator(SEED, i, NOISE)
        V, b = D * np.eye(D), np.zeros(D)
        for t, shown in enumerate(environment.rounds(rounds, generator(SEED, i, ENVIRONMENT))):
            X = shown.features
            inverse = np.linalg.inv(V)
            scores = X @ (inverse @ b) + math.sqrt(D) * np.sqrt(((X @ inverse) * X).sum(axis=1))
            chosen = np.argpartition(scores, len(X) - K)[len(X) - K :]
            paid = shown.mean + noise.standard_normal(len(X))
            V += X[chosen].T @ X[chosen]
            b += X[chosen].T @ paid[chosen]
            best = np.partition(shown.mean, len(X) - K)[len(X) - K :].sum()
            regret[i, t] = best - shown.mean[chosen].sum()
    return regret


def plain_loop(policy: C2UCB, environment: Plain, rounds: int) -> object:
    """Run armful's own loop, one repetition after the other."""
    return [run_alone(policy, environment, rounds, SEED, i) for i in range(REPETITIONS)]


def seconds(work: Callable[[], object], environment: Plain) -> tuple[float, float]:
    """Return the seconds with and without the time of the environment."""
    begin, environment.drawing = time.perf_counter(), 0.0
    work()
    spent = time.perf_counter() - begin
    return spent, spent - environment.drawing


def main() -> None:
    policy = C2UCB(n_features=D, ridge=D, radius=math.sqrt(D))
    print(f"simulate: d={D}, k={K}, {REPETITIONS} repetitions, one core, median of {RUNS} interleaved runs")
    print(f"{'arms':>7} {'kind':>7} {'alone/together':>15} {'bare/together':>14}")
    for n_arms, rounds in ((200, 20), (2_000, 5), (16_000, 2)):
        for stay in (True, False):
            environment = Plain(n_arms, stay)
            loops: dict[str, Callable[[], object]] = {
                "together": partial(simulate, policy, environment, rounds=rounds, repetitions=REPETITIONS, seed=SEED),
                "alone": partial(plain_loop, policy, environment, rounds),
                "bare": partial(bare_loop, environment, rounds),
            }
            times: dict[str, list[tuple[float, float]]] = {name: [] for name in loops}
            for _ in range(RUNS):
                for name, loop in loops.items():
                    times[name].append(seconds(loop, environment))
            for kind, place in (("same", 0),) if stay else (("fresh", 0), ("loop", 1)):
                ratio = {
                    name: statistics.median(
                        a[place] / b[place] for a, b in zip(times[name], times["together"], strict=True)
                    )
                    for name in ("alone", "bare")
                }
                print(f"{n_arms:>7} {kind:>7} {ratio['alone']:>15.1f} {ratio['bare']:>14.1f}")


if __name__ == "__main__":
    main()
