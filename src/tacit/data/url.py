"""Addresses of database tables: ``duckdb:///people.duckdb?table=people``, ``postgresql://host/db?query=SELECT ...``."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from tacit.errors import DatabaseFailed

__all__ = ["Address", "is_url", "parse_url"]

_SCHEMES = {"duckdb": "duckdb", "postgresql": "postgresql", "postgres": "postgresql"}


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where a database is and what to read from it."""

    kind: str
    """``duckdb`` or ``postgresql``."""
    location: str = field(repr=False)
    """The path of a DuckDB file, or a connection string, which may hold a password: never printed."""
    name: str
    """The database in words fit for a message: no user, no password."""
    table: str | None = None
    query: str | None = None


def is_url(source: str) -> bool:
    """Whether this names a database rather than a file."""
    return "://" in source


def parse_url(url: str) -> Address:
    """Take a database URL apart; one that does not say what to read, or says it twice, is refused.

    >>> parse_url("duckdb:///people.duckdb?table=people").location
    'people.duckdb'
    >>> parse_url("postgresql://me:secret@db.example/census?table=people")
    Address(kind='postgresql', name='db.example/census', table='people', query=None)
    """
    parts = urlsplit(url)
    kind = _SCHEMES.get(parts.scheme.lower())
    if kind is None:
        raise DatabaseFailed(
            f"`{parts.scheme}://` is not a database that can be read.", fix="Known: duckdb://, postgresql://."
        )
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    table, query = options.pop("table", None), options.pop("query", None)
    path = unquote(parts.path)
    if kind == "duckdb":
        location = name = path[1:]
    else:
        location = urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(options), ""))
        name = f"{parts.hostname or 'localhost'}{path}"
    if table is not None and query is not None:
        raise DatabaseFailed(f"The URL of {name} names both a table and a query.", fix="Keep one of them.")
    if table is None and query is None and kind == "postgresql":
        raise DatabaseFailed(
            f"The URL of {name} does not say what to read.", fix="Add ?table=NAME or ?query=SELECT... to it."
        )
    return Address(kind=kind, location=location, name=name, table=table, query=query)
