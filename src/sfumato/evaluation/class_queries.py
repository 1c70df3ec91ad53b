"""Equivalence classes of a release in an engine, counted by GROUP BY instead of in memory.

An attacker who knows the values of some columns of a person and picks one of the matching rows finds the person with
the share of these rows that are the person's. Where every row is another person, the expected number of people found
is the number of classes. Else a person is found with the largest share over the classes of their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from sfumato.engines.stored_table import ROW, StoredTable


@dataclass(frozen=True, kw_only=True)
class FileClasses:
    """Equivalence classes of a masked file, without suppressed rows."""

    count: int
    rows: int


@dataclass(frozen=True, kw_only=True)
class SecretCounts:
    """A sensitive column inside the classes. Rows without a value are left out."""

    rows: int
    common_in_class: int
    """Rows that hold the most frequent value of their class."""
    common: int
    """Rows that hold the most frequent value of the file."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassCounter:
    """Counts on a release. Rows that show ``*`` in all columns of a grouping are suppressed and form no class, unless
    all rows are."""

    table: StoredTable
    people: pl.Series | None = None
    """The person of each row, null for nobody; None if every row is another person."""

    def distinct(self, columns: Sequence[str]) -> list[int]:
        """About how many different values each column has."""
        counts = ", ".join(
            f"APPROX_COUNT_DISTINCT(t.{self.table.cells[name]}) AS n{i}" for i, name in enumerate(columns)
        )
        return [int(n) for n in self._row(f"SELECT {counts} FROM {self._source}")] if columns else []

    def classes(self, columns: Sequence[str]) -> FileClasses:
        """The classes by some columns. If all rows are suppressed, they are one class."""
        names, hidden = self._grouping(columns)
        count, rows = self._row(
            f"WITH sizes AS (SELECT COUNT(*) AS n, {hidden} AS hidden FROM {self._source} GROUP BY {names}) "
            f"SELECT COUNT(*) AS classes, COALESCE(SUM(n), 0) AS n FROM sizes {_visible('sizes')}"
        )
        return FileClasses(count=int(count), rows=int(rows))

    def found(self, columns: Sequence[str]) -> tuple[float, int]:
        """The expected number of people found by these columns, and the number of people with a visible row.

        People are rows where every row is another person.
        """
        if self.people is None:
            classes = self.classes(columns)
            return classes.count, classes.rows
        names, hidden = self._grouping(columns)
        keys = ", ".join(self.table.cells[name] for name in columns)
        people = self.table.with_people(self.people)
        found, count = self._row(
            f"WITH own AS (SELECT p.person, {names}, COUNT(*) AS own, {hidden} AS hidden FROM {self._source} "
            f"JOIN {people} AS p ON t.{ROW} = p.{ROW} GROUP BY p.person, {names}), "
            f"shares AS (SELECT person, hidden, own / SUM(own) OVER (PARTITION BY {keys}) AS share FROM own), "
            f"best AS (SELECT person, MAX(share) AS share FROM shares {_visible('shares')} AND person IS NOT NULL "
            "GROUP BY person) SELECT COALESCE(SUM(share), 0) AS found, COUNT(*) AS people FROM best"
        )
        # the order of an addition of fractions is the engine's
        return min(round(float(found), 9), float(count)), int(count)

    def secret(self, columns: Sequence[str], secret: str) -> SecretCounts:
        """The values of a sensitive column within the classes."""
        names, hidden = self._grouping(columns)
        value = f"t.{self.table.cells[secret]}"
        keys = ", ".join(self.table.cells[name] for name in columns)
        rows, common_in_class, common = self._row(
            f"WITH counted AS (SELECT {names}, {value} AS secret, COUNT(*) AS n, {hidden} AS hidden "
            f"FROM {self._source} WHERE {value} IS NOT NULL GROUP BY {names}, {value}), "
            f"kept AS (SELECT * FROM counted {_visible('counted')}), "
            f"classes AS (SELECT MAX(n) AS most, SUM(n) AS n FROM kept GROUP BY {keys}), "
            "totals AS (SELECT SUM(n) AS n FROM kept GROUP BY secret) "
            "SELECT COALESCE((SELECT SUM(n) FROM classes), 0) AS n, COALESCE((SELECT SUM(most) FROM classes), 0) AS "
            "most, COALESCE((SELECT MAX(n) FROM totals), 0) AS common"
        )
        return SecretCounts(rows=int(rows), common_in_class=int(common_in_class), common=int(common))

    @property
    def _source(self) -> str:
        return f"({self.table.sql}) AS t"

    def _row(self, statement: str) -> tuple[float, ...]:
        return self.table.workspace.query(statement, "counting classes").row(0)

    def _grouping(self, columns: Sequence[str]) -> tuple[str, str]:
        """The columns of the GROUP BY, and whether a group is suppressed, as an aggregate."""
        cells = [f"t.{self.table.cells[name]}" for name in columns]
        starred = " AND ".join(f"CAST({cell} AS VARCHAR) IS NOT DISTINCT FROM '*'" for cell in cells)
        return ", ".join(cells), f"MIN(CASE WHEN {starred} THEN 1 ELSE 0 END)"


def _visible(groups: str) -> str:
    return f"WHERE (hidden = 0 OR (SELECT MIN(hidden) FROM {groups}) = 1)"
