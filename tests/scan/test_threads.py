from threading import Event, get_ident

import pytest

from armful.scan._threads import in_threads_as_read


def test_results_come_in_order_and_from_other_threads(monkeypatch):
    monkeypatch.setattr("armful.scan._threads._cores", lambda: 2)
    first = Event()

    def work(i):
        if i == 0:
            first.wait(60)  # it ends after the next ones
        else:
            first.set()
        return i, get_ident()

    results = list(in_threads_as_read(work, range(50)))
    assert [i for i, _ in results] == list(range(50))
    assert get_ident() not in {thread for _, thread in results}


def test_few_items_are_held_at_a_time(monkeypatch):
    monkeypatch.setattr("armful.scan._threads._cores", lambda: 3)
    read = []

    def items():
        for i in range(100):
            read.append(i)
            yield i

    for n_done, _ in enumerate(in_threads_as_read(str, items())):
        assert len(read) <= n_done + 4


def test_the_first_error_in_order_is_raised_and_no_more_is_read():
    read = []

    def items():
        for i in range(1000):
            read.append(i)
            yield i

    def work(i):
        if i >= 5:
            raise ValueError(f"item {i}")
        return i

    with pytest.raises(ValueError, match="item 5"):
        list(in_threads_as_read(work, items()))
    assert len(read) < 1000
