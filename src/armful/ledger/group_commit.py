"""`GroupCommit`: many requests to a ledger in one transaction, so that they share its sync to the disk."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from armful.errors import LedgerError, QueueFullError
from armful.ledger._decision_records import Decided, NewDecision, NewRewards, RewardsAdded
from armful.ledger.ledger import Ledger

LARGEST_GROUP = 1000
"""How many requests one transaction holds at most."""
GATHER_SECONDS = 0.004
"""How long after a transaction the next one waits at most until as many requests are there as it had: most of what a
small one costs is the sync, so fewer and larger ones take less of the processor (PostgreSQL's commit_delay)."""
Done = Callable[[Any], None]
Deliver = Callable[[list[tuple[Done, Any]]], None]


class GroupCommit:
    """One thread that writes what requests hand over: all that is waiting goes into one transaction.

    While a transaction is synced to the disk, requests queue up for the next one; if the last one had several, the next
    one waits a moment for as many. A request has its answer when what it wrote survives a power cut. If a transaction
    fails, each request in it gets the `LedgerError`, and the next transaction is tried as ever.

    Parameters
    ----------
    ledger : Ledger
        Where to write; it stays open.
    deliver : callable, optional
        Called once for each transaction, in the thread that writes, with a list of (done, answer). By default each
        `done` is called with its answer there and then.
    most_waiting : int
        How many requests may wait.
    """

    def __init__(self, ledger: Ledger, deliver: Deliver | None = None, most_waiting: int = 10_000) -> None:
        self._ledger, self._deliver, self._most_waiting = ledger, deliver or _call_each, most_waiting
        self._waiting: deque[tuple[NewDecision | NewRewards, Done]] = deque()
        self._changed = threading.Condition()
        self._enough = 1  # requests for which the thread is woken
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="armful-group-commit", daemon=True)
        self._thread.start()

    def decide(self, decision: NewDecision, done: Callable[[Decided | Exception], None]) -> None:
        """Hand over a decision; `done` gets what became of it.

        Raises
        ------
        QueueFullError
            Too many requests are waiting.
        """
        self._put_one(decision, done)

    def reward(self, rewards: NewRewards, done: Callable[[RewardsAdded | Exception], None]) -> None:
        """Hand over a request of rewards; `done` gets what became of it.

        Raises
        ------
        QueueFullError
            Too many requests are waiting.
        """
        self._put_one(rewards, done)

    def put(self, requests: Sequence[tuple[NewDecision | NewRewards, Done]]) -> int:
        """Hand over requests, each with the function that gets its answer; return how many of them, the first ones.

        Those after would be too many: they are not taken.
        """
        with self._changed:
            room = 0 if self._is_closed else max(self._most_waiting - len(self._waiting), 0)
            self._waiting.extend(requests[:room])
            if len(self._waiting) >= self._enough:
                self._changed.notify()
        return min(room, len(requests))

    def close(self) -> None:
        """Write all that is waiting, then end; further requests are refused."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()

    def __len__(self) -> int:
        return len(self._waiting)

    def refusal(self) -> QueueFullError:
        """Return why requests are not taken."""
        if self._is_closed:
            return QueueFullError("the ledger takes no more requests: the service is stopping")
        return QueueFullError(f"{self._most_waiting} requests are waiting for the ledger already; try again later")

    def _put_one(self, request: NewDecision | NewRewards, done: Done) -> None:
        if not self.put([(request, done)]):
            raise self.refusal()

    def _run(self) -> None:
        group: list[tuple[NewDecision | NewRewards, Done]] = []
        while True:
            with self._changed:
                if len(group) > 1:
                    self._wait_for(len(group), GATHER_SECONDS)
                self._wait_for(1)
                n = min(len(self._waiting), LARGEST_GROUP)
                group = [self._waiting.popleft() for _ in range(n)]
            if not group:
                return
            answers = self._written([request for request, _ in group])
            pairs = [(done, answer) for (_, done), answer in zip(group, answers, strict=True)]
            with suppress(Exception):  # of the caller: what was written is written, and the next go on
                self._deliver(pairs)

    def _wait_for(self, n: int, seconds: float | None = None) -> None:
        """Wait until n requests are there, the end has come or the time is over."""
        self._enough = n
        self._changed.wait_for(lambda: self._is_closed or len(self._waiting) >= n, seconds)

    def _written(self, requests: Sequence[NewDecision | NewRewards]) -> Sequence[Decided | RewardsAdded | Exception]:
        try:
            return self._ledger.add_group(requests)
        except LedgerError as error:
            return [error] * len(requests)
        except Exception as error:
            if len(requests) > 1:  # of one of them, it is not known which
                return [self._written([request])[0] for request in requests]
            return [LedgerError(f"the request cannot be written: {type(error).__name__}")]


def _call_each(pairs: list[tuple[Done, Any]]) -> None:
    for done, answer in pairs:
        with suppress(Exception):
            done(answer)
