"""Recipes for graphs: a recipe with a key ``graph``, which names edge tables and a node table.

Models, steps, attacks and measures for graphs stand in the same lists as those for tables. Parts for graphs apply to
the edges, parts for tables to the node table, whose roles stand in ``columns``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema, model_validator

from sfumato.attacks.graph._base import GraphAttack
from sfumato.data.yaml_documents import YamlDocument, document_in, document_of, problems_of, yaml_text
from sfumato.dataset.document import Dataset
from sfumato.errors import InvalidRecipe, Problem, SfumatoError
from sfumato.field_docs import DocumentedModel
from sfumato.graphs.base import GraphMethod, GraphModel
from sfumato.graphs.edge_columns import DateUnit, check_declaration
from sfumato.graphs.graph import Graph
from sfumato.graphs.read_graph import Fault, Relations, as_graph, declared_graph, graph_from_tables
from sfumato.measures.graph._base import GraphMeasure
from sfumato.params import Location, Part
from sfumato.recipe.recipe import Limits, Recipe
from sfumato.recipe.validate import SECTIONS, account_of, recipe_from_document
from sfumato.registry import registry
from sfumato.wording import did_you_mean

_FILES = {"type": "string", "minLength": 1}


def _edges(value: object) -> object:
    files = [value] if isinstance(value, str) else list(value.values()) if isinstance(value, dict) else value
    if not isinstance(files, list | tuple) or not files or not all(isinstance(file, str) for file in files):
        raise ValueError("must be a file name, a list of them, or relations with their files: {friends: friends.csv}")
    return {str(name): file for name, file in value.items()} if isinstance(value, dict) else files


def _declared(value: object) -> object:
    if wrong := check_declaration(value):
        raise ValueError(wrong)
    return value


_EdgeColumn = Annotated[
    Literal["drop", "keep"]
    | Annotated[dict[Literal["bands"], Annotated[list[int | float], Field(min_length=1)]], Field(min_length=1)]
    | Annotated[dict[Literal["dates"], DateUnit], Field(min_length=1)],
    BeforeValidator(_declared),
]


def _undirected(value: object) -> object:
    if value not in (None, "drop"):
        raise ValueError(
            "can only be `drop`: directed graphs are not released, two nodes are linked in either direction"
        )
    return value


def _text_keys(value: object) -> object:
    return {str(name): item for name, item in value.items()} if isinstance(value, dict) else value


class GraphSource(DocumentedModel):
    """Edge tables and node table of a graph."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={
            "if": {
                "properties": {
                    "edges": {"anyOf": [{"type": "array", "minItems": 2}, {"type": "object", "minProperties": 2}]}
                }
            },
            "then": {"required": ["relations"]},
        },
    )

    edges: Annotated[
        dict[str, Location] | tuple[Location, ...],
        BeforeValidator(_edges),
        WithJsonSchema(
            {
                "anyOf": [
                    _FILES,
                    {"type": "array", "items": _FILES, "minItems": 1},
                    {"type": "object", "additionalProperties": _FILES, "minProperties": 1},
                ]
            }
        ),
    ]
    """Edge tables: a file, a list of files with one relation each, or files by the names of their relations."""
    nodes: Location | None = None
    """The node table; without it, the nodes are those with an edge."""
    key: str | None = None
    """Column of the node table that names the node; the first one if left out."""
    source: str | None = None
    """Column of the edge tables that names one end; the first one if left out."""
    target: str | None = None
    """Column of the edge tables that names the other end; the second one if left out."""
    drop: tuple[Fault, ...] = ()
    """Faults that are left out instead of refused: ``self-loops``, ``duplicates``, ``dangling``."""
    relations: Relations | None = None
    """Whether relations are released; required if there are several edge tables. `merge` releases that two people are
    linked, `keep` also by which relation."""
    edge_columns: Annotated[dict[str, _EdgeColumn], BeforeValidator(_text_keys)] = {}
    """What is released of each further column of the edge tables."""
    directions: Annotated[Literal["drop"] | None, BeforeValidator(_undirected)] = None
    """``drop`` if edges have a direction, which is not released."""

    @model_validator(mode="after")
    def _relations_of_several(self) -> Self:
        if len(self.edges) > 1 and self.relations is None:
            raise ValueError(
                "`relations` is required for several edge tables: `merge` releases that two people are linked,"
                " `keep` also by which"
            )
        return self

    def read(self) -> Graph:
        """Read the tables."""
        return graph_from_tables(
            self.edges,
            nodes=self.nodes,
            key=self.key,
            source=self.source,
            target=self.target,
            drop=self.drop,
            relations=self.relations,
            edge_columns=self.edge_columns,
            directions=self.directions,
        )

    def read_declared(self) -> Graph:
        """Read who is linked for statistics with a guarantee. Values and relations of edges are not used."""
        files = tuple(self.edges.values()) if isinstance(self.edges, dict) else self.edges
        return declared_graph(files, nodes=self.nodes, key=self.key, source=self.source, target=self.target)

    def of(self, graph: Any) -> Graph:
        """A graph in memory, read with the same declarations."""
        return as_graph(graph, drop=self.drop, edge_columns=self.edge_columns, directions=self.directions)

    def to_dict(self) -> dict[str, Any]:
        """The section ``graph`` of a recipe."""
        plain = self.model_dump(mode="json", exclude_defaults=True)
        if isinstance(self.edges, tuple) and len(self.edges) == 1:
            plain["edges"] = self.edges[0]
        return plain


