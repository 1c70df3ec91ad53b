"""Declared rows: the columns of a private table, read from its source and cast as queries read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from sfumato.dataset import Kind
from sfumato.engines.backends.duckdb.engine import Duckdb
from sfumato.engines.expressions import Read
from sfumato.engines.statements import Select, Stored
from sfumato.errors import AnswerFailed, BadParameter, EmptyTable
from sfumato.query.plan.catalog import PrivateTable
from sfumato.query.plan.scalar import TYPES
from sfumato.secret import Permit

_POLARS: dict[Kind, Any] = {
    Kind.INTEGER: pl.Int64, Kind.NUMBER: pl.Float64, Kind.CATEGORY: pl.String, Kind.DATE: pl.Date,
    Kind.DATETIME: pl.Datetime, Kind.BOOLEAN: pl.Boolean,
}  # fmt: skip


def read_declared(source: object, table: PrivateTable) -> pl.DataFrame:
    """The declared columns, each value cast to its declared kind, as private queries read them."""
    kinds: Mapping[str, Kind] = {name: column.kind for name, column in table.schema.columns.items() if column.kind}
    items = tuple((f"c{i}", Read((table.name, name), TYPES[kind])) for i, (name, kind) in enumerate(kinds.items()))
    try:
        rows = Duckdb().start({table.name: source}).run(Select(items, Stored(table.name)))
    except AnswerFailed:
        raise BadParameter(
            f"the declared columns of `{table.name}` cannot be read from its data.",
            fix="Compare the metadata with the file.",
        ) from None
    frame = pl.DataFrame(
        rows.open(Permit("policy")), schema={name: _POLARS[kind] for name, kind in kinds.items()}, orient="row"
    )
    if not frame.height:
        raise EmptyTable(f"Table `{table.name}` has no rows.")
    return frame.with_columns(pl.selectors.float().fill_nan(None))
