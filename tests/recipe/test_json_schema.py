"""The published JSON Schema and the validator say the same of a recipe."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from sfumato.errors import InvalidRecipe
from sfumato.params import Part
from sfumato.recipe import Recipe
from sfumato.recipe.graph_recipe import GraphRecipe
from sfumato.recipe.json_schema import json_schema
from sfumato.recipe.validate import SECTIONS
from sfumato.registry import registry

SCHEMA = json_schema()
EDITOR = jsonschema.Draft202012Validator(SCHEMA)
PARTS = [(section, cls) for section, kind in SECTIONS.items() for cls in registry(kind)]


def recipe(**more: Any) -> dict[str, Any]:
    return {"sfumato": 1, "columns": {"a": "quasi"}, **more}


def hierarchy(written: Any) -> dict[str, Any]:
    return recipe(columns={"a": {"role": "quasi", "hierarchy": written}})


def plain(document: Any) -> Any:
    return json.loads(json.dumps(document, default=str))


def complaints(document: Any) -> list[str]:
    return [error.message for error in EDITOR.iter_errors(document)]


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert not any(name in json.dumps(SCHEMA) for name in ('"gt": 0', '"ge": 0', '"part": "'))


@pytest.mark.parametrize(("section", "cls"), PARTS, ids=lambda value: getattr(value, "__name__", value))
def test_every_example_and_what_is_made_of_it(section: str, cls: type[Part]) -> None:
    for example in cls.examples:
        assert complaints(plain(recipe(**{section: [{cls.part_name(): example}]}))) == []
        written = cls.build(example).to_dict()
        assert complaints(plain(recipe(**{section: [{cls.part_name(): written}]}))) == []


@pytest.mark.parametrize("cls", list(registry("hierarchy")))
def test_every_example_of_a_hierarchy(cls: type[Part]) -> None:
    for example in cls.examples:
        assert complaints(plain(hierarchy({cls.part_name(): example}))) == []


@pytest.mark.parametrize(
    "document",
    [
        recipe(steps=[{"generalize": {"metric": "lost"}}]),
        recipe(steps=[{"generalize": {"metric": {"classification": {"colum": "a"}}}}]),
        recipe(steps=[{"generalize": {"metric": {"loss": {}, "ncp": {}}}}]),
        recipe(steps=[{"generalize": {"suppression": 2}}]),
        recipe(steps=[{"local-recode": {"metric": "lost"}}]),
        recipe(steps=["categorize"]),
        recipe(steps=[{"categorize": {"by": "width"}}]),
        recipe(steps=["top-bottom-code"]),
        recipe(steps=["microaggregate"]),
        recipe(steps=["pram"]),
        recipe(steps=["sleep"]),
        recipe(models=["k-anonymity"]),
        recipe(models=[{"k-anonymity": 1}]),
        recipe(models=[{"l-diversity": {"l": 2, "kind": "recursive"}}]),
        recipe(models=[{"l-diversity": {"l": 2, "c": 3}}]),
        recipe(attacks=[{"linkage": {"no-such": 1}}]),
        recipe(limits={"risk": 2}),
        recipe(data={"delimiter": ";"}),
        recipe(data=""),
        recipe(columns={}),
        recipe(columns={"a": "quasy"}),
        recipe(columns={"a": {"role": "quasi", "domain": {"low": 3}}}),
        recipe(columns={"a": {"role": "quasi", "missing_codes": 99}}),
        hierarchy({"intervals": [-5]}),
        hierarchy({"intervals": [0]}),
        hierarchy({"intervals": []}),
        hierarchy({"bands": [5]}),
        hierarchy({"dates": ["fortnight"]}),
        hierarchy("intervals"),
        recipe(sed=1),
    ],
)
def test_both_refuse(document: dict[str, Any]) -> None:
    assert not EDITOR.is_valid(plain(document))
    with pytest.raises(InvalidRecipe):
        Recipe.parse(document)


@pytest.mark.parametrize(
    "document",
    [
        recipe(steps=[{"generalize": {"metric": "ncp"}}, "generalize", {"generalize": None}]),
        recipe(steps=[{"generalize": {"metric": {"classification": {"column": "a"}}}}]),
        recipe(steps=[{"local-recode": {"metric": "precision"}}, {"categorize": [0, 10]}, {"pram": 0.9}]),
        recipe(models=[{"l-diversity": {"l": 2, "kind": "recursive", "c": 3}}, {"k-anonymity": 5}]),
        recipe(columns={"a": {"role": "quasi", "missing_codes": [-9, "n/a", [997, 999]]}}),
        recipe(data={"file": "people.csv", "delimiter": ";"}),
        hierarchy({"intervals": [0.5, 1]}),
        hierarchy("zip3"),
        hierarchy(None),
    ],
)
def test_both_accept(document: dict[str, Any]) -> None:
    assert complaints(plain(document)) == []
    assert Recipe.parse(document).schema.columns


def test_what_a_recipe_writes_of_itself_is_accepted() -> None:
    made = Recipe.parse(
        recipe(steps=[{"microaggregate": {"k": 3}}, {"pram": 0.9}], models=[{"l-diversity": {"l": 2}}], seed=1)
    )
    assert complaints(plain(made.to_dict())) == []


GRAPH = {"sfumato": 1, "graph": {"edges": "friends.csv"}, "steps": [{"anonymize-degrees": 5}]}


@pytest.mark.parametrize(
    ("document", "valid"),
    [
        (GRAPH, True),
        ({**GRAPH, "columns": {"a": "quasi"}, "steps": ["generalize", {"symmetrize-edges": 5}]}, True),
        ({**GRAPH, "graph": {"edges": ["a.csv", "b.csv"], "relations": "merge", "drop": ["dangling"]}}, True),
        ({**GRAPH, "graph": {"edges": {"a": "a.csv", "b": "b.csv"}, "relations": "keep"}}, True),
        ({**GRAPH, "graph": {"edges": "a.csv", "edge_columns": {"w": {"bands": [1, 2.5]}, "x": "drop"}}}, True),
        ({**GRAPH, "graph": {"edges": "a.csv", "directions": "drop"}}, True),
        ({**GRAPH, "graph": {"edges": ["a.csv", "b.csv"], "nodes": "n.csv"}}, False),
        ({**GRAPH, "graph": {"edges": {"a": "a.csv", "b": "b.csv"}}}, False),
        ({**GRAPH, "graph": {"edges": "a.csv", "edge_columns": {"w": {"bands": []}}}}, False),
        ({**GRAPH, "graph": {"edges": "a.csv", "directions": "keep"}}, False),
        ({**GRAPH, "graph": {"edges": []}}, False),
        ({**GRAPH, "graph": {"edges": "a.csv", "drop": ["loops"]}}, False),
        ({**GRAPH, "graph": {"nodes": "a.csv"}}, False),
        ({**GRAPH, "data": "a.csv"}, False),
        ({**GRAPH, "steps": [{"anonymize-degrees": 1}]}, False),
    ],
)
def test_recipes_for_graphs(document: dict[str, Any], valid: bool) -> None:
    assert (complaints(document) == []) is valid
    if valid:
        assert GraphRecipe.parse(document).steps
    else:
        with pytest.raises(InvalidRecipe):
            GraphRecipe.parse(document)


def test_parts_for_graphs_need_a_graph() -> None:
    document = recipe(steps=GRAPH["steps"])
    assert complaints(document)
    with pytest.raises(InvalidRecipe):
        Recipe.parse(document)


@pytest.mark.parametrize(
    ("study", "valid"),
    [
        ({"candidates": ["mondrian", {"rank-swap": {"p": {"try": [2, 5]}}}], "seeds": 3, "utility": ["pairs"]}, True),
        ({"candidates": [[{"noise": {"variance_ratio": 0.1}}, "remove"]], "seeds": [1, 2], "seconds": 60}, True),
        ({"candidates": ["mondrian"], "seeds": 0}, False),
        ({"candidates": ["mondrian"], "second": 60}, False),
        ({"seeds": 3}, False),
    ],
)
def test_studies(study: dict[str, Any], valid: bool) -> None:
    assert (complaints(recipe(study=study)) == []) is valid
