"""Base class of measures of released graphs: one class per measure in ``measures/graph``."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from sfumato.arrays import Ints
from sfumato.graphs.clusters import Clusters
from sfumato.graphs.graph import Graph
from sfumato.measures.base import About, MeasureResult
from sfumato.params import Part
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphPair:
    """The original graph and the released one. For a generalized graph, one of the graphs with the released counts."""

    original: Graph
    release: Graph
    lineage: Ints
    """For each released node the original one."""
    clusters: Clusters | None = None
    """For a generalized graph: what was released instead of edges."""

    @property
    def aligned(self) -> Graph:
        """The original with the nodes of the release, in its order."""
        everyone = len(self.lineage) == self.original.size and bool(
            (self.lineage == np.arange(len(self.lineage))).all()
        )
        return self.original if everyone else self.original.reordered(self.lineage)


class GraphMeasure(Part):
    """A figure about a released graph, compared with its original."""

    suffix = "Measure"
    about: ClassVar[About] = About.UTILITY
    better: ClassVar[Literal["low", "high"]] = "low"
    """Whether a low or a high value is good: for the user of the data (utility) or for its people (disclosure)."""
    label: ClassVar[str] = ""
    """Its name in tables; the part name if empty."""

    @abstractmethod
    def compute(self, pair: GraphPair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        """Compute the value; estimates from a sample say how large it was."""

    def result(self, value: float | None, **more: object) -> MeasureResult:
        """A result with this measure's name; ``reason`` where there is no value."""
        return MeasureResult(measure=self.part_name(), value=value, **more)  # type: ignore[arg-type]
