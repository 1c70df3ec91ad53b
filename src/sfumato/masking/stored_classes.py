"""Equivalence classes of a table in an engine: one GROUP BY, as searches and models read them.

Values are coded as numbers of leaves and packed into as few 64-bit keys as possible. The engine groups by integers, and
a class takes a few bytes however long its values are.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Ints
from sfumato.data.row_codes import first_rows, number_rows
from sfumato.data.table import Table
from sfumato.dataset import BoundHierarchy, Column, Data, Role, Schema
from sfumato.engines import stored_sql
from sfumato.engines.stored_table import StoredTable, unique_name
from sfumato.errors import BadParameter
from sfumato.masking.equivalence_classes import Codes, EquivalenceClasses, TrackedColumn, compress
from sfumato.masking.model import PrivacyModel

_SPAN = 1 << 62


@dataclass(frozen=True, kw_only=True, eq=False)
class CodedColumn:
    """A column with the code of each distinct value."""

    name: str
    values: pl.Series
    """The distinct values, including the missing value."""
    hierarchy: BoundHierarchy
    lowest: int = 0
    """The lowest level that is searched: values of one group at this level share a code."""

    @cached_property
    def codes(self) -> Codes:
        """Code of each value: its leaf, or one leaf that represents its group at the lowest level."""
        leaves = self.hierarchy.encode(self.values, of_rows=False)
        if self.lowest == 0:
            return leaves
        level = self.hierarchy.levels[self.lowest]
        stands = np.zeros(level.size, dtype=np.int32)
        stands[level.codes[::-1]] = np.arange(len(level.codes), dtype=np.int32)[::-1]
        return stands[level.codes[leaves]]

    @property
    def width(self) -> int:
        return len(self.hierarchy.leaves)

    @cached_property
    def groups(self) -> int:
        """Number of distinct codes."""
        return len(np.unique(self.codes))

    def key_column(self, table: StoredTable) -> stored_sql.KeyColumn:
        """The column in a packed key; the engine gets the code of each value as a table."""
        gap = self.values.is_null().to_numpy()
        codes = pl.DataFrame({"value": self.values, "code": self.codes.astype(np.int64)}).filter(pl.Series(~gap))
        return stored_sql.KeyColumn(
            cell=table.cells[self.name],
            codes=table.put("code", codes),
            width=self.width,
            empty=int(self.codes[gap][0]) if gap.any() else 0,
        )


def coded_column(table: StoredTable, name: str, *, level: int = 0, with_hierarchy: bool = True) -> CodedColumn:
    """A column with its distinct values; without ``with_hierarchy`` each value stands for itself."""
    values = table.group([name]).values.to_series()
    column = Column(role=Role.PLAIN, hierarchy=table.schema.column(name).hierarchy if with_hierarchy else None)
    hierarchy = Data(table=Table(frame=values.to_frame()), schema=Schema(columns={name: column})).bound_hierarchy(name)
    if level > hierarchy.height:
        raise BadParameter(
            f"generalize: level {level} of `{name}` is not within its hierarchy (0 to {hierarchy.height}).", column=name
        )
    return CodedColumn(name=name, values=values, hierarchy=hierarchy, lowest=level)


def tracked_columns(models: Sequence[PrivacyModel], sensitive: Sequence[str], target: str | None) -> tuple[str, ...]:
    """Columns whose values must be counted inside classes: those the models and the metric speak of.

    Others are not counted, because a count by a column of many values is as long as the table itself.
    """
    names: list[str] = []
    for model in models:
        if "column" in type(model).model_fields:
            named = getattr(model, "column", None)
            names.extend([named] if named is not None else sensitive)
    return tuple(dict.fromkeys([*names, *([target] if target is not None else [])]))


def count_classes(
    table: StoredTable, quasi: Sequence[CodedColumn], track: Sequence[CodedColumn] = ()
) -> EquivalenceClasses:
    """Count the combinations of the quasi-identifiers, once for each tracked column or once in all."""
    counted: list[tuple[Codes, Ints]] = []
    for columns in [(*quasi, beside) for beside in track] or [tuple(quasi)]:
        frame = table.workspace.query(stored_sql.counted(table.sql, _keys(table, columns)), "counting classes")
        counted.append((_unpacked(frame, columns), frame.get_column("n").to_numpy().astype(np.int64)))
    own = np.concatenate([codes[:, : len(quasi)] for codes, _ in counted])
    number, count = number_rows([own[:, i] for i in range(len(quasi))], [column.width for column in quasi])
    cells = np.split(number.astype(np.int32), np.cumsum([len(counts) for _, counts in counted])[:-1])
    return EquivalenceClasses(
        columns=tuple(column.name for column in quasi),
        hierarchies=tuple(column.hierarchy for column in quasi),
        levels=(0,) * len(quasi),
        codes=np.ascontiguousarray(own[first_rows(number, count)]),
        sizes=np.bincount(cells[0], weights=counted[0][1], minlength=count).astype(np.int64),
        tracked={
            column.name: TrackedColumn(hierarchy=column.hierarchy, cells=place, values=codes[:, -1], counts=counts)
            for column, place, (codes, counts) in zip(track, cells, counted, strict=False)
        },
    )


def with_population(classes: EquivalenceClasses, schema: Schema, population: pl.DataFrame | None) -> EquivalenceClasses:
    """The classes with the people of a population counted in them, and classes that only the population has."""
    if population is None:
        return classes
    return classes.spread_over(compress(classes.combinations(schema), track=(), population=population))


def with_class_labels(
    table: StoredTable,
    quasi: Sequence[CodedColumn],
    classes: EquivalenceClasses,
    group: npt.NDArray[np.int64],
    labels: Sequence[pl.Series],
) -> StoredTable:
    """The table with labels in place of values. ``group`` numbers the group of each class, ``labels`` holds a value per
    group for each column."""
    keys = _keys(table, quasi)
    packed = {f"k{i}": key for i, key in enumerate(_pack(classes.codes, quasi))}
    combinations, groups = unique_name("combinations"), unique_name("groups")
    table.workspace.store(combinations, pl.DataFrame({**packed, "g": group.astype(np.int64)}))
    cells = [series.alias(table.cells[series.name]) for series in labels]
    table.workspace.store(groups, pl.DataFrame(cells).with_row_index("g").cast({"g": pl.Int64}))
    on = " AND ".join(f"{key} = k.k{i}" for i, key in enumerate(stored_sql.key_expressions(keys)))
    return table.with_expressions(
        {series.name: f"g.{table.cells[series.name]}" for series in labels},
        joins=f"{stored_sql.code_joins(keys)} JOIN {combinations} AS k ON {on} JOIN {groups} AS g ON k.g = g.g",
    )


def raise_levels(
    table: StoredTable, coded: list[CodedColumn], highest: Mapping[str, int]
) -> tuple[list[CodedColumn], dict[str, int]]:
    """Coarser codes for the widest columns until there are about ``table.combinations`` combinations, and the levels
    at which these columns now start."""
    raised: dict[str, int] = {}
    while math.prod(column.groups for column in coded) > table.combinations:
        statement = stored_sql.estimated(table.sql, _keys(table, coded))
        if table.workspace.query(statement, "estimating classes").item() <= table.combinations:
            break
        able = [c for c in coded if c.lowest < highest.get(c.name, c.hierarchy.height)]
        if not able:
            break
        widest = max(able, key=lambda column: column.groups)
        coded = [replace(c, lowest=c.lowest + 1) if c is widest else c for c in coded]
        raised[widest.name] = widest.lowest + 1
    return coded, raised


def count_for_models(
    table: StoredTable, models: Sequence[PrivacyModel], *, without_hierarchy: Collection[str] = ()
) -> tuple[list[CodedColumn], EquivalenceClasses]:
    """The quasi-identifiers and their classes, with the columns that the models speak of."""
    coded = [coded_column(table, name, with_hierarchy=name not in without_hierarchy) for name in table.empty.quasi]
    track = tracked_columns(models, table.empty.sensitive, None)
    return coded, count_classes(table, coded, [coded_column(table, name) for name in track])


def _keys(table: StoredTable, columns: Sequence[CodedColumn]) -> list[list[stored_sql.KeyColumn]]:
    return [[column.key_column(table) for column in run] for run in _packed(columns)]


def _packed(columns: Sequence[CodedColumn]) -> list[list[CodedColumn]]:
    """The columns in sequences whose combinations fit into one 64-bit key each."""
    runs: list[list[CodedColumn]] = []
    span = 1
    for column in columns:
        if not runs or span > _SPAN // max(column.width, 1):
            runs.append([])
            span = 1
        runs[-1].append(column)
        span *= max(column.width, 1)
    return runs


def _unpacked(frame: pl.DataFrame, columns: Sequence[CodedColumn]) -> Codes:
    """(combination, column): the codes of the values, from the keys ``k0``, ``k1``, ..."""
    codes = np.empty((frame.height, len(columns)), dtype=np.int32)
    last = len(columns)
    for position, run in reversed(list(enumerate(_packed(columns)))):
        key = frame.get_column(f"k{position}").to_numpy()
        for column in reversed(run):
            last -= 1
            key, rest = np.divmod(key, max(column.width, 1))
            codes[:, last] = rest
    return codes


def _pack(codes: Codes, columns: Sequence[CodedColumn]) -> list[Ints]:
    """The keys of combinations: the inverse of :func:`_unpacked`."""
    keys, first = [], 0
    for run in _packed(columns):
        key = np.zeros(len(codes), dtype=np.int64)
        for column in run:
            key = key * max(column.width, 1) + codes[:, first]
            first += 1
        keys.append(key)
    return keys
