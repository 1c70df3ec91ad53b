"""Alembic environment: runs the scripts on the connection that :func:`sfumato.ledger.stores.schema.migrate` opened."""

from alembic import context


def run() -> None:
    attributes = context.config.attributes
    context.configure(connection=attributes["connection"], version_table=attributes["version_table"])
    with context.begin_transaction():
        context.run_migrations()


if hasattr(context, "config"):  # Alembic runs this file; elsewhere, it is only imported
    run()
