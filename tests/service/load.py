"""Clients that ask for decisions and report rewards without end, and remember what was acknowledged."""

import threading
import uuid
from dataclasses import dataclass, field

import numpy as np

import armful

N_FEATURES = 4


@dataclass
class Acknowledged:
    """What one client was told: its decisions by key, and the last reward of each arm."""

    decisions: dict = field(default_factory=dict)
    rewards: dict = field(default_factory=dict)
    unexpected: list = field(default_factory=list)


class Load:
    """Threads with a client each, until `stop`.

    What is not acknowledged is sent again with the same key, by the client and then by the loop, as a caller would.
    """

    def __init__(self, url, n_clients=3):
        self.url, self._over = url, threading.Event()
        self.told = [Acknowledged() for _ in range(n_clients)]
        self._threads = [threading.Thread(target=self._run, args=(i,)) for i in range(n_clients)]
        for thread in self._threads:
            thread.start()

    @property
    def n_decisions(self):
        return sum(len(told.decisions) for told in self.told)

    @property
    def n_rewards(self):
        return sum(len(told.rewards) for told in self.told)

    def stop(self):
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _run(self, index):
        told, rng = self.told[index], np.random.default_rng(index)
        with armful.Client(self.url, timeout=60.0, attempts=4) as client:
            while not self._over.is_set():
                try:
                    self._one(client, told, rng)
                except Exception as error:
                    told.unexpected.append(repr(error))
                    return

    def _one(self, client, told, rng):
        key, unit = uuid.uuid4().hex, f"user-{rng.integers(20)}"
        X = rng.random((12, N_FEATURES)).astype(np.float32) / 2
        arms = {f"a{i}": row.tolist() for i, row in enumerate(X)}
        decision = self._insist(lambda: client.decide(arms, unit=unit, key=key))
        if decision is None:
            return
        told.decisions[key] = (decision.decision_id, decision.ids)
        for _ in range(2):  # the second time it is a correction
            some = [arm for arm in decision.ids if rng.random() < 0.7] or decision.ids[:1]
            rewards = {arm: float(rng.integers(2)) for arm in some}
            if self._insist(lambda rewards=rewards: client.reward(decision, rewards)) is None:
                # Whether these came is not known: neither the old nor the new values can be expected.
                for arm in rewards:
                    told.rewards.pop((decision.decision_id, arm), None)
                return
            told.rewards.update({(decision.decision_id, arm): value for arm, value in rewards.items()})

    def _insist(self, send):
        """Return the answer, however often it takes; None if the load has to stop before."""
        while True:
            try:
                return send()
            except armful.ServiceError as error:
                if error.status not in (None, 429, 502, 503, 504):
                    raise
                if self._over.is_set():
                    return None