@dataclass(frozen=True, kw_only=True)
class GraphRecipe:
    """What is done to the edges of a graph and to its node table, and what must hold afterwards."""

    release_kind: ClassVar[str] = "graph"

    graph: GraphSource
    steps: Sequence[GraphMethod] = ()
    models: Sequence[GraphModel] = ()
    attacks: Sequence[GraphAttack] = ()
    measures: Sequence[GraphMeasure] = ()
    limits: Limits = field(default_factory=Limits)
    seed: int | None = None
    title: str | None = None
    table: Recipe | None = None
    """Roles, models, steps and attacks of the node table; None if only the edges are released."""
    account: tuple[str, str] | None = field(default=None, compare=False)
    """The ledger, and the data set in it, in whose register the release is entered."""
    path: Path | None = field(default=None, compare=False)

    @classmethod
    def load(cls, path: str | Path) -> GraphRecipe:
        """Read and validate a recipe file; all its problems are reported at once, with line numbers."""
        document = document_in(path, kind="recipe", fix="`sfumato init --edges FILE` writes one.")
        return replace(cls.from_document(document, base=Path(path).parent), path=Path(path))

    @classmethod
    def parse(cls, document: str | Mapping[str, object], *, base: Path | None = None) -> GraphRecipe:
        """A recipe from YAML text or from plain data."""
        return cls.from_document(document_of(document, source="recipe"), base=base)

    @classmethod
    def from_document(cls, document: YamlDocument, *, base: Path | None = None) -> GraphRecipe:
        """A recipe from a parsed document."""
        return _from_document(document, base)

    def to_dict(self) -> dict[str, Any]:
        """The recipe as plain data; ``GraphRecipe.parse`` gives it back."""
        plain: dict[str, object] = {"sfumato": 1, **({"title": self.title} if self.title else {})}
        plain |= {"graph": self.graph.to_dict(), **({"seed": self.seed} if self.seed is not None else {})}
        table = self.table.to_dict() if self.table is not None else {}
        if table:
            plain["columns"] = table["columns"]
        for section in SECTIONS:
            parts: Sequence[Part] = getattr(self, section)
            plain[section] = [*table.get(section, ()), *({part.part_name(): part.to_dict()} for part in parts)]
        return {**plain, **({"limits": self.limits.items()} if self.limits.items() else {})}

    def draws(self) -> dict[str, Any]:
        """What decides about the released edges and nodes: all but the seed, and how the release is judged."""
        judged = ("title", "seed", "attacks", "measures", "limits")
        plain = {key: value for key, value in self.to_dict().items() if key not in judged}
        plain["graph"] = {key: value for key, value in plain["graph"].items() if key not in ("edges", "nodes")}
        return {"recipe": plain, "nodes": self.table.draws() if self.table is not None else None}

    def to_yaml(self) -> str:
        """The recipe as a YAML document."""
        return yaml_text(self.to_dict())


