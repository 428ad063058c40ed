"""Many requests in one transaction: what they share, and what happens when the store fails."""

import threading
import time

import numpy as np
import pytest
from sqlalchemy import event

from armful.errors import LedgerError, QueueFullError
from armful.ledger import Decided, GroupCommit, Ledger, RewardsAdded, group_commit
from armful.testing._made_decisions import made_decision, new_rewards
from tests.postgresql import Server

PATIENCE_SECONDS = 300


def decision(i=0, **options):
    return made_decision(np.random.default_rng(i), **options)


class Answers:
    """Collects the answers of requests, and waits for them."""

    def __init__(self):
        self.found, self._come = [], threading.Semaphore(0)

    def __call__(self, answer):
        self.found.append(answer)
        self._come.release()

    def wait(self, n):
        """Return the next n answers."""
        for _ in range(n):
            assert self._come.acquire(timeout=PATIENCE_SECONDS), f"{len(self.found)} answers came"
        taken, self.found = self.found[:n], self.found[n:]
        return taken


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}", "autumn", create=True) as ledger:
        yield ledger


class Held:
    """A `GroupCommit` whose writer stops after its first transaction until it is let go on."""

    def __init__(self, ledger, **options):
        self.sizes, self.held, self.go_on = [], threading.Event(), threading.Event()
        self.group = GroupCommit(ledger, self._deliver, **options)
        self.group.decide(decision(), lambda _: None)
        assert self.held.wait(PATIENCE_SECONDS)

    def _deliver(self, pairs):
        self.sizes.append(len(pairs))
        self.held.set()
        assert self.go_on.wait(PATIENCE_SECONDS)
        for done, answer in pairs:
            done(answer)


def test_all_that_is_waiting_goes_into_one_transaction(ledger):
    held, answers = Held(ledger), Answers()
    for i in range(30):
        held.group.decide(decision(i), answers)
    held.group.reward(new_rewards((17, "a", 1.0)), answers)
    assert len(held.group) == 31
    held.go_on.set()
    found = answers.wait(31)
    assert held.sizes == [1, 31]
    assert found == [*(Decided(number, False) for number in range(2, 32)), found[-1]]
    assert found[-1].counts.new == 1, "a reward for a decision of the same transaction"
    held.group.close()


def test_after_several_requests_a_transaction_waits_for_as_many(ledger, monkeypatch):
    monkeypatch.setattr(group_commit, "GATHER_SECONDS", PATIENCE_SECONDS)
    held, answers = Held(ledger), Answers()
    for _ in range(4):
        held.group.decide(decision(), answers)
    held.go_on.set()
    for _ in range(2):
        answers.wait(4)
        for _ in range(4):
            held.group.decide(decision(), answers)
    answers.wait(4)
    assert held.sizes == [1, 4, 4, 4]
    held.group.decide(decision(), answers)
    held.group.close()  # which waits for nothing more
    assert held.sizes == [1, 4, 4, 4, 1]


def test_the_time_to_wait_for_as_many_begins_with_the_transaction_before(ledger, monkeypatch):
    """A request that comes later does not wait for others."""
    monkeypatch.setattr(group_commit, "GATHER_SECONDS", 0.05)
    held, answers, waits = Held(ledger), Answers(), []
    plain = GroupCommit._wait_for
    monkeypatch.setattr(GroupCommit, "_wait_for", lambda self, n, *seconds: waits.append(n) or plain(self, n, *seconds))
    for _ in range(4):
        held.group.decide(decision(), answers)
    held.go_on.set()
    answers.wait(4)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while waits[-2:] != [4, 1]:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    held.group.decide(decision(), answers)
    answers.wait(1)
    assert held.sizes == [1, 4, 1]
    held.group.close()


def test_the_time_to_wait_for_as_many_ends(ledger):
    held, answers = Held(ledger), Answers()
    for _ in range(4):
        held.group.decide(decision(), answers)
    held.go_on.set()
    answers.wait(4)
    held.group.decide(decision(), answers)
    answers.wait(1)
    assert held.sizes == [1, 4, 1]
    held.group.close()


def test_of_many_at_once_those_are_taken_for_which_there_is_room(ledger):
    held, answers = Held(ledger, most_waiting=3), Answers()
    held.group.decide(decision(), answers)
    assert held.group.put([(decision(i), answers) for i in range(4)]) == 2
    assert held.group.put([(decision(), answers)]) == 0
    held.go_on.set()
    assert [answer.number for answer in answers.wait(3)] == [2, 3, 4]
    held.group.close()
    assert held.group.put([(decision(), answers)]) == 0
    assert ledger.last_number() == 4


def test_one_request_after_another_does_not_wait(ledger, monkeypatch):
    monkeypatch.setattr(group_commit, "GATHER_SECONDS", 2 * PATIENCE_SECONDS)
    answers, group = Answers(), GroupCommit(ledger)
    for _ in range(3):
        group.decide(decision(), answers)
        answers.wait(1)
    group.close()


