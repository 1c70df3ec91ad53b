"""Measure: change of the largest eigenvalues of the adjacency matrix."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.graphs.graph import Graph
from sfumato.measures.base import MeasureResult
from sfumato.measures.graph._base import GraphMeasure, GraphPair
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class Spectrum(GraphMeasure):
    """Change of the spectrum: mean relative difference of the largest eigenvalues of the adjacency matrix."""

    label: ClassVar[str] = "change of the spectrum"
    reference = "Ying, Wu (2008), doi:10.1137/1.9781611972788.67"

    eigenvalues: Annotated[int, Field(ge=1, le=100)] = 10
    """Number of eigenvalues, the largest ones."""

    def compute(self, pair: GraphPair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        count = min(self.eigenvalues, pair.original.size - 2, pair.release.size - 2)
        if count < 1 or not pair.original.edge_count or not pair.release.edge_count:
            return self.result(None, reason="The graph is too small.")
        before, after = (_largest(graph, count, rng) for graph in (pair.original, pair.release))
        value = float((np.abs(after - before) / np.maximum(np.abs(before), 1e-9)).mean())
        detail = {"before": float(before[0]), "after": float(after[0])}
        return self.result(value, detail=detail)


def _largest(graph: Graph, count: int, rng: Rng) -> npt.NDArray[np.float64]:
    from scipy.sparse.linalg import eigsh

    start = rng.child("start").generator.random(graph.size)
    found = eigsh(graph.matrix().astype(np.float64), k=count, which="LA", v0=start, return_eigenvectors=False, tol=1e-4)
    return np.sort(found)[::-1]
