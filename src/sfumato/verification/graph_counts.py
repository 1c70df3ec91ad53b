"""Independent check of a released graph: counts of its files by plain GROUP BY, without the code that made it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.release import State, Verdict

__all__ = ["check_graph_files"]


def check_graph_files(folder: Path, models: Mapping[str, Mapping[str, Any]]) -> list[Verdict]:
    """The verdict on each model that a graph's manifest names. A model without an independent check is not checked."""
    return [_CHECKS.get(name, _unchecked)(folder, name, parameters) for name, parameters in models.items()]


def _k_degree(folder: Path, name: str, parameters: Mapping[str, Any]) -> Verdict:
    if (folder / "clusters.csv").is_file():
        sizes = pl.read_csv(folder / "clusters.csv")["nodes"]
        what = "clusters"
    else:
        ends = pl.read_csv(folder / "edges.csv")
        nodes = pl.read_csv(folder / "nodes.csv").select(pl.col("node").cast(pl.Int64))
        per_node = pl.concat([ends["source"], ends["target"]]).alias("node").to_frame().group_by("node").len()
        degrees = nodes.join(per_node, on="node", how="left").with_columns(pl.col("len").fill_null(0))
        unknown = per_node.join(nodes, on="node", how="anti").height
        if unknown:
            return Verdict(model=name, state=State.FAILS, reason="edges name nodes that nodes.csv does not")
        sizes = degrees.group_by("len").agg(pl.len().alias("nodes"))["nodes"]
        what = "nodes of a degree"
    k = int(parameters["k"])
    small = sizes.filter(sizes < k)
    state = State.FAILS if len(small) else State.HOLDS
    worst = int(sizes.min() or 0)  # type: ignore[arg-type]
    reason = f"fewer than {k} {what}" if len(small) else ""
    return Verdict(model=name, state=state, worst=worst, wanted=k, failing=int(small.sum()), reason=reason)


def _k_automorphism(folder: Path, name: str, parameters: Mapping[str, Any]) -> Verdict:
    """The symmetry maps nodes one to one, edges to edges and equal attributes to each other; its cycles are counted."""
    k = int(parameters["k"])
    if (folder / "clusters.csv").is_file():
        return _k_degree(folder, name, parameters)
    if not (folder / "symmetry.csv").is_file():
        return Verdict(model=name, state=State.NOT_CHECKED, reason="there is no symmetry.csv")
    nodes, moved = pl.read_csv(folder / "nodes.csv"), pl.read_csv(folder / "symmetry.csv")
    image = dict(zip(moved["node"], moved["image"], strict=True))
    edges = {frozenset(pair) for pair in pl.read_csv(folder / "edges.csv").select("source", "target").iter_rows()}
    row = {number: rest for number, *rest in nodes.iter_rows()}
    if not set(row) == set(image) == set(image.values()):
        return Verdict(model=name, state=State.FAILS, reason="symmetry.csv does not map the nodes one to one")
    if any(frozenset(image[end] for end in edge) not in edges for edge in edges):
        return Verdict(model=name, state=State.FAILS, reason="symmetry.csv does not map edges to edges")
    if any(row[node] != row[image[node]] for node in row):
        return Verdict(model=name, state=State.NOT_CHECKED, reason="attributes tell symmetric nodes apart")
    lengths, left = [], set(row)
    while left:
        cycle, node = set(), next(iter(left))
        while node not in cycle:
            cycle.add(node)
            node = image[node]
        lengths.append(len(cycle))
        left -= cycle
    small = [length for length in lengths if length < k]
    reason = f"a cycle of fewer than {k} nodes" if small else ""
    state = State.FAILS if small else State.HOLDS
    return Verdict(model=name, state=state, worst=min(lengths, default=0), wanted=k, failing=sum(small), reason=reason)


def _unchecked(folder: Path, name: str, parameters: Mapping[str, Any]) -> Verdict:
    return Verdict(model=name, state=State.NOT_CHECKED, reason="no independent check of this model for graphs")


_CHECKS = {"k-degree-anonymity": _k_degree, "k-automorphism": _k_automorphism}
