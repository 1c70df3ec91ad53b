"""The data set document: tables, who the people are, columns, links, bounds, ledger, and how queries are answered.

One document describes the people and their data, once, for every command. Everything in it is declared by the owner and
therefore public, except where the data is; nothing is measured from the rows.

.. code-block:: yaml

    sfumato: 1
    dataset: hospital                 # the name budgets are kept under
    person: patients                  # `row`, a column, or a table whose rows are people
    ledger: ledger.db                 # SQLite file or postgresql:// address
    tables:
      patients:
        data: {file: patients.csv, delimiter: ";", encoding: latin-1}
        key: id
        columns:
          id:    {role: identifier}
          birth: {role: quasi, kind: date, domain: {first: 1900-01-01, last: 2026-12-31}}
      visits:
        data: visits.parquet
        links: {patient: patients}    # a person has many visits
        bounds: {rows: 3, groups: 2}  # of which so many count
        columns:
          patient: {role: identifier, kind: integer}
          ward:    {role: plain, kind: category, domain: {values: [east, west]}}
    public:
      wards: {data: wards.csv, key: [ward]}
    answering: {policy: differential-privacy, min_epsilon: 0.01}

A plan may stand in the same file (``models``, ``steps``, ...). The short form for one table leaves ``tables`` out:
``data``, ``unit`` (the person), ``bounds`` and ``columns`` then stand at the top.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    ValidationInfo,
    field_validator,
)

from sfumato.data.source import Source
from sfumato.data.url import is_url, parse_url
from sfumato.data.yaml_documents import YamlDocument, document_in, document_of, validated
from sfumato.dataset.column import Column, Role
from sfumato.dataset.data import Schema
from sfumato.dataset.part_column import PartColumn
from sfumato.errors import BadParameter, InvalidRecipe, UnknownPart
from sfumato.field_docs import DocumentedModel
from sfumato.params import Location, Part
from sfumato.registry import registry
from sfumato.wording import did_you_mean

PLAN_KEYS = ("title", "about", "seed", "order", "table", "models", "steps", "attacks", "measures", "limits", "study")
"""Keys of a plan of microdata, which may stand in the same file."""
_TABLE_KEYS = ("data", "key", "links", "bounds", "columns")
"""Keys of a table, which stand at the top of the short form."""
SHORT_KEYS = (*_TABLE_KEYS, "unit")
"""Keys of the short form that the full one has elsewhere."""


class _Declared(DocumentedModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Bounds(_Declared):
    """How much of one person counts. What is beyond is cut, so that guarantees about people hold."""

    rows: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """How many rows of one person count within one group."""
    groups: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """In how many groups one person counts."""
    typical_groups: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """In how many groups a person usually is; helps to choose how contributions are bounded."""


DeclaredColumn = Annotated[Column, BeforeValidator(lambda value: {"role": value} if isinstance(value, str) else value)]
"""A column; ``age: quasi`` is ``age: {role: quasi}``."""


class TableDeclaration(_Declared):
    """One private table."""

    data: Source
    """A file relative to this document, with its dialect, or a database URL."""
    key: str | None = None
    """The column whose values are unique. Needed for the table of people if others link to it."""
    links: dict[str, str] = {}
    """Columns that hold the key of another table, and that table."""
    bounds: Bounds = Bounds()
    """How much of one person counts."""
    columns: dict[str, DeclaredColumn] = {}
    """The columns by name. What is not declared is neither released nor answered about."""


class PublicSource(_Declared):
    """One public table, all of which anybody may see."""

    data: Source
    """A file relative to this document, with its dialect."""
    key: Annotated[tuple[str, ...], Field(min_length=1)]
    """The columns it is joined on; unique together."""
    columns: dict[str, DeclaredColumn] = {}
    """Kinds of its columns; found from its rows if left out, since they are public."""


class AnsweringPolicy(Part):
    """How an owner answers queries: the base of :class:`sfumato.query.policy.base.Policy`."""

    protection = "computation-driven"

    spends_budget: ClassVar[bool] = False
    """Whether each query brings its own cost and the ledger holds the budget (differential privacy)."""

    def table_problem(self) -> str:
        """Why these parameters cannot be used for a data set; empty if they can."""
        return ""

    @property
    def needs_sensitive(self) -> bool:
        """Whether the owner must declare sensitive columns."""
        return False


class PlanReader(Part):
    """Whatever has plans: the base of :class:`sfumato.api.kind.ReleaseKind`."""

    @classmethod
    def plan_models(cls) -> tuple[type[DocumentedModel], ...]:
        """The models of its plans, whose keys may stand in the same file as a data set."""
        return ()


def _policy(value: object, info: ValidationInfo) -> AnsweringPolicy | None:
    if isinstance(value, AnsweringPolicy) or value is None:
        return value
    if isinstance(value, str):
        value = {value: None}
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError("must be the name of one policy, alone or with its parameters")
    [(name, parameters)] = value.items()
    try:
        kind = registry("policy").get(name)
        assert issubclass(kind, AnsweringPolicy)
        if kind.spends_budget:
            if parameters:
                raise ValueError("each query brings its own cost and the ledger holds the budget; leave out parameters")
            return None
        policy = kind.build(parameters, base=(info.context or {}).get("base"))
    except (UnknownPart, BadParameter) as refusal:
        raise ValueError(str(refusal)) from None
    if problem := policy.table_problem():
        raise ValueError(f"{name}: {problem}")
    return policy


class Answering(_Declared):
    """How queries are answered."""

    policy: Annotated[InstanceOf[AnsweringPolicy] | None, BeforeValidator(_policy)] = None
    """A policy by its name, with parameters: ``{rounding: 5}``. Default: differential privacy (None in Python)."""
    min_epsilon: Annotated[float, Field(gt=0)] | None = None
    """The smallest epsilon of one query. Without it, queries at almost no cost tell their running time almost free."""
    repeated_queries: Literal["cached", "charged"] = "cached"
    """Whether a query that another analyst asked before is free. `charged`: it costs what a new one
    costs, from the same budgets, so that nobody learns from cost, rest or refusal what others asked."""
    response_interval: Annotated[float, Field(gt=0)] | None = None
    """Seconds. Answers and refusals come at multiples of it, which hides how long a run took."""
    parts: tuple[str, ...] = ()
    """Columns that split the people into disjoint parts, such as `[ward]`. A question whose condition says which part
    it reads is charged to that part, and the data set for its largest part only."""


def _check_parts(answering: Answering, tables: Mapping[str, TableDeclaration], person: str | None) -> None:
    """Parts have no person in common, whatever the data is."""
    if not answering.parts:
        return
    [table, *more] = tables.values()
    if answering.policy is not None:
        raise ValueError(f"policy {answering.policy.part_name()} has no budget, so no `answering.parts` share one")
    if more or person != "row":
        raise ValueError("`answering.parts` need `person: row`: a person with several rows could be in several parts")
    if table.data.is_database:
        raise ValueError("`answering.parts` need a file: in a database people may move to another part unnoticed")
    for name in answering.parts:
        column = table.columns.get(name)
        try:
            PartColumn.of(name, column or Column())
        except ValueError as problem:
            raise ValueError(f"`answering.parts: {name}` {problem}") from None


class Dataset(_Declared):
    """The whole document: a declaration, all of it public. :class:`sfumato.dataset.Data` holds the rows."""

    sfumato: Literal[1] = 1
    """Version of the document's language."""
    dataset: Annotated[str, Field(min_length=1)]
    """The name that budgets are kept under."""
    person: str | None = None
    """Whose privacy: ``row``, the column that identifies a person, or the table whose rows are people."""
    ledger: Location | None = None
    """Budgets: a SQLite file, relative to this document, or a postgresql:// address. Needed to answer queries."""
    version: str = ""
    """A name for the present state of tables in a database. Until it changes, repeated queries are answered as
    before, for free; files tell by themselves that they changed."""
    answering: Answering = Answering()
    """How queries are answered."""
    tables: Annotated[dict[str, TableDeclaration], Field(min_length=1)]
    """The private tables."""
    public: dict[str, PublicSource] = {}
    """The public tables."""

    @field_validator("answering", mode="before")
    @classmethod
    def _answered(cls, value: Any) -> Any:
        return Answering() if value is None else value

    @field_validator("tables", mode="after")
    @classmethod
    def _fit_together(cls, tables: dict[str, TableDeclaration], info: ValidationInfo) -> dict[str, TableDeclaration]:
        """Links lead to keys, somebody is the person, and the policy can answer about these tables."""
        for name, table in tables.items():
            for column, other in table.links.items():
                if other not in tables:
                    raise ValueError(f"`{name}.links.{column}`: no table `{other}`. {did_you_mean(other, tables)}")
                if tables[other].key is None:
                    raise ValueError(f"`{name}.links.{column}` leads to `{other}`, which declares no `key`")
        person, answering = info.data.get("person"), info.data.get("answering") or Answering()
        declared = {column for table in tables.values() for column in (*table.columns, table.key, *table.links)}
        if len(tables) > 1 and person in (None, "row"):
            raise ValueError("several tables need a `person`: a column that all of them have, or the table of people")
        if person not in (None, "row", *tables, *declared):
            raise ValueError(f"`person: {person}` is neither `row` nor a declared column nor a table")
        _check_parts(answering, tables, person)
        policy = answering.policy
        if policy is not None:
            if person != "row" or any(table.data.is_database for table in tables.values()):
                raise ValueError(f"policy {policy.part_name()} answers about one table in a file, with `person: row`")
            columns = [column for table in tables.values() for column in table.columns.values()]
            if policy.needs_sensitive and not any(column.role is Role.SENSITIVE for column in columns):
                raise ValueError(f"policy {policy.part_name()} needs a column with `role: sensitive`")
        return tables

    @classmethod
    def load(cls, path: str | Path) -> Dataset:
        """Read and check a document; every problem is told with its line."""
        document = document_in(path, kind="data set document", fix="`sfumato init FILE` writes one.")
        return cls.from_document(document, base=Path(path).parent)

    @classmethod
    def parse(
        cls, text: str | Mapping[str, object], *, base: Path | None = None, source: str = "data set document"
    ) -> Dataset:
        """A data set from YAML text or from plain data; ``base`` is the folder that paths in it start from."""
        return cls.from_document(document_of(text, source=source), base=base)

    @classmethod
    def from_document(cls, document: YamlDocument, *, base: Path | None = None) -> Dataset:
        """A data set from a parsed document, in its full or its short form. The keys of a plan are left alone."""
        plain = document.value
        if not isinstance(plain, dict):
            problem = document.problem((), "a data set document is a mapping that starts with `sfumato: 1`")
            raise InvalidRecipe([problem], source=document.source)
        if plain.get("sfumato") != 1:
            problem = document.problem(("sfumato",), "the first key must be `sfumato: 1`, the version of the language")
            raise InvalidRecipe([problem], source=document.source)
        file = cls.named_file(plain, base=base)
        if file is not None:
            return cls.load(file)
        plain = cls._without_plan(plain)
        moved: dict[tuple[str, ...], tuple[str, ...]] = {}
        if "tables" not in plain and ("data" in plain or "columns" in plain):
            plain, moved = _in_full(plain)
        return validated(cls, replace(document, value=plain, moved=moved), base=base)

    @classmethod
    def named_file(cls, plain: Mapping[str, object], *, base: Path | None) -> Path | None:
        """The document that a plan names; None where the data set stands in the same file."""
        name = plain.get("dataset")
        if "data" in plain or "columns" in plain or isinstance(plain.get("tables"), dict) or not isinstance(name, str):
            return None
        file = Path(base or "", name)
        return file if file.suffix.lower() in (".yaml", ".yml") else None

    @classmethod
    def _without_plan(cls, plain: Mapping[str, object]) -> dict[str, object]:
        """A document without the keys of a plan, of whichever kind, that stands in the same file."""
        kept = {key: value for key, value in plain.items() if key not in PLAN_KEYS}
        if isinstance(kept.get("tables"), list):  # tables to publish
            del kept["tables"]
        if not set(kept) <= {*cls.model_fields, *SHORT_KEYS}:
            for kind in registry("release-kind"):
                assert issubclass(kind, PlanReader)
                for model in kind.plan_models():
                    known = {*model.model_fields} - {*cls.model_fields, *SHORT_KEYS}
                    kept = {key: value for key, value in kept.items() if key not in known}
        return kept

    def unit(self, name: str) -> str | None:
        """The column of a table that says whose row it is; None where each row is a person.

        A table whose rows belong to nobody, or to several people, is refused by name.
        """
        table = self.tables[name]
        if self.person in (None, "row"):
            return None
        if self.person == name:
            return table.key  # unique by declaration; what is not is cut at the bounds
        if self.person in self.tables:
            links = [column for column, other in table.links.items() if other == self.person]
            if len(links) == 1:
                return links[0]
            about = "several people" if links else "nobody whom this document knows"
            raise BadParameter(
                f"A row of table `{name}` is about {about}.",
                fix=f"Only `{self.person}` and tables with one link to it can be used here.",
                table=name,
            )
        if self.person not in (*table.columns, table.key, *table.links):
            raise BadParameter(
                f"Table `{name}` has no column `{self.person}`, so nobody knows whose its rows are.",
                fix="Declare the column, or make `person` a table and link to it.",
                table=name,
            )
        return self.person

    @property
    def privacy_unit(self) -> str:
        """The privacy unit as the ledger names it: ``row``, or the columns that identify a person in the tables."""
        if self.person not in self.tables:
            return self.person or "row"
        people = self.person
        owned = [name for name, table in self.tables.items() if list(table.links.values()).count(people) == 1]
        columns = {self.unit(name) for name in (people, *owned)}
        return ", ".join(sorted(column for column in columns if column is not None)) or "row"

    def table_name(self, name: str | None = None) -> str:
        """The one table that a plan is about: the one it names, or else the table of people."""
        if name is None:
            name = self.person if self.person in self.tables else next(iter(self.tables))
            if len(self.tables) > 1 and name != self.person:
                raise BadParameter(
                    "The data set has several tables, and a plan releases one.",
                    fix=f"Add `table:` with one of {', '.join(self.tables)}.",
                )
        assert name is not None
        if name not in self.tables:
            raise BadParameter(f"The data set has no table `{name}`.", fix=did_you_mean(name, self.tables))
        return name

    def released_table(self, name: str | None = None) -> tuple[Source, Schema]:
        """Source and schema of the one table that a plan releases."""
        name = self.table_name(name)
        table, own = self.tables[name], name == self.person
        schema = Schema(
            columns=table.columns, unit=None if own else self.unit(name), key=table.key if own else None,
            person=None if self.person is None else self.privacy_unit, max_rows=table.bounds.rows,
        )  # fmt: skip
        return table.data, schema


