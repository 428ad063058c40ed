"""Erasing people: a record of each erasure, and finding the rounds of a person; also the last reward of a round."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the table `erasures` and two indexes."""
    op.create_table(
        "erasures",
        sa.Column("campaign_id", sa.BigInteger, sa.ForeignKey("campaigns.id"), primary_key=True, autoincrement=False),
        sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("erased_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("n_people", sa.BigInteger, nullable=False),
        sa.Column("n_rows", sa.BigInteger, nullable=False),
    )
    op.create_index("chosen_arm", "chosen", ["arm"])
    op.create_index("rewards_seq", "rewards", ["round_id", "seq"])
