"""Queries over public tables and listed values alone: nothing private is read, so that they cost nothing."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable
from contextlib import ExitStack
from functools import lru_cache
from typing import Any

from sfumato.data.in_process import open_duckdb
from sfumato.engines.backends.duckdb.dialect import DuckdbGenerator
from sfumato.engines.statements import Select
from sfumato.query.plan.catalog import PublicTable


def public_rows(query: Select, tables: Iterable[PublicTable]) -> list[tuple[Any, ...]]:
    """The rows of a query that reads these tables. Each call has a connection of its own to one empty database."""
    with _database(os.getpid()).cursor() as connection:
        for table in tables:
            connection.register(table.name, table.frame.to_arrow())
        rows: list[tuple[Any, ...]] = connection.execute(DuckdbGenerator().write(query)).fetchall()
        return rows


@lru_cache(maxsize=1)
def _database(process: int) -> Any:
    """Opened once a process: opening takes longer than most of these queries."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(open_duckdb(threads=1, spills=False))
