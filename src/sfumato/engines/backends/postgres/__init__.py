"""PostgreSQL."""

from sfumato.engines.backends.postgres.engine import Postgres

__all__ = ["Postgres"]
