"""Erasing people: a record of each erasure, the rounds of a person by an index; and the last change of each round."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create `erasures` and the index; add the positions to `rounds`, from the rewards that are there."""
    op.create_table(
        "erasures",
        sa.Column("campaign_id", sa.BigInteger, sa.ForeignKey("campaigns.id"), primary_key=True, autoincrement=False),
        sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("erased_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("n_people", sa.BigInteger, nullable=False),
        sa.Column("n_rows", sa.BigInteger, nullable=False),
    )
    op.create_index("chosen_arm", "chosen", ["arm"])
    op.add_column("rounds", sa.Column("last_reward", sa.BigInteger))
    op.add_column("rounds", sa.Column("last_erasure", sa.BigInteger))
    last = "SELECT max(seq) FROM rewards WHERE rewards.round_id = rounds.id"
    op.execute(f"UPDATE rounds SET last_reward = ({last})")
