"""The tables of a ledger. `_migrations` creates them; a test compares the two."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.types import TypeDecorator

SCHEMA_VERSION = "0002"
"""The newest revision in `_migrations/versions`."""
VERSION_TABLE = "armful_ledger_version"
"""Where Alembic notes the revision; its usual name may be taken in a database that is shared."""


class UtcDateTime(TypeDecorator[datetime]):
    """A moment, timezone-aware in Python; SQLite keeps it as text in UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the moment in UTC, as the driver takes it."""
        if value is None:
            return None
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        """Return the moment in UTC, timezone-aware."""
        if value is None:
            return None
        moment: datetime = value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


metadata = MetaData()

SERIAL = BigInteger().with_variant(Integer(), "sqlite")
"""SQLite numbers rows by itself only where the type is INTEGER."""

campaigns = Table(
    "campaigns",
    metadata,
    Column("id", SERIAL, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("created_at", UtcDateTime, nullable=False),
    Column("settings", Text, nullable=False),
    Column("recipe", Text),
    # Every reward and every erasure takes the next number. Whoever writes holds the row, so the order is that of
    # the commits; the numbers of a database sequence need not be.
    Column("position", BigInteger, nullable=False),
)

rounds = Table(
    "rounds",
    metadata,
    Column("id", SERIAL, primary_key=True),
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id"), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("key", Text),
    Column("chosen_at", UtcDateTime, nullable=False),
    Column("closes_at", UtcDateTime, nullable=False),
    Column("n_features", Integer, nullable=False),
    Column("details", Text, nullable=False),
    # The positions of its last reward, and of the last erasure of somebody who was in it.
    Column("last_reward", BigInteger),
    Column("last_erasure", BigInteger),
    UniqueConstraint("campaign_id", "number", name="rounds_number"),
    UniqueConstraint("campaign_id", "key", name="rounds_key"),
)

chosen = Table(
    "chosen",
    metadata,
    Column("round_id", BigInteger, ForeignKey("rounds.id"), primary_key=True, autoincrement=False),
    Column("arm", Text, primary_key=True),
    Column("position", BigInteger, nullable=False),
    Column("share", Text, nullable=False),
    Column("predicted", Double),
    Column("bonus", Double),
    Column("capped", Boolean, nullable=False),
    Column("probability", Double),
    Column("features", LargeBinary, nullable=False),
    Column("groups", Text),
    Index("chosen_arm", "arm"),
    sqlite_with_rowid=False,
)

rewards = Table(
    "rewards",
    metadata,
    Column("round_id", BigInteger, primary_key=True, autoincrement=False),
    Column("arm", Text, primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("reward", Double, nullable=False),
    Column("received_at", UtcDateTime, nullable=False),
    ForeignKeyConstraint(["round_id", "arm"], ["chosen.round_id", "chosen.arm"], name="rewards_chosen"),
    sqlite_with_rowid=False,
)

snapshots = Table(
    "snapshots",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id"), primary_key=True, autoincrement=False),
    Column("first_round", BigInteger, primary_key=True, autoincrement=False),
    Column("last_round", BigInteger, primary_key=True, autoincrement=False),
    Column("position", BigInteger, nullable=False),
    Column("state", LargeBinary, nullable=False),
    Column("made_at", UtcDateTime, nullable=False),
)

erasures = Table(
    "erasures",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id"), primary_key=True, autoincrement=False),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("erased_at", UtcDateTime, nullable=False),
    Column("n_people", BigInteger, nullable=False),
    Column("n_rows", BigInteger, nullable=False),
)
