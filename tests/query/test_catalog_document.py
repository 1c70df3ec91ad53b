"""Catalogs as plain data: what is read back is the catalog, for all kinds of columns, after JSON."""

from __future__ import annotations

import json
from datetime import date, datetime
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from sfumato.dataset import Column, Domain, Kind, Role, Schema, ValuesDomain
from sfumato.query.catalog_document import catalog_from_dict, catalog_to_dict
from sfumato.query.plan.catalog import Catalog, PrivateTable, PublicTable


def column(kind: Kind, **domain: Any) -> Column:
    return Column(role=Role.SENSITIVE, kind=kind, domain=Domain.of(domain) if domain else None, reason="owner's note")


COLUMNS = {
    "id": column(Kind.INTEGER),
    "age": column(Kind.INTEGER, low=0, high=99),
    "code": column(Kind.INTEGER, values=(1, 2**60 + 1)),
    "dose": column(Kind.NUMBER, values=(0.1, 3)),
    "ward": column(Kind.CATEGORY, values=("Süd", 7, float("nan"))),
    "smokes": column(Kind.BOOLEAN, values=(False, True)),
    "day": column(Kind.DATE, values=(date(2020, 2, 29), "2021-01-01")),
    "seen": column(Kind.DATETIME, values=(datetime(2020, 2, 29, 1, 2, 3, 4), date(2021, 1, 1))),
}


@pytest.fixture
def catalog() -> Catalog:
    schema = Schema(columns=COLUMNS, unit="id")
    frame = pl.DataFrame({"ward": ["Süd", "7"], "price": [float("nan"), None], "since": [date(2000, 1, 1), None]})
    return Catalog(
        dataset="hospital",
        private={"visits": PrivateTable(name="visits", schema=schema, rows=3, groups=2, typical_groups=1)},
        public={"wards": PublicTable(name="wards", frame=frame, key=("ward",))},
    )


def test_a_catalog_survives_json(catalog: Catalog) -> None:
    text = json.dumps(catalog_to_dict(catalog), allow_nan=False)
    assert "note" not in text, "remarks of the owner are not sent"
    read = catalog_from_dict(json.loads(text))
    before, after = catalog.private["visits"], read.private["visits"]
    assert (after.rows, after.groups, after.typical_groups, after.schema.unit) == (3, 2, 1, "id")
    assert after.values == before.values
    assert {name: type(v) for name, vs in after.values.items() if vs for v in vs} == {
        name: type(v) for name, vs in before.values.items() if vs for v in vs
    }
    for name, declared in COLUMNS.items():
        found = after.schema.columns[name]
        assert (found.kind, found.role) == (declared.kind, declared.role)
        if not isinstance(declared.domain, ValuesDomain):
            assert found.domain == declared.domain
    assert read.public["wards"].key == ("ward",)
    assert_frame_equal(read.public["wards"].frame, catalog.public["wards"].frame)
