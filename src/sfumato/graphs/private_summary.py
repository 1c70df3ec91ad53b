"""Differentially private summary of a graph: number of edges, degree distribution, number of triangles.

| statistic | one friendship is protected | one person with all friendships is protected |
|---|---|---|
| ``edges`` | geometric noise of scale 1 / epsilon | at most ``max_degree`` friends each are counted |
| ``degrees`` | sorted degrees, isotonic regression | histogram, at most ``max_degree`` friends each |
| ``triangles`` | ladder mechanism | at most ``max_triangles`` triangles of each person are counted |

The budget is divided equally among the statistics. Under ``edges`` the sum of the degree distribution is the number of
people, which that guarantee assumes to be public; other statistics do not tell it. A node table is required: without
one, the people are those with an edge, and one friendship more or less would change who they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log
from typing import Literal, get_args

import numpy as np
import polars as pl

from sfumato.arrays import Ints
from sfumato.dp.loss import pure
from sfumato.dp.receipt import Receipt
from sfumato.errors import BadParameter
from sfumato.graphs.graph import Graph
from sfumato.graphs.private_node_triangles import private_node_triangle_count
from sfumato.graphs.private_statistics import (
    private_degree_histogram,
    private_degree_sequence,
    private_edge_count,
)
from sfumato.graphs.private_triangles import check_triangle_size, private_triangle_count, triangles
from sfumato.ledger.charge import Charge, charge_run
from sfumato.ledger.ledger import Ledger
from sfumato.rationals import Number, rational
from sfumato.release.guarantee import Guarantee

Protected = Literal["edges", "nodes"]
GraphStatistic = Literal["edges", "degrees", "triangles"]
_UNITS: Mapping[Protected, str] = {"edges": "edge", "nodes": "node"}
_NEIGHBOURS: Mapping[Protected, str] = {
    "edges": "add or remove one friendship; the people and their number are assumed to be public",
    "nodes": "add or remove one person with all their friendships",
}
_PROOF = (
    "discrete Laplace noise on counts of bounded sensitivity: sorted degrees (Hay, Li, Miklau, Jensen 2009), edges in "
    "the order of their nodes (Day, Li, Lyu 2016), ladder function for triangles (Zhang, Cormode, Procopiuc, "
    "Srivastava, Xiao 2015); sequential composition"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphSummary:
    """Noisy statistics, which may be published, and the statement of their guarantee."""

    counts: pl.DataFrame
    """One line per count: ``statistic``, ``value``, ``noise_95`` (95 % of the noise is within; empty if unknown)."""
    degrees: pl.DataFrame | None
    """The number of people with each degree: ``degree``, ``people``."""
    guarantee: Guarantee

    def to_dict(self) -> dict[str, object]:
        """Plain data, for JSON."""
        degrees = None if self.degrees is None else self.degrees.rows()
        return {"guarantee": self.guarantee.to_dict(), "counts": self.counts.to_dicts(), "degrees": degrees}


def private_graph_summary(
    graph: Graph,
    *,
    protect: Protected,
    epsilon: Number,
    ledger: Ledger,
    dataset: str,
    statistics: Sequence[GraphStatistic] = (),
    max_degree: int | None = None,
    max_triangles: int | None = None,
    unit: str | None = None,
) -> GraphSummary:
    """Charge ``ledger`` once and publish statistics. Everything that can be refused is refused before the charge.

    ``max_degree`` and ``max_triangles`` bound what one person contributes under ``protect="nodes"``; choose them
    without looking at the data. ``unit`` is what the ledger calls a person, where nodes are people who are charged for
    other releases too: a person with all friendships is protected.
    """
    if unit is not None and protect != "nodes":
        raise BadParameter("one friendship is not a person.", fix="Protect `nodes`, or leave `unit` out.")
    whose = unit or _UNITS[protect] if protect in _UNITS else ""
    wanted = _statistics(protect, statistics, max_degree, max_triangles)
    total = rational(epsilon)
    if total <= 0:
        raise BadParameter("epsilon must be above 0.")
    if protect == "edges":  # the people are public; otherwise a refusal would tell how many there are
        if graph.size < 1:
            raise BadParameter("The graph has no nodes.")
        if "triangles" in wanted:
            check_triangle_size(graph)
    bounds = {name: most for name, most in (("max_degree", max_degree), ("max_triangles", max_triangles)) if most}
    run = Charge.of_run(
        pure(total), unit=whose, name=f"graph statistics that protect {protect}",
        public={"statistics": wanted, "epsilon": total, **bounds},
    )  # fmt: skip
    receipt = charge_run(run, ledger=ledger, dataset=dataset)
    share, rows, degrees = total / len(wanted), [], None
    for name in wanted:
        if name == "degrees":
            degrees = _degrees(graph, protect, share, max_degree, receipt)
            continue
        value, scale = _count(graph, name, protect, share, max_degree, max_triangles, receipt)
        rows.append((name, value, None if scale is None else _noise(share / scale)))
    kinds = {"statistic": pl.String, "value": pl.Int64, "noise_95": pl.Int64}
    guarantee = Guarantee(
        loss=pure(total), unit=whose, neighbours=_NEIGHBOURS[protect], proof=_PROOF,
        parameters={"statistics": list(wanted), **bounds},
    ).charged(receipt)  # fmt: skip
    return GraphSummary(counts=pl.DataFrame(rows, schema=kinds, orient="row"), degrees=degrees, guarantee=guarantee)


def exact_graph_summary(graph: Graph) -> dict[str, pl.DataFrame]:
    """The same statistics without noise and bounds, by the names of their tables. For the owner of the graph only."""
    people = np.bincount(graph.degrees)
    counts = {"statistic": ["edges", "triangles"], "value": [graph.edge_count, triangles(graph)[0]]}
    return {
        "counts": pl.DataFrame(counts),
        "degrees": pl.DataFrame({"degree": np.arange(len(people)), "people": people}),
    }


def _statistics(
    protect: Protected, asked: Sequence[GraphStatistic], max_degree: int | None, max_triangles: int | None
) -> tuple[GraphStatistic, ...]:
    """The statistics to publish, in the order of :data:`GraphStatistic`, and each with the bounds that it needs."""
    known: tuple[GraphStatistic, ...] = get_args(GraphStatistic)
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise BadParameter(f"There is no statistic `{unknown[0]}`.", fix=f"Choose among {', '.join(known)}.")
    if protect not in _UNITS:
        raise BadParameter("`protect` is `edges` or `nodes`.")
    if protect == "edges":
        if max_degree is not None or max_triangles is not None:
            raise BadParameter("Bounds on degrees and triangles are for `nodes`.", fix="Leave them out.")
        return tuple(name for name in known if not asked or name in asked)
    wanted = tuple(name for name in known if (name in asked if asked else name != "triangles" or max_triangles))
    if max_degree is None and {"edges", "degrees"} & set(wanted):
        raise BadParameter(
            "Protecting nodes needs max_degree: the largest number of friends of a person that is counted.",
            fix="Choose it without looking at the data.",
        )
    if max_triangles is None and "triangles" in wanted:
        raise BadParameter(
            "Triangles need max_triangles if nodes are protected: how many of a person are counted, at most.",
            fix="Choose it without looking at the data.",
        )
    for name, most in (("max_degree", max_degree), ("max_triangles", max_triangles)):
        if most is not None and most < 1:
            raise BadParameter(f"{name} must be at least 1.")
    return wanted


def _count(
    graph: Graph, name: GraphStatistic, protect: Protected, epsilon: Fraction, max_degree: int | None,
    max_triangles: int | None, receipt: Receipt,
) -> tuple[int, int | None]:  # fmt: skip
    """A noisy count, and its sensitivity where that is public."""
    match name, protect:
        case "edges", "edges":
            return private_edge_count(graph, unit="edge", epsilon=epsilon, receipt=receipt), 1
        case "edges", _:
            count = private_edge_count(graph, unit="node", epsilon=epsilon, receipt=receipt, max_degree=max_degree)
            return count, max_degree
        case "triangles", "edges":
            return private_triangle_count(graph, epsilon=epsilon, receipt=receipt), None
        case "triangles", _:
            assert max_triangles is not None
            return private_node_triangle_count(graph, epsilon=epsilon, most=max_triangles, receipt=receipt)
        case _:
            raise BadParameter(f"`{name}` is not a count.")


def _degrees(
    graph: Graph, protect: Protected, epsilon: Fraction, max_degree: int | None, receipt: Receipt
) -> pl.DataFrame:
    people: Ints
    if protect == "edges":
        people = np.bincount(np.rint(private_degree_sequence(graph, epsilon=epsilon, receipt=receipt)).astype(np.int64))
    else:
        assert max_degree is not None
        people = private_degree_histogram(graph, epsilon=epsilon, max_degree=max_degree, receipt=receipt)
    return pl.DataFrame({"degree": np.arange(len(people)), "people": people})


def _noise(rate: Fraction) -> int:
    """The smallest t such that two-sided geometric noise with this rate is beyond t in 5 % of the cases at most."""
    decay = float(rate)
    return max(0, ceil(log(2 / 0.05 / (1 + np.exp(-decay))) / decay) - 1)
