"""Base classes of methods that protect a graph and of privacy models of graphs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from sfumato.arrays import Ints
from sfumato.graphs.clusters import Clusters
from sfumato.graphs.edge_labels import carry_labels
from sfumato.graphs.graph import Graph
from sfumato.graphs.released_files import GraphFiles
from sfumato.params import Part
from sfumato.progress import SILENT, Progress
from sfumato.release import Verdict
from sfumato.rng import Rng


@dataclass(frozen=True, kw_only=True)
class GraphChange:
    """The result of a method."""

    graph: Graph
    """The protected graph, with the nodes of the original in the same order. For a generalized graph: one of the
    graphs that have the released counts, drawn at random."""
    clusters: Clusters | None = None
    """For a generalized graph: what is released instead of edges."""
    labels: Ints | None = None
    """For a generalized graph: the cluster of each node. Confidential."""
    symmetry: Ints | None = None
    """A permutation of the nodes that maps edges to edges, where the method makes one."""
    counts: Mapping[str, object] = field(default_factory=dict)
    """What was changed, for the owner: counts of the original are not published."""


class GraphMethod(Part):
    """A method that changes the edges of a graph. Its parameters are public, and adversaries know them.

    A method that does not set labels of edges leaves them to :func:`apply_step`.
    """

    protection = "data-driven"

    uses_attributes: ClassVar[bool] = False
    """Whether the method needs the node table."""

    @abstractmethod
    def apply(self, graph: Graph, rng: Rng, progress: Progress = SILENT) -> GraphChange:
        """Protect the graph; the input is not changed."""


def apply_step(method: GraphMethod, graph: Graph, rng: Rng, progress: Progress = SILENT) -> GraphChange:
    """Apply a method; edges that it keeps keep their labels, and others get labels of deleted edges."""
    change = method.apply(graph, rng, progress)
    return replace(change, graph=carry_labels(graph, change.graph, rng.child("labels").generator))


class GraphModel(Part):
    """A privacy model that a released graph meets or not.

    It carries its condition twice: :meth:`check` on the graph in memory, and :meth:`independent_check` on the rows of
    the released files, without the code that protects graphs. `sfumato check` uses the second.
    """

    protects: ClassVar[frozenset[str]] = frozenset({"identity"})
    """What a release that meets the model does not disclose."""

    @abstractmethod
    def check(self, graph: Graph, clusters: Clusters | None = None, symmetry: Ints | None = None) -> Verdict:
        """The verdict on a released graph, or on the released clusters of nodes. ``symmetry`` maps edges to edges."""

    @classmethod
    @abstractmethod
    def independent_check(cls, parameters: Mapping[str, object], files: GraphFiles) -> Verdict:
        """The verdict on released files from plain counts. ``parameters`` are those of the manifest."""
