"""Propose a recipe for a graph: columns, a model and a step, with how many people its degrees single out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from sfumato.data.url import is_url
from sfumato.data.yaml_documents import yaml_flow, yaml_scalar
from sfumato.dataset import Role
from sfumato.graphs.read_graph import Relations, edge_table, graph_from_tables
from sfumato.graphs.signatures import colours, unique_share
from sfumato.profiling import propose

_KNOWN = ("degree", "neighbours' degrees", "two hops")


@dataclass(frozen=True, kw_only=True)
class GraphProposal:
    """A recipe for a graph, and the share of people whom each kind of knowledge singles out."""

    text: str
    nodes: int
    edges: int
    unique: dict[str, float]


def propose_graph(edges: Sequence[str], *, nodes: str | None = None, k: int, folder: Path = Path()) -> GraphProposal:
    """Read the tables of a graph and write a recipe for it, whose paths are relative to ``folder``."""
    tables = [edge_table(edge) for edge in edges]
    extra = list(dict.fromkeys(name for table in tables for name in table.columns[2:]))
    relations: Relations | None = "merge" if len(tables) > 1 else None
    graph = graph_from_tables(tables, nodes=nodes, relations=relations, edge_columns=dict.fromkeys(extra, "drop"))
    lines = ["sfumato: 1", "graph:", f"  edges: {yaml_flow([_beside(edge, folder) for edge in edges])}"]
    if relations:
        lines += ["  relations: merge  # keep: also release by which of the tables two people are linked"]
    if extra:
        lines += ["  edge_columns:  # drop, keep, {bands: [5, 20]} for numbers, {dates: year} for dates"]
        lines += [f"    {yaml_scalar(name)}: drop" for name in extra]
    table = False
    if nodes is not None:
        lines += [f"  nodes: {yaml_scalar(_beside(nodes, folder))}", f"  key: {yaml_scalar(graph.nodes.columns[0])}"]
        columns, table = _columns(graph.nodes.drop(graph.nodes.columns[0]))
        lines += columns
    models, steps = (["k-anonymity"], ["mondrian"]) if table else ([], [])
    lines += [f"models: {yaml_flow([*({name: k} for name in models), {'k-degree-anonymity': k}])}"]
    lines += [f"steps: {yaml_flow([*steps, {'anonymize-degrees': k}])}"]
    lines += ["# attacks and measures: all that fit, unless some are listed", "# limits: {risk: 0.09, link: 0.2}"]
    unique = {name: unique_share(colours(graph, depth)) for depth, name in enumerate(_KNOWN)}
    return GraphProposal(text="\n".join(lines) + "\n", nodes=graph.size, edges=graph.edge_count, unique=unique)


def _columns(frame: pl.DataFrame) -> tuple[list[str], bool]:
    """Proposed roles of the node table's columns, each with its reason, and whether there are quasi-identifiers."""
    if not frame.width:
        return [], False
    proposal = propose(frame)
    lines = ["columns:"] + [
        f"  {yaml_scalar(column.name)}: {column.role.value}  # {' '.join(column.reason.split())}"
        for column in proposal.columns
    ]
    return lines, any(column.role is Role.QUASI for column in proposal.columns)


def _beside(file: str, folder: Path) -> str:
    return file if is_url(file) else Path(os.path.relpath(file, folder)).as_posix()
