"""Schema of a table: column roles, kinds, domains and generalization hierarchies."""

from sfumato.registry import exports
from sfumato.schema.column import Column, Domain, Kind, Role
from sfumato.schema.dataset import Dataset, Schema
from sfumato.schema.hierarchy import ROOT, BoundHierarchy, Hierarchy, Level

__all__ = ["ROOT", "BoundHierarchy", "Column", "Dataset", "Domain", "Hierarchy", "Kind", "Level", "Role", "Schema"]

__getattr__, __dir__ = exports(__name__)
