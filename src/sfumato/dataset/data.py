"""Schema and data set: a table together with the roles of its columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.data.declared import column_names, read_declared
from sfumato.data.missing import is_missing, plain_numbers
from sfumato.data.read_write import read
from sfumato.data.table import Table, refuse_no_header
from sfumato.dataset.column import Column, Kind, Role
from sfumato.dataset.hierarchy import BoundHierarchy, Hierarchy, root_only, with_missing
from sfumato.dataset.rows import RowGroups, grouped, some_columns
from sfumato.errors import BadParameter, EmptyTable, UndecidedColumns, WrongKind
from sfumato.wording import counted

_PLAIN = Column(role=Role.PLAIN)
ROWS_OF_AN_IDENTIFIER = 1.05
"""Rows with the same value of an identifier, on average, from which its values are people with several rows."""
HUGE = 1e150
"""Largest number of a table to be masked: sums of squares of larger ones overflow."""


@dataclass(frozen=True, kw_only=True)
class Schema:
    """Roles, kinds, domains and hierarchies by column, and the privacy unit."""

    columns: Mapping[str, Column]
    unit: str | None = None
    """The column that identifies a person; None if every row is a different person."""
    key: str | None = field(default=None, compare=False)
    """The column that is declared to be different for every person in a table with one row each."""
    person: str | None = field(default=None, compare=False)
    """The privacy unit as declared, `row` included, in the words of the ledger; None if nobody said whose the rows
    are."""
    max_rows: int | None = field(default=None, compare=False)
    """Rows of one person that count where there is noise: ``bounds: {rows: ...}`` of the document."""

    @property
    def privacy_unit(self) -> str:
        """The privacy unit as the ledger names it."""
        return self.person or self.unit or "row"

    @property
    def declared_unit(self) -> str | None:
        """`row`, or the column that identifies a person; None if nobody said whose the rows are."""
        return self.unit or (None if self.person is None else "row")

    def refuse_huge_numbers(self, having: Collection[str]) -> None:
        """Refuse columns ``having`` numbers beyond :data:`HUGE`, unless they are removed."""
        for name in having:
            if self.column(name).role not in (Role.IDENTIFIER, Role.DROP):
                raise BadParameter(
                    f"Column `{name}` holds numbers beyond {HUGE:g}, whose squares and sums no floating-point number "
                    "holds, so nothing about it can be measured.",
                    fix="Make them missing in the file, declare them in `missing_codes`, or give the column the kind "
                    "`category`.",
                    column=name,
                )

    def refuse_suppressed_values(self, having: Collection[str]) -> None:
        """Refuse quasi-identifiers among the columns ``having`` the value ``*`` in the original: in a release it stands
        for a suppressed cell, and a row that shows nothing else is in no equivalence class."""
        for name in self.names(Role.QUASI):
            if name in having:
                raise BadParameter(
                    f"Column `{name}` holds the value `*`, which stands for a cell that a step suppressed.",
                    fix=f'Declare it as a missing value, `missing_codes: ["*"]` in `{name}`, or recode it in the file.',
                    column=name,
                )

    def refuse_repeated_key(self, *, repeated: bool) -> None:
        """Refuse a table of people in which a key is missing or not unique: rows would be taken for people."""
        if repeated:
            raise BadParameter(
                f"The key `{self.key}` of the table of people is missing or the same in several rows, so rows are not "
                "people.",
                fix=f"Make it unique, or name the column in the document, `person: {self.key}`, without `key`: then "
                "people with several rows are counted as people.",
                column=self.key,
            )

    @classmethod
    def of(
        cls,
        frame: Any,
        *,
        quasi: str | Sequence[str] = (),
        sensitive: str | Sequence[str] = (),
        identifier: str | Sequence[str] = (),
        weight: str | None = None,
        household: str | None = None,
        unit: str | None = None,
        hierarchies: Mapping[str, Hierarchy] | None = None,
    ) -> Schema:
        """Build a schema from lists of column names, without a recipe file.

        ``frame`` is a table in any form that :func:`sfumato.read` accepts; only its column names are used. Columns
        that are not named are plain. A name that the table lacks and a column with two roles are refused. ``unit`` is
        the column that identifies a person, or ``"row"`` if every row is a different person.

        >>> people = pl.DataFrame({"age": [34, 51], "zip": ["02141", "02139"], "illness": ["flu", "none"]})
        >>> schema = Schema.of(people, quasi=["age", "zip"], sensitive=["illness"])
        >>> schema.names(Role.QUASI), schema.column("illness").role.value
        (('age', 'zip'), 'sensitive')
        """
        table = read(frame)
        roles: dict[str, Role] = {}
        for role, names in (
            (Role.IDENTIFIER, identifier),
            (Role.QUASI, quasi),
            (Role.SENSITIVE, sensitive),
            (Role.WEIGHT, weight or ()),
            (Role.HOUSEHOLD, household or ()),
        ):
            for name in (names,) if isinstance(names, str) else tuple(names):
                if name in roles:
                    raise BadParameter(
                        f"Column `{name}` has two roles: {roles[name]} and {role}.",
                        fix="Name each column once.",
                        column=name,
                    )
                roles[name] = role
        rules = dict(hierarchies or {})
        column = None if unit == "row" else unit
        table.require([*roles, *rules, *([] if column is None else [column])])
        columns = {
            name: Column(role=roles.get(name, Role.PLAIN), hierarchy=rules.get(name))
            for name in table.columns
            if name in roles or name in rules
        }
        return cls(columns=columns, unit=column, person=unit)

    def names(self, role: Role) -> tuple[str, ...]:
        """Columns of that role, in the order of declaration."""
        return tuple(name for name, column in self.columns.items() if column.role is role)

    @property
    def grouping(self) -> tuple[str, ...]:
        """Columns whose values tell which rows belong together if they are released: household, unit, pseudonyms."""
        unit = () if self.unit is None else (self.unit,)
        return tuple(dict.fromkeys((*self.names(Role.HOUSEHOLD), *unit, *self.names(Role.IDENTIFIER))))

    def column(self, name: str) -> Column:
        """The declaration of a column; an undeclared column is plain."""
        return self.columns.get(name, _PLAIN)


@dataclass(frozen=True, kw_only=True)
class Data:
    """A table with its schema. Every declared column has its declared kind.

    :meth:`of` refuses declared columns that the table lacks. A masked table may lack some, such as identifiers.
    """

    table: Table
    schema: Schema

    @classmethod
    def of(cls, table: Table, schema: Schema) -> Data:
        """Check the schema against the table and cast the columns to their declared kinds."""
        refuse_no_header(table.columns, tuple(schema.columns))
        table.require(tuple(schema.columns))
        if schema.unit is not None:
            table.require([schema.unit])
        if table.rows == 0:
            raise EmptyTable("The table has no rows.", fix="Pass a table with at least one row.")
        for name, dtype in table.frame.schema.items():
            if dtype == pl.Binary and schema.column(name).role not in (Role.IDENTIFIER, Role.DROP):
                raise WrongKind(
                    f"Column `{name}` holds bytes, which cannot be masked.",
                    fix="Give it the role `identifier`, which removes it, or drop it from the data.",
                    column=name,
                )
        cast = [column.cast(table.column(name)) for name, column in schema.columns.items()]
        dataset = cls(table=table.with_frame(plain_numbers(table.frame.with_columns(cast))), schema=schema)
        for name in schema.names(Role.WEIGHT):
            weights = dataset.table.column(name)
            sound = weights.dtype.is_numeric() and weights.null_count() == 0
            if not sound or not ((weights > 0) & weights.cast(pl.Float64).is_finite()).all():
                raise BadParameter(
                    f"Weight column `{name}` must hold positive numbers and no missing values.", column=name
                )
        return dataset

    @classmethod
    def plain(cls, frame: pl.DataFrame) -> Data:
        """A frame without roles."""
        return cls(table=Table(frame=frame), schema=Schema(columns={}))

    @classmethod
    def declared(cls, source: object, schema: Schema, *, whole: bool = False, **options: object) -> Data:
        """A table read as the schema declares it, for code with a guarantee: see :mod:`sfumato.data.declared`.

        Columns of a text file need a declared kind, except those that are removed; with ``whole`` also an entry in the
        schema. What a cell cannot be read as is missing. No refusal depends on a row.
        """
        named = column_names(source, **options)
        new = [name for name in named if name not in schema.columns]
        if new and whole:
            raise UndecidedColumns(
                f"The recipe does not name {', '.join(f'`{name}`' for name in new)}, so nothing is released.",
                fix="Add each column with its role, for example `drop`.",
                columns=[{"column": name} for name in new],
            )
        removed = (Role.IDENTIFIER, Role.DROP)
        kinds = {
            name: Kind.CATEGORY if schema.column(name).role in removed else schema.column(name).kind
            for name in dict.fromkeys((*named, *schema.columns, *filter(None, [schema.unit])))
        }
        if schema.unit is not None and kinds[schema.unit] is None:
            kinds[schema.unit] = Kind.CATEGORY
        table = read_declared(source, kinds, **options)
        columns = [
            series.set(is_missing(series, codes), None)
            if (codes := schema.column(series.name).missing_codes)
            else series
            for series in table.frame
        ]
        return cls(table=table.with_frame(plain_numbers(pl.DataFrame(columns))), schema=schema)

    def _present(self, role: Role) -> tuple[str, ...]:
        return tuple(name for name in self.schema.names(role) if name in self.table.columns)

    @property
    def identifiers(self) -> tuple[str, ...]:
        return self._present(Role.IDENTIFIER)

    def removed(self, safe: Collection[str] = ()) -> tuple[str, ...]:
        """Columns that no release contains: identifiers that no step made ``safe``, and columns to ``drop``."""
        return (*(name for name in self.identifiers if name not in safe), *self._present(Role.DROP))

    @property
    def quasi(self) -> tuple[str, ...]:
        return self._present(Role.QUASI)

    @property
    def sensitive(self) -> tuple[str, ...]:
        return self._present(Role.SENSITIVE)

    @property
    def rows(self) -> int:
        return self.table.rows

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.table.columns)

    @property
    def most_rows(self) -> int | None:
        """None: all rows are in memory (:class:`~sfumato.dataset.rows.Rows`)."""
        return None

    def load(self, names: Sequence[str], rows: npt.NDArray[np.int64] | None = None) -> pl.DataFrame:
        """Some columns, of all rows or of these."""
        chosen = some_columns(self.table.frame, names)
        return chosen if rows is None else chosen[rows]

    def group(self, names: Sequence[str], people: pl.Series | None = None) -> RowGroups:
        """The combinations of values of some columns, with counts of rows and of people."""
        return grouped(some_columns(self.table.frame, names), people)

    def kind(self, name: str) -> Kind:
        """Declared kind of a column, or the kind its values have."""
        return self.schema.column(name).kind or Kind.of(self.table.column(name).dtype)

    @cached_property
    def _bound_hierarchies(self) -> dict[str, BoundHierarchy]:
        return {}

    def bound_hierarchy(self, name: str) -> BoundHierarchy:
        """The hierarchy of a column bound to its values; a column without one has the values and ``*``."""
        if name not in self._bound_hierarchies:
            series = self.table.column(name)
            values = series.drop_nulls().unique().sort()
            hierarchy = self.schema.column(name).hierarchy
            bound = hierarchy.bind(name, values) if hierarchy is not None else root_only(name, values)
            self._bound_hierarchies[name] = with_missing(bound) if series.null_count() else bound
        return self._bound_hierarchies[name]

    def with_frame(self, frame: pl.DataFrame) -> Data:
        """The same schema over another frame."""
        return Data(table=self.table.with_frame(frame), schema=self.schema)

    def __repr__(self) -> str:
        return f"<Data {counted(self.rows, 'row')}, quasi {list(self.quasi)}, sensitive {list(self.sensitive)}>"
