"""Processes and threads that write to one SQLite file take turns."""

import threading
import time

import pytest

from armful.ledger import Ledger
from armful.ledger._locked_file import locked_file

PATIENCE_SECONDS = 300


@pytest.fixture
def store(tmp_path):
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}", "autumn", create=True) as ledger:
        yield ledger._store


def wait_until_somebody_waits(store):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        if store._turns.exists():
            with locked_file(store._turns) as is_free:
                if not is_free:
                    return
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_who_waits_is_next(store):
    for _ in range(20):
        order = []

        def write(order=order):
            with store.writing():
                order.append("who waited")

        waiting = threading.Thread(target=write)
        with store.writing():
            waiting.start()
            wait_until_somebody_waits(store)
        with store.writing():
            order.append("who has just written")
        waiting.join()
        assert order == ["who waited", "who has just written"]


def test_nobody_who_is_alone_leaves_a_file(store):
    with store.writing():
        pass
    assert not store._turns.exists()


def test_without_the_file_a_writer_still_waits_for_the_lock(store, monkeypatch):
    monkeypatch.setattr(store, "_turns", store.path / "no" / "folder")
    entered = threading.Event()

    def write():
        with store.writing():
            entered.set()

    with store.writing():
        waiting = threading.Thread(target=write)
        waiting.start()
        assert not entered.wait(0.2)
    assert entered.wait(PATIENCE_SECONDS)
    waiting.join()
