"""Who asks while the store is away is told to come again: it is no mistake of the service."""

import asyncio
from datetime import UTC, datetime

import pytest

from armful.errors import LedgerError
from armful.service import keys
from armful.service._access import Access
from armful.service._problems import ProblemError


class Away:
    """A ledger that cannot be read."""

    def keys(self):
        raise LedgerError("postgresql://host/database cannot be reached")

    def find_key(self, id):
        raise LedgerError("postgresql://host/database cannot be reached")


@pytest.mark.parametrize("headers", [{}, {b"authorization": f"Bearer {keys.new_key()[1]}".encode()}])
def test_whether_somebody_may_ask_cannot_be_said_without_the_store(headers):
    access = Access(Away(), lambda: datetime.now(UTC))
    scope = {"client": ("127.0.0.1", 1234)}
    with pytest.raises(ProblemError) as caught:
        asyncio.run(access.caller(scope, {b"host": b"127.0.0.1:8000", **headers}, "decide"))
    assert (caught.value.status, caught.value.headers["retry-after"]) == (503, "1")
    assert b"database" not in caught.value.body("request"), "the log has the reason"
