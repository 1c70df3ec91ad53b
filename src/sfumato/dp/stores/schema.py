"""Schema of the ledger's database: current revision, and Alembic migrations from earlier ones.

Tables are defined and changed by the Alembic scripts in ``migrations/versions``. SQLAlchemy and Alembic are imported
only where a database is not at the current revision, which takes about 0.2 s once; a store asks for the revision first.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import LedgerBroken

if TYPE_CHECKING:
    from sqlalchemy import Engine

__all__ = ["REVISION", "VERSION_TABLE", "migrate"]

REVISION = "0003"
"""The newest script in ``migrations/versions``."""
VERSION_TABLE = "sfumato_schema"
_SCRIPTS = Path(__file__).parent / "migrations"
_ONE_AT_A_TIME = threading.Lock()
"""Alembic keeps the running migration in module variables."""


def migrate(engine: Engine, *, lock: str) -> None:
    """Bring the database to :data:`REVISION` in one transaction, which starts with the statement ``lock``.

    The lock makes processes that open the same database at once wait for each other. Errors of the driver are raised
    as such.
    """
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError
    from sqlalchemy.exc import DBAPIError

    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    try:
        with _ONE_AT_A_TIME, engine.begin() as connection:
            connection.exec_driver_sql(lock)
            config.attributes |= {"connection": connection, "version_table": VERSION_TABLE}
            command.upgrade(config, "head")
    except DBAPIError as failure:
        raise failure.orig or failure from None
    except CommandError:
        raise LedgerBroken(
            "The ledger was written by a later version of sfumato.", fix="Use that version, or a newer one."
        ) from None
