# Made by `make docs`.
from sfumato.graphs.methods.anonymize_degrees import AnonymizeDegrees as AnonymizeDegrees
from sfumato.graphs.methods.cluster_nodes import ClusterNodes as ClusterNodes
from sfumato.graphs.clusters import Clusters as Clusters
from sfumato.graphs.graph import Graph as Graph
from sfumato.graphs.base import GraphChange as GraphChange
from sfumato.graphs.base import GraphMethod as GraphMethod
from sfumato.graphs.base import GraphModel as GraphModel
from sfumato.graphs.models.k_degree_anonymity import KDegreeAnonymity as KDegreeAnonymity
from sfumato.graphs.methods.random_edges import RandomEdges as RandomEdges
from sfumato.graphs.methods.switch_edges import SwitchEdges as SwitchEdges
from sfumato.graphs.read_graph import as_graph as as_graph
from sfumato.graphs.read_graph import graph_from_tables as graph_from_tables
from sfumato.graphs.private_statistics import private_degree_histogram as private_degree_histogram
from sfumato.graphs.private_statistics import private_degree_sequence as private_degree_sequence
from sfumato.graphs.private_statistics import private_edge_count as private_edge_count
from sfumato.graphs.synthetic import synthetic_friends as synthetic_friends
