"""Social graphs: k-degree anonymity, random changes of edges, generalization into clusters, private statistics.

>>> import numpy as np
>>> from sfumato.graphs import AnonymizeDegrees, Graph, KDegreeAnonymity
>>> from sfumato.rng import Rng
>>> star = Graph.of([(0, leaf) for leaf in range(1, 8)])
>>> protected = AnonymizeDegrees(k=2).apply(star, Rng(1)).graph
>>> str(KDegreeAnonymity(k=2).check(protected).state)
'holds'
"""

from sfumato.registry import exports

__getattr__, __dir__ = exports(
    __name__,
    Clusters="clusters",
    Graph="graph",
    GraphChange="base",
    GraphMethod="base",
    GraphModel="base",
    as_graph="read_graph",
    graph_from_tables="read_graph",
    private_degree_histogram="private_statistics",
    private_degree_sequence="private_statistics",
    private_edge_count="private_statistics",
    private_graph_summary="private_summary",
    private_triangle_count="private_triangles",
)
