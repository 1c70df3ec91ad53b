"""Kinds of statements that a client may send."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class QuestionStatement:
    """A query that names a private table."""

    sql: str
    tree: Any
    """None where the text cannot be parsed here; whoever answers questions says why."""


@dataclass(frozen=True, kw_only=True)
class CatalogStatement:
    """A query on public things only, or one that asks private tables for their columns."""

    tree: Any
    columns_only: bool = False
    """Whether it may name private tables, which have no rows where it is run."""


@dataclass(frozen=True, kw_only=True)
class SchemaStatement:
    """``SHOW TABLES`` or ``DESCRIBE table``."""

    sql: str


@dataclass(frozen=True, kw_only=True)
class Explain:
    """Cost and error of a question."""

    question: QuestionStatement


@dataclass(frozen=True, kw_only=True)
class Copy:
    """``COPY (SELECT ...) TO STDOUT``."""

    query: QuestionStatement | CatalogStatement
    binary: bool
    csv: bool
    header: bool
    delimiter: str
    null: str


@dataclass(frozen=True, kw_only=True)
class SetStatement:
    """``SET name = value`` and ``RESET name``."""

    name: str
    value: str | None
    local: bool = False


@dataclass(frozen=True, kw_only=True)
class Show:
    """``SHOW name``."""

    name: str


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command without a result: transactions, and what ends statements and portals."""

    tag: str
    argument: str = ""


@dataclass(frozen=True, kw_only=True)
class Declare:
    """``DECLARE name CURSOR FOR query``."""

    name: str
    hold: bool
    """Whether the cursor outlives its transaction."""
    query: QuestionStatement | CatalogStatement


@dataclass(frozen=True, kw_only=True)
class Fetch:
    """``FETCH count FROM name``."""

    name: str
    count: int | None
    """None for all rows that are left."""


@dataclass(frozen=True, kw_only=True)
class Prepare:
    """``PREPARE name (types) AS query``."""

    name: str
    types: tuple[str, ...]
    sql: str


@dataclass(frozen=True, kw_only=True)
class ExecuteStatement:
    """``EXECUTE name (values)``."""

    name: str
    values: tuple[str | None, ...]


@dataclass(frozen=True, kw_only=True)
class Empty:
    """Nothing but spaces and comments."""


Statement = (
    QuestionStatement
    | CatalogStatement
    | SchemaStatement
    | Explain
    | Copy
    | SetStatement
    | Show
    | Command
    | Declare
    | Fetch
    | Prepare
    | ExecuteStatement
    | Empty
)
