"""Data set documents, recipes and plans as JSON Schema, put together from the parts that are registered right now.

A field that names a part of another kind says so by ``json_schema_extra={"part": "metric"}``; the names that are
registered, with their parameters, stand in the schema then.
"""

from __future__ import annotations

from typing import Any

from sfumato.collecting.survey import Survey
from sfumato.dataset import Column
from sfumato.dataset.document import AnsweringPolicy, Dataset, PlanReader
from sfumato.dataset.plan import DatasetPlan
from sfumato.errors import BadParameter
from sfumato.field_docs import DocumentedModel
from sfumato.params import Part
from sfumato.recipe.about import AboutRelease
from sfumato.recipe.graph_recipe import GraphSource
from sfumato.recipe.recipe import VERSION, Limits
from sfumato.recipe.validate import SECTIONS, ReleasePlan
from sfumato.registry import registry

_BOUNDS = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}
"""Pydantic leaves a bound of ``int | float`` under its own name, which editors ignore."""


def _inline(schema: dict[str, Any], prefix: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """Move a model's own ``$defs`` to the top of the document under a name that no other model uses."""
    local = schema.pop("$defs", {})

    def move(node: Any) -> Any:
        if isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str) and reference.startswith("#/$defs/"):
                return {**node, "$ref": f"#/$defs/{prefix}.{reference.removeprefix('#/$defs/')}"}
            if "part" in node and isinstance(node["part"], str):
                told = {key: value for key, value in node.items() if key in ("default", "description", "title")}
                return {**told, **_any_of(node["part"], definitions)}
            return {_BOUNDS.get(k, k) if isinstance(v, int | float) else k: move(v) for k, v in node.items()}
        return [move(item) for item in node] if isinstance(node, list) else node

    for name, definition in local.items():
        definitions[f"{prefix}.{name}"] = move(definition)
    moved: dict[str, Any] = move(schema)
    return moved


def _named(kind: str, cls: type[Part], definitions: dict[str, Any]) -> dict[str, Any]:
    """``{name: parameters}``, where the bare value of the main parameter is allowed too."""
    key = f"{kind}.{cls.part_name()}"
    schema = _inline(cls.model_json_schema(), key, definitions)
    schema["description"] = cls.summary()
    definitions[key] = schema
    options: list[Any] = [{"$ref": f"#/$defs/{key}"}]
    if cls.main is not None:
        options.append(schema["properties"][cls.main])
    if _stands_alone(cls):
        options.append({"type": "null"})
    value = options[0] if len(options) == 1 else {"anyOf": options}
    return {
        "type": "object",
        "properties": {cls.part_name(): value},
        "required": [cls.part_name()],
        "additionalProperties": False,
        "description": cls.summary(),
    }


def _stands_alone(cls: type[Part]) -> bool:
    """Whether the part works without any parameter."""
    try:
        cls.build()
    except BadParameter:
        return False
    return True


def _any_of(kind: str, definitions: dict[str, Any]) -> dict[str, Any]:
    named = [_named(kind, cls, definitions) for cls in registry(kind)]
    bare = [cls.part_name() for cls in registry(kind) if _stands_alone(cls)]
    return {"anyOf": [*named, *([{"enum": bare}] if bare else [])]}


