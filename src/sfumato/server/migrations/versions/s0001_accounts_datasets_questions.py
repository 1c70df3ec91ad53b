"""Tables of the server: accounts, data sets, grants, budget requests and questions. Times are ISO 8601 in UTC."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _key(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, primary_key=True)


def _text(name: str, default: str | None = "") -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, server_default=default)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False, server_default="0")


_TABLES: dict[str, list[sa.Column[str] | sa.Column[int]]] = {
    # `secret` holds the key of the salts of unknown users.
    "settings": [_key("name"), _text("value")],
    "users": [
        _key("name"), _text("roles"), _text("password"), _text("salt"), _number("active"), _text("subject"),
        _text("created"), _text("reset_at"), _text("reset_by"),
    ],
    # By the hash of the name and the address, whether or not there is such a user.
    "lockouts": [_key("hash"), _number("failures"), _text("until")],
    "groups": [_key("name"), _text("created")],
    "members": [_key("group_name"), _key("user_name")],
    "tokens": [
        _key("id"), _text("user_name"), _text("hash"), _text("stored_key"), _text("server_key"), _text("scopes"),
        _text("label"), _text("created"), _text("expires"), _text("last_used"), _text("revoked"), _text("made_by"),
    ],
    "sessions": [
        _key("hash"), _text("user_name"), _text("csrf"), _text("created"), _text("expires"), _number("by_link"),
    ],
    "links": [_key("hash"), _text("user_name"), _text("expires")],
    "datasets": [_key("name"), _text("state"), _text("owner"), _number("version"), _text("created")],
    "dataset_versions": [
        _key("dataset"), sa.Column("number", sa.Integer, primary_key=True, autoincrement=False), _text("metadata"),
        _text("base"), _text("by_name"), _text("at"),
    ],
    "grants": [_key("dataset"), _key("holder"), _text("by_name"), _text("at")],
    "requests": [
        _key("id"), _text("by_name"), _text("dataset"), _text("holder"), _text("period"), _text("measure"),
        _text("size"), _text("delta"), _text("why"), _text("state"), _text("at"),
    ],
    # The smallest cost that a shared budget refused to an analyst, until a cap changes.
    "shared_refusals": [_key("analyst"), _key("dataset"), _key("measure"), _text("caps"), _text("size")],
    "approvals": [_key("request"), _key("by_name"), _text("at")],
    "questions": [
        _key("id"), _text("analyst"), _text("dataset"), _text("sql"), _text("options"), _text("request"),
        sa.Column("idempotency_key", sa.Text), _text("state"), _text("error"), _text("entries"), _text("keys"),
        _text("at"), _text("finished"),
    ],
}  # fmt: skip


def upgrade() -> None:
    for name, columns in _TABLES.items():
        op.create_table(f"sfumato_server_{name}", *columns)
    op.create_index("sfumato_server_token_hash", "sfumato_server_tokens", ["hash"], unique=True)
    op.create_index("sfumato_server_token_user", "sfumato_server_tokens", ["user_name"])
    op.create_index("sfumato_server_member", "sfumato_server_members", ["user_name"])
    op.create_index("sfumato_server_question_analyst", "sfumato_server_questions", ["analyst", "at"])
    op.create_index(
        "sfumato_server_question_key", "sfumato_server_questions", ["analyst", "idempotency_key"], unique=True
    )
