import secrets
from contextlib import ExitStack

import pytest

from armful.testing.ledger_contract import LedgerContract
from tests.postgresql import own_schema


class TestSqlite(LedgerContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.folder = tmp_path

    def url(self):
        return f"sqlite:///{self.folder / secrets.token_hex(4)}.sqlite"


@pytest.mark.slow
class TestPostgresql(LedgerContract):
    @pytest.fixture(autouse=True)
    def _schemas(self):
        with ExitStack() as self.stack:
            yield

    def url(self):
        return self.stack.enter_context(own_schema())
