"""Equivalence classes of a file of any size, counted by GROUP BY instead of in memory.

An attacker who knows the values of some columns of a person and picks one of the matching rows finds the person with
the share of these rows that are the person's. Where every row is another person, the expected number of people found
is the number of classes. Else a person is found with the largest share over the classes of their rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.data import scan
from sfumato.data.sql_quoting import quoted_name

__all__ = ["ClassCounter", "FileClasses", "SecretCounts", "class_counter"]


@dataclass(frozen=True, kw_only=True)
class FileClasses:
    """Equivalence classes of a masked file, without suppressed rows."""

    count: int = 0
    rows: int = 0
    smallest: int = 0
    unique: int = 0
    """Rows that are alone in their class."""


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
    """Counts on an open file. Rows that show ``*`` in all columns of a grouping are suppressed and form no class."""

    connection: Any
    source: str
    by_people: bool
    """Whether people have several rows; the source then has their numbers in the column ``_PERSON``."""

    def row(self, statement: str) -> tuple[float, ...]:
        """The one row of numbers that a statement about ``{source}`` gives."""
        found = self.connection.execute(statement.replace("{source}", self.source)).fetchone()
        assert found is not None
        return tuple(found)

    def classes(self, columns: Sequence[str]) -> FileClasses:
        """The classes by some columns. If all rows are suppressed, they are one class."""
        names, hidden = _grouping(columns)
        inner = f"SELECT count(*) AS n, {hidden} AS hidden FROM {{source}} GROUP BY {names}"
        count, rows, smallest, unique = self.row(
            "SELECT count(*), coalesce(sum(n), 0), coalesce(min(n), 0), coalesce(sum(n) FILTER (n = 1), 0) "
            f"FROM ({inner} QUALIFY NOT hidden OR count(*) OVER () = 1)"
        )
        return FileClasses(count=int(count), rows=int(rows), smallest=int(smallest), unique=int(unique))

    def found(self, columns: Sequence[str]) -> tuple[float, int]:
        """The expected number of people found by these columns, and the number of people with a visible row.

        People are rows where every row is another person.
        """
        if not self.by_people:
            classes = self.classes(columns)
            return classes.count, classes.rows
        names, hidden = _grouping(columns)
        own = f"SELECT {_PERSON}, {names}, count(*) AS own, {hidden} AS hidden FROM {{source}} GROUP BY ALL"
        shares = f"SELECT {_PERSON}, own / sum(own) OVER (PARTITION BY {names}) AS share, hidden FROM ({own})"
        visible = f"WITH shares AS ({shares}) SELECT * FROM shares WHERE {_PERSON} IS NOT NULL"
        visible += " AND (NOT hidden OR (SELECT bool_and(hidden) FROM shares))"
        found, people = self.row(
            f"SELECT coalesce(sum(share), 0), count(*) FROM (SELECT max(share) AS share FROM ({visible}) "
            f"GROUP BY {_PERSON})"
        )
        # the order of an addition of fractions is the engine's
        return min(round(float(found), 9), float(people)), int(people)

    def secret(self, columns: Sequence[str], secret: str) -> SecretCounts:
        """The values of a sensitive column within the classes."""
        names, hidden = _grouping(columns)
        value = quoted_name(secret)
        counted = (
            f"SELECT {names}, {value} AS secret, count(*) AS n, {hidden} AS hidden FROM {{source}} "
            f"WHERE {value} IS NOT NULL GROUP BY {names}, {value}"
        )
        rows, common_in_class, common = self.row(
            f"WITH counted AS ({counted}), "
            "kept AS (SELECT * FROM counted WHERE NOT hidden OR (SELECT bool_and(hidden) FROM counted)), "
            f"classes AS (SELECT max(n) AS most, sum(n) AS n FROM kept GROUP BY {names}) "
            "SELECT coalesce((SELECT sum(n) FROM classes), 0), coalesce((SELECT sum(most) FROM classes), 0), "
            "coalesce((SELECT max(n) FROM (SELECT sum(n) AS n FROM kept GROUP BY secret)), 0)"
        )
        return SecretCounts(rows=int(rows), common_in_class=int(common_in_class), common=int(common))


_PERSON = '"sfumato person"'


@contextmanager
def class_counter(path: Path, people: pl.Series | None = None) -> Iterator[ClassCounter]:
    """Open a released file for counting. ``people`` has the person of each row of the file, null for none."""
    source = scan(path)
    with source.connect() as connection:
        expression = source.expression
        if people is not None:
            connection.register("sfumato_people", people.alias(_PERSON.strip('"')).to_frame().to_arrow())
            # the rows of a scan keep the order of the file
            expression = f"(SELECT * FROM {expression} POSITIONAL JOIN sfumato_people)"
        yield ClassCounter(connection=connection, source=expression, by_people=people is not None)


def _grouping(columns: Sequence[str]) -> tuple[str, str]:
    """The columns of the GROUP BY, and the condition of a suppressed row."""
    names = [quoted_name(name) for name in columns]
    return ", ".join(names), " AND ".join(f"CAST({name} AS VARCHAR) IS NOT DISTINCT FROM '*'" for name in names)
