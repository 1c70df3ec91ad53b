"""Statements of engines: SELECT over stored tables, subqueries and joins, as frozen nodes."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.engines.expressions import Constant, Expression


@dataclass(frozen=True)
class Stored:
    """A stored table."""

    table: str


@dataclass(frozen=True)
class NamedView:
    """A query of an enclosing WITH."""

    name: str


@dataclass(frozen=True)
class Subquery:
    """A query in FROM."""

    query: Query
    alias: str = ""


@dataclass(frozen=True)
class Values:
    """Rows that are written out."""

    rows: tuple[tuple[Constant, ...], ...]
    alias: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Listed:
    """A table of public values that the engine made."""

    name: str
    alias: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Join:
    """Pairs of rows for which a condition holds; with ``outer``, also rows of the left side without a partner."""

    left: Source
    right: Source
    on: Expression
    outer: bool = False


Source = Stored | NamedView | Subquery | Values | Listed | Join


@dataclass(frozen=True)
class Select:
    """Named expressions over the rows of a source; with ``star``, after all of its columns, or those of one table."""

    items: tuple[tuple[str, Expression], ...]
    source: Source
    where: Expression | None = None
    group_by: int = 0
    """Number of items, from the first on, that rows are grouped by."""
    star: bool | str = False
    distinct: bool = False
    order_by: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class UnionAllQuery:
    """The rows of both queries."""

    first: Query
    second: Query


@dataclass(frozen=True)
class With:
    """A query over named queries, each of which may use those before it."""

    views: tuple[tuple[str, Query], ...]
    query: Query


Query = Select | UnionAllQuery | With
