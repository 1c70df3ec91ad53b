"""DuckDB."""

from sfumato.engines.backends.duckdb.engine import Duckdb

__all__ = ["Duckdb"]
