"""Prepared statements and portals of a connection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.server.postgres.results import StatementResult
from sfumato.server.postgres.statement_kinds import Statement
from sfumato.server.postgres.type_mapping import PostgresType


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A prepared statement."""

    statement: Statement
    types: tuple[PostgresType, ...]
    sql: str


@dataclass(kw_only=True)
class Portal:
    """A statement with its parameters; its outcome once it was run, and how many rows were sent."""

    prepared: Prepared
    values: Sequence[Any]
    formats: tuple[int, ...]
    hold: bool = False
    """Whether it outlives its transaction, if that is not undone."""
    kept: bool = False
    """Whether it has outlived it."""
    outcome: StatementResult | None = None
    sent: int = 0
