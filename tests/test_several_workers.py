"""Workers in processes of their own, as docs/howto/several-workers.md tells."""

import multiprocessing

import numpy as np
import pytest

import armful
from armful.testing._expectations import expect_close

D, DAYS, HOURS, K = 3, 4, 6, 5
TASTE = np.array([0.6, 0.3, -0.4])


def work(stream, pipe):
    """A worker: each day it learns on its own, sends what is new, and merges what the others sent."""
    policy = armful.ArmwiseThompson(n_features=D, noise=0.1, radius=0.3, seed=np.random.default_rng(stream))
    rng = np.random.default_rng(stream.spawn(1)[0])
    new, observed = policy.state.empty(), []
    for _ in range(DAYS):
        for _ in range(HOURS):
            choice = policy.choose(rng.uniform(0, 1, (40, D)), armful.TopK(K))
            rewards = choice.features @ TASTE + 0.1 * rng.standard_normal(K)
            policy.learn(choice, rewards)
            new = new.learn(choice.features, rewards)
            observed.append((choice.features, rewards))
        pipe.send(new.folded())
        new = new.empty()
        for state in pipe.recv():
            policy.merge(state)
            try:
                policy.merge(state)  # a message that comes twice
            except ValueError:
                continue
            raise AssertionError("the same state was merged twice")
    pipe.send((policy.state, observed))


@pytest.mark.slow
def test_workers_that_exchange_what_is_new_know_what_one_learner_would():
    spawn, n_workers = multiprocessing.get_context("spawn"), 3
    pipes, processes = [], []
    for stream in np.random.SeedSequence(7).spawn(n_workers):
        ours, theirs = spawn.Pipe()
        processes.append(spawn.Process(target=work, args=(stream, theirs)))
        processes[-1].start()
        theirs.close()
        pipes.append(ours)
    for _ in range(DAYS):
        sent = [pipe.recv() for pipe in pipes]
        for i, pipe in enumerate(pipes):
            pipe.send(sent[:i] + sent[i + 1 :])
    finished = [pipe.recv() for pipe in pipes]
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    everything = [rows for _, observed in finished for rows in observed]
    features, rewards = (np.concatenate(each) for each in zip(*everything, strict=True))
    expected = armful.RidgeState(n_features=D).learn(features, rewards)
    for state, _ in finished:
        assert state.n == expected.n == n_workers * DAYS * HOURS * K
        for name in ("V", "b", "theta", "log_det", "residual"):
            expect_close(getattr(state, name), getattr(expected, name), name)
    for i in range(n_workers):  # streams of their own: no two saw or chose the same
        for j in range(i):
            assert not np.array_equal(finished[i][1][0][0], finished[j][1][0][0])
