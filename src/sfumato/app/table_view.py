"""Summaries of a table by DuckDB: column statistics, pages of rows, and how many rows columns single out."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.data import FileScan, Table, read, scan, size_hint
from sfumato.data.in_process import open_duckdb
from sfumato.data.sql_quoting import quoted_name
from sfumato.data.url import is_url
from sfumato.dataset import Schema
from sfumato.errors import BadParameter, SfumatoError, UnknownColumn
from sfumato.wording import did_you_mean

MOST_ROWS = 200
"""The largest number of rows in one page."""
_BINS = 24
_MOST_VALUES = 12
_SIZES = ((1, 1), (2, 2), (3, 4), (5, 9), (10, 19), (20, 49), (50, 99), (100, None))
"""Ranges of equivalence class sizes, as in reports."""


class TableView:
    """A table that is queried and never sent as a whole. Files larger than memory are read by DuckDB where they lie."""

    def __init__(self, table: Table | None, found: FileScan | None = None, *, schema: Schema | None = None) -> None:
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self.labels = dict(table.labels) if table is not None else {}
        self.problems: dict[str, str] = {}
        if table is not None:
            frame = self._as_declared(table, schema)
            self.columns = dict(zip(frame.columns, (str(dtype) for dtype in frame.dtypes), strict=True))
            self._connection = self._stack.enter_context(open_duckdb(threads=2))
            self._connection.register("people", frame.to_arrow())
            self._from = "people"
        else:
            assert found is not None
            self.columns = dict(found.columns)
            self._connection = self._stack.enter_context(found.connect())
            self._from = found.expression
        self.rows = int(self._one(f"SELECT count(*) FROM {self._from}")[0])

    @classmethod
    def open(cls, location: str, options: dict[str, Any], schema: Schema | None) -> TableView:
        """Open a file or database. ``schema`` says how columns are read; what does not fit is kept as it is."""
        if not is_url(location) and Path(location).is_file() and not size_hint(location).fits:
            return cls(None, scan(Path(location), **options))
        return cls(read(location, **options), schema=schema)

    def close(self) -> None:
        self._stack.close()

    def _as_declared(self, table: Table, schema: Schema | None) -> pl.DataFrame:
        series = []
        for name in table.columns:
            column = table.column(name)
            if schema is not None and name in schema.columns:
                try:
                    column = schema.column(name).cast(column)
                except SfumatoError as refusal:
                    self.problems[name] = str(refusal)
            series.append(column.alias(name))
        return pl.DataFrame(series)

    def _one(self, statement: str) -> Any:
        with self._lock:
            return self._connection.execute(statement).fetchone()

    def _all(self, statement: str) -> list[Any]:
        with self._lock:
            return self._connection.execute(statement).fetchall()

    def _known(self, names: Sequence[str]) -> list[str]:
        for name in names:
            if name not in self.columns:
                raise UnknownColumn(f"The table has no column `{name}`.", fix=did_you_mean(name, self.columns))
        return [quoted_name(name) for name in names]

    def summary(self, name: str) -> dict[str, Any]:
        """Statistics of one column: missing and distinct values, range, and a histogram or the frequent values."""
        [column] = self._known([name])
        kind = self._one(f"SELECT typeof({column}) FROM {self._from} LIMIT 1")
        text = str(kind[0]) if kind is not None else "VARCHAR"
        missing, distinct = self._one(f"SELECT count(*) - count({column}), count(DISTINCT {column}) FROM {self._from}")
        facts: dict[str, object] = {
            "column": name,
            "missing": missing,
            "distinct": distinct,
            "type": self.columns[name],
        }
        if name in self.problems:
            facts["problem"] = self.problems[name]
        labels = self.labels.get(name)
        if labels is not None:
            facts["label"] = labels.label or ""
            facts["value_labels"] = {str(value): str(label) for value, label in (labels.value_labels or {}).items()}
        numeric = any(word in text for word in ("INT", "DOUBLE", "FLOAT", "DECIMAL"))
        if numeric and distinct > _MOST_VALUES:
            facts |= self._histogram(column)
        else:
            values = self._all(
                f"SELECT CAST({column} AS VARCHAR), count(*) AS n FROM {self._from} WHERE {column} IS NOT NULL"
                f" GROUP BY 1 ORDER BY n DESC, 1 LIMIT {_MOST_VALUES}"
            )
            facts["values"] = [[value, count] for value, count in values]
        return facts

    def _histogram(self, column: str) -> dict[str, Any]:
        low, high, median, mean = self._one(
            f"SELECT min({column})::DOUBLE, max({column})::DOUBLE, median({column})::DOUBLE, avg({column})::DOUBLE"
            f" FROM {self._from} WHERE isfinite({column}::DOUBLE)"
        )
        if low is None or not high > low:
            return {"low": low, "high": high, "median": median, "mean": mean, "histogram": []}
        counts = [0] * _BINS
        width = (high - low) / _BINS
        for number, count in self._all(
            f"SELECT least({_BINS - 1}, floor(({column}::DOUBLE - {low!r}) / {width!r}))::INT, count(*)"
            f" FROM {self._from} WHERE isfinite({column}::DOUBLE) GROUP BY 1"
        ):
            counts[number] = count
        return {"low": low, "high": high, "median": median, "mean": mean, "histogram": counts}

    def page(self, offset: int, count: int) -> list[list[Any]]:
        """Some rows, as text; empty cells are None."""
        if not 0 <= count <= MOST_ROWS or offset < 0:
            raise BadParameter(f"A page has at most {MOST_ROWS} rows.")
        texts = ", ".join(f"CAST({name} AS VARCHAR)" for name in self._known(list(self.columns)))
        return [list(row) for row in self._all(f"SELECT {texts} FROM {self._from} LIMIT {count} OFFSET {offset}")]

    def rows_at(self, numbers: Sequence[int]) -> list[list[Any]]:
        """Rows by number (from 0), as text, in the given order."""
        texts = ", ".join(f"CAST({name} AS VARCHAR)" for name in self._known(list(self.columns)))
        listed = ", ".join(str(int(number)) for number in numbers) or "-1"
        found = self._all(
            f"SELECT n, {texts} FROM (SELECT *, row_number() OVER () - 1 AS n FROM {self._from}) WHERE n IN ({listed})"
        )
        by_number = {row[0]: list(row[1:]) for row in found}
        return [by_number.get(int(number), []) for number in numbers]

    def uniqueness(self, names: Sequence[str]) -> dict[str, object]:
        """Equivalence classes of these columns: how many, the smallest, and shares of rows by class size."""
        if not names:
            return {"columns": [], "rows": self.rows, "unique": 0.0, "classes": 1, "smallest": self.rows, "sizes": []}
        columns = ", ".join(self._known(names))
        sums = ", ".join(
            f"coalesce(sum(n) FILTER (n >= {first}{'' if last is None else f' AND n <= {last}'}), 0)"
            for first, last in _SIZES
        )
        classes, smallest, *sizes = self._one(
            f"SELECT count(*), min(n), {sums} FROM (SELECT count(*) AS n FROM {self._from} GROUP BY {columns})"
        )
        labels = [str(a) if a == b else f"{a}+" if b is None else f"{a}–{b}" for a, b in _SIZES]
        return {
            "columns": list(names),
            "rows": self.rows,
            "unique": float(sizes[0]) / max(self.rows, 1),
            "classes": classes,
            "smallest": smallest,
            "sizes": [[label, float(count) / max(self.rows, 1)] for label, count in zip(labels, sizes, strict=True)],
        }

    def crosstab(self, one: str, other: str, most: int = 12) -> dict[str, object]:
        """Counts of two columns: the frequent values of each, the others together."""
        a, b = self._known([one, other])
        base = f"(SELECT CAST({a} AS VARCHAR) AS a, CAST({b} AS VARCHAR) AS b FROM {self._from})"

        def frequent(name: str) -> list[str | None]:
            found = self._all(f"SELECT {name}, count(*) AS n FROM {base} GROUP BY 1 ORDER BY n DESC, 1 LIMIT {most}")
            return [value for value, _ in found]

        cells = self._all(f"SELECT a, b, count(*) FROM {base} GROUP BY 1, 2")
        rows, columns = frequent("a"), frequent("b")
        counts: dict[tuple[str, str], int] = {}
        for x, y, n in cells:
            key = (
                ("missing" if x is None else x) if x in rows else "other",
                ("missing" if y is None else y) if y in columns else "other",
            )
            counts[key] = counts.get(key, 0) + n
        return {"cells": [[x, y, n / max(self.rows, 1)] for (x, y), n in sorted(counts.items())]}
