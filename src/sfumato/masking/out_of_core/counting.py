"""Count the equivalence classes of a stored table: one GROUP BY in the engine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from sfumato.data.table import Table
from sfumato.errors import BadParameter
from sfumato.masking.out_of_core import sqlgen
from sfumato.masking.out_of_core.counts import CodedColumn, Counted, packed
from sfumato.masking.out_of_core.stored_table import StoredTable
from sfumato.schema import Column, Dataset, Role, Schema

__all__ = ["coded_column", "count_combinations", "raise_levels"]


def coded_column(table: StoredTable, name: str, *, level: int = 0, with_hierarchy: bool = True) -> CodedColumn:
    """A column with its distinct values; without ``with_hierarchy`` each value stands for itself."""
    values = table.values(name).get_column("value").alias(name)
    column = Column(role=Role.PLAIN, hierarchy=table.schema.column(name).hierarchy if with_hierarchy else None)
    hierarchy = Dataset(table=Table(frame=values.to_frame()), schema=Schema(columns={name: column})).bound_hierarchy(
        name
    )
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
