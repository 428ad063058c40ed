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
    text,
)
from sqlalchemy.types import TypeDecorator

SCHEMA_VERSION = "0003"
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


def _index_where_given(name: str, column: str) -> Index:
    """Return an index of the rounds that have a value in the column; most have none, and cost nothing."""
    given = text(f"{column} IS NOT NULL")
    return Index(name, "campaign_id", column, sqlite_where=given, postgresql_where=given)


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
    # Of a decision of the service: who it was for, and the model that chose.
    Column("unit", Text),
    Column("model_version", BigInteger),
    UniqueConstraint("campaign_id", "number", name="rounds_number"),
    UniqueConstraint("campaign_id", "key", name="rounds_key"),
    Index("rounds_closing", "campaign_id", "closes_at"),
    _index_where_given("rounds_rewarded", "last_reward"),
    _index_where_given("rounds_erased", "last_erasure"),
    _index_where_given("rounds_unit", "unit"),
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

models = Table(
    "models",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id"), primary_key=True, autoincrement=False),
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("position", BigInteger, nullable=False),
    Column("closed_until", UtcDateTime, nullable=False),
    Column("last_round", BigInteger, nullable=False),
    Column("made_at", UtcDateTime, nullable=False),
    Column("checked_at", UtcDateTime, nullable=False),
    Column("n_observations", Double, nullable=False),
    # Only the newest has them, unless somebody was erased since.
    Column("state", LargeBinary),
    Column("summary", Text),
)

arms = Table(
    "arms",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id"), primary_key=True, autoincrement=False),
    Column("arm", Text, primary_key=True),
    Column("change", BigInteger, nullable=False),
    Column("content", LargeBinary),
    Column("changed_at", UtcDateTime, nullable=False),
    Index("arms_change", "campaign_id", "change"),
)

keys = Table(
    "keys",
    metadata,
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id"), primary_key=True, autoincrement=False),
    Column("id", Text, primary_key=True),
    Column("hash", LargeBinary, nullable=False),
    Column("roles", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime),
    Column("revoked_at", UtcDateTime),
)
