"""Count the equivalence classes of a stored table: one GROUP BY in the engine."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.errors import BadParameter
from sfumato.masking.model import PrivacyModel
from sfumato.masking.out_of_core import sqlgen
from sfumato.masking.out_of_core.counts import CodedColumn, Counted, pack_codes, packed, tracked_columns
from sfumato.masking.out_of_core.stored_table import StoredTable, unique_name

__all__ = ["coded_column", "count_classes", "count_combinations", "raise_levels", "with_class_labels"]


def coded_column(table: StoredTable, name: str, *, level: int = 0, with_hierarchy: bool = True) -> CodedColumn:
    """A column with its distinct values; without ``with_hierarchy`` each value stands for itself."""
    values = table.values(name).get_column("value").alias(name)
    column = Column(role=Role.PLAIN, hierarchy=table.schema.column(name).hierarchy if with_hierarchy else None)
    hierarchy = Data(table=Table(frame=values.to_frame()), schema=Schema(columns={name: column})).bound_hierarchy(name)
    if level > hierarchy.height:
        raise BadParameter(
            f"generalize: level {level} of `{name}` is not within its hierarchy (0 to {hierarchy.height}).", column=name
        )
    return CodedColumn(name=name, cell=table.cells[name], values=values, hierarchy=hierarchy, lowest=level)


def count_combinations(table: StoredTable, quasi: Sequence[CodedColumn], track: Sequence[CodedColumn]) -> Counted:
    """Count the combinations of the quasi-identifiers, once for each tracked column or once in all."""
    frames: dict[CodedColumn | None, pl.DataFrame] = {}
    for beside in track or (None,):
        keys = _keys(table, (*quasi, *(() if beside is None else (beside,))))
        frames[beside] = table.workspace.query(sqlgen.counted(table.sql, keys), "counting classes")
    return Counted.of(table.schema, quasi, frames)


def count_classes(
    table: StoredTable, models: Sequence[PrivacyModel], *, without_hierarchy: Collection[str] = ()
) -> Counted:
    """Count the combinations of all quasi-identifiers, with the columns that the models speak of."""
    coded = [coded_column(table, name, with_hierarchy=name not in without_hierarchy) for name in table.empty.quasi]
    track = tracked_columns(models, table.empty.sensitive, None)
    return count_combinations(table, coded, [coded_column(table, name) for name in track])


def with_class_labels(
    table: StoredTable, counts: Counted, group: npt.NDArray[np.int64], labels: Sequence[pl.Series]
) -> StoredTable:
    """The table with labels in place of values. ``group`` numbers the group of each counted combination, ``labels``
    holds a value per group for each column."""
    keys = _keys(table, counts.columns)
    packed = {f"k{i}": key for i, key in enumerate(pack_codes(counts.codes, counts.columns))}
    combinations, groups = unique_name("combinations"), unique_name("groups")
    table.workspace.store(combinations, pl.DataFrame({**packed, "g": group.astype(np.int64)}))
    cells = [series.alias(table.cells[series.name]) for series in labels]
    table.workspace.store(groups, pl.DataFrame(cells).with_row_index("g").cast({"g": pl.Int64}))
    on = " AND ".join(f"{key} = k.k{i}" for i, key in enumerate(sqlgen.key_expressions(keys)))
    return table.with_expressions(
        {series.name: f"g.{table.cells[series.name]}" for series in labels},
        joins=f"{sqlgen.code_joins(keys)} JOIN {combinations} AS k ON {on} JOIN {groups} AS g ON k.g = g.g",
    )


def raise_levels(
    table: StoredTable, coded: list[CodedColumn], highest: Mapping[str, int]
) -> tuple[list[CodedColumn], dict[str, int]]:
    """Coarser codes for the widest columns until there are about ``table.combinations`` combinations, and the levels
    at which these columns now start."""
    raised: dict[str, int] = {}
    while math.prod(column.groups for column in coded) > table.combinations:
        statement = sqlgen.estimated(table.sql, _keys(table, coded))
        if table.workspace.query(statement, "estimating classes").item() <= table.combinations:
            break
        able = [c for c in coded if c.lowest < highest.get(c.name, c.hierarchy.height)]
        if not able:
            break
        widest = max(able, key=lambda column: column.groups)
        coded = [replace(c, lowest=c.lowest + 1) if c is widest else c for c in coded]
        raised[widest.name] = widest.lowest + 1
    return coded, raised


def _keys(table: StoredTable, columns: Sequence[CodedColumn]) -> list[list[sqlgen.KeyColumn]]:
    """The columns packed into as few integer keys as possible; the engine gets the code of each value as a table."""
    return [
        [
            sqlgen.KeyColumn(
                cell=column.cell, codes=table.put("code", column.table()), width=column.width, empty=column.empty
            )
            for column in run
        ]
        for run in packed(columns)
    ]
