"""The tables stay as they are. Those of earlier development versions, which kept other accounts, are refused."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from sfumato.ledger.stores.schema import earlier_layout

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    if "sfumato_ledger_groups" in sa.inspect(op.get_bind()).get_table_names():
        raise earlier_layout()
