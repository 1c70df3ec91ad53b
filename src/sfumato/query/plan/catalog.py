"""What analysts may know of the data before they ask: tables, columns, bounds, keys, and what one person is.

Everything in a catalog is public and declared by the owner. Nothing in it is measured from private tables: a bound
taken from the data would give the largest value away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from sfumato.data.declared import read_declared
from sfumato.dataset import Column, Kind, PeriodDomain, RangeDomain, Role, Schema
from sfumato.dataset.document import Dataset, PublicSource, TableDeclaration
from sfumato.dataset.part_column import PartColumn
from sfumato.errors import BadParameter, MetadataMissing

if TYPE_CHECKING:
    from sfumato.query.plan.query import Query


@dataclass(frozen=True, kw_only=True)
class PrivateTable:
    """A table about people. Only declared columns can be named in a query."""

    name: str
    schema: Schema
    """Kinds and domains by column; ``unit`` is the column that says whose row it is, None if each row is a person."""
    rows: int | None = None
    """How many rows of one unit count within one group; more are clipped. Always 1 when each row is a person."""
    groups: int | None = None
    """In how many groups one unit counts. Always 1 when each row is a person."""
    typical_groups: int | None = None
    """In how many groups a unit usually is: public knowledge that helps to choose how contributions are bounded."""

    def __post_init__(self) -> None:
        for name, column in self.schema.columns.items():
            if column.kind is None:
                raise MetadataMissing(f"Column `{name}` of `{self.name}` has no kind.", fix="Declare it.", column=name)
            if column.missing_codes:
                raise MetadataMissing(
                    f"Column `{name}` of `{self.name}` declares missing codes, which questions would read as values.",
                    fix="Leave them out here and write NULLIF(column, code) in questions, or blank them in the data.",
                    column=name,
                )
            try:
                _ = column.values
            except (BadParameter, ValueError):
                raise MetadataMissing(
                    f"Not every declared value of column `{name}` of `{self.name}` is a {column.kind}.",
                    fix="Change its kind or its values.", column=name,
                ) from None  # fmt: skip
            dated = column.kind in (Kind.DATE, Kind.DATETIME)
            if isinstance(column.domain, RangeDomain if dated else PeriodDomain):
                raise MetadataMissing(
                    f"The domain of column `{name}` of `{self.name}` is not that of a {column.kind}.",
                    fix="Dates have {first: ..., last: ...}, numbers {low: ..., high: ...}.", column=name,
                )  # fmt: skip
        unit = self.schema.unit
        if unit is not None and unit not in self.schema.columns:
            raise MetadataMissing(f"The unit `{unit}` of `{self.name}` is not among its columns.", column=unit)
        for limit in (self.rows, self.groups, self.typical_groups):
            if limit is not None and not 1 <= limit <= 1_000_000:
                raise BadParameter("the rows and groups of one unit lie in 1 .. 1,000,000.")

    @cached_property
    def values(self) -> Mapping[str, tuple[Any, ...] | None]:
        """The declared values of each column; worked out once, not for every query."""
        return {name: column.values for name, column in self.schema.columns.items()}


@dataclass(frozen=True, kw_only=True)
class PublicTable:
    """A table anybody may see: regions of cities, prices of codes. Joined by its key, which is unique.

    Times are kept to the microsecond and decimals as floats, as engines compare them, and the key is unique as such:
    a join with it never makes two rows of one.
    """

    name: str
    frame: pl.DataFrame
    key: tuple[str, ...]
    _values: dict[str, tuple[object, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.key or any(name not in self.frame.columns for name in self.key):
            raise BadParameter(f"the key of public table `{self.name}` must name its columns.")
        object.__setattr__(self, "frame", self.frame.with_columns(_compared(series) for series in self.frame))
        keys = self.frame.select(self.key)
        if keys.null_count().row(0) != (0,) * len(self.key) or keys.is_duplicated().any():
            raise BadParameter(f"the key of public table `{self.name}` must be unique and without gaps.")

    def kind(self, column: str) -> Kind:
        return Kind.of(self.frame.schema[column])

    def values(self, column: str) -> tuple[Any, ...]:
        """All values of the column: they are public."""
        if column not in self._values:
            self._values[column] = tuple(self.frame[column].drop_nulls().unique().sort().to_list())
        return self._values[column]


def _compared(series: pl.Series) -> pl.Series:
    """A public column in the type in which engines compare its values."""
    dtype = series.dtype
    if isinstance(dtype, pl.Datetime):
        moments = series.dt.cast_time_unit("us")
        return moments if dtype.time_zone is None else moments.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if dtype.is_integer():
        try:
            return series.cast(pl.Int64)
        except pl.exceptions.InvalidOperationError:
            raise BadParameter(f"public column `{series.name}` has whole numbers beyond 64 bits.") from None
    if dtype.is_numeric():
        return series.cast(pl.Float64)
    if dtype == pl.Categorical or isinstance(dtype, pl.Enum):
        return series.cast(pl.String)
    if dtype not in (pl.String, pl.Boolean, pl.Date, pl.Null):
        raise BadParameter(
            f"public column `{series.name}` holds neither numbers, text, dates nor true and false.",
            fix="Convert it or leave it out.",
        )
    return series


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """One data set: tables about the same people, and the public tables that go with them."""

    dataset: str
    """The name budgets are kept under."""
    private: Mapping[str, PrivateTable]
    public: Mapping[str, PublicTable] = field(default_factory=dict)
    parts: tuple[str, ...] = ()
    """Columns that split the people into disjoint parts; each row is a person then."""

    @cached_property
    def part_columns(self) -> Mapping[str, PartColumn]:
        """The columns of parts that queries may name, with their values."""
        columns = {name: column for table in self.private.values() for name, column in table.schema.columns.items()}
        return {name: PartColumn.of(name, columns[name]) for name in self.parts if name in columns}

    @cached_property
    def parsed(self) -> dict[str, Query]:
        """Queries on these tables that were parsed lately, by their text."""
        return {}

    @property
    def unit(self) -> str:
        """The privacy unit as the ledger names it: ``row``, or the columns that identify a person in the tables."""
        columns = {table.schema.unit for table in self.private.values()}
        return ", ".join(sorted(column for column in columns if column is not None)) or "row"

    @classmethod
    def of(cls, dataset: Dataset) -> Catalog:
        """The catalog of a data set document. Tables whose rows belong to nobody or to several people are left out:
        what one person contributes to them is not bounded."""
        if dataset.person is None:
            raise MetadataMissing(
                f"The document of `{dataset.dataset}` does not say whose privacy is kept.",
                fix="Add `person` (`unit` in the short form): `row` if every row is a different person, the column with"
                " the person's id, or the table whose rows are people.",
            )
        private = {}
        for name, table in dataset.tables.items():
            linked = list(table.links.values()).count(dataset.person)
            if dataset.person not in dataset.tables or name == dataset.person or linked == 1:
                private[name] = _private(name, table, dataset.unit(name), people=name == dataset.person)
        public = {
            name: PublicTable(name=name, frame=_frame(table), key=table.key) for name, table in dataset.public.items()
        }
        return cls(dataset=dataset.dataset, private=private, public=public, parts=dataset.answering.parts)

    def __post_init__(self) -> None:
        if not self.dataset or not self.private:
            raise BadParameter("a catalog has a name and at least one private table.")
        clash = {name.lower() for name in self.private} & {name.lower() for name in self.public}
        if clash:
            raise BadParameter(f"`{sorted(clash)[0]}` is both a private and a public table.")
        if self.parts and (self.unit != "row" or len(self.private) > 1):
            raise BadParameter("parts are disjoint sets of people only where each row of one table is a person.")
        try:
            _ = self.part_columns
        except ValueError as problem:
            raise BadParameter(f"a column of `parts` {problem}.") from None
        if len(self.private) > 1 and any(table.schema.unit is None for table in self.private.values()):
            raise MetadataMissing(
                "Several private tables need a unit column each.", fix="Name the column that says whose row it is."
            )


def _private(name: str, table: TableDeclaration, unit: str | None, *, people: bool) -> PrivateTable:
    """A table with the columns that queries may name. The unit is among them: it joins tables and is never shown."""
    columns = {column: declared for column, declared in table.columns.items() if declared.askable or column == unit}
    if unit is not None:
        known = columns.get(unit, Column(role=Role.IDENTIFIER))
        columns[unit] = known if known.kind is not None else known.model_copy(update={"kind": Kind.CATEGORY})
    once = 1 if people else None  # a key is unique by declaration, and what is not is cut
    return PrivateTable(
        name=name,
        schema=Schema(columns=columns, unit=unit),
        rows=table.bounds.rows or once,
        groups=table.bounds.groups or once,
        typical_groups=table.bounds.typical_groups,
    )


def _frame(table: PublicSource) -> pl.DataFrame:
    """The rows of a public table. Kinds that are not declared may be found from them: everybody sees them."""
    if not table.columns:
        return table.data.read().frame
    kinds = {name: column.kind for name, column in table.columns.items()}
    return read_declared(table.data.location, kinds, **table.data.options).frame
