"""Run by Alembic, inside the transaction that `storage.engine.migrate` opened."""

from __future__ import annotations

from alembic import context
from sqlmodel import SQLModel

from vouchgate.storage.tables import audits, claims, doors, people, tree  # noqa: F401  (they fill the metadata)

connection = context.config.attributes.get("connection")
if connection is None:
    raise SystemExit("run `vouchgate db upgrade`: the migrations take their connection from the program")
context.configure(connection=connection, target_metadata=SQLModel.metadata)
with context.begin_transaction():
    context.run_migrations()
