"""From plain data to a :class:`Recipe`: every problem is collected, none stops the search for the others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, WrapValidator
from pydantic_core import InitErrorDetails

from sfumato.attacks.base import Attack
from sfumato.data.source import Source
from sfumato.data.yaml_documents import YamlDocument, problems_of, refuse_other_kind
from sfumato.dataset import Column, Schema
from sfumato.dataset.document import PLAN_KEYS, Bounds, Dataset, DeclaredColumn
from sfumato.errors import InvalidRecipe, Problem, SfumatoError
from sfumato.field_docs import DocumentedModel
from sfumato.masking.base import Step
from sfumato.masking.model import PrivacyModel
from sfumato.measures.base import Measure
from sfumato.recipe.about import AboutRelease
from sfumato.recipe.recipe import VERSION, Limits, Recipe
from sfumato.registry import PartOf
from sfumato.wording import did_you_mean

M = TypeVar("M", bound=DocumentedModel)

SECTIONS: dict[str, str] = {"models": "model", "steps": "method", "attacks": "attack", "measures": "measure"}
"""The lists of parts in a recipe, and the registry each draws from."""

KEYS = ("sfumato", "title", "about", "data", "seed", "unit", "order", "columns", *SECTIONS, "limits")
"""Every key of a short recipe, in the order it is best read."""
_DATASET = tuple(Dataset.model_fields)
"""Keys of the data set document, which may stand in the same file."""


def _listed(value: object) -> object:
    if not isinstance(value, list | tuple):
        raise ValueError("must be a list")
    return value


def _with_role(value: object, validate: Any) -> Column:
    if isinstance(value, dict) and "role" not in value:
        missing = InitErrorDetails(type="missing", loc=("role",), input=value)
        raise ValidationError.from_exception_data("column", [missing])
    column: Column = validate(value)
    return column


def _named_columns(value: object) -> object:
    if not isinstance(value, dict) or not value:
        raise ValueError("must name the columns and their roles: `age: {role: quasi}`")
    return {str(name): column for name, column in value.items()}


class ReleasePlan(DocumentedModel):
    """What a recipe says of a release beside the data set that it is about."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    title: str | None = None
    """What the report is called."""
    models: Annotated[tuple[Annotated[PrivacyModel, PartOf("model")], ...], BeforeValidator(_listed)] = ()
    steps: Annotated[tuple[Annotated[Step, PartOf("method")], ...], BeforeValidator(_listed)] = ()
    attacks: Annotated[tuple[Annotated[Attack, PartOf("attack")], ...], BeforeValidator(_listed)] = ()
    measures: Annotated[tuple[Annotated[Measure, PartOf("measure")], ...], BeforeValidator(_listed)] = ()
    limits: Limits = Limits()
    seed: Annotated[int, Field(ge=0, strict=True)] | None = None
    """Repeats a run, together with the key in the private folder. Never published."""
    order: Literal["shuffled", "kept"] = "shuffled"
    """Order of the released rows."""
    about: AboutRelease = AboutRelease()


class ShortForm(DocumentedModel):
    """The data set of a recipe that has one table and one release in one file."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    data: Source | None = None
    unit: str | None = None
    """`row`, or the column that identifies a person."""
    bounds: Bounds = Bounds()
    """Of the one table of the short form."""
    columns: Annotated[
        dict[str, Annotated[DeclaredColumn, WrapValidator(_with_role)]],
        BeforeValidator(_named_columns),
        Field(validate_default=True),
    ] = {}
    """Role, kind, hierarchy and domain of each column."""


def recipe_from_document(
    document: YamlDocument, *, base: Path | None = None, other_keys: tuple[str, ...] = ()
) -> Recipe:
    """Validate a parsed document. ``other_keys`` are allowed at the top level and left to the caller."""
    plain = document.value
    if not isinstance(plain, dict):
        problem = document.problem((), "a recipe is a mapping that starts with `sfumato: 1`")
        raise InvalidRecipe([problem], source=document.source)
    short = "columns" in plain or not ({"tables", "dataset"} & set(plain))
    known = (*KEYS, "bounds", *_DATASET, *other_keys) if short else (*PLAN_KEYS, *_DATASET, *other_keys)
    if not {"columns", "tables", "dataset"} & set(plain):
        refuse_other_kind(document, known)
    problems = [
        document.problem((key,), "unknown key. " + did_you_mean(str(key), known)) for key in plain if key not in known
    ]
    if plain.get("sfumato") != VERSION:
        words = f"the first key must be `sfumato: {VERSION}`, the version of the recipe language"
        problems.append(document.problem(("sfumato",), words))
    schema, source = Schema(columns={}), None
    if not short:
        source, schema = _from_dataset(problems, document, base)
    elif one := _form(ShortForm, document, base, problems):
        unit = None if one.unit == "row" else one.unit
        source = one.data
        schema = Schema(columns=one.columns, unit=unit, person=one.unit, max_rows=one.bounds.rows)
    plan = _form(ReleasePlan, document, base, problems)
    for name in plan.about.columns if plan is not None else ():
        if schema.columns and name not in schema.columns:
            words = "unknown column. " + did_you_mean(name, schema.columns)
            problems.append(document.problem(("about", "columns", name), words))
    if problems or plan is None:
        raise InvalidRecipe(problems, source=document.source)
    settings = {name: getattr(plan, name) for name in ReleasePlan.model_fields}
    return Recipe(schema=schema, source=source, account=account_of(plain, base), **settings)


def _form(model: type[M], document: YamlDocument, base: Path | None, problems: list[Problem]) -> M | None:
    """The keys of a form; an empty one is as good as none. Nothing if there are problems, which are added."""
    given = {key: value for key, value in document.value.items() if value is not None}
    try:
        return model.model_validate(given, context={"base": base}, by_alias=True, by_name=False)
    except ValidationError as failure:
        problems += problems_of(document, model, failure)
    return None


def account_of(plain: Mapping[str, object], base: Path | None) -> tuple[str, str] | None:
    """The ledger and the data set in whose register the release is entered: of the document, or of this file."""
    name, ledger = plain.get("dataset"), plain.get("ledger")
    file = Dataset.named_file({"dataset": name}, base=base)
    if file is not None:
        named = Dataset.load(file)
        return None if named.ledger is None else (named.ledger, named.dataset)
    if not isinstance(name, str) or not isinstance(ledger, str):
        return None
    return (ledger if "://" in ledger else str(Path(base or "", ledger))), name


def _from_dataset(problems: list[Problem], document: YamlDocument, base: Path | None) -> tuple[Source | None, Schema]:
    """The table that a plan releases, from the data set that stands in the same file or that it names."""
    table = document.value.get("table")
    if table is not None and not isinstance(table, str):
        problems.append(document.problem(("table",), "must be one table: several cannot be released together yet"))
        return None, Schema(columns={})
    dataset = Dataset.from_document(document, base=base)
    try:
        return dataset.released_table(table)
    except SfumatoError as refusal:
        problems.append(document.problem(("table",) if table is not None else ("dataset",), str(refusal)))
    return None, Schema(columns={})
