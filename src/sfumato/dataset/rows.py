"""Rows of a table, in memory or in an engine: what checks, models and attacks may ask of them.

:class:`~sfumato.dataset.Data` has its rows in memory; :class:`~sfumato.engines.stored_table.StoredTable` is a table in
an engine and may be larger than memory. Counts are computed where the rows lie. What must be loaded is loaded within
the memory limit of the engine and refused beyond it, so that nothing is judged on rows that were not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import polars as pl

from sfumato.arrays import Ints

if TYPE_CHECKING:
    from sfumato.dataset.data import Schema


@dataclass(frozen=True, kw_only=True)
class RowGroups:
    """Distinct combinations of values, with counts of rows and of people."""

    values: pl.DataFrame
    """One row for each combination. A missing value is a value."""
    rows: Ints
    """Rows with each combination."""
    of_people: Ints
    """Those of the rows that belong to a person. All of them if it was not asked whose they are."""
    people: Ints
    """Different people among them."""
    person: Ints
    """The smallest number of a person among them; -1 if there is none."""


class Rows(Protocol):
    """Rows of a table with the roles of its columns."""

    @property
    def schema(self) -> Schema:
        """The roles of the columns."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""

    @property
    def rows(self) -> int:
        """Number of rows."""

    @property
    def most_rows(self) -> int | None:
        """The largest number of rows of which all columns may be loaded at once; None for any number."""

    def load(self, names: Sequence[str], rows: Ints | None = None) -> pl.DataFrame:
        """Some columns in memory, of all rows or of these, in that order.

        Raises :class:`~sfumato.errors.NotApplicable` where all rows need more than the memory limit.
        """

    def group(self, names: Sequence[str], people: pl.Series | None = None) -> RowGroups:
        """The combinations of values of some columns. ``people`` has the number of a person for each row, null for a
        row of nobody.

        Raises :class:`~sfumato.errors.NotApplicable` if there are more combinations than fit into memory.
        """


def some_columns(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """These columns. ``select`` would interpret a column name such as ``*`` as a pattern."""
    return pl.DataFrame([frame.get_column(name) for name in names])


def grouped(frame: pl.DataFrame, people: pl.Series | None) -> RowGroups:
    """The combinations of values of a frame."""
    names, keys = frame.columns, [f"c{i}" for i in range(frame.width)]
    table = frame.rename(dict(zip(names, keys, strict=True)))
    if people is None:
        rows = pl.len().cast(pl.Int64)
        counts = table.group_by(keys).agg(rows=rows, of_people=rows, people=rows, person=pl.lit(-1))
    else:
        person = pl.col("person")
        counts = (
            table.with_columns(people.alias("person"))
            .group_by(keys)
            .agg(rows=pl.len(), of_people=person.count(), people=person.drop_nulls().n_unique(), person=person.min())
        )
    return row_groups(counts, keys, names)


def row_groups(counts: pl.DataFrame, keys: Sequence[str], names: Sequence[str]) -> RowGroups:
    """Counts by ``keys`` as groups, with the columns under their own names."""
    figures = [
        counts.get_column(name).cast(pl.Int64).fill_null(-1).to_numpy()
        for name in ("rows", "of_people", "people", "person")
    ]
    values = some_columns(counts, keys)
    values.columns = list(names)
    return RowGroups(values=values, rows=figures[0], of_people=figures[1], people=figures[2], person=figures[3])