def test_more_than_may_wait_are_refused_and_the_others_written(ledger):
    held, answers = Held(ledger, most_waiting=3), Answers()
    for i in range(3):
        held.group.decide(decision(i), answers)
    with pytest.raises(QueueFullError, match=r"^3 requests are waiting for the ledger already; try again later$"):
        held.group.decide(decision(), answers)
    with pytest.raises(QueueFullError):
        held.group.reward(new_rewards((1, "a", 1.0)), answers)
    held.go_on.set()
    assert [answer.number for answer in answers.wait(3)] == [2, 3, 4]
    held.group.decide(decision(), answers)
    assert answers.wait(1) == [Decided(5, False)]
    held.group.close()


def test_closing_writes_what_is_waiting_and_refuses_more(ledger):
    held, answers = Held(ledger), Answers()
    for i in range(5):
        held.group.decide(decision(i), answers)
    closing = threading.Thread(target=held.group.close)
    closing.start()
    held.go_on.set()
    closing.join(PATIENCE_SECONDS)
    assert not closing.is_alive()
    assert [answer.number for answer in answers.found] == [2, 3, 4, 5, 6]
    with pytest.raises(QueueFullError, match="the service is stopping"):
        held.group.decide(decision(), answers)
    held.group.close()
    assert ledger.last_number() == 6


def test_a_caller_that_fails_stops_nobody(ledger):
    def fail(_):
        raise RuntimeError("a mistake of the caller")

    group, answers = GroupCommit(ledger), Answers()
    for i in range(4):
        group.decide(decision(i), fail if i % 2 else answers)
    assert [answer.number for answer in answers.wait(2)] == [1, 3]
    group.close()
    broken = GroupCommit(ledger, fail)
    broken.decide(decision(), answers)
    broken.decide(decision(), answers)
    broken.close()
    assert ledger.last_number() == 6


def test_a_request_that_is_refused_fails_alone(ledger):
    held, answers = Held(ledger), Answers()
    held.group.decide(decision(key="a\0b"), answers)
    held.group.decide("no decision", answers)
    held.group.reward(new_rewards((99, "a", 1.0)), answers)
    held.group.decide(decision(), answers)
    held.go_on.set()
    bad, none, unknown, good = answers.wait(4)
    for answer in (bad, none, unknown):
        assert isinstance(answer, LedgerError)
        assert "\n" not in str(answer)
    assert good == Decided(2, False)
    held.group.close()


# -- the store fails ---------------------------------------------------------------------------------


FAILURES = {
    "is full": (
        "PRAGMA max_page_count = 1",
        "PRAGMA max_page_count = 1000000",
        "the disk is full; nothing was changed",
    ),
    "is read-only": ("PRAGMA query_only = ON", "PRAGMA query_only = OFF", "is read-only; nothing was changed"),
    "does not sync": ("PRAGMA synchronous = NORMAL", "PRAGMA synchronous = FULL", "would not survive a power cut"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_store_that_fails_is_said_to_each_and_works_again_afterwards(ledger, failure):
    cause, repair, sentence = FAILURES[failure]
    now, group, answers = [cause], GroupCommit(ledger), Answers()
    group.decide(decision(), answers)
    assert answers.wait(1) == [Decided(1, False)]
    event.listen(ledger._store.engine, "checkout", lambda connection, *_: connection.execute(now[0]))
    ledger.close()  # the connection that is kept, so that there is a new one
    for i in range(20):
        group.decide(decision(i, ids=[f"person {i}/{j}" for j in range(100)]), answers)
        group.reward(new_rewards((1, "a", 1.0)), answers)
    for answer in answers.wait(40):
        assert isinstance(answer, LedgerError)
        assert sentence in str(answer)
        assert "\n" not in str(answer)
    now[0] = repair
    group.decide(decision(), answers)
    group.reward(new_rewards((1, "a", 1.0)), answers)
    decided, rewarded = answers.wait(2)
    assert decided == Decided(2, False)
    assert isinstance(rewarded, RewardsAdded)
    assert rewarded.counts.new == 1, "a reward of a transaction that failed was kept"
    group.close()
    assert (ledger.last_number(), ledger.position()) == (2, 1)


@pytest.mark.slow
def test_a_server_that_goes_away_is_said_to_each_and_used_again_when_it_is_back():
    with Server() as server, Ledger.open(server.url, "autumn", create=True) as ledger:
        group, answers, known = GroupCommit(ledger), Answers(), {}
        for crash in range(2):
            group.decide(decision(key=f"before {crash}"), answers)
            known[f"before {crash}"] = answers.wait(1)[0].number
            server.kill()
            for i in range(10):
                group.decide(decision(i, key=f"in vain {i}"), answers)
            for answer in answers.wait(10):
                assert isinstance(answer, LedgerError)
                assert "cannot be reached" in str(answer)
                assert "\n" not in str(answer)
            server.start()
        for key in [*known, "in vain 3", "after"]:
            group.decide(decision(key=key), answers)
        again = answers.wait(4)
        assert [answer.number for answer in again[:2]] == list(known.values())
        assert [answer.repeated for answer in again] == [True, True, False, False]
        assert [answer.number for answer in again[2:]] == [3, 4]
        group.close()
