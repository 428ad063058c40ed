"""The first tables: campaigns, rounds, chosen arms, rewards, snapshots."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create them."""
    op.create_table(
        "campaigns",
        sa.Column("id", SERIAL, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("recipe", sa.Text),
        sa.Column("position", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "rounds",
        sa.Column("id", SERIAL, primary_key=True),
        sa.Column("campaign_id", sa.BigInteger, sa.ForeignKey("campaigns.id"), nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("key", sa.Text),
        sa.Column("chosen_at", MOMENT, nullable=False),
        sa.Column("closes_at", MOMENT, nullable=False),
        sa.Column("n_features", sa.Integer, nullable=False),
        sa.Column("details", sa.Text, nullable=False),
        sa.UniqueConstraint("campaign_id", "number", name="rounds_number"),
        sa.UniqueConstraint("campaign_id", "key", name="rounds_key"),
    )
    op.create_table(
        "chosen",
        sa.Column("round_id", sa.BigInteger, sa.ForeignKey("rounds.id"), primary_key=True, autoincrement=False),
        sa.Column("arm", sa.Text, primary_key=True),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("share", sa.Text, nullable=False),
        sa.Column("predicted", sa.Double),
        sa.Column("bonus", sa.Double),
        sa.Column("capped", sa.Boolean, nullable=False),
        sa.Column("probability", sa.Double),
        sa.Column("features", sa.LargeBinary, nullable=False),
        sa.Column("groups", sa.Text),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "rewards",
        sa.Column("round_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("arm", sa.Text, primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("reward", sa.Double, nullable=False),
        sa.Column("received_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["round_id", "arm"], ["chosen.round_id", "chosen.arm"], name="rewards_chosen"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "snapshots",
        sa.Column("campaign_id", sa.BigInteger, sa.ForeignKey("campaigns.id"), primary_key=True, autoincrement=False),
        sa.Column("first_round", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("last_round", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("state", sa.LargeBinary, nullable=False),
        sa.Column("made_at", MOMENT, nullable=False),
    )
