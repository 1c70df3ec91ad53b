"""Schema of the ledger's database: current revision, and Alembic migrations from earlier ones.

Tables are defined and changed by the Alembic scripts in ``migrations/versions``. SQLAlchemy and Alembic are imported
only where a database is not at the current revision, which takes about 0.2 s once; a store asks for the revision first.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import LedgerBroken

if TYPE_CHECKING:
    from sqlalchemy import Engine

REVISION = "0001"
"""The newest script in ``migrations/versions``."""
VERSION_TABLE = "sfumato_schema"


@dataclass(frozen=True, kw_only=True)
class SchemaVersion:
    """The tables of one part of the system: its Alembic scripts, the newest of them, and where that is noted."""

    scripts: Path
    revision: str
    table: str


LEDGER = SchemaVersion(scripts=Path(__file__).parent / "migrations", revision=REVISION, table=VERSION_TABLE)
_ONE_AT_A_TIME = threading.Lock()
"""Alembic keeps the running migration in module variables."""


def migrate(engine: Engine, schema: SchemaVersion, *, lock: str) -> None:
    """Bring the database to the newest revision of a schema in one transaction, which starts with ``lock``.

    The lock makes processes that open the same database at once wait for each other. Errors of the driver are raised
    as such.
    """
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError
    from sqlalchemy.exc import DBAPIError

    config = Config()
    config.set_main_option("script_location", str(schema.scripts).replace("%", "%%"))
    try:
        with _ONE_AT_A_TIME, engine.begin() as connection:
            connection.exec_driver_sql(lock)
            config.attributes |= {"connection": connection, "version_table": schema.table}
            command.upgrade(config, "head")
    except DBAPIError as failure:
        raise failure.orig or failure from None
    except CommandError:
        raise LedgerBroken(
            "The database was written by a later version of sfumato.", fix="Use that version, or a newer one."
        ) from None
