"""Processes that write to a ledger at once and are killed at random moments; run as a program by `test_kills.py`.

Usage: python -m tests.ledger.writers URL ACKNOWLEDGEMENTS NAMES N_TIMES N_ROUNDS KIND

It forks a writer for each letter of NAMES, N_TIMES one after the other; KIND is "rounds" or "decisions", which are
written by a `GroupCommit` with eight of them on their way. With N_ROUNDS = 0 each writes until it is
killed (SIGKILL, a random fraction of a second later); else it ends after so many rounds. When the ledger has
acknowledged something, a writer appends a line to the file ACKNOWLEDGEMENTS: it is there even if the writer is killed
right afterwards.
"""

import itertools
import os
import random
import signal
import sys
import threading
import time
from functools import partial

import alembic.config  # noqa: F401 - what is imported before the forks need not be imported after each
import numpy as np
import psycopg  # noqa: F401

from armful.errors import LedgerError
from armful.ledger import GroupCommit, Ledger
from armful.testing._made_decisions import made_decision, new_rewards
from armful.testing._made_rounds import NOON, add, made_arms

N_ARMS = 400
IDS = [f"person {i}" for i in range(N_ARMS)]


def write(url, say, me, n_rounds):
    """Write rounds, and rewards for each: in two parts, the second of which is sent twice."""
    with Ledger.open(url, "autumn", create=True) as ledger:
        i = 0
        while i < n_rounds or not n_rounds:
            last = ledger.last_round()
            number = 1 if last is None else last.number + 1
            try:
                arms = made_arms(np.random.default_rng(i), IDS, n_features=4)
                add(ledger, arms, number, key=f"{me}/{i}", details={"writer": me})
            except LedgerError as error:
                if "meanwhile" not in str(error):
                    raise
                continue
            say(f"round {me}/{i}")
            half = N_ARMS // 2
            ledger.add_rewards([number] * half, IDS[:half], np.ones(half), NOON)
            say(f"half {me}/{i}")
            for _ in range(2):
                ledger.add_rewards([number] * N_ARMS, IDS, np.ones(N_ARMS), NOON)
            say(f"all {me}/{i}")
            i += 1


SLATE = IDS[:5]


def decide(url, say, me, n_decisions):
    """Write decisions, every third under a key that all writers use, and rewards for each, which are sent twice."""
    with Ledger.open(url, "autumn", create=True) as ledger:
        group, room, rng = GroupCommit(ledger), threading.Semaphore(8), np.random.default_rng(0)

        def reward_one(key, answer):
            if isinstance(answer, Exception):
                say(f"error of {me}: {answer!r}")
            else:
                say(f"decided {key} {answer.number}")
                request = new_rewards(*((answer.number, arm, 1.0) for arm in SLATE))
                group.reward(request, lambda _: None)
                group.reward(request, partial(end, key))

        def end(key, answer):
            say(f"error of {me}: {answer!r}" if isinstance(answer, Exception) else f"rewarded {key}")
            room.release()

        for i in itertools.count() if not n_decisions else range(n_decisions):
            room.acquire()
            key = f"all/{i}" if i % 3 == 0 else f"{me}/{i}"
            group.decide(made_decision(rng, SLATE, key=key), partial(reward_one, key))
        for _ in range(8):
            room.acquire()
        group.close()


def child(url, file, me, n_rounds, kind):
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def say(line):
        os.write(descriptor, f"{line}\n".encode())

    try:
        {"rounds": write, "decisions": decide}[kind](url, say, me, n_rounds)
    except BaseException as error:
        say(f"error of {me}: {error!r}")
    os._exit(0)


def main():
    (url, file, names), (n_times, n_rounds), kind = sys.argv[1:4], map(int, sys.argv[4:6]), sys.argv[6]
    draw, longest_life, n_said = random.Random(0), 0.3, 0
    for i in range(n_times):
        pids = []
        for name in names:
            pids.append(os.fork())
            if pids[-1] == 0:
                child(url, file, f"{name}{i}", n_rounds, kind)
        for pid in pids:
            if not n_rounds:
                time.sleep(draw.uniform(0, longest_life))
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        before, n_said = n_said, os.path.getsize(file) if os.path.exists(file) else 0
        if n_said == before:  # a slow machine: they did not get anywhere
            longest_life *= 1.5


if __name__ == "__main__":
    main()
