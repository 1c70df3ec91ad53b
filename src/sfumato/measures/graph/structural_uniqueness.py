"""Measure: nodes that are unique by what an attacker may know of their surroundings."""

from __future__ import annotations

from typing import ClassVar

from sfumato.graphs.graph import Graph
from sfumato.graphs.signatures import colours, unique_share
from sfumato.measures.base import About, MeasureResult
from sfumato.measures.graph._base import GraphMeasure, GraphPair
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

_DEPTHS = ("degree", "neighbour degrees", "two hops")


class StructuralUniqueness(GraphMeasure):
    """Share of nodes that are unique by their degree, by the sorted degrees of their neighbours, and by two hops.

    The value is that of two hops in the release, the largest of the three. The shares of the original stand in
    ``detail``. In a generalized graph only a cluster of a single node would be unique.
    """

    about: ClassVar[About] = About.DISCLOSURE
    label: ClassVar[str] = "unique nodes"

    def compute(self, pair: GraphPair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        after, before = _shares(pair.release), _shares(pair.original)
        if pair.clusters is not None:
            alone = float((pair.clusters.sizes == 1).sum() / pair.clusters.sizes.sum())
            after = dict.fromkeys(after, alone)
        return self.result(after["two hops"], columns=after, detail={"before": before["two hops"], "columns": before})


def _shares(graph: Graph) -> dict[str, float]:
    return {name: unique_share(colours(graph, depth)) for depth, name in enumerate(_DEPTHS)}
