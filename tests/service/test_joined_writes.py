"""Writes that are joined, on a transport that remembers, and in the answers of a real connection."""

import asyncio

from armful.service._joined_writes import JoinedWrites


class Remembering:
    """A transport that remembers what it was told."""

    def __init__(self):
        self.calls = []

    def write(self, data):
        self.calls.append(data)

    def write_eof(self):
        self.calls.append("end")

    def close(self):
        self.calls.append("closed")

    def abort(self):
        self.calls.append("aborted")

    def is_closing(self):
        return "closed" in self.calls or "aborted" in self.calls


def in_a_loop(work):
    async def run():
        transport = Remembering()
        joined = JoinedWrites(transport, asyncio.get_running_loop(), lambda: transport.calls.append("told"))
        await work(joined, transport)
        return transport.calls

    return asyncio.run(run())


def test_what_is_written_in_one_turn_is_one_write():
    async def work(joined, transport):
        joined.write(b"head ")
        joined.write(b"body")
        assert transport.calls == [], "it waits for more"
        await asyncio.sleep(0)
        joined.write(b"next")
        await asyncio.sleep(0)

    assert in_a_loop(work) == [b"head body", b"next"]


def test_what_was_written_goes_out_before_the_connection_closes():
    async def work(joined, transport):
        joined.write(b"the last ")
        joined.write(b"words")
        joined.close()
        assert joined.is_closing()
        await asyncio.sleep(0)

    assert in_a_loop(work) == [b"the last words", "closed", "told"]


def test_nothing_is_written_after_the_end():
    async def work(joined, transport):
        joined.write(b"words")
        joined.write_eof()
        await asyncio.sleep(0)

    assert in_a_loop(work) == [b"words", "end"]


def test_nothing_is_written_to_an_aborted_connection():
    async def work(joined, transport):
        joined.write(b"before")
        joined.abort()
        joined.write(b"after")
        await asyncio.sleep(0)

    assert in_a_loop(work) == ["aborted"]


def test_one_part_alone_is_not_copied():
    body = bytearray(b"long")

    async def work(joined, transport):
        joined.write(body)
        await asyncio.sleep(0)

    assert in_a_loop(work)[0] is body
