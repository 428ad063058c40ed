"""The schema version of a store, and bringing an older store up to date."""

import threading
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, text

from armful.errors import LedgerError
from armful.ledger._schema import SCHEMA_VERSION, VERSION_TABLE, metadata

_migrating = threading.Lock()
"""Alembic's `op` stands for one connection in the whole process."""


def schema_version(connection: Connection) -> str | None:
    """Return the revision of the store; None if it has no tables of a ledger."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()


def check_version(version: str | None, name: str) -> None:
    """Raise LedgerError if the store is newer than this code."""
    if version is not None and version > SCHEMA_VERSION:
        raise LedgerError(
            f"{name} was written by a newer armful (schema {version}, this one knows {SCHEMA_VERSION}): upgrade armful"
        )


def check_free(connection: Connection, name: str, *, alone: bool) -> None:
    """Raise LedgerError if the database holds other tables: any at all if `alone`, else some with names of ours."""
    tables = set(inspect(connection).get_table_names())
    taken = sorted(tables if alone else tables & set(metadata.tables))
    if taken:
        raise LedgerError(f"{name} is not a ledger: it holds other tables ({', '.join(taken[:3])}); give another store")


def migrate(connection: Connection, target: str = SCHEMA_VERSION) -> None:
    """Bring the store up to the revision `target`, in the transaction of the connection."""
    from alembic.config import Config  # noqa: PLC0415 - takes longer to import than opening a ledger that is up to date
    from alembic.runtime.environment import EnvironmentContext  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    scripts = ScriptDirectory(str(Path(__file__).parent / "_migrations"))

    def steps(revision: Any, _: Any) -> Any:
        return scripts._upgrade_revs(target, revision)

    with _migrating, EnvironmentContext(Config(), scripts, fn=steps) as environment:
        environment.configure(connection=connection, version_table=VERSION_TABLE)
        environment.run_migrations()
