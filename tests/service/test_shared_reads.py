"""Reads that requests share, with a store whose answers the test gives."""

import asyncio

import pytest

from armful.errors import LedgerError
from armful.service._shared_reads import SharedReads
from tests.service.small_service import make_campaign, serving


class Store:
    """Reads wait until they are answered."""

    def __init__(self):
        self.asked = []

    def read(self):
        async def answer():
            return await future

        future = asyncio.get_running_loop().create_future()
        self.asked.append(future)
        return answer()


async def waiting(shared, store, n, key="a"):
    """Return n requests that all wait."""
    tasks = [asyncio.create_task(shared.get(key, store.read)) for _ in range(n)]
    while not store.asked:
        await asyncio.sleep(0)
    for _ in range(5):
        await asyncio.sleep(0)
    return tasks


def test_requests_at_once_wait_for_one_read_and_later_ones_remember_it():
    async def main():
        shared, store = SharedReads(1000.0, 10), Store()
        tasks = await waiting(shared, store, 20)
        assert len(store.asked) == 1
        tasks[0].cancel()  # the one who began the read goes away
        await asyncio.sleep(0)
        store.asked[0].set_result("found")
        assert await asyncio.gather(*tasks[1:]) == ["found"] * 19
        assert await shared.get("a", store.read) == "found"
        assert len(store.asked) == 1
        other = asyncio.create_task(shared.get("b", store.read))
        while len(store.asked) < 2:
            await asyncio.sleep(0)
        store.asked[1].set_result(None)
        assert await other is None

    asyncio.run(main())


def test_a_read_that_fails_is_not_remembered():
    async def main():
        shared, store = SharedReads(1000.0, 10), Store()
        tasks = await waiting(shared, store, 3)
        store.asked[0].set_exception(LedgerError("gone"))
        for task in tasks:
            with pytest.raises(LedgerError, match="gone"):
                await task
        again = asyncio.create_task(shared.get("a", store.read))
        while len(store.asked) < 2:
            await asyncio.sleep(0)
        store.asked[1].set_result("back")
        assert await again == "back"

    asyncio.run(main())


def test_an_old_answer_is_read_again():
    async def main():
        n_reads = 0

        async def read():
            nonlocal n_reads
            n_reads += 1

        at_once = SharedReads(0.0, 10)
        for _ in range(3):
            await at_once.get("a", read)
        assert n_reads == 3

    asyncio.run(main())


def test_with_too_many_answers_the_one_read_longest_ago_is_forgotten():
    async def main():
        async def read():
            return "found"

        few = SharedReads(0.0, 2)
        for key in "abacadae":  # others come and go beside one that is asked for again and again
            await few.get(key, read)
        assert [key for key in "abcde" if few.last(key) is not None] == ["a", "e"]

    asyncio.run(main())


def test_readyz_asks_the_store_once_for_many(tmp_path, monkeypatch):
    monkeypatch.setattr("armful.service._worker.READY_SECONDS", 1000.0)
    folder = make_campaign(tmp_path / "autumn")
    n_reads = 0
    with serving(folder) as service:
        ledger = service.worker.ledger
        asked = ledger.model_version

        def model_version():
            nonlocal n_reads
            n_reads += 1
            return asked()

        monkeypatch.setattr(ledger, "model_version", model_version)
        assert [service.get("/readyz").status_code for _ in range(5)] == [200] * 5
    assert n_reads == 1
