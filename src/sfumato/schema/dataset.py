"""A table together with what its columns mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from sfumato.data.table import Table
from sfumato.errors import BadParameter, EmptyTable, WrongKind
from sfumato.schema.column import Column, Kind, Role
from sfumato.schema.hierarchy import BoundHierarchy, root_only, with_missing

__all__ = ["Dataset", "Schema"]

_PLAIN = Column(role=Role.PLAIN)


@dataclass(frozen=True, kw_only=True)
class Schema:
    """Roles, kinds, domains and hierarchies by column, and the privacy unit."""

    columns: Mapping[str, Column]
    unit: str | None = None
    """The column whose value is one person; None when each row is another person."""

    def names(self, role: Role) -> tuple[str, ...]:
        """Columns of that role, in the order they were declared."""
        return tuple(name for name, column in self.columns.items() if column.role is role)

    def column(self, name: str) -> Column:
        """The declaration of a column; one that was not declared is plain."""
        return self.columns.get(name, _PLAIN)


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Table and schema that fit each other: every declared column exists and holds its declared kind.

    Declared columns that the table lacks are refused by :meth:`of`; a masked table may have lost some (identifiers).
    """

    table: Table
    schema: Schema

    @classmethod
    def of(cls, table: Table, schema: Schema) -> Dataset:
        """Check the schema against the table and cast the columns to their declared kinds."""
        table.require(tuple(schema.columns))
        if schema.unit is not None:
            table.require([schema.unit])
        if table.rows == 0:
            raise EmptyTable("The table has no rows.", fix="There is nobody in it to protect.")
        for name, dtype in table.frame.schema.items():
            if dtype == pl.Binary and schema.column(name).role is not Role.IDENTIFIER:
                raise WrongKind(
                    f"Column `{name}` holds bytes, which no method can judge or protect.",
                    fix="Give it the role `identifier`, which removes it, or leave it out of the data.",
                    column=name,
                )
        cast = [_one_zero(column.cast(table.column(name))) for name, column in schema.columns.items()]
        dataset = cls(table=table.with_frame(table.frame.with_columns(cast)), schema=schema)
        for name in schema.names(Role.WEIGHT):
            weights = dataset.table.column(name)
            sound = weights.dtype.is_numeric() and weights.null_count() == 0
            if not sound or not ((weights > 0) & weights.cast(pl.Float64).is_finite()).all():
                raise BadParameter(f"Weight column `{name}` must hold positive numbers and no gaps.", column=name)
        return dataset

    def _present(self, role: Role) -> tuple[str, ...]:
        return tuple(name for name in self.schema.names(role) if name in self.table.columns)

    @property
    def identifiers(self) -> tuple[str, ...]:
        return self._present(Role.IDENTIFIER)

    @property
    def quasi(self) -> tuple[str, ...]:
        return self._present(Role.QUASI)

    @property
    def sensitive(self) -> tuple[str, ...]:
        return self._present(Role.SENSITIVE)

    @property
    def rows(self) -> int:
        return self.table.rows

    def kind(self, name: str) -> Kind:
        """Declared kind of a column, or the kind its values have."""
        return self.schema.column(name).kind or Kind.of(self.table.column(name).dtype)

    @cached_property
    def _bound_hierarchies(self) -> dict[str, BoundHierarchy]:
        return {}

    def bound_hierarchy(self, name: str) -> BoundHierarchy:
        """The hierarchy of a column laid over its values; a column without one has only the step to ``*``."""
        if name not in self._bound_hierarchies:
            series = self.table.column(name)
            values = series.drop_nulls().unique().sort()
            hierarchy = self.schema.column(name).hierarchy
            bound = hierarchy.bind(name, values) if hierarchy is not None else root_only(name, values)
            self._bound_hierarchies[name] = with_missing(bound) if series.null_count() else bound
        return self._bound_hierarchies[name]

    def with_frame(self, frame: pl.DataFrame) -> Dataset:
        """The same schema over another frame."""
        return Dataset(table=self.table.with_frame(frame), schema=self.schema)

    def __repr__(self) -> str:
        return f"<Dataset {self.rows} rows, quasi {list(self.quasi)}, sensitive {list(self.sensitive)}>"


def _one_zero(values: pl.Series) -> pl.Series:
    """Zero without a sign: 0.0 and -0.0 are equal to every count and must not differ in what is written."""
    return values.set((values == 0).fill_null(value=False), 0.0) if values.dtype.is_float() else values
