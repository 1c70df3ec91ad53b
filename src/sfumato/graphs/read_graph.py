"""Read a graph: edge tables and a node table from files or frames, networkx graphs, scipy.sparse matrices.

Self-loops, duplicate edges and edges to unknown nodes are refused unless ``drop`` names them: each is more often a
mistake of an export than something to leave out silently. Errors count them and never show a name.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import polars as pl

from sfumato.data import read
from sfumato.data.url import file_and_options
from sfumato.errors import BadParameter, DuplicateColumns, InvalidGraph, UnknownColumn
from sfumato.graphs.graph import Graph, Ints, edge_keys
from sfumato.memory import require_memory
from sfumato.wording import counted, did_you_mean

__all__ = ["Fault", "as_graph", "graph_from_tables"]

Fault = Literal["self-loops", "duplicates", "dangling"]
"""What an edge table may contain and a graph may not."""
_GROWTH = 12
"""Memory that reading and coding an edge file takes, as a multiple of its size; measured on CSV and Parquet files."""
_FIX = {
    "self-loops": "Remove edges from a node to itself, or drop them with `drop: [self-loops]`.",
    "duplicates": "Name each pair once, in one direction, or merge them with `drop: [duplicates]`.",
    "dangling": "Add the missing nodes to the node table, or leave these edges out with `drop: [dangling]`.",
}


def as_graph(source: Any, *, drop: Collection[Fault] = ()) -> Graph:
    """A graph from a :class:`Graph`, a networkx or igraph graph, a scipy.sparse matrix, an edge table or its file.

    Directions, weights and parallel relations of networkx and igraph graphs are ignored.

    >>> as_graph(pl.DataFrame({"source": ["Ann", "Ben"], "target": ["Ben", "Cem"]}))
    <Graph: 3 nodes, 2 edges>
    """
    if isinstance(source, Graph):
        return source
    if hasattr(source, "nodes") and hasattr(source, "edges"):
        return _from_networkx(source, drop)
    if hasattr(source, "get_edgelist") and hasattr(source, "vcount"):
        frame = pl.DataFrame({"node": range(source.vcount())})
        frame = frame.with_columns(pl.Series(name, source.vs[name]) for name in source.vs.attributes())
        ends = np.asarray(source.get_edgelist(), dtype=np.int64).reshape(-1, 2)
        return _checked(ends, np.zeros(len(ends), dtype=bool), frame, drop)
    if hasattr(source, "tocoo"):
        entries = source.tocoo()
        if entries.shape[0] != entries.shape[1]:
            raise BadParameter("An adjacency matrix is square.")
        there = np.asarray(entries.data) != 0
        ends = np.column_stack([entries.row[there], entries.col[there]]).astype(np.int64)
        backward = ends[:, 0] > ends[:, 1]
        keys = edge_keys(ends[:, 0], ends[:, 1], entries.shape[0])
        both = np.isin(keys, keys[~backward])
        ends = ends[~(backward & both)]  # a symmetric matrix holds every edge twice
        nodes = pl.DataFrame({"node": np.arange(entries.shape[0])})
        return _checked(ends, np.zeros(len(ends), dtype=bool), nodes, drop)
    return graph_from_tables([source], drop=drop)


def graph_from_tables(
    edges: Sequence[Any],
    *,
    nodes: Any = None,
    key: str | None = None,
    source: str | None = None,
    target: str | None = None,
    drop: Collection[Fault] = (),
) -> Graph:
    """A graph from edge tables (one per relation) and a node table.

    ``source`` and ``target`` are the columns of the edge tables that name the two nodes (default: the first two),
    ``key`` is the column of the node table that names the node (default: the first). Without a node table, the nodes
    are those with an edge. Two nodes are linked if any edge table links them; an edge that two tables contain is not a
    duplicate. Weights, times and directions are not kept.
    """
    wrong = [name for name in drop if name not in get_args(Fault)]
    if wrong:
        raise BadParameter(f"`{wrong[0]}` cannot be dropped.", fix=did_you_mean(wrong[0], get_args(Fault)))
    tables = [_pairs(_frame(table), source, target) for table in edges]
    if not tables:
        raise BadParameter("A graph needs at least one edge table.")
    if nodes is None:
        names = pl.concat([column for pair in tables for column in pair]).unique().sort()
        frame = pl.DataFrame({"node": names})
        key = "node"
    else:
        frame = _frame(nodes)
        key = frame.columns[0] if key is None else key
        if key not in frame.columns:
            raise UnknownColumn(f"The node table has no column `{key}`.", fix=did_you_mean(key, frame.columns))
        names = frame[key].cast(pl.String)
        frame = frame.select(key, pl.exclude(key))
    if names.null_count() or names.n_unique() != len(names):
        raise InvalidGraph(
            f"The column `{key}` of the node table has blanks or names a node twice.",
            fix="Name every node once: the key of the node table must be unique.",
        )
    place = pl.DataFrame({"name": names, "number": pl.Series(range(len(names)), dtype=pl.Int64)})
    whole: list[Ints] = []
    missing: list[Any] = []
    seen = np.empty(0, dtype=np.int64)
    for pair in tables:
        columns = [_numbers(column, place) for column in pair]
        ends = np.column_stack([column.fill_null(-1).to_numpy() for column in columns]).astype(np.int64)
        unknown = (ends[:, 0] < 0) | (ends[:, 1] < 0)
        known = edge_keys(ends[:, 0], ends[:, 1], len(names))
        again = np.isin(known, seen) & ~unknown  # the same two people in another relation
        seen = np.concatenate([seen, known[~unknown]]) if len(tables) > 1 else seen
        whole.append(ends[~again])
        missing.append(unknown[~again])
    return _checked(np.concatenate(whole), np.concatenate(missing), frame, drop)


def _numbers(column: pl.Series, place: pl.DataFrame) -> pl.Series:
    named = pl.DataFrame({"name": column})
    return named.join(place, on="name", how="left", maintain_order="left")["number"]


def _frame(source: Any) -> pl.DataFrame:
    if isinstance(source, str | Path) and "://" not in str(source):
        file = Path(file_and_options(source)[0])
        if file.is_file():
            require_memory(_GROWTH * file.stat().st_size, f"Reading the edge or node table {file.name}")
    return read(source).frame


def _pairs(frame: pl.DataFrame, source: str | None, target: str | None) -> tuple[pl.Series, pl.Series]:
    """The names of the two nodes of every edge, as text: `7` in one file is `7` in the other."""
    if frame.width < 2:
        raise InvalidGraph("An edge table has two columns that name the linked nodes; this one has one column.")
    first, second = source or frame.columns[0], target or frame.columns[1]
    for name in (first, second):
        if name not in frame.columns:
            raise UnknownColumn(f"The edge table has no column `{name}`.", fix=did_you_mean(name, frame.columns))
    if first == second:
        raise DuplicateColumns(f"Source and target of the edges are both `{first}`.")
    ends = frame[first].cast(pl.String), frame[second].cast(pl.String)
    blank = int((ends[0].is_null() | ends[1].is_null()).sum())
    if blank:
        raise InvalidGraph(f"{counted(blank, 'edge')} without a name of a node in `{first}` or `{second}`.")
    return ends


def _from_networkx(source: Any, drop: Collection[Fault]) -> Graph:
    names = list(source.nodes)
    place = {name: number for number, name in enumerate(names)}
    found = {tuple(sorted((place[a], place[b]))) for a, b in source.edges()}
    attributes = [dict(source.nodes[name]) for name in names]
    columns = sorted({key for held in attributes for key in held if key != "node"}, key=str)
    frame = pl.DataFrame(
        {
            "node": pl.Series([str(name) for name in names], dtype=pl.String),
            **{str(key): pl.Series([held.get(key) for held in attributes], strict=False) for key in columns},
        }
    )
    ends = np.array(sorted(found), dtype=np.int64).reshape(-1, 2)
    return _checked(ends, np.zeros(len(ends), dtype=bool), frame, drop)


def _checked(ends: Ints, unknown: Any, nodes: pl.DataFrame, drop: Collection[Fault]) -> Graph:
    """Refuse or drop what is not allowed; each fault is counted."""
    loops = (ends[:, 0] == ends[:, 1]) & ~unknown
    sound = ~unknown & ~loops
    keys = edge_keys(ends[:, 0], ends[:, 1], nodes.height)
    keys[~sound] = -1 - np.arange(int((~sound).sum()))
    first = np.zeros(len(keys), dtype=bool)
    first[np.unique(keys, return_index=True)[1]] = True
    faults: dict[Fault, tuple[int, str]] = {
        "dangling": (int(unknown.sum()), "to or from a node that is not in the node table"),
        "self-loops": (int(loops.sum()), "from a node to itself"),
        "duplicates": (int((~first).sum()), "that the table names again, in the same or the other direction"),
    }
    found = [(name, number, words) for name, (number, words) in faults.items() if number and name not in drop]
    if found:
        raise InvalidGraph(
            "The edges are not those of a simple graph: "
            + "; ".join(f"{counted(number, 'edge')} {words} ({name})" for name, number, words in found)
            + ".",
            fix=" ".join(_FIX[name] for name, _, _ in found),
            **{name.replace("-", "_"): number for name, number, _ in found},
        )
    return Graph.of(ends[sound & first], size=nodes.height, nodes=nodes)
