"""Read a graph: edge tables and a node table from files or frames, networkx graphs, scipy.sparse matrices.

Self-loops, duplicate edges and edges to unknown nodes are refused unless ``drop`` names them: each is more often a
mistake of an export than something to leave out silently. For the same reason columns of edge tables, several relations
and directions need a declaration. Errors count and never show a name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import polars as pl

from sfumato.arrays import Ints
from sfumato.data import read
from sfumato.data.declared import column_names, read_declared
from sfumato.data.url import file_and_options, is_url
from sfumato.errors import BadParameter, DuplicateColumns, InvalidGraph, UnknownColumn
from sfumato.graphs.edge_columns import released_columns
from sfumato.graphs.edge_labels import labelled_graph
from sfumato.graphs.graph import Graph, edge_keys
from sfumato.memory import require_memory
from sfumato.wording import counted, did_you_mean

Fault = Literal["self-loops", "duplicates", "dangling"]
"""What an edge table may contain and a graph may not."""
Relations = Literal["merge", "keep"]
"""Several edge tables: release who is linked by any of them, or by which."""
_GROWTH = 12
"""Memory that reading and coding an edge file takes, as a multiple of its size; measured on CSV and Parquet files."""
_FIX = {
    "self-loops": "Remove edges from a node to itself, or drop them with `drop: [self-loops]`.",
    "duplicates": "Name each pair once, in one direction, or keep the first of them with `drop: [duplicates]`. "
    "If edges have a direction, `directions: drop` merges the two.",
    "dangling": "Add the missing nodes to the node table, or leave these edges out with `drop: [dangling]`.",
}
_DIRECTED = "Directed graphs are not released: methods, models and attacks are for undirected ones."


def as_graph(
    source: Any,
    *,
    drop: Collection[Fault] = (),
    edge_columns: Mapping[str, object] | None = None,
    directions: Literal["drop"] | None = None,
) -> Graph:
    """A graph from a :class:`Graph`, a networkx or igraph graph, a scipy.sparse matrix, an edge table or its file.

    ``edge_columns`` declares attributes of edges (see :mod:`~sfumato.graphs.edge_columns`); weights of a matrix are the
    attribute ``weight``. A directed graph is refused unless ``directions="drop"``.

    >>> as_graph(pl.DataFrame({"source": ["Ann", "Ben"], "target": ["Ben", "Cem"]}))
    <Graph: 3 nodes, 2 edges>
    """
    if isinstance(source, Graph):
        return source
    nodes, directed = None, False
    if hasattr(source, "nodes") and hasattr(source, "edges"):
        nodes, source, directed = *_networkx_tables(source), bool(source.is_directed())
    elif hasattr(source, "get_edgelist") and hasattr(source, "vcount"):
        nodes, source, directed = *_igraph_tables(source), bool(source.is_directed())
    elif hasattr(source, "tocoo"):
        nodes, source, directed = _matrix_tables(source)
    if directed and directions is None:
        raise InvalidGraph(
            _DIRECTED, fix='Pass directions="drop": two nodes are linked if one of them links the other.'
        )
    return graph_from_tables([source], nodes=nodes, drop=drop, edge_columns=edge_columns, directions=directions)


def _networkx_tables(source: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    nodes = pl.DataFrame({"node": [str(name) for name in source.nodes]}, schema={"node": pl.String})
    ends = [(str(a), str(b), dict(about)) for a, b, about in source.edges(data=True)]
    texts = {"source": [a for a, _, _ in ends], "target": [b for _, b, _ in ends]}
    edges = pl.DataFrame(texts, schema=dict.fromkeys(texts, pl.String))
    held = [dict(source.nodes[name]) for name in source.nodes]
    return _with_attributes(nodes, held), _with_attributes(edges, [about for _, _, about in ends])


def _with_attributes(frame: pl.DataFrame, held: Sequence[Mapping[object, object]]) -> pl.DataFrame:
    keys = sorted({str(key): key for about in held for key in about if str(key) not in frame.columns}.items())
    return frame.with_columns(pl.Series(text, [about.get(key) for about in held], strict=False) for text, key in keys)


def _igraph_tables(source: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    nodes = pl.DataFrame({"node": range(source.vcount())})
    nodes = nodes.with_columns(pl.Series(name, source.vs[name]) for name in source.vs.attributes())
    ends = np.asarray(source.get_edgelist(), dtype=np.int64).reshape(-1, 2)
    edges = pl.DataFrame({"source": ends[:, 0], "target": ends[:, 1]})
    return nodes, edges.with_columns(pl.Series(name, source.es[name]) for name in source.es.attributes())


def _matrix_tables(source: Any) -> tuple[pl.DataFrame, pl.DataFrame, bool]:
    """Nodes, edges and whether the matrix has directions: it is neither symmetric nor triangular."""
    entries = source.tocoo()
    if entries.shape[0] != entries.shape[1]:
        raise BadParameter("An adjacency matrix is square.")
    values = np.asarray(entries.data)
    rows = pl.DataFrame({"source": entries.row, "target": entries.col, "weight": values}).filter(values != 0)
    rows = rows.with_columns(pl.col("source", "target").cast(pl.Int64))
    backward = rows["source"] > rows["target"]
    low, high = pl.min_horizontal("source", "target"), pl.max_horizontal("source", "target")
    once = rows.select(low.alias("source"), high.alias("target"), "weight").unique(maintain_order=True)
    triangular = not backward.any() or backward.all()
    directed = not triangular and 2 * once.filter(pl.col("source") != pl.col("target")).height != (
        rows.filter(pl.col("source") != pl.col("target")).height
    )
    edges = rows if directed else once
    if values.dtype == np.bool_ or edges["weight"].n_unique() <= 1:
        edges = edges.drop("weight")
    return pl.DataFrame({"node": np.arange(entries.shape[0])}), edges, directed


def graph_from_tables(
    edges: Sequence[object] | Mapping[str, object],
    *,
    nodes: object = None,
    key: str | None = None,
    source: str | None = None,
    target: str | None = None,
    drop: Collection[Fault] = (),
    relations: Relations | None = None,
    edge_columns: Mapping[str, object] | None = None,
    directions: Literal["drop"] | None = None,
) -> Graph:
    """A graph from edge tables (one per relation) and a node table.

    ``source`` and ``target`` are the columns of the edge tables that name the two nodes (default: the first two),
    ``key`` is the column of the node table that names the node (default: the first). Without a node table, the nodes
    are those with an edge. ``edge_columns`` declares every other column of the edge tables. With several edge tables,
    ``relations`` says whether it is released which of them link two nodes (``keep``), or only that one does
    (``merge``); relations are named by the keys of a mapping, or by their files. ``directions="drop"`` merges an edge
    and its opposite.
    """
    wrong = [name for name in drop if name not in get_args(Fault)]
    if wrong:
        raise BadParameter(f"`{wrong[0]}` cannot be dropped.", fix=did_you_mean(wrong[0], get_args(Fault)))
    named = _named(edges)
    if not named:
        raise BadParameter("A graph needs at least one edge table.")
    if len(named) > 1 and relations is None:
        raise BadParameter(
            f"There are {len(named)} edge tables, and it is not said whether their relations are released.",
            fix="`relations: merge` releases that two people are linked, `relations: keep` also by which tables.",
        )
    told = edge_columns or {}
    if len(named) > 1 and relations == "merge" and any(declared != "drop" for declared in told.values()):
        raise BadParameter(
            "Merged relations have no values of edges.", fix="Drop the columns of the edges, or use `relations: keep`."
        )
    frames = [(title, edge_table(table)) for title, table in named]
    pairs = [_pairs(frame, source, target) for _, frame in frames]
    rest = [(f"The edge table `{title}`" if len(frames) > 1 else "The edge table",
             frame.drop(first.name, second.name))
            for (title, frame), (first, second) in zip(frames, pairs, strict=True)]  # fmt: skip
    about = released_columns(rest, told)
    if len(named) > 1 and relations == "keep":
        about = [
            table.select(pl.repeat(title, frame.height, eager=True).alias("relation"), pl.all())
            for (title, frame), table in zip(frames, about, strict=True)
        ]
    if nodes is None:
        names = pl.concat([column for pair in pairs for column in pair]).unique().sort()
        frame = pl.DataFrame({"node": names})
        key = "node"
    else:
        frame = edge_table(nodes)
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
    ends = [np.column_stack([_numbers(column, place) for column in pair]) for pair in pairs]
    sound = _sound(ends, len(names), drop, directed=directions == "drop")
    if not any(table.width for table in about):
        keys = [edge_keys(pair[kept, 0], pair[kept, 1], len(names)) for pair, kept in zip(ends, sound, strict=True)]
        merged = keys[0] if len(keys) == 1 and directions is None else np.unique(np.concatenate(keys))
        return Graph.of(np.column_stack([merged // len(names), merged % len(names)]), size=len(names), nodes=frame)
    rows = [
        pl.DataFrame({"source": pair[kept, 0], "target": pair[kept, 1]}).hstack(table.filter(kept))
        for pair, kept, table in zip(ends, sound, about, strict=True)
    ]
    return labelled_graph(pl.concat(rows), size=len(names), nodes=frame)


def declared_graph(
    edges: Sequence[object],
    *,
    nodes: object,
    key: str | None = None,
    source: str | None = None,
    target: str | None = None,
) -> Graph:
    """The graph of edge tables and a node table for statistics with a guarantee: who is linked, and nothing else.

    No refusal depends on a row (:mod:`sfumato.data.declared`). Edges without a name, to unknown nodes, from a node to
    itself and repeated ones are left out, and so is a row of the node table without a name or with an earlier one.
    """
    named = column_names(nodes)
    names = _cells(nodes, [key or named[0]])[0].drop_nulls().unique(maintain_order=True)
    place = pl.DataFrame({"name": names, "number": pl.Series(range(len(names)), dtype=pl.Int64)})
    keys = [np.zeros(0, dtype=np.int64)]
    for table in edges:
        titles = column_names(table)
        if len(titles) < 2:
            raise InvalidGraph("An edge table has two columns that name the linked nodes; this one has one column.")
        first, second = source or titles[0], target or titles[1]
        if first == second:
            raise DuplicateColumns(f"Source and target of the edges are both `{first}`.")
        one, other = (_numbers(column, place) for column in _cells(table, [first, second]))
        kept = (one >= 0) & (other >= 0) & (one != other)
        keys.append(edge_keys(one[kept], other[kept], len(names)))
    merged = np.unique(np.concatenate(keys))
    size = max(1, len(names))
    return Graph.of(np.column_stack([merged // size, merged % size]), size=len(names))


def _cells(table: object, names: Sequence[str]) -> list[pl.Series]:
    _require_room(table)
    return read_declared(table, dict.fromkeys(names, "category")).frame.get_columns()


def _named(edges: Sequence[object] | Mapping[str, object]) -> list[tuple[str, object]]:
    """Edge tables with the names of their relations, which differ."""
    if isinstance(edges, Mapping):
        return list(edges.items())
    files = [Path(table).name.split(".")[0] if isinstance(table, str | Path) else "" for table in edges]
    distinct = len(set(files)) == len(files) and all(files)
    titles = files if distinct else [f"relation {number}" for number in range(1, len(files) + 1)]
    return list(zip(titles, edges, strict=True))


def _numbers(column: pl.Series, place: pl.DataFrame) -> Ints:
    """Node numbers of names; -1 for an unknown one."""
    named = pl.DataFrame({"name": column}).join(place, on="name", how="left", maintain_order="left")["number"]
    return named.fill_null(-1).to_numpy().astype(np.int64)


def edge_table(source: object) -> pl.DataFrame:
    """A table as it is read for a graph. A file that does not fit in memory is refused."""
    _require_room(source)
    return read(source).frame


def _require_room(source: object) -> None:
    if isinstance(source, str | Path) and not is_url(str(source)):
        file = Path(file_and_options(source)[0])
        if file.is_file():
            require_memory(_GROWTH * file.stat().st_size, f"Reading the edge or node table {file.name}")


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


def _sound(ends: Sequence[Ints], size: int, drop: Collection[Fault], *, directed: bool) -> list[Any]:
    """The rows of each table to keep; faults that are not to be dropped are counted and refused."""
    kept, counts = [], {"dangling": 0, "self-loops": 0, "duplicates": 0}
    for pair in ends:
        unknown = (pair < 0).any(axis=1)
        loops = (pair[:, 0] == pair[:, 1]) & ~unknown
        good = ~unknown & ~loops
        keys = pair[:, 0] * size + pair[:, 1] if directed else edge_keys(pair[:, 0], pair[:, 1], size)
        keys[~good] = -1 - np.arange(int((~good).sum()))
        first = np.zeros(len(keys), dtype=bool)
        first[np.unique(keys, return_index=True)[1]] = True
        for name, bad in (("dangling", unknown), ("self-loops", loops), ("duplicates", ~first)):
            counts[name] += int(bad.sum())
        kept.append(good & first)
    words: Mapping[str, str] = {
        "dangling": "to or from a node that is not in the node table",
        "self-loops": "from a node to itself",
        "duplicates": f"that a table names again, in the same{'' if directed else ' or the other'} direction",
    }
    found = [(name, number) for name, number in counts.items() if number and name not in drop]
    if found:
        raise InvalidGraph(
            "The edges are not those of a simple graph: "
            + "; ".join(f"{counted(number, 'edge')} {words[name]} ({name})" for name, number in found)
            + ".",
            fix=" ".join(_FIX[name] for name, _ in found),
            **{name.replace("-", "_"): number for name, number in found},
        )
    return kept