def _in_full(plain: Mapping[str, object]) -> tuple[dict[str, object], dict[tuple[str, ...], tuple[str, ...]]]:
    """The short form written out, and where its keys stood: one table at the top, with ``unit`` for the person."""
    rest = {key: value for key, value in plain.items() if key not in (*_TABLE_KEYS, "unit")}
    data = plain.get("data")
    location = data.get("file", data.get("url")) if isinstance(data, dict) else data
    name = rest.get("dataset") if isinstance(rest.get("dataset"), str) else sql_name(str(location or "data"))
    table = {key: plain[key] for key in _TABLE_KEYS if key in plain}
    moved: dict[tuple[str, ...], tuple[str, ...]] = {("tables", str(name), key): (key,) for key in _TABLE_KEYS}
    moved[("tables",)] = ()
    if "unit" in plain:
        rest["person"] = plain["unit"]
        moved[("person",)] = ("unit",)
    return {**rest, "dataset": name, "tables": {str(name): table}}, moved


def sql_name(location: str) -> str:
    """A name for a table or a data set that needs no quotes in SQL, from its file or database URL.

    >>> sql_name("data/People 2024.csv"), sql_name("postgresql://ana@host/base?table=health.visits")
    ('people_2024', 'visits')
    """
    if is_url(location):
        address = parse_url(location)
        stem = (address.table or address.name).rpartition(".")[2].rpartition("/")[2]
    else:
        stem = Path(location.partition("?")[0].removesuffix(".gz")).stem
    plain = re.sub(r"\W+", "_", stem).strip("_").lower() or "data"
    return plain if plain[0].isalpha() else f"t_{plain}"
