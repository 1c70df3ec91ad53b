"""From plain data to a :class:`Recipe`: every problem is collected, none stops the search for the others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from sfumato.data.source import Source
from sfumato.data.yaml_documents import YamlDocument, parse_yaml, refuse_other_kind
from sfumato.dataset import Column, Schema
from sfumato.dataset.document import PLAN_KEYS, Bounds, Dataset
from sfumato.errors import InvalidRecipe, Problem, SfumatoError
from sfumato.params import Part, key_path, percent_hint, plain_message
from sfumato.recipe.about import AboutRelease
from sfumato.recipe.recipe import VERSION, Accepted, Limits, Recipe
from sfumato.registry import registry
from sfumato.wording import did_you_mean, with_article

M = TypeVar("M", bound=BaseModel)
Path_ = tuple[str | int, ...]

SECTIONS: dict[str, str] = {"models": "model", "steps": "method", "attacks": "attack", "measures": "measure"}
"""The lists of parts in a recipe, and the registry each draws from."""

KEYS = ("sfumato", "title", "about", "data", "seed", "unit", "order", "columns", *SECTIONS, "limits")
"""Every key of a short recipe, in the order it is best read."""
_DATASET = tuple(Dataset.model_fields)
"""Keys of the data set document, which may stand in the same file."""


class _Collector:
    def __init__(self, document: YamlDocument, base: Path | None) -> None:
        self.document = document
        self.base = base
        self.problems: list[Problem] = []

    def add(self, path: Path_, message: str) -> None:
        self.problems.append(self.document.problem(path, message))

    def model(self, kind: type[M], value: object, path: Path_) -> M | None:
        try:
            return kind.model_validate(value, context={"base": self.base})
        except ValidationError as failure:
            for error in failure.errors():
                self.add((*path, *key_path(error)), plain_message(error, kind))
        except SfumatoError as refusal:
            self.add(path, str(refusal))
        return None

    def part(self, kind: str, value: object, path: Path_) -> Part | None:
        """A part written as ``name``, ``{name: bare value}`` or ``{name: {parameter: value}}``."""
        if isinstance(value, str):
            name, setting = value, None
        elif isinstance(value, Mapping) and len(value) == 1:
            [(key, setting)] = value.items()
            name, path = str(key), (*path, str(key))
        else:
            self.add(
                path,
                f"{with_article(kind)} is written as its name, or as one name with parameters: {{name: {{...}}}}",
            )
            return None
        try:
            cls = registry(kind).get(name)
        except SfumatoError as refusal:
            self.add(path, str(refusal))
            return None
        return self.model(cls, setting, path)


def recipe_from_text(text: str, *, base: Path | None = None, source: str = "recipe") -> Recipe:
    """Parse YAML and validate it."""
    return recipe_from_document(parse_yaml(text, source=source), base=base)


def recipe_from_dict(document: Mapping[str, object], *, base: Path | None = None) -> Recipe:
    """Validate plain data (no line numbers then)."""
    return recipe_from_document(YamlDocument(value=dict(document), source="recipe"), base=base)


def recipe_from_document(
    document: YamlDocument, *, base: Path | None = None, other_keys: tuple[str, ...] = ()
) -> Recipe:
    """Validate a parsed document. ``other_keys`` are allowed at the top level and left to the caller."""
    collect = _Collector(document, base)
    plain = document.value
    if not isinstance(plain, dict):
        collect.add((), "a recipe is a mapping that starts with `sfumato: 1`")
        raise InvalidRecipe(collect.problems, source=document.source)
    short = "columns" in plain or not ({"tables", "dataset"} & set(plain))
    known = (*KEYS, "bounds", *_DATASET, *other_keys) if short else (*PLAN_KEYS, *_DATASET, *other_keys)
    if not {"columns", "tables", "dataset"} & set(plain):
        refuse_other_kind(document, known)
    for key in plain:
        if key not in known:
            collect.add((key,), "unknown key. " + did_you_mean(str(key), known))
    if plain.get("sfumato") != VERSION:
        collect.add(("sfumato",), f"the first key must be `sfumato: {VERSION}`, the version of the recipe language")
    if short:
        source, schema = _short_form(collect, plain)
    else:
        source, schema = _from_dataset(collect, document, base)
    columns = schema.columns
    parts: dict[str, list[Any]] = {}
    for section, kind in SECTIONS.items():
        listed = plain.get(section) or []
        if not isinstance(listed, list):
            collect.add((section,), f"must be a list of {kind}s")
            listed = []
        parts[section] = [collect.part(kind, item, (section, index)) for index, item in enumerate(listed)]
    limits = _limits(collect, plain.get("limits"))
    seed = plain.get("seed")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
        collect.add(("seed",), "must be a whole number, 0 or larger")
    order = plain.get("order", "shuffled")
    if order not in ("shuffled", "kept"):
        collect.add(("order",), "must be `shuffled` (default) or `kept`")
    title = plain.get("title")
    if title is not None and not isinstance(title, str):
        collect.add(("title",), "must be text")
    about = collect.model(AboutRelease, plain.get("about") or {}, ("about",)) or AboutRelease()
    for name in about.columns:
        if columns and name not in columns:
            collect.add(("about", "columns", name), "unknown column. " + did_you_mean(name, columns))
    if collect.problems:
        raise InvalidRecipe(collect.problems, source=document.source)
    return Recipe(
        schema=schema,
        models=tuple(parts["models"]),
        steps=tuple(parts["steps"]),
        attacks=tuple(parts["attacks"]),
        measures=tuple(parts["measures"]),
        limits=limits,
        source=source,
        seed=seed,
        order=order,
        title=title,
        about=about,
        account=account_of(plain, base),
    )


def account_of(plain: Mapping[str, Any], base: Path | None) -> tuple[str, str] | None:
    """The ledger and the data set in whose register the release is entered: of the document, or of this file."""
    name, ledger = plain.get("dataset"), plain.get("ledger")
    file = Dataset.named_file({"dataset": name}, base=base)
    if file is not None:
        named = Dataset.load(file)
        return None if named.ledger is None else (named.ledger, named.dataset)
    if not isinstance(name, str) or not isinstance(ledger, str):
        return None
    return (ledger if "://" in ledger else str(Path(base or "", ledger))), name


def _short_form(collect: _Collector, plain: Mapping[str, Any]) -> tuple[Source | None, Schema]:
    """One table and one release in one file."""
    columns = _columns(collect, plain.get("columns"))
    unit, data = plain.get("unit"), plain.get("data")
    if unit is not None and not isinstance(unit, str):
        collect.add(("unit",), "must be `row` or the name of the column that identifies a person")
    source = None if data is None else collect.model(Source, data, ("data",))
    bounds = collect.model(Bounds, plain.get("bounds") or {}, ("bounds",)) or Bounds()
    return source, Schema(columns=columns, unit=None if unit == "row" else unit, max_rows=bounds.rows)


def _from_dataset(collect: _Collector, document: YamlDocument, base: Path | None) -> tuple[Source | None, Schema]:
    """The table that a plan releases, from the data set that stands in the same file or that it names."""
    table = document.value.get("table")
    if table is not None and not isinstance(table, str):
        collect.add(("table",), "must be one table: several cannot be released together yet")
        return None, Schema(columns={})
    dataset = Dataset.from_document(document, base=base)
    try:
        return dataset.released_table(table)
    except SfumatoError as refusal:
        collect.add(("table",) if table is not None else ("dataset",), str(refusal))
    return None, Schema(columns={})


def _columns(collect: _Collector, value: object) -> dict[str, Column]:
    if not isinstance(value, dict) or not value:
        collect.add(("columns",), "must name the columns and their roles: `age: {role: quasi}`")
        return {}
    columns: dict[str, Column] = {}
    for name, setting in value.items():
        plain = {"role": setting} if isinstance(setting, str) else setting
        if isinstance(plain, dict) and "role" not in plain:
            collect.add(("columns", name, "role"), "is required")
        column = collect.model(Column, plain, ("columns", name))
        if column is not None:
            columns[str(name)] = column
    return columns


def _limits(collect: _Collector, value: object) -> Limits:
    if value is None:
        return Limits()
    if not isinstance(value, dict):
        collect.add(("limits",), "must be a mapping such as {risk: 0.09}")
        return Limits()
    known = Limits.names()
    shares: dict[str, float] = {}
    accepted = None
    for key, share in value.items():
        if key == "accepted":
            accepted = _accepted(collect, share)
        elif key not in known:
            collect.add(("limits", key), "unknown limit. " + did_you_mean(str(key), (*known, "accepted")))
        elif isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            collect.add(("limits", key), "must be a share between 0 and 1" + percent_hint(share))
        else:
            shares[known[key]] = share
    return Limits(**shares, accepted=accepted)


def _accepted(collect: _Collector, value: object) -> Accepted | None:
    texts = {key: text for key, text in value.items() if isinstance(text, str)} if isinstance(value, dict) else {}
    if not isinstance(value, dict) or set(texts) != set(value) or set(texts) != {"by", "reason"}:
        collect.add(("limits", "accepted"), "must name who accepts and why: {by: NAME, reason: TEXT}")
        return None
    if not all(text.strip() for text in texts.values()):
        collect.add(("limits", "accepted"), "must not be empty: name who accepts (by) and why (reason)")
        return None
    return Accepted(by=texts["by"].strip(), reason=texts["reason"].strip())
