"""Roles, kinds, domains, hierarchies: what the columns of a table mean."""

from tacit.schema.column import Column, Domain, Kind, Role
from tacit.schema.dataset import Dataset, Schema
from tacit.schema.hierarchy import ROOT, Hierarchy, Ladder, Level

__all__ = ["ROOT", "Column", "Dataset", "Domain", "Hierarchy", "Kind", "Ladder", "Level", "Role", "Schema"]
