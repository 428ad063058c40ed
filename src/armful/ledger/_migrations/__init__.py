"""Alembic revisions of the schema, the first to the newest; `armful.ledger._versions` applies them."""
