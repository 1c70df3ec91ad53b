"""Tables of the ledger: entries with their index, failed runs, texts of queries, kept answers and the audit log."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import SchemaItem

revision = "0001"
down_revision = None

_KINDS = "kind IN ('cap', 'spend', 'month', 'year', 'question', 'moved', 'event', 'release')"
_LONG = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""SQLite's own integers have 64 bits, and only ``INTEGER`` may be the key of its rows."""


def upgrade() -> None:
    op.create_table(
        "sfumato_ledger",
        _number(), _text("at"), _text("kind", sa.CheckConstraint(_KINDS)), _text("dataset"), _text("analyst"),
        _text("unit"), _text("measure"), _text("size"), _text("delta"), _text("bounds"), _text("about"),
        _text("totals"), _text("previous"), sa.Column("hash", sa.Text, nullable=False, unique=True),
        sqlite_strict=True,
    )  # fmt: skip
    for name, fields in {"account": ["dataset", "analyst"], "dataset": ["dataset"], "analyst": ["analyst"]}.items():
        op.create_index(f"sfumato_ledger_{name}", "sfumato_ledger", ["kind", *fields, "number"])
    op.create_index("sfumato_ledger_about", "sfumato_ledger", ["about", "analyst"])
    op.create_table("sfumato_ledger_index", sa.Column("name", sa.Text, primary_key=True), _number())
    op.create_table("sfumato_ledger_failures", _number())
    op.create_table("sfumato_queries", _number(), _text("text"))
    op.create_table("sfumato_answers", sa.Column("key", sa.Text, primary_key=True), _text("body"), sqlite_strict=True)
    op.create_table(
        "sfumato_audit",
        _number(), _text("dataset"), _text("rules"), _text("question"), _text("verdict"), _text("fakes"),
        _text("previous"), sa.Column("hash", sa.Text, nullable=False, unique=True),
    )  # fmt: skip
    for name, title in (("ledger", "ledger"), ("audit", "audit log")):
        _append_only(f"sfumato_{name}", title)


def _append_only(table: str, title: str) -> None:
    """Refuse updates and deletions."""
    if op.get_bind().dialect.name == "sqlite":
        for event, name in (("UPDATE", "keep"), ("DELETE", "stay")):
            op.execute(
                f"CREATE TRIGGER {table}_{name} BEFORE {event} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, 'the {title} is append-only'); END"
            )
        return
    op.execute(
        f"CREATE FUNCTION {table}_keep() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION 'the {title} is append-only'; END $$"
    )
    op.execute(
        f"CREATE TRIGGER {table}_keep BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {table}_keep()"
    )


def _number() -> sa.Column[int]:
    return sa.Column("number", _LONG, primary_key=True, autoincrement=False)


def _text(name: str, *more: SchemaItem) -> sa.Column[str]:
    return sa.Column(name, sa.Text, *more, nullable=False)
