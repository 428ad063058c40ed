"""The simulation loop: a policy in an environment, for many repetitions."""

import copy
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import Any, Protocol

from armful import checks
from armful.checks import FloatArray
from armful.constraints import Constraint
from armful.environments.round import Environment, checked_rounds
from armful.policies import Choice, Policy
from armful.policies._repetitions import can_batch
from armful.simulation._batched import run_batched
from armful.simulation.trajectories import ENVIRONMENT, NOISE, POLICY, Trajectories, generator

BATCH = 50
"""Repetitions per batch. Fixed, so that the result does not depend on the number of workers."""


class Learner(Protocol):
    """What can be simulated: any class that chooses and learns. A `Policy` is faster: its repetitions are batched."""

    def choose(self, X: FloatArray, constraint: Constraint, /) -> Choice:
        """Return a set of rows of `X` that the constraint allows."""

    def learn(self, features: FloatArray, rewards: FloatArray, /) -> None:
        """Learn from the rewards of the chosen arms."""


def simulate(
    policy: Policy | Learner,
    environment: Environment,
    rounds: int,
    repetitions: int = 100,
    seed: int = 0,
    *,
    workers: int = 1,
) -> Trajectories:
    """Run a policy in an environment, in independent repetitions.

    Repetition i of every policy under the same `seed` has the same arms and the same noise, so that policies can be
    compared in pairs.

    Parameters
    ----------
    policy : Policy or any object with `choose` and `learn`
        Where each repetition starts from; it is not changed.
    environment : Environment
        What shows the arms and pays the rewards.
    rounds : int
        The number of rounds.
    repetitions : int
        The number of independent repetitions.
    seed : int
        The seed of all random numbers.
    workers : int
        The number of processes that share the repetitions; it does not change the result. A script that asks for more
        than one needs the usual `if __name__ == "__main__":`; an interactive prompt will not do.

    Returns
    -------
    Trajectories
        Regret, rewards and number of chosen arms, each `(repetitions, rounds)`.

    Raises
    ------
    ValueError
        If an argument cannot be simulated, or policy and environment differ in their number of features.
    ChildProcessError
        If a worker process ended before its work was done.

    Examples
    --------
    >>> from armful import C2UCB
    >>> from armful.environments import Slates
    >>> result = simulate(C2UCB(n_features=10, radius=1.0), Slates(), rounds=20, repetitions=10, seed=0)
    >>> result.regret.shape, bool(result.regret[:, -5:].mean() < result.regret[:, :5].mean())
    ((10, 20), True)
    """
    checks.count("rounds", rounds)
    checks.count("repetitions", repetitions)
    checks.count("seed", seed, minimum=0)
    _refuse_without("policy", policy, "choose", "learn")
    _refuse_without("environment", environment, "rounds", "n_features")
    if isinstance(policy, Policy) and policy.n_features != environment.n_features:
        raise ValueError(f"the policy has {policy.n_features} features, the environment {environment.n_features}")
    refuse_too_many(repetitions, rounds, "repetitions")
    batches = [range(i, min(i + BATCH, repetitions)) for i in range(0, repetitions, BATCH)]
    if checks.count("workers", workers) == 1:
        return Trajectories.joined([run_batch(policy, environment, rounds, seed, batch) for batch in batches])
    with worker_pool(min(workers, len(batches))) as pool:
        jobs = [pool.submit(run_batch, policy, environment, rounds, seed, batch) for batch in batches]
        return Trajectories.joined([job.result() for job in jobs])


def refuse_too_many(repetitions: int, rounds: int, called: str = "runs") -> None:
    """Refuse more repetitions and rounds than memory holds: three arrays, and what is computed from them."""
    checks.fits_in_memory(f"{repetitions} {called} of {rounds} rounds", 7 * repetitions * rounds)


def _refuse_without(what: str, given: object, *needed: str) -> None:
    if isinstance(given, type) or not all(hasattr(given, name) for name in needed):
        raise ValueError(f"{what} must be an object that has {' and '.join(needed)}, got {given!r}")


def run_batch(
    policy: Policy | Learner, environment: Environment, rounds: int, seed: int, repetitions: range
) -> Trajectories:
    """Return the trajectories of the given repetitions, batched if the policy can."""
    if isinstance(policy, Policy) and can_batch(policy):
        return run_batched(policy, environment, rounds, seed, repetitions)
    return Trajectories.joined([run_alone(policy, environment, rounds, seed, i) for i in repetitions])


def run_alone(
    policy: Policy | Learner, environment: Environment, rounds: int, seed: int, repetition: int
) -> Trajectories:
    """Return one repetition by the plain loop, which `run_batched` is tested against."""
    learner: Any = copy.deepcopy(policy)
    if hasattr(learner, "rng"):
        learner.rng = generator(seed, repetition, POLICY)
    noise = generator(seed, repetition, NOISE)
    result = Trajectories.empty(1, rounds)
    for t, shown in enumerate(checked_rounds(environment, rounds, generator(seed, repetition, ENVIRONMENT))):
        options = {} if shown.objective is None else {"objective": shown.objective}
        choice = learner.choose(shown.features, shown.constraint, **options)
        rewards = shown.rewards(noise, choice.indices)
        learner.learn(choice.features, rewards)
        result.regret[0, t] = shown.best_value() - shown.value(choice.indices)
        result.rewards[0, t], result.pulled[0, t] = rewards.sum(), choice.indices.size
    return result


@contextmanager
def worker_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Yield worker processes with BLAS at one thread each, so that they do not compete for the cores."""
    limits = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    before = {name: os.environ[name] for name in limits if name in os.environ}
    others = set(multiprocessing.active_children())
    os.environ.update(limits)  # BLAS reads them when a worker starts
    try:
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _end_with_the_parent) as pool:
            with _interrupts_ignored():  # inherited by the workers: only the parent handles an interrupt
                for _ in range(workers):
                    pool.submit(int)
            try:
                yield pool
            except BrokenProcessPool:
                raise ChildProcessError(
                    "a worker process ended before its work was done: there was not enough memory, or what it is to "
                    'run cannot be imported from a file, above `if __name__ == "__main__":`'
                ) from None
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for worker in set(multiprocessing.active_children()) - others:
                    worker.terminate()
                raise
    finally:
        for name in limits:
            os.environ.pop(name, None)
        os.environ.update(before)


def _end_with_the_parent() -> None:
    """End this worker as soon as the process that started it has ended, however it ended."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    gone = parent.sentinel

    def watch() -> None:
        wait([gone])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