def _from_document(document: YamlDocument, base: Path | None) -> GraphRecipe:
    plain = document.value
    if not isinstance(plain, dict) or not isinstance(plain.get("graph"), dict):
        problem = document.problem(("graph",), "must name the edges: `graph: {edges: friends.csv}`")
        raise InvalidRecipe([problem], source=document.source)
    problems: list[Problem] = []
    named = Dataset.named_file(plain, base=base)
    source = _source(document, plain["graph"], base, problems, None if named is None else Dataset.load(named))
    if "data" in plain:
        problems.append(document.problem(("data",), "is for tables; the files of a graph stand in `graph`"))
    parts, tables = _parts(document, plain, problems)
    rest = {key: value for key, value in plain.items() if key != "graph"} | tables
    has_table = "columns" in plain or (named is not None and "table" in plain)
    if not has_table:
        rest.pop("dataset", None)
        rest["columns"] = {"node": "identifier"}
        for section, kept in tables.items():
            for item in kept:
                name = item if isinstance(item, str) else next(iter(item), "")
                known = registry(f"graph-{SECTIONS[section]}").names()
                problems.append(
                    document.problem(
                        (section,),
                        f"`{name}` is not for edges, and there are no `columns`. {did_you_mean(str(name), known)}",
                    )
                )
        rest |= {section: [] for section in SECTIONS}
    try:
        table = recipe_from_document(replace(document, value=rest), base=base)
    except InvalidRecipe as failure:
        raise InvalidRecipe([*problems, *failure.problems], source=document.source) from None
    if problems or source is None:
        raise InvalidRecipe(problems, source=document.source)
    return GraphRecipe(
        graph=source,
        **parts,
        limits=table.limits,
        seed=table.seed,
        title=table.title,
        table=replace(table, limits=Limits(), seed=None, order="kept") if has_table else None,
        account=account_of(plain, base),
    )


def _from_tables(
    document: YamlDocument, value: Mapping[str, object], dataset: Dataset, problems: list[Problem]
) -> Mapping[str, object]:
    """The section ``graph`` with the files of tables that it names: a graph is a table with two links to people."""
    people = dataset.tables.get(dataset.person or "")
    if people is None or people.key is None:
        words = "a graph of a data set needs a table of people with a key: `person: patients`"
        problems.append(document.problem(("dataset",), words))
        return value
    for key in ("nodes", "key", "source", "target"):
        if key in value:
            problems.append(document.problem(("graph", key), "comes from the data set; leave it out"))
    edges = value.get("edges")
    listed = {edges: edges} if isinstance(edges, str) else edges
    if isinstance(listed, list):
        listed = {str(name): name for name in listed}
    if not isinstance(listed, dict):
        return value
    ends: set[tuple[str, ...]] = set()
    for name in listed.values():
        table = dataset.tables.get(str(name))
        links = () if table is None else tuple(c for c, other in table.links.items() if other == dataset.person)
        ends.add(links)
        if len(links) != 2:
            two = [n for n, one in dataset.tables.items() if list(one.links.values()).count(dataset.person or "") == 2]
            words = f"`{name}` is no table with two links to `{dataset.person}`. {did_you_mean(str(name), two)}"
            problems.append(document.problem(("graph", "edges"), words))
    if len(ends) > 1:
        problems.append(document.problem(("graph", "edges"), "the links of several tables need the same names"))
    if problems:
        return value
    [(source, target)] = ends
    files = {name: dataset.tables[str(table)].data.address for name, table in listed.items()}
    given = next(iter(files.values())) if isinstance(edges, str) else files
    nodes = {"nodes": people.data.address, "key": people.key, "source": source, "target": target}
    return {**value, "edges": given, **nodes}


def _source(
    document: YamlDocument, value: Mapping[str, Any], base: Path | None, problems: list[Problem],
    dataset: Dataset | None,
) -> GraphSource | None:  # fmt: skip
    if dataset is not None:
        before = len(problems)
        value, base = _from_tables(document, value, dataset, problems), None
        if len(problems) > before:
            return None
    try:
        return GraphSource.model_validate(value, context={"base": base})
    except ValidationError as failure:
        problems += problems_of(document, GraphSource, failure, inside=("graph",))
    return None


def _parts(
    document: YamlDocument, plain: Mapping[str, object], problems: list[Problem]
) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """The parts for graphs, built, and the entries that are left for the node table."""
    parts: dict[str, Any] = {}
    tables: dict[str, list[Any]] = {}
    for section, kind in SECTIONS.items():
        mine: list[Part] = []
        left: list[object] = []
        listed = plain.get(section) or []
        for index, item in enumerate(listed if isinstance(listed, list) else []):
            name, setting = (item, None) if isinstance(item, str) else next(iter(dict(item).items()), ("", None))
            if name in registry(f"graph-{kind}"):
                try:
                    mine.append(registry(f"graph-{kind}").get(str(name)).build(setting))
                except SfumatoError as refusal:
                    problems.append(document.problem((section, index, name), str(refusal)))
            else:
                left.append(item)
        parts[section], tables[section] = tuple(mine), left
    return parts, tables
