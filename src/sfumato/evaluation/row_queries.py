"""Counts over all rows of a release by plain SQL in DuckDB, for models that are not about equivalence classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import polars as pl

from sfumato.data.sql_quoting import quoted_name

__all__ = ["SqlRowQueries"]


@dataclass(frozen=True, kw_only=True)
class SqlRowQueries:
    """The rows of a release, to be counted.

    >>> rows = SqlRowQueries(release=pl.DataFrame({"bread": [True, True, None], "size": [1, 2, 3]}))
    >>> rows.total, rows.having({"bread": True}), rows.having({"bread": True, "size": 2})
    (3, 2, 1)
    """

    release: pl.DataFrame

    @property
    def total(self) -> int:
        return self.release.height

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.release.columns)

    def combinations(self, columns: Sequence[str]) -> dict[tuple[str | None, ...], int]:
        # Polars writes values as text as releases do; DuckDB writes large numbers and timestamps differently
        text = replace(self, release=self.release.select(pl.col(columns).cast(pl.String)))
        names = ", ".join(quoted_name(name) for name in columns)
        return {row[:-1]: row[-1] for row in text._ask(f"SELECT {names}, count(*) FROM release_rows GROUP BY ALL", [])}

    def having(self, values: Mapping[str, Any]) -> int:
        if any(name not in self.release.columns for name in values):
            return 0
        conditions, given = [], []
        for name, value in values.items():
            if self.release.schema[name].is_numeric():
                conditions.append(f"CAST({quoted_name(name)} AS DOUBLE) = TRY_CAST(? AS DOUBLE)")
            else:
                conditions.append(f"CAST({quoted_name(name)} AS VARCHAR) = ?")
            given.append(str(value).lower() if isinstance(value, bool) else str(value))
        [(count,)] = self._ask(f"SELECT count(*) FROM release_rows WHERE {' AND '.join(conditions)}", given)
        return int(count)

    def correlation(self, one: str, other: str) -> float | None:
        if not {one, other} <= {*self.release.columns}:
            return None
        columns = [f"CAST({quoted_name(name)} AS DOUBLE)" for name in (one, other)]
        [(value,)] = self._ask(f"SELECT corr({columns[0]}, {columns[1]}) FROM release_rows", [])
        return float(value) if value is not None and isfinite(value) else None

    def _ask(self, sql: str, given: list[str]) -> list[tuple[Any, ...]]:
        import duckdb

        with duckdb.connect(":memory:") as base:
            base.register("release_rows", self.release.to_arrow())
            return base.execute(sql, given).fetchall()
