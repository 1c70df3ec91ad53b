"""Tables of ledger, kept answers and audit log; tables that version 0.1 made under the name ``tacit`` are renamed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import SchemaItem

from sfumato.errors import LedgerBroken

revision = "0001"
down_revision = None


def upgrade() -> None:
    bind = op.get_bind()
    tables = set(sa.inspect(bind).get_table_names())
    columns = {"ledger": _ledger(), "answers": _answers(), "audit": _audit()}
    for name, definition in columns.items():
        old, new = f"tacit_{name}", f"sfumato_{name}"
        if old in tables and new in tables:
            _drop_empty(bind, new)
            tables.discard(new)
        if old in tables:
            op.rename_table(old, new)
        elif new not in tables:
            op.create_table(new, *definition, sqlite_strict=name != "audit")
    for name, fields in {"account": ["dataset", "analyst"], "dataset": ["dataset"], "analyst": ["analyst"]}.items():
        op.execute(f"DROP INDEX IF EXISTS tacit_ledger_{name}")
        op.create_index(f"sfumato_ledger_{name}", "sfumato_ledger", ["kind", *fields, "number"], if_not_exists=True)
    if bind.dialect.name == "sqlite":
        for event, name in (("UPDATE", "keep"), ("DELETE", "stay")):
            op.execute(f"DROP TRIGGER IF EXISTS tacit_ledger_{name}")
            op.execute(
                f"CREATE TRIGGER IF NOT EXISTS sfumato_ledger_{name} BEFORE {event} ON sfumato_ledger "
                "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
            )
    else:
        op.execute("DROP TRIGGER IF EXISTS tacit_ledger_keep ON sfumato_ledger")
        op.execute("DROP FUNCTION IF EXISTS tacit_ledger_keep()")
        op.execute(
            "CREATE OR REPLACE FUNCTION sfumato_ledger_keep() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$"
        )
        op.execute(
            "CREATE OR REPLACE TRIGGER sfumato_ledger_keep BEFORE UPDATE OR DELETE OR TRUNCATE ON sfumato_ledger "
            "FOR EACH STATEMENT EXECUTE FUNCTION sfumato_ledger_keep()"
        )


def _drop_empty(bind: sa.Connection, table: str) -> None:
    """Two tables of one kind: one of them must be empty, or their entries would have to be merged into one chain."""
    if bind.exec_driver_sql(f"SELECT 1 FROM {table} LIMIT 1").first() is not None:
        raise LedgerBroken(
            "The database holds two ledgers, of version 0.1 and of a later one.",
            fix="Move the tables of one of them to another database.",
        )
    op.drop_table(table)


def _text(name: str, *more: SchemaItem) -> sa.Column[str]:
    return sa.Column(name, sa.Text, *more, nullable=False)


def _whole(name: str) -> sa.Column[int]:
    return sa.Column(name, _LONG, sa.CheckConstraint(f"{name} >= 0"), nullable=False)


_LONG = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""SQLite's own integers have 64 bits, and only ``INTEGER`` may be the key of its rows."""


def _ledger() -> list[sa.Column[int] | sa.Column[str]]:
    kinds = sa.CheckConstraint("kind IN ('cap', 'spend')")
    return [
        sa.Column("number", _LONG, primary_key=True, autoincrement=False), _text("at"), _text("kind", kinds),
        _text("dataset"), _text("analyst"), _text("measure"), _whole("size"), _whole("delta"), _text("about"),
        _text("totals"), _text("previous"), sa.Column("hash", sa.Text, nullable=False, unique=True),
    ]  # fmt: skip


def _answers() -> list[sa.Column[int] | sa.Column[str]]:
    return [sa.Column("key", sa.Text, primary_key=True), _text("body")]


def _audit() -> list[sa.Column[int] | sa.Column[str]]:
    return [
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False), _text("dataset"), _text("rules"),
        _text("question"), _text("verdict"), _text("fakes"), _text("previous"),
        sa.Column("hash", sa.Text, nullable=False, unique=True),
    ]  # fmt: skip
