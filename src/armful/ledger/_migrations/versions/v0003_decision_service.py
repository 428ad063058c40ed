"""The decision service: whom a round was for and by which model; published models, registered arms, keys."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add columns and indexes to `rounds`; create `models`, `arms` and `keys`; drop the index of arms.

    The index made every decision touch as many pages as it has arms. Only erasing used it, which reads the file anyway.
    """
    op.drop_index("chosen_arm", "chosen")
    op.add_column("rounds", sa.Column("unit", sa.Text))
    op.add_column("rounds", sa.Column("model_version", sa.BigInteger))
    op.create_index("rounds_closing", "rounds", ["campaign_id", "closes_at"])
    for name, column in (("rewarded", "last_reward"), ("erased", "last_erasure"), ("unit", "unit")):
        given = sa.text(f"{column} IS NOT NULL")
        op.create_index(f"rounds_{name}", "rounds", ["campaign_id", column], sqlite_where=given, postgresql_where=given)
    op.create_table(
        "models",
        sa.Column("campaign_id", sa.BigInteger, sa.ForeignKey("campaigns.id"), primary_key=True, autoincrement=False),
        sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("closed_until", MOMENT, nullable=False),
        sa.Column("last_round", sa.BigInteger, nullable=False),
        sa.Column("made_at", MOMENT, nullable=False),
        sa.Column("checked_at", MOMENT, nullable=False),
        sa.Column("n_observations", sa.Double, nullable=False),
        sa.Column("state", sa.LargeBinary),
        sa.Column("summary", sa.Text),
    )
    op.create_table(
        "arms",
        sa.Column("campaign_id", sa.BigInteger, sa.ForeignKey("campaigns.id"), primary_key=True, autoincrement=False),
        sa.Column("arm", sa.Text, primary_key=True),
        sa.Column("change", sa.BigInteger, nullable=False),
        sa.Column("content", sa.LargeBinary),
        sa.Column("changed_at", MOMENT, nullable=False),
    )
    op.create_index("arms_change", "arms", ["campaign_id", "change"])
    op.create_table(
        "keys",
        sa.Column("campaign_id", sa.BigInteger, sa.ForeignKey("campaigns.id"), primary_key=True, autoincrement=False),
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        sa.Column("roles", sa.Text, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT),
        sa.Column("revoked_at", MOMENT),
    )
