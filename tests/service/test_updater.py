"""The updater: one at a time, again after an error of the store, and until it is told to end."""

import logging
import threading
from contextlib import contextmanager
from datetime import timedelta

import pytest

from armful.errors import LedgerError, PrecisionError
from armful.service import updater
from armful.service.updater import Updater


class Lock:
    """Stands for a ledger: the updater lock is free, taken, or cannot be asked for."""

    def __init__(self, *answers):
        self.answers, self.is_held = list(answers), False

    @contextmanager
    def updater_lock(self):
        answer = self.answers.pop(0) if self.answers else True
        if isinstance(answer, Exception):
            raise answer
        self.is_held = answer
        try:
            yield answer
        finally:
            self.is_held = False


class Work:
    """Makes updates, some of which fail, and ends the updater after the last one."""

    def __init__(self, lock, *outcomes):
        self.lock, self.outcomes, self.over, self.begun = lock, list(outcomes), threading.Event(), 0

    def begin(self):
        self.begun += 1
        return self.update

    def update(self):
        assert self.lock.is_held
        outcome = self.outcomes.pop(0)
        if not self.outcomes:
            self.over.set()
        if outcome is not None:
            raise outcome


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(updater, "FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(logging.getLogger("armful"), "propagate", True)  # where caplog looks


def run(work):
    Updater(work.lock, work.begin, timedelta(milliseconds=1)).run(work.over)
    assert work.outcomes == []
    assert not work.lock.is_held


def test_updates_follow_each_other_under_one_lock():
    work = Work(Lock(True), *[None] * 5)
    run(work)
    assert work.begun == 1


@pytest.mark.parametrize("error", [LedgerError, PrecisionError])
def test_an_error_of_the_store_is_logged_and_tried_again_from_what_it_holds(caplog, error):
    work = Work(Lock(), None, error("the disk\nis full"), None, None)
    with caplog.at_level(logging.ERROR, "armful"):
        run(work)
    assert work.begun == 2
    assert caplog.messages == ["the model was not updated: the disk is full; it is tried again in 0.001 seconds"]


def test_a_lock_that_another_process_has_is_waited_for(caplog):
    work = Work(Lock(False, False, LedgerError("no answer"), False, True), None, None)
    with caplog.at_level(logging.INFO, "armful"):
        run(work)
    assert work.begun == 1
    assert [message[:15] for message in caplog.messages] == ["another process", "the model was n"]


def test_a_mistake_in_the_program_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        run(Work(Lock(), ZeroDivisionError()))


def test_it_ends_before_the_first_update_if_told_so():
    work = Work(Lock(), None)
    work.over.set()
    Updater(work.lock, work.begin, timedelta(days=1)).run(work.over)
    assert work.outcomes == [None]