def json_schema() -> dict[str, Any]:
    """The whole schema; an editor that knows it completes and checks ``sfumato.yaml`` while it is typed."""
    definitions: dict[str, Any] = {}
    column = _inline(Column.model_json_schema(), "column", definitions)
    properties: dict[str, Any] = {
        "sfumato": {"const": VERSION, "description": "Version of the recipe language."},
        **_dataset(column, definitions),
        "data": {"$ref": "#/$defs/dataset.Source"},
        "table": {"type": "string", "description": "The table that leaves; the table of people if left out."},
        "bounds": {"$ref": "#/$defs/dataset.Bounds", "description": "Of the one table of the short form."},
        "unit": {"type": "string", "description": "`row`, or the column that identifies a person."},
        "columns": {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {"anyOf": [{**column, "required": ["role"]}, column["properties"]["role"]]},
            "description": "Role, kind, hierarchy and domain of each column.",
        },
        **_inline(ReleasePlan.model_json_schema(), "release", definitions)["properties"],
        "about": _inline(AboutRelease.model_json_schema(), "about", definitions),
        "limits": _inline(Limits.model_json_schema(), "limits", definitions),
    }
    for name in ("AboutRelease", "Accepted", "Limits"):
        definitions.pop(f"release.{name}")
    properties["graph"] = _inline(GraphSource.model_json_schema(), "graph", definitions)
    for reader in registry("release-kind"):
        assert issubclass(reader, PlanReader)
        for model in reader.plan_models():
            for name, item in _plan(model, f"{reader.part_name()}.{model.__name__}", definitions).items():
                known = properties.get(name)
                properties[name] = item if known is None else {"anyOf": [known, item]}
    properties |= _survey(column, properties, definitions)
    tables: dict[str, Any] = {}
    for section, kind in SECTIONS.items():
        table, graph = properties[section]["items"], _any_of(f"graph-{kind}", definitions)
        definitions[f"table.{section}"] = table
        tables[section] = {"items": {"$ref": f"#/$defs/table.{section}"}}
        properties[section] = {"type": "array", "items": {"anyOf": [*table["anyOf"], *graph["anyOf"]]}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "sfumato data set, recipe, plan or survey",
        "type": "object",
        "properties": properties,
        "required": ["sfumato"],
        "if": {"required": ["graph"]},
        "then": {"properties": {"data": False, "study": False}},
        "else": {
            "anyOf": [{"required": [key]} for key in ("columns", "tables", "dataset", "published", "questions")],
            "properties": tables,
        },
        "additionalProperties": False,
        "$defs": dict(sorted(definitions.items())),
    }


def _plan(model: type[DocumentedModel], prefix: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """The keys of a plan, without those that all plans have. Sources are written as in a data set."""
    schema = _inline(model.model_json_schema(), prefix, definitions)
    if f"{prefix}.Source" in definitions:
        definitions[f"{prefix}.Source"] = {"$ref": "#/$defs/dataset.Source"}
    return {name: item for name, item in schema["properties"].items() if name not in DatasetPlan.model_fields}


def _survey(column: dict[str, Any], known: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """The keys of a survey. Its questions are columns, listed by name where the data set declares them."""
    keys = _plan(Survey, "survey", definitions)
    for name in ("Hierarchy", "Kind", "Role"):
        definitions.pop(f"survey.{name}", None)
    question = definitions["survey.SurveyQuestion"]
    question["properties"] |= column["properties"]
    asked = {"anyOf": [{"$ref": "#/$defs/survey.SurveyQuestion"}, {"type": "null"}]}
    names = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    told = {"description": keys["questions"]["description"]}
    keys["questions"] = {**told, "anyOf": [{"type": "object", "additionalProperties": asked}, names]}
    return {name: {"anyOf": [known[name], item]} if name in known else item for name, item in keys.items()}


def _dataset(column: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """The keys of the data set document, from its model; columns, sources and the policy as they are written."""
    model = _inline(Dataset.model_json_schema(), "dataset", definitions)
    for name in ("AnsweringPolicy", "Domain", "Hierarchy", "Kind", "Role"):  # in the declaration of a column
        definitions.pop(f"dataset.{name}", None)
    definitions["dataset.Column"] = {"anyOf": [column, column["properties"]["role"]]}
    options: dict[str, Any] = {}
    for kind in registry("format"):
        options |= _inline(kind.model_json_schema(), f"format.{kind.part_name()}", definitions)["properties"]
    place = {"type": "string", "minLength": 1}
    definitions["dataset.Source"] = {
        "description": "File, database URL, or {file: ..., option: ...} with the dialect of the file.",
        "anyOf": [
            place,
            {
                "type": "object",
                "properties": {**options, "file": place, "url": place},
                "anyOf": [{"required": ["file"]}, {"required": ["url"]}],
            },
        ],
    }
    policy = definitions["dataset.Answering"]["properties"]["policy"]
    told = {key: value for key, value in policy.items() if key in ("default", "description", "title")}
    charged = [
        kind.part_name() for kind in registry("policy") if issubclass(kind, AnsweringPolicy) and kind.spends_budget
    ]
    choices = [*_any_of("policy", definitions)["anyOf"], {"enum": charged}]  # each query brings its own cost
    definitions["dataset.Answering"]["properties"]["policy"] = {**told, "anyOf": choices}
    return {name: item for name, item in model["properties"].items() if name != "sfumato"}
