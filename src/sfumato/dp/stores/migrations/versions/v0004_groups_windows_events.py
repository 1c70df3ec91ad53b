"""Groups, window caps, caps on single questions, events and failed runs in the ledger; an index of fingerprints."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_KINDS = "kind IN ('cap', 'spend', 'month', 'year', 'question', 'event')"
_COLUMNS = "number, at, kind, dataset, analyst, measure, size, delta, about, totals, previous, hash"


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        # SQLite cannot change a CHECK: the table is copied. Dropping a table runs no trigger.
        op.execute(
            "CREATE TABLE sfumato_ledger_copy (number INTEGER NOT NULL PRIMARY KEY, at TEXT NOT NULL, "
            f"kind TEXT NOT NULL CHECK ({_KINDS}), dataset TEXT NOT NULL, analyst TEXT NOT NULL, "
            "measure TEXT NOT NULL, size INTEGER NOT NULL CHECK (size >= 0), "
            "delta INTEGER NOT NULL CHECK (delta >= 0), about TEXT NOT NULL, totals TEXT NOT NULL, "
            "previous TEXT NOT NULL, hash TEXT NOT NULL UNIQUE) STRICT"
        )
        op.execute(f"INSERT INTO sfumato_ledger_copy ({_COLUMNS}) SELECT {_COLUMNS} FROM sfumato_ledger")
        op.execute("DROP TABLE sfumato_ledger")
        op.execute("ALTER TABLE sfumato_ledger_copy RENAME TO sfumato_ledger")
        indexes = {"account": ["dataset", "analyst"], "dataset": ["dataset"], "analyst": ["analyst"]}
        for name, fields in indexes.items():
            op.create_index(f"sfumato_ledger_{name}", "sfumato_ledger", ["kind", *fields, "number"])
        for event, name in (("UPDATE", "keep"), ("DELETE", "stay")):
            op.execute(
                f"CREATE TRIGGER sfumato_ledger_{name} BEFORE {event} ON sfumato_ledger "
                "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
            )
    else:
        query = (
            "SELECT conname FROM pg_constraint WHERE conrelid = to_regclass('sfumato_ledger') AND contype = 'c' "
            "AND strpos(pg_get_constraintdef(oid), 'spend') > 0"
        )
        found = op.get_bind().exec_driver_sql(query)
        for (name,) in found.fetchall():
            op.execute(f'ALTER TABLE sfumato_ledger DROP CONSTRAINT "{name}"')
        op.execute(f"ALTER TABLE sfumato_ledger ADD CONSTRAINT sfumato_ledger_kind_check CHECK ({_KINDS})")
    op.create_index("sfumato_ledger_about", "sfumato_ledger", ["about", "analyst"])
    op.create_table(
        "sfumato_ledger_groups",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=False),
    )
    op.create_table(
        "sfumato_ledger_failures",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=False),
    )
