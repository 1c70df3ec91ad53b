"""``Schema.of``: a schema from lists of column names, and parts composed without YAML."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import sfumato
from sfumato.data import Table
from sfumato.dataset import Data, IntervalsHierarchy, Role, Schema
from sfumato.errors import BadParameter, UnknownColumn
from sfumato.masking import Generalize, KAnonymity
from sfumato.recipe import Recipe

PEOPLE = pl.DataFrame(
    {
        "name": [f"P{i}" for i in range(40)],
        "age": [20 + i % 20 for i in range(40)],
        "sex": ["f", "m"] * 20,
        "illness": ["flu", "none", "none", "asthma"] * 10,
        "house": [i // 4 for i in range(40)],
        "weight": [1.5] * 40,
    }
)


def test_every_role() -> None:
    schema = Schema.of(
        PEOPLE,
        quasi=["age", "sex"],
        sensitive="illness",
        identifier=["name"],
        weight="weight",
        household="house",
        unit="name",
        hierarchies={"age": IntervalsHierarchy(widths=(5, 10))},
    )
    assert {name: str(column.role) for name, column in schema.columns.items()} == {
        "name": "identifier",
        "age": "quasi",
        "sex": "quasi",
        "illness": "sensitive",
        "house": "household",
        "weight": "weight",
    }
    assert schema.unit == "name"
    bound = Data.of(Table(frame=PEOPLE), schema).bound_hierarchy("age")
    assert bound.levels[1].labels.to_list() == ["20–24", "25–29", "30–34", "35–39"]


@pytest.mark.parametrize("form", [PEOPLE, Table(frame=PEOPLE), PEOPLE.to_arrow(), PEOPLE.to_pandas()], ids=type)
def test_any_kind_of_table(form: Any) -> None:
    assert Schema.of(form, quasi=["age"]).names(Role.QUASI) == ("age",)


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(UnknownColumn, match="agee") as refusal:
        Schema.of(PEOPLE, quasi=["agee"])
    assert "age" in str(refusal.value.fix)
    with pytest.raises(UnknownColumn, match="person"):
        Schema.of(PEOPLE, quasi=["age"], unit="person")
    with pytest.raises(UnknownColumn, match="zip"):
        Schema.of(PEOPLE, hierarchies={"zip": IntervalsHierarchy(widths=(5,))})


def test_a_column_with_two_roles_is_refused() -> None:
    with pytest.raises(BadParameter, match="`age` has two roles: quasi and sensitive"):
        Schema.of(PEOPLE, quasi=["age"], sensitive=["age"])


def test_parts_compose_without_yaml() -> None:
    schema = Schema.of(
        PEOPLE,
        quasi=["age", "sex"],
        sensitive=["illness"],
        identifier=["name"],
        hierarchies={"age": IntervalsHierarchy(widths=(5, 10))},
    )
    recipe = Recipe(schema=schema, models=(KAnonymity(k=4),), steps=(Generalize(),), seed=1)
    written = Recipe.parse(recipe.to_yaml())
    assert written == recipe
    result = sfumato.protect(recipe, PEOPLE)
    assert [str(verdict.state) for verdict in result.protected.verdicts] == ["holds"]
    assert "name" not in result.release.table.columns
