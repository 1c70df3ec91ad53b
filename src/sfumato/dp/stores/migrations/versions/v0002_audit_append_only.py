"""The audit log refuses updates and deletions, as the ledger does."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for event, name in (("UPDATE", "keep"), ("DELETE", "stay")):
            op.execute(
                f"CREATE TRIGGER sfumato_audit_{name} BEFORE {event} ON sfumato_audit "
                "BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END"
            )
        return
    op.execute(
        "CREATE FUNCTION sfumato_audit_keep() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the audit log is append-only'; END $$"
    )
    op.execute(
        "CREATE TRIGGER sfumato_audit_keep BEFORE UPDATE OR DELETE OR TRUNCATE ON sfumato_audit "
        "FOR EACH STATEMENT EXECUTE FUNCTION sfumato_audit_keep()"
    )
