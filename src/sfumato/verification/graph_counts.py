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


def _unchecked(folder: Path, name: str, parameters: Mapping[str, Any]) -> Verdict:
    return Verdict(model=name, state=State.NOT_CHECKED, reason="no independent check of this model for graphs")


_CHECKS = {"k-degree-anonymity": _k_degree}
