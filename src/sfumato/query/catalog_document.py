"""Catalogs as plain data, ready for JSON: what a server tells analysts of a data set.

Declared tables, columns and domains of private tables, and public tables with their rows. Where the data is, the
ledger and the policy are not part of it.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from typing import Any

import polars as pl

from sfumato.dataset import Column, Schema, ValuesDomain
from sfumato.query.plan.catalog import Catalog, PrivateTable, PublicTable


def catalog_to_dict(catalog: Catalog) -> dict[str, object]:
    """A catalog as plain data. Public tables are Arrow streams in base64.

    >>> column = Column(role="plain", kind="integer", domain={"low": 0, "high": 99})
    >>> table = PrivateTable(name="people", schema=Schema(columns={"age": column}))
    >>> catalog = Catalog(dataset="town", private={"people": table})
    >>> catalog_from_dict(catalog_to_dict(catalog)) == catalog
    True
    """
    return {
        "dataset": catalog.dataset,
        "parts": list(catalog.parts),
        "private": [
            {"name": table.name, "unit": table.schema.unit, "rows": table.rows, "groups": table.groups,
             "typical_groups": table.typical_groups, "columns": [_column(table, name) for name in table.schema.columns]}
            for table in catalog.private.values()
        ],
        "public": [
            {"name": table.name, "key": list(table.key), "arrow": _stream(table.frame)}
            for table in catalog.public.values()
        ],
    }  # fmt: skip


def catalog_from_dict(shown: Mapping[str, Any]) -> Catalog:
    """The catalog that :func:`catalog_to_dict` wrote."""
    private = {
        table["name"]: PrivateTable(
            name=table["name"], rows=table["rows"], groups=table["groups"], typical_groups=table["typical_groups"],
            schema=Schema(columns={column["name"]: _declared(column) for column in table["columns"]},
                          unit=table["unit"]),
        )
        for table in shown["private"]
    }  # fmt: skip
    public = {
        table["name"]: PublicTable(
            name=table["name"],
            key=tuple(table["key"]),
            frame=pl.read_ipc_stream(io.BytesIO(base64.b64decode(table["arrow"]))),
        )
        for table in shown["public"]
    }
    return Catalog(dataset=shown["dataset"], private=private, public=public, parts=tuple(shown["parts"]))


def _column(table: PrivateTable, name: str) -> dict[str, Any]:
    column, values = table.schema.columns[name], table.values[name]
    domain = column.domain if values is None else ValuesDomain(values=values)
    shown = None if domain is None else domain.model_dump(mode="json", exclude_none=True)
    return {"name": name, "role": str(column.role), "kind": str(column.kind), "domain": shown}


def _declared(shown: Mapping[str, object]) -> Column:
    column = Column(role=shown["role"], kind=shown["kind"], domain=shown["domain"])
    # Days and moments are text in JSON.
    return column if column.values is None else column.model_copy(update={"domain": ValuesDomain(values=column.values)})


def _stream(frame: pl.DataFrame) -> str:
    sink = io.BytesIO()
    frame.write_ipc_stream(sink, compression="zstd")
    return base64.b64encode(sink.getvalue()).decode()
