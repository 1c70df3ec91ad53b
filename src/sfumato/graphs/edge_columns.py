"""Columns of edge tables: each is dropped, kept, or generalized by a declaration. Nothing is dropped silently.

| declaration | what is released |
|---|---|
| ``drop`` | nothing |
| ``keep`` | the values; at most 500 different descriptions of edges |
| ``{bands: [5, 20]}`` | for numbers: ``below 5``, ``5 to below 20``, ``20 and above`` |
| ``{dates: year}`` | for dates and times: the year, ``quarter`` or ``month`` |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
import polars as pl

from sfumato.errors import BadParameter, InvalidGraph, UnknownColumn
from sfumato.wording import did_you_mean

DateUnit = Literal["year", "quarter", "month"]
_CHOICES = "`drop`, `keep`, `{bands: [5, 20]}` for numbers or `{dates: year}` for dates"


def check_declaration(declared: object) -> str | None:
    """What is wrong with the declaration of a column; None if nothing is."""
    if declared in ("drop", "keep"):
        return None
    if isinstance(declared, Mapping) and len(declared) == 1:
        kind, setting = next(iter(declared.items()))
        numbers = isinstance(setting, list | tuple) and all(
            isinstance(cut, int | float) and not isinstance(cut, bool) for cut in setting
        )
        if kind == "bands" and numbers and setting and list(setting) == sorted(set(setting)):
            return None
        if kind == "dates" and setting in get_args(DateUnit):
            return None
        if kind == "bands":
            return "`bands` is a list of different numbers in ascending order"
        if kind == "dates":
            return f"`dates` is one of {', '.join(get_args(DateUnit))}"
    return f"must be {_CHOICES}"


def released_columns(tables: Sequence[tuple[str, pl.DataFrame]], declared: Mapping[str, object]) -> list[pl.DataFrame]:
    """For each edge table (its name, and its columns without the two nodes) what is released about its edges."""
    for name, declaration in declared.items():
        if wrong := check_declaration(declaration):
            raise BadParameter(f"Column `{name}` of the edges: {wrong}.")
    there = {name for _, table in tables for name in table.columns}
    if missing := [name for name in declared if name not in there]:
        raise UnknownColumn(
            f"No edge table has the column `{missing[0]}`.", fix=did_you_mean(missing[0], sorted(there))
        )
    for title, table in tables:
        if unknown := [name for name in table.columns if name not in declared]:
            raise InvalidGraph(
                f"{title} has columns about edges that are not declared: {', '.join(f'`{name}`' for name in unknown)}.",
                fix=f"Declare each in `edge_columns`: {_CHOICES}.",
                columns=unknown,
            )
    kept = [name for name, declaration in declared.items() if declaration != "drop"]
    return [table.select(_released(table, name, declared[name]) for name in kept) for _, table in tables]


def _released(table: pl.DataFrame, name: str, declaration: Any) -> pl.Series:
    if name not in table.columns:
        return pl.Series(name, [None] * table.height, dtype=pl.String)
    values = table[name]
    if declaration == "keep":
        return values.cast(pl.String)
    kind, setting = next(iter(declaration.items()))
    if kind == "bands":
        return _bands(values, list(setting))
    return _dates(values, setting)


def _bands(values: pl.Series, cuts: list[float]) -> pl.Series:
    if not values.dtype.is_numeric():
        raise BadParameter(f"Column `{values.name}` of the edges is not numeric, so it has no bands.", fix="Drop it.")
    names = [f"below {cuts[0]:g}", *(f"{low:g} to below {high:g}" for low, high in pairwise(cuts))]
    names.append(f"{cuts[-1]:g} and above")
    known = values.is_not_null() & values.cast(pl.Float64).is_not_nan().fill_null(False)
    band = np.searchsorted(cuts, values.cast(pl.Float64).fill_null(0).to_numpy(), side="right")
    return pl.select(pl.when(known).then(pl.Series(np.array(names)[band])).alias(values.name)).to_series()


def _dates(values: pl.Series, unit: DateUnit) -> pl.Series:
    if values.dtype == pl.String:
        parsed = values.str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False)
        if parsed.null_count() > values.null_count():
            raise BadParameter(
                f"Column `{values.name}` of the edges has values that are not dates such as 2026-01-31.",
                fix="Write dates as year-month-day, or drop the column.",
            )
        values = parsed
    if not values.dtype.is_temporal():
        raise BadParameter(f"Column `{values.name}` of the edges holds no dates.", fix="Drop it, or use bands.")
    match unit:
        case "year":
            return values.dt.strftime("%Y")
        case "quarter":
            return values.dt.year().cast(pl.String) + "-Q" + values.dt.quarter().cast(pl.String)
        case "month":
            return values.dt.strftime("%Y-%m")
