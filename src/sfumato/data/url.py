"""Addresses of database tables, ``duckdb:///people.duckdb?table=people``, and of files with options of their format,
``people.xlsx?sheet=2024&skip=2``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from sfumato.errors import BadParameter, DatabaseFailed

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


def file_and_options(source: str | Path) -> tuple[str, dict[str, str | list[str]]]:
    """A file's path and the options behind a question mark; a key that is given twice has a list.

    A file whose name holds a question mark is that file.

    >>> file_and_options("people.xlsx?sheet=2024&skip=2")
    ('people.xlsx', {'sheet': '2024', 'skip': '2'})
    """
    text = str(source)
    path, mark, query = text.partition("?")
    if not mark or is_url(text) or Path(text).exists():
        return text, {}
    options: dict[str, str | list[str]] = {}
    for part in query.split("&"):
        key, equal, value = part.partition("=")
        if not equal:
            raise BadParameter(
                f"What follows the question mark of {Path(path).name} is no option of its format.",
                fix="Write it as FILE?option=value&option=value.",
            )
        known = options.get(unquote(key))
        new = unquote(value)
        options[unquote(key)] = new if known is None else [*([known] if isinstance(known, str) else known), new]
    return path, options


def parse_url(url: str) -> Address:
    """Take a database URL apart; one that does not say what to read, or says it twice, is refused.

    >>> parse_url("duckdb:///people.duckdb?table=people").location
    'people.duckdb'
    >>> parse_url("postgresql://me:secret@db.example/census#people") == parse_url("postgresql://me:secret@db.example/census?table=people")
    True
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
    table, query = options.pop("table", None) or unquote(parts.fragment) or None, options.pop("query", None)
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
