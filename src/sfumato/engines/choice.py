"""Which engine answers: the one that was named, or the one that the data is in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeGuard
from urllib.parse import urlsplit, urlunsplit

from sfumato.engines.engine import Engine
from sfumato.registry import registry

__all__ = ["choose_engine", "is_address", "without_password"]


def is_address(source: Any) -> TypeGuard[str]:
    """Whether a table is named by its place in a database.

    >>> is_address("postgresql://ana@host/base#visits"), is_address("visits.parquet")
    (True, False)
    """
    return isinstance(source, str) and source.startswith(("postgresql://", "postgres://"))


def without_password(address: str) -> str:
    """An address as it may be kept.

    >>> without_password("postgresql://ana:secret@host/base#visits")
    'postgresql://ana@host/base#visits'
    """
    parts = urlsplit(address)
    user, at, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}{at}{host}", query=""))


def choose_engine(wanted: Engine | str | None, sources: Iterable[Any]) -> Engine:
    """The engine itself, one by its name, or DuckDB unless a table is in a database."""
    if isinstance(wanted, Engine):
        return wanted
    name = wanted or ("postgres" if any(is_address(source) for source in sources) else "duckdb")
    engine = registry("engine").get(name).build({})
    assert isinstance(engine, Engine)
    return engine
